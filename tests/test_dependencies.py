"""What is declared is pinned, with all that it needs; and what an audit of it reports."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import orjson
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra import audit

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
#: Builds of torch for machines with a GPU need these; they are no part of what the project is tested with.
OF_THE_GPU = ("nvidia-", "cuda-", "triton")


def pins() -> dict[str, str]:
    lines = [line for line in audit.PINS.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    parts = [line.split("==") for line in lines]
    assert all(len(part) == 2 for part in parts), "a pin is name==version"
    assert len({canonicalize_name(name) for name, _ in parts}) == len(parts), "pinned twice"
    return {canonicalize_name(name): version for name, version in parts}


@pytest.mark.parametrize("declared", DECLARED)
def test_every_declared_dependency_is_pinned_within_its_bounds(declared: str) -> None:
    requirement = Requirement(declared)
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)], prereleases=True)


def needed(requirement: Requirement, seen: set[tuple[str, str]]) -> Iterator[str]:
    """A requirement and what it needs on this machine, as far as it is installed."""
    for extra in ("", *sorted(requirement.extras)):
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            inner = [Requirement(one) for one in requires(name) or ()]
        except PackageNotFoundError:
            continue
        yield name
        for one in inner:
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                yield from needed(one, seen)


def test_what_they_need_is_pinned_too() -> None:
    seen: set[tuple[str, str]] = set()
    found = {name for declared in DECLARED for name in needed(Requirement(declared), seen)}
    assert len(found) > 50
    missing = {name for name in found - set(pins()) if not name.startswith(OF_THE_GPU)}
    assert missing <= {"setuptools"}  # torch's, which an environment may bring


CLEAN = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1", "3"]}, {"id": "PYSEC-2"}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (3)"}


@pytest.mark.parametrize(
    ("dependencies", "report"),
    [
        ([], None),
        ([SKIPPED], None),
        ([CLEAN], ["audit: 1 packages looked up, 0 known vulnerabilities"]),
        ([CLEAN, SKIPPED], ["audit: 1 packages looked up, 0 known vulnerabilities", "  not looked up: c"]),
        (
            [CLEAN, BAD],
            [
                "audit: 2 packages looked up, 2 known vulnerabilities",
                "  b 2: PYSEC-1, fixed in 2.1, 3",
                "  b 2: PYSEC-2, fixed in no release yet",
            ],
        ),
    ],
)
def test_silence_is_not_a_clean_bill(dependencies: list[object], report: list[str] | None) -> None:
    assert audit.read(orjson.dumps({"dependencies": dependencies, "fixes": []})) == report


@pytest.mark.parametrize("output", [b"", b"Traceback", b"[]", b"\xff", b'{"dependencies": 1}'])
def test_a_tool_that_failed_is_no_answer(output: bytes) -> None:
    assert audit.read(output) is None


def test_the_build_goes_on_where_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(_: Path) -> None:
        raise OSError("no network")

    monkeypatch.setattr(audit, "_ask", away)
    assert audit.main() == 0
    assert capsys.readouterr().out == "audit: no vulnerability service is reachable, skipped\n"

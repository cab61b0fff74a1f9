"""Are there known vulnerabilities in what is pinned? `python -m infra.audit` asks, and reports; it never fails a build.

An advisory published today says nothing about today's change, and a service that does not answer says nothing at all: a
build that stood still for either would soon be told to look away. What matters is that silence is not mistaken for a
clean bill: behind a mirror pip-audit calls every package "not found", and ends with success.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from contracts import wire
from contracts.base import LaxMessage
from contracts.errors import Garbled

TOOL = "pip-audit==2.10.1"
PINS = Path(__file__).with_name("constraints.txt")
SERVICES = ("osv", "pypi")
PATIENCE_S = 120


class Advisory(LaxMessage):
    id: str
    fix_versions: tuple[str, ...] = ()


class Dependency(LaxMessage):
    """`skip_reason` says why nothing is known of it."""

    name: str
    version: str = ""
    vulns: tuple[Advisory, ...] = ()
    skip_reason: str | None = None


class Findings(LaxMessage):
    dependencies: tuple[Dependency, ...] = ()


def lines(findings: Findings) -> list[str] | None:
    """The report; none where the service knew no package, which is no answer."""
    known = [one for one in findings.dependencies if one.skip_reason is None]
    if not known:
        return None
    bad = [(one, advisory) for one in known for advisory in one.vulns]
    unknown = [one.name for one in findings.dependencies if one.skip_reason is not None]
    found = [
        f"  {one.name} {one.version}: {advisory.id}, fixed in {', '.join(advisory.fix_versions) or 'no release yet'}"
        for one, advisory in bad
    ]
    head = f"audit: {len(known)} packages looked up, {len(bad)} known vulnerabilities"
    return [head, *found, *([f"  not looked up: {', '.join(unknown)}"] if unknown else [])]


def read(output: bytes) -> list[str] | None:
    """The report of what the tool printed; none where that is no answer."""
    try:
        return lines(wire.decode_stored(Findings, output))
    except Garbled:
        return None


def main() -> int:
    try:
        with tempfile.TemporaryDirectory(prefix="memlane-audit-") as folder:
            report = _ask(Path(folder))
    except (OSError, subprocess.SubprocessError):
        report = None
    print("\n".join(report or ["audit: no vulnerability service is reachable, skipped"]), flush=True)
    return 0


def _ask(folder: Path) -> list[str] | None:
    """In an environment of its own: what the tool needs is no business of ours."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TOOL]).check_returncode()
    for service in SERVICES:
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--timeout", "5", "-f", "json"]
        report = read(_run([python, "-m", "pip_audit", "-r", str(PINS), "-s", service, *options]).stdout)
        if report is not None:
            return report
    return None


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)


if __name__ == "__main__":
    sys.exit(main())

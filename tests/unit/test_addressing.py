"""Whose memory a message is for."""

from __future__ import annotations

import pytest

from contracts import subjects
from contracts.addressing import NO_PROJECT, PROJECT_HEADER, addressed
from contracts.errors import ErrorCode, InvalidRequest


@pytest.mark.parametrize(
    ("subject", "header", "project"),
    [
        ("memlane.v1.team.recall", None, "team"),
        ("memlane.v1.team.recall", "team", "team"),
        ("memlane.v1._.recall", None, "home"),
        ("memlane.v1._.recall", "team", "team"),
        ("memlane.v1._.schema.get", "team", "team"),
        ("memlane.ingest.v1._", None, "home"),
        ("memlane.ingest.v1._", "team", "team"),
        ("memlane.ingest.v1.team", None, "team"),
    ],
)
def test_subject_then_header_then_default(subject: str, header: str | None, project: str) -> None:
    for name in (PROJECT_HEADER, PROJECT_HEADER.lower(), PROJECT_HEADER.upper()):
        found = addressed(subject, {name: header} if header is not None else {}, "home")
        assert subjects.project_of(found) == project
        assert found.split(".")[-1] == (project if "ingest" in subject else subject.rsplit(".", maxsplit=1)[-1])
        assert len(found.split(".")) == len(subject.split("."))


@pytest.mark.parametrize("header", ["", "a.b", "*", ">", "_", "-a", " a", "a ", "p" * 65, "naïve"])
@pytest.mark.parametrize("subject", ["memlane.v1._.recall", "memlane.v1.team.recall", "memlane.ingest.v1._"])
def test_a_header_that_no_project_can_be_called(subject: str, header: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        addressed(subject, {PROJECT_HEADER: header}, "home")
    assert caught.value.code is ErrorCode.INVALID_PROJECT


def test_two_projects_at_once() -> None:
    with pytest.raises(InvalidRequest) as caught:
        addressed("memlane.v1.team.recall", {PROJECT_HEADER: "other"}, "home")
    assert caught.value.code is ErrorCode.INVALID_PROJECT


@pytest.mark.parametrize("subject", ["memlane.lane.v1.graph.0.search", "memlane.catalog.v1.0.list", "memlane.v1", "x"])
def test_other_subjects_have_no_project(subject: str) -> None:
    assert addressed(subject, {PROJECT_HEADER: "a.b"}, "home") == subject


def test_no_project_can_be_called_so() -> None:
    with pytest.raises(InvalidRequest):
        addressed("memlane.v1._.recall", {PROJECT_HEADER: NO_PROJECT}, "home")

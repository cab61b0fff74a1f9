from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from contracts import wire
from contracts.encode import EncodeRequest
from contracts.names import normalise
from contracts.recall import RecallRequest
from infra.readers import read

SAMPLE = Path(__file__).parents[2] / "infra" / "sample"
CUES: list[dict[str, Any]] = orjson.loads((SAMPLE / "cues.json").read_bytes())
LINES = (SAMPLE / "helpdesk.jsonl").read_bytes().splitlines()
REQUESTS = [wire.decode(EncodeRequest, line) for line in LINES]
TEXTS = [request.text for request in REQUESTS]
SHOWS = {
    "paraphrase",
    "exact id",
    "entity",
    "temporal",
    "superseded fact",
    "list",
    "relation",
    "two-hop",
    "preference",
    "unanswerable",
}
SMALL_WORDS = {"which", "the", "of", "what", "who", "is", "a"}


def holding(part: str) -> list[EncodeRequest]:
    return [request for request in REQUESTS if part in request.text]


def attributes() -> dict[tuple[str, str], list[tuple[EncodeRequest, str]]]:
    found: dict[tuple[str, str], list[tuple[EncodeRequest, str]]] = {}
    for request in REQUESTS:
        for statement in request.statements:
            if statement.kind.single_valued:
                key = normalise(statement.subject), statement.predicate
                found.setdefault(key, []).append((request, statement.object))
    return found


def test_the_sample_is_large_and_every_line_says_something_else() -> None:
    assert len(REQUESTS) >= 300
    assert len(set(TEXTS)) == len(TEXTS)
    assert [item.request for item in read(SAMPLE / "helpdesk.jsonl")] == REQUESTS


def test_times_are_in_order_over_about_five_months_of_2026() -> None:
    times = [request.occurred_at for request in REQUESTS if request.occurred_at]
    assert len(times) == len(REQUESTS)
    assert times == sorted(times)
    assert {time.year for time in times} == {2026}
    assert timedelta(days=140) < times[-1] - times[0] < timedelta(days=170)


def test_every_line_has_a_session_a_source_and_tags() -> None:
    assert all(request.session and request.tags for request in REQUESTS)
    assert {request.source for request in REQUESTS} == {"ticket", "slack", "email", "meeting", "doc"}


def test_many_facts_change_their_value_in_the_course_of_time() -> None:
    changed = {key for key, values in attributes().items() if len({value for _, value in values}) > 1}
    assert {
        ("ana ruiz", "works_at"),
        ("atlas", "deadline"),
        ("acme-1247", "status"),
        ("platform", "on_call"),
    } <= changed
    assert len(changed) >= 10


def test_there_is_one_cue_for_each_thing_to_show() -> None:
    assert {cue["shows"] for cue in CUES} == SHOWS
    assert len(CUES) == len(SHOWS)


@pytest.mark.parametrize("cue", CUES, ids=[cue["shows"] for cue in CUES])
def test_every_cue_is_a_valid_request_with_an_answer_in_the_sample(cue: dict[str, Any]) -> None:
    fields = {name: value for name, value in cue.items() if name not in ("shows", "expect", "not_expect")}
    request = wire.validate(RecallRequest, fields)
    assert cue["shows"] == "unanswerable" or holding(cue["expect"])
    for expected in holding(cue["expect"]) if cue["expect"] else []:
        assert expected.occurred_at is not None
        assert request.since is None or request.since <= expected.occurred_at
        assert request.until is None or expected.occurred_at <= request.until


def test_the_superseded_fact_is_told_by_one_line_and_retired_by_a_later_one() -> None:
    [cue] = [cue for cue in CUES if cue["shows"] == "superseded fact"]
    [old] = holding(cue["not_expect"])
    [new] = holding(cue["expect"])
    values = attributes()["ana ruiz", "works_at"]
    assert [request for request, _ in values] == [old, new]
    assert values[0][1] != values[1][1]


@pytest.mark.parametrize("cue", CUES, ids=[cue["shows"] for cue in CUES])
def test_no_later_fact_retires_what_a_cue_expects(cue: dict[str, Any]) -> None:
    expected = holding(cue["expect"]) if cue["expect"] else []
    for values in attributes().values():
        assert not [request for request, value in values if request in expected and value != values[-1][1]]


def test_the_unanswerable_cue_is_about_nothing_in_the_sample() -> None:
    [cue] = [cue for cue in CUES if cue["shows"] == "unanswerable"]
    assert cue["expect"] is None
    words = set(re.findall(r"\w+", cue["cue"].lower())) - SMALL_WORDS
    stems = {word.removesuffix("s") for word in words}
    corpus = {word.removesuffix("s") for text in TEXTS for word in re.findall(r"\w+", text.lower())}
    assert len(words) >= 3
    assert not stems & corpus

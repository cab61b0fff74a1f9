"""Whatever bytes come, a decoder gives a message or an error of ours; and what it gave can be written down again."""

from __future__ import annotations

import inspect
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import contracts.catalog
import contracts.edges
import contracts.encode
import contracts.graph
import contracts.lanes
import contracts.memory
import contracts.query
import contracts.recall
import contracts.schema
import contracts.topics
import contracts.txn
import contracts.usage
import contracts.work
from contracts import wire
from contracts.base import LaxMessage, Message
from contracts.errors import ErrorReply, Garbled, InvalidRequest, MemlaneError
from contracts.verbs import VERBS
from infra.discovery import _process
from infra.nats_bus import header_text
from infra.nats_ledger import counts_of
from orchestrator.cursor import unseal
from tests import fuzz

PARTS = (contracts.catalog, contracts.edges, contracts.encode, contracts.graph, contracts.lanes, contracts.memory,
         contracts.query, contracts.recall, contracts.schema, contracts.topics, contracts.txn, contracts.usage,
         contracts.work)  # fmt: skip
KINDS = sorted(
    {
        kind
        for part in PARTS
        for _, kind in inspect.getmembers(part, inspect.isclass)
        if issubclass(kind, Message | LaxMessage) and kind not in (Message, LaxMessage)
    },
    key=lambda kind: kind.__name__,
)
REQUESTS = sorted({verb.request for verb in VERBS.values()}, key=lambda kind: kind.__name__)
few = settings(max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck])
many = settings(few, max_examples=250)


def test_the_list_is_whole() -> None:
    assert len(KINDS) > 60
    assert set(REQUESTS) <= set(KINDS)
    assert {verb.reply for verb in VERBS.values()} <= set(KINDS)


@pytest.mark.parametrize("kind", REQUESTS)
def test_requests_of_callers(kind: type[BaseModel]) -> None:
    @many
    @given(fuzz.raw(kind))
    def check(data: bytes) -> None:
        try:
            request = wire.decode(kind, data)
        except InvalidRequest as error:
            told = wire.encode_error(error)  # the refusal itself can be sent
            with pytest.raises(InvalidRequest):
                wire.decode_reply(kind, told)
            return
        for written in (wire.encode(request), wire.encode_request(request)):
            assert wire.decode(kind, written) == request

    check()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in REQUESTS])
def test_messages_between_processes_and_what_is_stored(kind: type[BaseModel]) -> None:
    @few
    @given(fuzz.raw(kind))
    def check(data: bytes) -> None:
        for decode in (wire.decode_reply, wire.decode_stored):
            try:
                message = decode(kind, data)
            except Garbled as error:
                wire.encode_error(error)
                continue
            except MemlaneError:
                assert decode is wire.decode_reply, "it carried an error"
                continue
            written = wire.encode(message)  # not the message itself: `silent` travels beside it
            assert wire.encode(wire.decode_stored(kind, written)) == written

    check()


@few
@given(fuzz.raw(ErrorReply))
def test_errors_of_others(data: bytes) -> None:
    with pytest.raises(MemlaneError) as caught:
        wire.decode_reply(contracts.work.EmbedReply, data)
    assert wire.encode_error(caught.value)


@many
@given(fuzz.raw(contracts.usage.DayUsage))
def test_the_ledger(data: bytes) -> None:
    try:
        counts = counts_of(data)
    except Garbled:
        return
    assert all(isinstance(number, int) for number in counts.values())


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"1", b'{"encode": "x"}', b'{"encode": null}', b"\xff", b'{"encode": 1e99}']
)
def test_a_ledger_of_something_else(data: bytes) -> None:
    with pytest.raises(Garbled):
        counts_of(data)


def test_a_ledger_of_a_newer_release() -> None:
    assert counts_of(b'{"encode": 3, "dream": 4}') == {contracts.usage.Kind.ENCODE: 3}


@many
@given(st.one_of(st.text(max_size=40), fuzz.NASTY.map(str), st.tuples(
    st.just("b"), st.integers() | st.floats() | st.text(max_size=3), st.text(max_size=3)).map(
        fuzz.base64_of)))  # fmt: skip
def test_cursors(cursor: str) -> None:
    try:
        created, _ = unseal(cursor, "b")
    except InvalidRequest:
        return
    assert 0 <= created < 2**63  # what a database can hold


@many
@given(st.binary(max_size=60) | fuzz.NASTY.map(fuzz._dump) | st.dictionaries(
    st.sampled_from(["name", "id", "endpoints"]), fuzz.NASTY | st.just("memlane-x")).map(fuzz._dump))  # fmt: skip
def test_answers_to_who_is_there(data: bytes) -> None:
    found = _process(data)
    assert found is None or isinstance(found.role, str)


@many
@given(st.text(max_size=300))
def test_a_header_is_one_line(text: str) -> None:
    value = header_text(text, 100)
    assert len(value) == min(len(text), 100)
    assert value.isascii()
    assert value.isprintable()


@pytest.mark.parametrize(
    ("value", "ok"),
    [
        ("0001-01-01T00:00:00+14:00", False),
        ("9999-12-31T23:59:59-12:00", False),
        ("0001-01-01T00:00:00Z", True),
        ("9999-12-31T23:59:59Z", True),
        ("9999-12-31T23:59:59+12:00", True),
    ],
)
def test_the_ends_of_time(value: str, ok: bool) -> None:
    data: Any = orjson.dumps({"cue": "a", "as_of": value})
    if ok:
        assert wire.decode(contracts.recall.RecallRequest, data).as_of is not None
        return
    with pytest.raises(InvalidRequest) as caught:
        wire.decode(contracts.recall.RecallRequest, data)
    assert caught.value.details["field"] == "as_of"

"""How queries are charged, and what they answer when nothing is left."""

from __future__ import annotations

import pytest

from contracts import wire
from contracts.errors import InvalidRequest
from contracts.query import QueryReply, QueryRequest
from contracts.usage import Kind
from orchestrator.tariffs import TARIFFS

TARIFF = TARIFFS["query"]


def asked(**fields: object) -> bytes:
    return wire.encode_request(wire.validate(QueryRequest, {"query": "which roof leaks", **fields}))


def answered(**fields: object) -> bytes:
    reply = wire.decode_reply(QueryReply, TARIFF.silent("p", asked()))
    return wire.encode(reply.model_copy(update=fields))


def test_a_rerank_is_charged_beside_its_query() -> None:
    assert TARIFF.charge(asked()) == {Kind.QUERY: 1}
    assert TARIFF.charge(asked(rerank=True)) == {Kind.QUERY: 1, Kind.RERANK: 1}


@pytest.mark.parametrize(
    ("request_fields", "reply_fields", "correction"),
    [
        ({}, {"computation_tier": "low"}, {Kind.QUERY_LOW: 1}),
        ({}, {"computation_tier": "high"}, {Kind.QUERY_HIGH: 1}),
        ({"rerank": True}, {"computation_tier": "medium", "reranked": True}, {Kind.QUERY_MEDIUM: 1}),
        ({"rerank": True}, {"computation_tier": "medium"}, {Kind.QUERY_MEDIUM: 1, Kind.RERANK: -1}),
    ],
)
def test_the_reply_corrects(
    request_fields: dict[str, object], reply_fields: dict[str, object], correction: dict[Kind, int]
) -> None:
    assert TARIFF.correct is not None
    assert TARIFF.correct(asked(**request_fields), answered(**reply_fields)) == correction


def test_silent_is_an_empty_answer_and_bad_input_is_refused_as_ever() -> None:
    reply = wire.decode_reply(QueryReply, TARIFF.silent("p", asked(computation_tier="high", session_id="s")))
    assert (reply.memories, reply.computation_tier, reply.session_id, reply.rerank) == ((), "high", "s", "not asked")
    for bad in (b"{}", b'{"query": " "}', b'{"query": "x", "weights": {"charm": 1}}'):
        with pytest.raises(InvalidRequest):
            TARIFF.silent("p", bad)

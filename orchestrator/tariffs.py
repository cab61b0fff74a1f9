"""How the read verbs are counted, and what they answer when the quota is spent in silent mode.

A verb that is to be counted is one more entry in `TARIFFS`; the role hands it to the endpoint of that name.
"""

from __future__ import annotations

from contracts import wire
from contracts.base import MAX_CUE_BYTES
from contracts.query import QueryReply, QueryRequest
from contracts.recall import RecallReply, RecallRequest
from contracts.usage import Charge, Kind, Tariff
from orchestrator.tiers import choose
from orchestrator.weights import weights_of


def _recall(_: bytes) -> Charge:
    return {Kind.RECALL: 1}


def _silent_recall(_: str, data: bytes) -> bytes:
    """None, without a look at any lane."""
    request = wire.decode(RecallRequest, data)
    wire.check_text(request.cue, "cue", MAX_CUE_BYTES)
    reply = RecallReply(
        answer_kind="None",
        members=(),
        lanes={},
        degraded=False,
        reranked=False,
        rerank="nothing to rerank",
        took_ms=0.0,
    )
    return wire.encode(reply)


def _query(data: bytes) -> Charge:
    request = wire.decode(QueryRequest, data)
    return {Kind.QUERY: 1, Kind.RERANK: 1} if request.rerank else {Kind.QUERY: 1}


def _silent_query(_: str, data: bytes) -> bytes:
    """No memories, without a look at any lane."""
    request = wire.decode(QueryRequest, data)
    wire.check_text(request.query, "query", MAX_CUE_BYTES)
    choice = choose(request, None)
    reply = QueryReply(
        memories=(),
        computation_tier=choice.tier.name,
        tier_reason=choice.reason,
        session_id=request.session_id,
        latency_ms=0,
        weights=weights_of(request.weights),
        traversal_depth=choice.depth,
    )
    return wire.encode(reply)


def _queried(data: bytes, reply: bytes) -> Charge:
    """The tier that the query took, and the rerank that it was charged for and could not have."""
    answered = wire.decode_reply(QueryReply, reply)
    took = {Kind(f"query_{answered.computation_tier}"): 1}
    missed = wire.decode(QueryRequest, data).rerank and not answered.reranked
    return took | ({Kind.RERANK: -1} if missed else {})


TARIFFS: dict[str, Tariff] = {
    "recall": Tariff(_recall, _silent_recall),
    "query": Tariff(_query, _silent_query, _queried),
}

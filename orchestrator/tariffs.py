"""How the read verbs are counted, and what they answer when the quota is spent in silent mode.

A verb that is to be counted is one more entry in `TARIFFS`; the role hands it to the endpoint of that name.
"""

from __future__ import annotations

from contracts import wire
from contracts.base import MAX_CUE_BYTES
from contracts.recall import RecallReply, RecallRequest
from contracts.usage import Charge, Kind, Tariff


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


TARIFFS: dict[str, Tariff] = {
    "recall": Tariff(_recall, _silent_recall),
}

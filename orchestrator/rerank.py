"""The rerank step: spend what time is left on the cross-encoder, or keep the fused order and say why."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts import subjects, wire
from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.errors import MemlaneError
from contracts.ports import Bus, BusFault, NoResponders
from contracts.work import RerankReply, RerankRequest
from orchestrator.fusion import Candidate

#: Less time than this is not worth asking for.
LEAST_S = 0.02
#: A cross-encoder reads a few hundred tokens; the rest of a long text only fills the message.
MOST_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Reranked:
    """`candidates` in their new order; `scores` of those that were scored; `outcome` in a word."""

    candidates: list[Candidate]
    scores: Mapping[MemoryId, float]
    outcome: str


async def rerank(
    bus: Bus, cue: str, candidates: Sequence[Candidate], rows: Mapping[MemoryId, Row], top: int, deadline: float
) -> Reranked:
    """Reorder the first `top` by the cross-encoder's score; the rest keep their place. Never raises: no model, no
    time and no answer all leave the fused order."""
    head, tail = list(candidates[:top]), list(candidates[top:])
    left = deadline - time.monotonic()
    if not head:
        return Reranked([], {}, "nothing to rerank")
    if left < LEAST_S:
        return Reranked([*head, *tail], {}, "skipped_deadline")
    texts = tuple(rows[candidate.id].text[:MOST_CHARS] for candidate in head)
    request = RerankRequest(cue=cue, texts=texts, remaining_ms=left * 1000)
    try:
        reply = wire.decode_reply(RerankReply, await bus.request(subjects.RERANK, wire.encode(request), left))
        scores = {candidate.id: score for candidate, score in zip(head, reply.scores, strict=True)}
    except NoResponders:
        return Reranked([*head, *tail], {}, "off")
    except BusFault:
        return Reranked([*head, *tail], {}, "skipped_deadline")
    except (MemlaneError, ValueError) as error:
        late = isinstance(error, MemlaneError) and error.category == "exhausted"
        return Reranked([*head, *tail], {}, "skipped_deadline" if late else "failed")
    head.sort(key=lambda candidate: (-scores[candidate.id], -candidate.score, candidate.id))
    return Reranked([*head, *tail], scores, "done")

"""The rerank step: spend what time is left on the cross-encoder, or keep the fused order and say why."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
#: Where nobody listened, nobody is asked again for so long.
OFF_S = 2.0
#: A cross-encoder reads a few hundred tokens; the rest of a long text only fills the message.
MOST_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Reranked:
    """`candidates` in their new order; `scores` of those that were scored; `outcome` in a word."""

    candidates: list[Candidate]
    scores: Mapping[MemoryId, float]
    outcome: str


Hydrate = Callable[[Sequence[MemoryId]], Awaitable[Mapping[MemoryId, Row]]]


class Reranker:
    """Reorders the first `top` by the cross-encoder's score; the rest keep their place.

    Remembers for a while that nobody listens, so that texts are not fetched for nothing.
    """

    def __init__(self, bus: Bus, top: int) -> None:
        self._bus, self._top = bus, top
        self._off_until = 0.0

    async def rerank(self, cue: str, candidates: Sequence[Candidate], hydrate: Hydrate, deadline: float) -> Reranked:
        """No model, no time and no answer all leave the fused order. Raises only what `hydrate` raises."""
        head, tail = list(candidates[: self._top]), list(candidates[self._top :])
        if not head:
            return Reranked([], {}, "nothing to rerank")
        if time.monotonic() < self._off_until:
            return Reranked([*head, *tail], {}, "off")
        if deadline - time.monotonic() < LEAST_S:
            return Reranked([*head, *tail], {}, "skipped_deadline")
        rows = await hydrate([candidate.id for candidate in head])
        texts = tuple(rows[one.id].text[:MOST_CHARS] if one.id in rows else "" for one in head)
        left = deadline - time.monotonic()
        request = RerankRequest(cue=cue, texts=texts, remaining_ms=left * 1000)
        try:
            data = await self._bus.request(subjects.RERANK, wire.encode(request), left)
            reply = wire.decode_reply(RerankReply, data)
            scores = {candidate.id: score for candidate, score in zip(head, reply.scores, strict=True)}
        except NoResponders:
            self._off_until = time.monotonic() + OFF_S
            return Reranked([*head, *tail], {}, "off")
        except BusFault:
            return Reranked([*head, *tail], {}, "skipped_deadline")
        except (MemlaneError, ValueError) as error:
            late = isinstance(error, MemlaneError) and error.category == "exhausted"
            return Reranked([*head, *tail], {}, "skipped_deadline" if late else "failed")
        head.sort(key=lambda candidate: (-scores[candidate.id], -candidate.score, candidate.id))
        return Reranked([*head, *tail], scores, "done")

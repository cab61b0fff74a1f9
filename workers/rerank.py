"""The rerank role: a cross-encoder that stops at the deadline rather than answer late."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread

from contracts import subjects, wire
from contracts.errors import ErrorCode, Exhausted
from contracts.ports import Call, Endpoint
from contracts.work import RerankReply, RerankRequest
from workers.models import PairScorer

#: Pairs scored between two looks at the clock.
CHUNK = 8
MOST_WAITING = 16


class RerankWorker:
    """Answers `RerankRequest`, one at a time: a second request would only make both late."""

    name = "rerank"

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._one = anyio.Lock()
        self._waiting = 0

    def endpoints(self) -> Sequence[Endpoint]:
        return [Endpoint("rerank", subjects.RERANK, "rerank", self._rerank)]

    def stats(self) -> dict[str, object]:
        return {"model": self._scorer.model, "waiting": self._waiting}

    async def run(self, ready: Callable[[], None]) -> None:
        await anyio.to_thread.run_sync(self._scorer.score, "warm up", ["warm up"])
        ready()
        await anyio.sleep_forever()

    async def _rerank(self, call: Call) -> bytes:
        request = wire.decode_reply(RerankRequest, call.data)
        deadline = call.arrived + request.remaining_ms / 1000
        if self._waiting >= MOST_WAITING:
            raise Exhausted(ErrorCode.OVERLOADED, "too many wait to be reranked", waiting=self._waiting)
        self._waiting += 1
        try:
            async with self._one:
                scores = await self._score(request, deadline)
        finally:
            self._waiting -= 1
        took_ms = (time.monotonic() - call.arrived) * 1000
        return wire.encode(RerankReply(model=self._scorer.model, scores=tuple(scores), took_ms=took_ms))

    async def _score(self, request: RerankRequest, deadline: float) -> list[float]:
        scores: list[float] = []
        for start in range(0, len(request.texts), CHUNK):
            if time.monotonic() >= deadline:
                raise Exhausted(ErrorCode.DEADLINE_EXCEEDED, "not reranked in time", scored=len(scores))
            texts = list(request.texts[start : start + CHUNK])
            chunk = await anyio.to_thread.run_sync(self._scorer.score, request.cue, texts)
            scores.extend(float(score) for score in chunk)
        return scores

"""The lexical role: a lane's worker that also tells what its shard knows of a cue's terms."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from contracts import subjects, wire
from contracts.lanes import Lane, LaneStatus, TermsQuery, TermsReply
from contracts.ports import Call, Endpoint, Log
from contracts.shards import Shard
from workers.lane import LaneIndex, LaneWorker


class TermIndex(LaneIndex, Protocol):
    async def terms(self, query: TermsQuery) -> TermsReply:
        """The shard's statistics on the terms of the query's cue."""
        ...


class LexicalWorker(LaneWorker):
    def __init__(self, shard: Shard, replica: str, index: TermIndex, log: Log) -> None:
        super().__init__(Lane.LEXICAL, shard, replica, index, log)
        self._term_index = index

    def endpoints(self) -> Sequence[Endpoint]:
        subject = subjects.lane(Lane.LEXICAL, self._shard, "terms")
        return [*super().endpoints(), Endpoint("terms", subject, f"{Lane.LEXICAL}-{self._shard}", self._terms)]

    async def _terms(self, call: Call) -> bytes:
        query = wire.decode_reply(TermsQuery, call.data)
        deadline = call.arrived + query.remaining_ms / 1000
        if not await self._progress.reached(query.min_position, deadline):
            return wire.encode(TermsReply(status=LaneStatus.BEHIND, position=self._progress.position))
        position = self._progress.position
        reply = await self._term_index.terms(query)
        took_ms = (time.monotonic() - call.arrived) * 1000
        return wire.encode(reply.model_copy(update={"position": position, "took_ms": took_ms}))

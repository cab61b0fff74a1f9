"""The graph role: a lane's worker that also answers which edges its memories assert."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from contracts import subjects, wire
from contracts.errors import ErrorCode, Exhausted, Unavailable
from contracts.lanes import EdgesQuery, EdgesReply, Lane
from contracts.ports import Call, Endpoint, Log
from contracts.shards import Shard
from workers.lane import LaneIndex, LaneWorker
from workers.pace import LEAST_TIME_S


class EdgeIndex(LaneIndex, Protocol):
    async def edges(self, query: EdgesQuery) -> EdgesReply:
        """Edges that memories of the index's shard assert. Raises TimeoutError when the query's time is up."""
        ...


class GraphWorker(LaneWorker):
    def __init__(self, shard: Shard, replica: str, index: EdgeIndex, log: Log) -> None:
        super().__init__(Lane.GRAPH, shard, replica, index, log)
        self._edge_index = index

    def endpoints(self) -> Sequence[Endpoint]:
        subject = subjects.lane(Lane.GRAPH, self._shard, "edges")
        return [*super().endpoints(), Endpoint("edges", subject, f"{Lane.GRAPH}-{self._shard}", self._edges)]

    async def _edges(self, call: Call) -> bytes:
        query = wire.decode_reply(EdgesQuery, call.data)
        deadline = call.arrived + query.remaining_ms / 1000
        if not await self._progress.reached(query.min_position, deadline):
            raise Unavailable(
                ErrorCode.CONSISTENCY_TIMEOUT, "the graph is behind", lane="graph", position=self._progress.position
            )
        left_s = deadline - time.monotonic()
        if left_s < LEAST_TIME_S:
            raise _late()
        position = self._progress.position
        try:
            reply = await self._edge_index.edges(query.model_copy(update={"remaining_ms": left_s * 1000}))
        except TimeoutError:
            raise _late() from None
        took_ms = (time.monotonic() - call.arrived) * 1000
        return wire.encode(reply.model_copy(update={"position": position, "took_ms": took_ms}))


def _late() -> Exhausted:
    return Exhausted(ErrorCode.DEADLINE_EXCEEDED, "the edges were not read in time")

"""The orchestrator's view of the catalog: one request a shard, and a second where a reply did not hold all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from contracts import subjects, wire
from contracts.base import MemoryId, Position, epoch_ms
from contracts.catalog import (
    HydrateReply,
    HydrateRequest,
    ListPage,
    MatchReply,
    MatchRequest,
    Moment,
    NeighboursReply,
    NeighboursRequest,
    Row,
)
from contracts.errors import ErrorCode, Unavailable
from contracts.ports import Bus, BusFault
from contracts.shards import Shard, all_shards, by_shard
from orchestrator.together import all_of

R = TypeVar("R", bound=BaseModel)

#: Kept back from a shard's time for the way home, so that one that is behind can say so.
TRAVEL_MS = 2.0


class Catalog:
    def __init__(self, bus: Bus, shards: int) -> None:
        self._bus, self._shards = bus, shards

    async def hydrate(
        self, project: str, ids: Sequence[MemoryId], positions: Sequence[Position], deadline: float
    ) -> dict[MemoryId, Row]:
        """The rows of those ids that exist. Raises Unavailable when a shard of the catalog does not answer in time:
        without it nothing is known of tombstones, so there is no degraded answer to give."""
        return await self._all_shards(HydrateRequest(project=project, ids=tuple(ids)), positions, deadline)

    async def facets(
        self, project: str, ids: Sequence[MemoryId], types: bool, positions: Sequence[Position], deadline: float
    ) -> dict[MemoryId, Row]:
        """As `hydrate`, but lean rows: what filters look at. Raises Unavailable."""
        request = HydrateRequest(project=project, ids=tuple(ids), lean=True, types=types)
        return await self._all_shards(request, positions, deadline)

    async def signals(
        self, project: str, ids: Sequence[MemoryId], positions: Sequence[Position], deadline: float
    ) -> dict[MemoryId, Row]:
        """As `hydrate`, but lean rows: what a query's signals and filters look at. Raises Unavailable."""
        request = HydrateRequest(project=project, ids=tuple(ids), lean=True, signals=True)
        return await self._all_shards(request, positions, deadline)

    async def matching(self, request: MatchRequest, positions: Sequence[Position], deadline: float) -> list[MemoryId]:
        """The newest memories of all shards that pass a query's filters, at most the request's limit. Raises
        Unavailable."""
        found: list[tuple[int, MemoryId]] = []

        async def ask(shard: Shard) -> None:
            reply = await self._timed(shard, "match", request, MatchReply, positions[shard.number], deadline)
            found.extend((-at, memory_id) for memory_id, at in zip(reply.ids, reply.at, strict=True))

        await all_of([partial(ask, shard) for shard in all_shards(self._shards)])
        return [memory_id for _, memory_id in sorted(found)[: request.limit]]

    async def listed(self, page: ListPage, deadline: float) -> list[Row]:
        """The rows of a page from all shards in its order, one more than its limit where there are more. Raises
        Unavailable."""
        rows: list[Row] = []
        await all_of([partial(self._listed, shard, page, deadline, rows) for shard in all_shards(self._shards)])
        rows.sort(key=place_of, reverse=page.request.order == "newest")
        return rows[: page.request.limit + 1]

    async def _listed(self, shard: Shard, page: ListPage, deadline: float, rows: list[Row]) -> None:
        """A shard's part. Where a reply did not hold all, the rest is asked for: a row left out here would let the
        page end after rows of other shards that come behind it."""
        left = page.request.limit + 1
        while True:
            reply = await self._request(shard, "list", page, HydrateReply, deadline)
            rows.extend(reply.rows[:left])
            left -= len(reply.rows)
            if not reply.more or left <= 0:
                return
            page = page.model_copy(update={"after": place_of(reply.rows[-1])})

    async def neighbours(
        self, request: NeighboursRequest, positions: Sequence[Position], deadline: float
    ) -> dict[MemoryId, Moment]:
        """The nearest neighbour in its session of each of the request's moments that has one. Raises Unavailable."""
        nearest: dict[MemoryId, Moment] = {}

        def nearer(one: Moment, other: Moment) -> bool:
            earlier = (one.at, one.created, one.position) < (other.at, other.created, other.position)
            return earlier == (request.direction == "after")

        async def ask(shard: Shard) -> None:
            reply = await self._timed(shard, "neighbours", request, NeighboursReply, positions[shard.number], deadline)
            for moment, found in zip(request.moments, reply.found, strict=True):
                best = nearest.get(moment.id)
                if found and (best is None or nearer(found, best)):
                    nearest[moment.id] = found

        await all_of([partial(ask, shard) for shard in all_shards(self._shards)])
        return nearest

    async def _all_shards(
        self, request: HydrateRequest, positions: Sequence[Position], deadline: float
    ) -> dict[MemoryId, Row]:
        rows: dict[MemoryId, Row] = {}

        async def ask(shard: Shard, ids: list[MemoryId]) -> None:
            while ids:
                part = request.model_copy(update={"ids": tuple(ids)})
                reply = await self._timed(shard, "hydrate", part, HydrateReply, positions[shard.number], deadline)
                rows.update((row.id, row) for row in reply.rows)
                if not reply.more:
                    return
                ids = ids[ids.index(reply.rows[-1].id) + 1 :]

        parts = by_shard(request.ids, self._shards)
        await all_of([partial(ask, shard, ids) for shard, ids in parts.items()])
        return rows

    async def _timed(
        self, shard: Shard, op: str, request: BaseModel, reply: type[R], position: Position, deadline: float
    ) -> R:
        """Ask a shard that has applied `position`; one that has not in time says so itself."""
        left_ms = (deadline - time.monotonic()) * 1000 - TRAVEL_MS
        part = request.model_copy(update={"min_position": position, "remaining_ms": left_ms})
        return await self._request(shard, op, part, reply, deadline)

    async def _request(self, shard: Shard, op: str, request: BaseModel, reply: type[R], deadline: float) -> R:
        left = max(deadline - time.monotonic(), 0.001)
        try:
            data = await self._bus.request(subjects.catalog(shard, op), wire.encode(request), left)
        except BusFault as fault:
            raise Unavailable(
                ErrorCode.UNAVAILABLE, "the catalog did not answer", shard=str(shard), fault=type(fault).__name__
            ) from None
        return wire.decode_reply(reply, data)


def place_of(row: Row) -> tuple[int, str]:
    """Where a row stands in creation order."""
    return epoch_ms(row.created_at), row.id

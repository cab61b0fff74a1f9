"""What one question may see of the memories and the arcs between them: only what stands, only its project."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from contracts import subjects, wire
from contracts.base import MemoryId, Position, epoch_ms, now
from contracts.catalog import Moment, NeighboursRequest, Row
from contracts.errors import ErrorCode, NotFound, Unavailable
from contracts.lanes import EdgesQuery, EdgesReply, Lane
from contracts.memory import EdgeKind
from contracts.ports import Bus, BusFault
from contracts.shards import Shard, all_shards
from orchestrator.arcs import Arc
from orchestrator.catalog import TRAVEL_MS, Catalog
from orchestrator.together import all_of

Direction = Literal["out", "in"]

#: A memory of a session follows the one before it when no more than this lies between them.
SESSION_GAP_MS = 300_000
#: Weight of a derived FOLLOWED_BY at the whole gap; linear from 1 at none.
LEAST_WEIGHT = 0.1
#: Memories asked about in one message: their edges fit into the reply.
CHUNK = 100
#: Edges read of one memory and shard.
MOST_EDGES = 64


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories, of which session, as of which positions (one a shard), until when (monotonic seconds)."""

    project: str
    session: str | None
    positions: Sequence[Position]
    deadline: float


class Neighbourhood:
    """Reads level by level and remembers which memories stand. Raises Unavailable when the graph or the catalog does
    not answer: what they would have said cannot be guessed."""

    def __init__(self, bus: Bus, catalog: Catalog, scope: Scope) -> None:
        self._bus, self._catalog, self.scope = bus, catalog, scope
        #: What stands of the memories looked at.
        self.standing: dict[MemoryId, Row] = {}
        self.salience: dict[MemoryId, float] = {}
        #: Whether a memory had more edges than were read.
        self.cut = False
        self._seen: set[MemoryId] = set()
        self._now = now()

    async def look(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        """Those of the ids that stand, in their order."""
        await self._read([memory_id for memory_id in dict.fromkeys(ids) if memory_id not in self._seen])
        return [memory_id for memory_id in ids if memory_id in self.standing]

    async def named(self, field: str, memory_id: MemoryId) -> None:
        """Look at a memory that must be there. Raises NotFound where it was never stored, is forgotten or expired."""
        rows = await self._read([memory_id])
        if memory_id not in rows or not rows[memory_id].exists(self._now):
            raise NotFound(
                ErrorCode.MEMORY_NOT_FOUND, f"{field}: no such memory in this project", field=field, id=memory_id
            )

    async def _read(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Row]:
        if not ids:
            return {}
        scope = self.scope
        rows = await self._catalog.facets(scope.project, ids, False, scope.positions, scope.deadline)
        self._seen.update(ids)
        self.standing.update((row.id, row) for row in rows.values() if self.stands(row))
        self.salience.update((row.id, row.salience) for row in rows.values())
        return rows

    def stands(self, row: Row) -> bool:
        return row.stands(self._now) and self.scope.session in (None, row.session)

    async def arcs(self, ids: Sequence[MemoryId], kinds: Sequence[EdgeKind], direction: Direction) -> list[Arc]:
        """The arcs that begin (`out`) or end (`in`) at standing memories, where both ends stand."""
        found: list[Arc] = []
        jobs = [
            partial(self._edges, shard, part, kinds, direction, found)
            for shard in all_shards(len(self.scope.positions))
            for part in _parts(ids if direction == "in" else [one for one in ids if shard.holds(one)])
        ]
        if EdgeKind.FOLLOWED_BY in kinds:
            jobs += [partial(self._session, part, direction, found) for part in _parts(ids)]
        await all_of(jobs)
        await self.look([end for arc in found for end in (arc.source, arc.target)])
        return sorted(
            (arc for arc in found if arc.source in self.standing and arc.target in self.standing),
            key=lambda arc: (arc.source, arc.kind, arc.target, arc.derived),
        )

    async def _edges(
        self, shard: Shard, ids: Sequence[MemoryId], kinds: Sequence[EdgeKind], direction: Direction, found: list[Arc]
    ) -> None:
        left = max(self.scope.deadline - time.monotonic(), 0.001)
        query = EdgesQuery(
            project=self.scope.project,
            ids=tuple(ids),
            kinds=tuple(kinds),
            direction=direction,
            most=MOST_EDGES,
            min_position=self.scope.positions[shard.number],
            remaining_ms=left * 1000 - TRAVEL_MS,
        )
        try:
            data = await self._bus.request(subjects.lane(Lane.GRAPH, shard, "edges"), wire.encode(query), left)
        except BusFault as fault:
            raise Unavailable(
                ErrorCode.UNAVAILABLE,
                "the graph did not answer",
                lane="graph",
                shard=str(shard),
                fault=type(fault).__name__,
            ) from None
        reply = wire.decode_reply(EdgesReply, data)
        self.cut = self.cut or reply.cut
        columns = zip(reply.sources, reply.kinds, reply.targets, reply.weights, strict=True)
        found += [Arc(source, kind, target, weight) for source, kind, target, weight in columns]

    async def _session(self, ids: Sequence[MemoryId], direction: Direction, found: list[Arc]) -> None:
        moments = {
            row.id: Moment(
                id=row.id,
                session=row.session,
                at=epoch_ms(row.event_time),
                created=epoch_ms(row.created_at),
                position=row.position,
            )
            for row in map(self.standing.__getitem__, ids)
            if row.session is not None
        }
        if not moments:
            return
        request = NeighboursRequest(
            project=self.scope.project,
            moments=tuple(moments.values()),
            direction="after" if direction == "out" else "before",
            within_ms=SESSION_GAP_MS,
        )
        nearest = await self._catalog.neighbours(request, self.scope.positions, self.scope.deadline)
        for memory_id, other in nearest.items():
            weight = followed_weight(abs(other.at - moments[memory_id].at))
            ends = (memory_id, other.id) if direction == "out" else (other.id, memory_id)
            found.append(Arc(ends[0], EdgeKind.FOLLOWED_BY, ends[1], weight, derived=True))


def followed_weight(gap_ms: int) -> float:
    """Of a derived FOLLOWED_BY, in [0.1, 1]."""
    return round(1.0 - (1.0 - LEAST_WEIGHT) * gap_ms / SESSION_GAP_MS, 6)


def _parts(ids: Sequence[MemoryId]) -> list[Sequence[MemoryId]]:
    return [ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK)]

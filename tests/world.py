"""A small Memlane in one process and without a server: real writer, catalogs and graph over a log in memory."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from contracts import subjects, wire
from contracts.base import MemoryId, Position
from contracts.edges import LinkReply, LinkRequest, UnlinkRequest
from contracts.encode import ForgetRequest
from contracts.lanes import Lane, LaneQuery, LaneReply
from contracts.memory import EdgeKind, MemoryRecord, derive_id, pack_vector, unpack_vector
from contracts.ports import Call, Endpoint, Entry, NoResponders, WrongPosition
from contracts.shards import WHOLE, Shard, all_shards
from contracts.work import EmbedReply, EmbedRequest
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon
from orchestrator.plan import PlanService
from orchestrator.reason import ReasonService
from workers.catalog import CatalogStore, CatalogWorker
from workers.encode.writer import MemoryWriter
from workers.graph.reference import ReferenceGraph, ReferenceIndex
from workers.graph.worker import GraphWorker

SHARDS = 2
PROJECT = "p"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class MemoryLog:
    """`contracts.ports.Log`, but for following."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    async def append(self, record: MemoryRecord, expected: Position) -> Position:
        last = next(reversed(self._of(record.project, record.id)), None)
        if (last[0] if last else 0) != expected:
            raise WrongPosition(last[0] if last else 0)
        self.entries.append((len(self.entries) + 1, record))
        return len(self.entries)

    async def last(self, project: str, memory_id: MemoryId) -> Entry | None:
        return next(reversed(self._of(project, memory_id)), None)

    async def history(self, project: str, memory_id: MemoryId) -> list[Entry]:
        return self._of(project, memory_id)

    def _of(self, project: str, memory_id: MemoryId) -> list[Entry]:
        return [entry for entry in self.entries if (entry[1].project, entry[1].id) == (project, memory_id)]

    async def end(self, project: str, shard: Shard = WHOLE) -> Position:
        mine = (at for at, one in self.entries if one.project == project and shard.holds(one.id))
        return max(mine, default=0)

    async def erase(self, project: str, memory_id: MemoryId, before: Position) -> None:
        self.entries = [
            entry
            for entry in self.entries
            if (entry[1].project, entry[1].id) != (project, memory_id) or entry[0] >= before
        ]

    def follow(self, durable: str, shard: Shard, after: Position) -> NoReturn:
        raise NotImplementedError


class AnyRequestId:
    async def claim(self, project: str, request_id: str, digest: str) -> str:
        return digest


class LocalBus:
    """`contracts.ports.Bus` that calls the endpoints of roles in this process."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Call], Awaitable[bytes]]] = {}
        self.asked: list[str] = []

    def serve(self, endpoints: Sequence[Endpoint]) -> None:
        self.handlers.update((endpoint.subject, endpoint.handle) for endpoint in endpoints)

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        self.asked.append(subject)
        if subject not in self.handlers:
            raise NoResponders
        return await self.handlers[subject](Call(subject, data, time.monotonic()))

    async def publish(self, subject: str, data: bytes) -> None:
        raise AssertionError("nothing is published")


class World:
    """Memories are named by a word. Texts are near each other by the angles in `angles`, in quarter turns."""

    def __init__(self, folder: Path) -> None:
        self.log, self.bus, self.graph = MemoryLog(), LocalBus(), ReferenceGraph()
        self.writer = MemoryWriter(self.log, AnyRequestId())
        self.stores = [CatalogStore(folder / str(shard), shard) for shard in all_shards(SHARDS)]
        self.indexes = [ReferenceIndex(self.graph, shard) for shard in all_shards(SHARDS)]
        self.angles: dict[str, float] = {}
        self.applied = 0
        for shard in all_shards(SHARDS):
            self.bus.handlers[subjects.lane(Lane.SEMANTIC, shard, "search")] = self._nearest(shard)
        self.bus.handlers[subjects.EMBED] = self._embed
        catalog, horizon = Catalog(self.bus, SHARDS), Horizon(self.log, SHARDS)
        self.plans, self.reasons = (kind(self.bus, catalog, horizon) for kind in (PlanService, ReasonService))

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def id(self, name: str) -> MemoryId:
        return derive_id(name)

    def names(self, ids: Sequence[MemoryId]) -> str:
        known = {record.id: record.text for _, record in self.log.entries if record.text}
        return " ".join(known[one] for one in ids)

    async def remember(self, name: str, second: float | None = None, **fields: Any) -> MemoryId:
        """Store a memory, `second` seconds after noon in the session `s`, or in none."""
        at = NOON + timedelta(milliseconds=len(self.log.entries))
        if second is not None:
            fields = {"session": "s", "occurred_at": NOON + timedelta(seconds=second)} | fields
        memory_id = self.id(name)
        record = MemoryRecord(
            id=memory_id, project=PROJECT, text=name, created_at=at, changed_at=at,
            vector=self._vector(name), **fields,
        )  # fmt: skip
        await self.writer.store(record)
        await self.apply()
        return memory_id

    async def link(self, source: str, kind: EdgeKind, target: str, weight: float = 1.0) -> LinkReply:
        request = LinkRequest(source=self.id(source), kind=kind, target=self.id(target), weight=weight)
        reply = await self.writer.link(PROJECT, request)
        await self.apply()
        return reply

    async def unlink(self, source: str, kind: EdgeKind, target: str) -> LinkReply:
        request = UnlinkRequest(source=self.id(source), kind=kind, target=self.id(target))
        reply = await self.writer.unlink(PROJECT, request)
        await self.apply()
        return reply

    async def forget(self, name: str) -> None:
        await self.writer.forget(PROJECT, ForgetRequest(id=self.id(name)))
        await self.apply()

    async def apply(self) -> None:
        """Let catalogs and graph catch up, and serve from there."""
        fresh = [entry for entry in self.log.entries if entry[0] > self.applied]
        if fresh:
            self.applied = fresh[-1][0]
            for shard in all_shards(SHARDS):
                self.stores[shard.number].apply(fresh)
                await self.indexes[shard.number].apply([entry for entry in fresh if shard.holds(entry[1].id)])
        for shard in all_shards(SHARDS):
            log: Any = self.log
            self.bus.serve(CatalogWorker(shard, "r", self.stores[shard.number], log).endpoints())
            self.bus.serve(GraphWorker(shard, "r", self.indexes[shard.number], log).endpoints())

    def _vector(self, text: str) -> str:
        turn = self.angles.get(text, 0.0) * np.pi / 2
        return pack_vector(np.array([np.cos(turn), np.sin(turn)], dtype=np.float32))

    async def _embed(self, call: Call) -> bytes:
        texts = wire.decode_reply(EmbedRequest, call.data).texts
        return wire.encode(EmbedReply(model="m", dimension=2, vectors=tuple(map(self._vector, texts))))

    def _nearest(self, shard: Shard) -> Callable[[Call], Awaitable[bytes]]:
        """As a lane that has not applied any tombstone yet."""

        async def search(call: Call) -> bytes:
            query = wire.decode_reply(LaneQuery, call.data)
            cue = unpack_vector(query.vector)
            found = {
                one.id: float(unpack_vector(one.vector) @ cue)
                for _, one in self.log.entries
                if shard.holds(one.id) and one.vector
            }
            best = sorted(found, key=lambda one: (-found[one], one))[: query.top_n]
            scores = tuple(round(found[one], 6) for one in best)
            count = len(best)
            return wire.encode(
                LaneReply(
                    items=tuple(best), kinds=("memory",) * count, labels=("",) * count, scores=scores,
                    sources=tuple((one,) for one in best), evidence=tuple(max(0.0, one) for one in scores),
                    confirmed=(False,) * count,
                )
            )  # fmt: skip

        return search

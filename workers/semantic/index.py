"""The semantic lane's index: a `VectorIndex` a project, snapshots, and the position they stand at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from contracts.base import Position
from contracts.lanes import ItemKind, LaneQuery, LaneReply, ScoreQuery, ScoreReply
from contracts.memory import MemoryRecord, Vector, unpack_vector
from contracts.ports import Entry
from workers.semantic.snapshot import Snapshot, load_snapshot, save_snapshot
from workers.semantic.vectors import VectorIndex

logger = structlog.get_logger()

#: Applied entries after which a snapshot is written; what came since is replayed from the log.
SNAPSHOT_EVERY = 5000


class SemanticIndex:
    """`workers.lane.LaneIndex` over HNSW graphs in memory.

    `position` is that of the memory image: a killed process starts again at its last snapshot and replays.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        snapshot = load_snapshot(path)
        self._projects = snapshot.projects
        self._labels = snapshot.sentences
        self._position = snapshot.position
        self._unsaved = 0

    @property
    def position(self) -> Position:
        return self._position

    async def apply(self, entries: Sequence[Entry]) -> None:
        await anyio.to_thread.run_sync(self._apply, entries)
        if self._unsaved >= SNAPSHOT_EVERY:
            await self.save()

    async def search(self, query: LaneQuery) -> LaneReply:
        return await anyio.to_thread.run_sync(self._search, query)

    async def score(self, query: ScoreQuery) -> ScoreReply:
        return await anyio.to_thread.run_sync(self._score, query)

    async def save(self) -> None:
        snapshot = Snapshot(self._position, dict(self._projects), dict(self._labels))
        await anyio.to_thread.run_sync(save_snapshot, self._path, snapshot)
        self._unsaved = 0

    async def close(self) -> None:
        if self._unsaved:
            await self.save()

    def _apply(self, entries: Sequence[Entry]) -> None:
        latest = {(record.project, record.id): record for _, record in entries}
        for (project, memory_id), record in latest.items():
            self._remove(project, memory_id)
            if record.live:
                self._put(record)
        self._position = entries[-1][0]
        self._unsaved += len(entries)

    def _put(self, record: MemoryRecord) -> None:
        """One bad record must not stop the lane: it is logged, and the other lanes still find it."""
        try:
            items = _items(record)
            if not items:
                return
            index = self._projects.get(record.project)
            if index is None:  # an empty one is falsy
                index = VectorIndex(len(items[0][1]))
            index.put(items)
        except ValueError as error:
            logger.error("record has a bad vector", action="skip_vector", id=record.id, error=str(error))
            return
        self._projects[record.project] = index
        for number, statement in enumerate(record.statements[: len(record.statement_vectors)]):
            self._labels[f"{record.project}/{record.id}#s{number}"] = statement.sentence

    def _remove(self, project: str, memory_id: str) -> None:
        index = self._projects.get(project)
        if index is None:
            return
        keys = [memory_id]
        number = 0
        while self._labels.pop(f"{project}/{memory_id}#s{number}", None) is not None:
            keys.append(f"{memory_id}#s{number}")
            number += 1
        index.remove(keys)

    def _search(self, query: LaneQuery) -> LaneReply:
        index = self._projects.get(query.project)
        if index is None or not query.vector:
            return LaneReply()
        hits = index.search(unpack_vector(query.vector), query.top_n)
        kinds: list[ItemKind] = ["statement" if "#" in key else "memory" for key, _ in hits]
        scores = tuple(score for _, score in hits)
        return LaneReply(
            items=tuple(key for key, _ in hits),
            kinds=tuple(kinds),
            labels=tuple(self._labels.get(f"{query.project}/{key}", "") for key, _ in hits),
            scores=scores,
            sources=tuple((key.partition("#")[0],) for key, _ in hits),
            evidence=tuple(min(1.0, max(0.0, score)) for score in scores),
            confirmed=(False,) * len(hits),
        )

    def _score(self, query: ScoreQuery) -> ScoreReply:
        """The best cosine over a memory and its statements."""
        index = self._projects.get(query.project)
        if index is None or not query.vector:
            return ScoreReply(evidence=(0.0,) * len(query.ids), confirmed=(False,) * len(query.ids))
        keys: list[str] = []
        owners: list[int] = []
        for row, memory_id in enumerate(query.ids):
            keys.append(memory_id)
            owners.append(row)
            number = 0
            while f"{query.project}/{memory_id}#s{number}" in self._labels:
                keys.append(f"{memory_id}#s{number}")
                owners.append(row)
                number += 1
        best = [0.0] * len(query.ids)
        for owner, cosine in zip(owners, index.cosines(unpack_vector(query.vector), keys), strict=True):
            best[owner] = max(best[owner], min(1.0, cosine))
        return ScoreReply(evidence=tuple(best), confirmed=(False,) * len(query.ids))


def _items(record: MemoryRecord) -> list[tuple[str, Vector]]:
    """The memory's vector and its statements', by key. Raises ValueError for what is no vector."""
    if len(record.statement_vectors) > len(record.statements):
        raise ValueError("more statement vectors than statements")
    items = [(record.id, unpack_vector(record.vector))] if record.vector else []
    for number, packed in enumerate(record.statement_vectors):
        items.append((f"{record.id}#s{number}", unpack_vector(packed)))
    return items

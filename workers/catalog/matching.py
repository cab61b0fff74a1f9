"""Which memories pass a query's filters: answered from the labels of sources and tags, and event time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from contracts.base import MemoryId, epoch_ms
from contracts.catalog import MatchRequest
from contracts.memory import MemoryKind, MemoryRecord


def put_labels(db: sqlite3.Connection, record: MemoryRecord) -> None:
    """Replace a memory's labels; a forgotten one has none."""
    db.execute("DELETE FROM label WHERE project = ? AND memory = ?", (record.project, record.id))
    if record.live:
        labels = [("tag", tag) for tag in record.tags] + ([("source", record.source)] if record.source else [])
        rows = [(record.project, name, value, record.id) for name, value in labels]
        db.executemany("INSERT OR IGNORE INTO label VALUES (?, ?, ?, ?)", rows)


def matching(db: sqlite3.Connection, request: MatchRequest) -> list[tuple[MemoryId, int]]:
    """Ids with their event time (epoch ms), the newest first, ties by id."""
    where: list[str] = ["project = ?", "live"]
    values: list[Any] = [request.project]
    if not request.summaries:
        where.append("kind <> ?")
        values.append(str(MemoryKind.CONSOLIDATED))
    for bound, operator in ((request.since, ">="), (request.until, "<=")):
        if bound:
            where.append(f"event {operator} ?")
            values.append(epoch_ms(bound))
    for name, wanted in (("source", request.sources), ("tag", request.tags)):
        if wanted:
            marks = _marks(wanted)
            where.append(f"id IN (SELECT memory FROM label WHERE project = ? AND name = ? AND value IN ({marks}))")
            values += [request.project, name, *wanted]
    query = f"SELECT id, event FROM memory WHERE {' AND '.join(where)} ORDER BY event DESC, id LIMIT ?"
    return [(memory, at) for memory, at in db.execute(query, (*values, request.limit))]


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))

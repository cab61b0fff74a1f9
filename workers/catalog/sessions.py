"""Which memory of a session follows which. Nothing is stored of it, so it is never stale after a forget."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Literal

from contracts.base import MemoryId, Position, epoch_ms
from contracts.catalog import Moment
from contracts.memory import MemoryRecord
from workers.catalog.supersession import superseded_by

#: Memories looked at on the way to one that stands.
MOST = 64

_NEAREST = """
SELECT id, event, created, position FROM memory
WHERE project = ? AND session = ? AND live AND (event, created, position) {beyond} (?, ?, ?) AND event {within} ?
  AND (json_extract(doc, '$.expires_at') IS NULL OR julianday(json_extract(doc, '$.expires_at')) > julianday(?))
ORDER BY event {order}, created {order}, position {order} LIMIT {most}
"""
_AFTER = _NEAREST.format(beyond=">", within="<=", order="ASC", most=MOST)
_BEFORE = _NEAREST.format(beyond="<", within=">=", order="DESC", most=MOST)

_BESIDE = """
SELECT id FROM place WHERE project = ? AND session = ? AND (event, created, position, id) {beyond} (?, ?, ?, ?)
ORDER BY event {order}, created {order}, position {order}, id {order} LIMIT ?
"""
_NEXT = _BESIDE.format(beyond=">", order="ASC")
_LAST = _BESIDE.format(beyond="<", order="DESC")


def put_place(db: sqlite3.Connection, position: Position, record: MemoryRecord) -> None:
    """Keep or clear a memory's place, of whichever shard it is."""
    db.execute("DELETE FROM place WHERE project = ? AND id = ?", (record.project, record.id))
    if record.live and record.session is not None:
        times = (epoch_ms(record.event_time), epoch_ms(record.created_at))
        values = (record.project, record.id, record.session, *times, position)
        db.execute("INSERT INTO place VALUES (?, ?, ?, ?, ?, ?)", values)


def beside(db: sqlite3.Connection, project: str, memory_id: MemoryId, reach: int) -> list[tuple[MemoryId, int]]:
    """The live memories up to `reach` places after (+) and before (-) one in its session. What has a place counts,
    expired or superseded too: it was said there all the same."""
    query = "SELECT session, event, created, position FROM place WHERE project = ? AND id = ?"
    place = db.execute(query, (project, memory_id)).fetchone()
    if place is None:
        return []
    values = (project, *place, memory_id, reach)
    after = [(one, number) for number, (one,) in enumerate(db.execute(_NEXT, values), 1)]
    before = [(one, -number) for number, (one,) in enumerate(db.execute(_LAST, values), 1)]
    return after + before


def neighbour(
    db: sqlite3.Connection, project: str, moment: Moment, direction: Literal["after", "before"], within_ms: int
) -> Moment | None:
    """The nearest memory of the moment's session that stands: live, not expired, not superseded."""
    after = direction == "after"
    edge = moment.at + within_ms if after else moment.at - within_ms
    values = (project, moment.session, moment.at, moment.created, moment.position, edge, datetime.now(UTC).isoformat())
    found = [row for row in db.execute(_AFTER if after else _BEFORE, values) if row[0] != moment.id]
    replaced = superseded_by(db, project, [row[0] for row in found])
    for memory_id, at, created, position in found:
        if memory_id not in replaced:
            return Moment(id=memory_id, session=moment.session, at=at, created=created, position=position)
    return None

"""How often and when memories were of use: one row a memory and day, from the stream of uses."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.base import MemoryId, epoch_ms
from contracts.shards import Shard
from contracts.stores import Told

DAY_MS = 86_400_000
#: Uses count for so many days; the stream of uses keeps them as long, so that a catalog built anew counts the same.
KEPT_DAYS, RECENT_DAYS = 180, 14


def apply_uses(db: sqlite3.Connection, told: Sequence[Told], shard: Shard) -> None:
    """Add uses of a shard's memories that come after the position stored, and store the new one; within the caller's
    transaction. Uses that come again change nothing."""
    applied = uses_position(db)
    fresh = [one for one in told if one.position > applied]
    if not fresh:
        return
    rows = []
    for one in fresh:
        at = epoch_ms(one.use.at)
        last = at if one.use.count > 0 else None
        rows += [
            (one.project, memory, at // DAY_MS, one.use.count, last) for memory in one.use.ids if shard.holds(memory)
        ]
    db.executemany(
        "INSERT INTO used VALUES (?, ?, ?, ?, ?) ON CONFLICT (project, memory, day) DO UPDATE SET"
        " count = count + excluded.count, last = max(coalesce(last, 0), coalesce(excluded.last, last, 0))",
        rows,
    )
    newest = max(row[2] for row in rows) if rows else 0
    db.execute("DELETE FROM used WHERE day < ?", (newest - 2 * KEPT_DAYS,))
    db.execute("INSERT OR REPLACE INTO meta VALUES ('uses', ?)", (fresh[-1].position,))


def uses_position(db: sqlite3.Connection) -> int:
    """The last position of the stream of uses that is applied."""
    row = db.execute("SELECT value FROM meta WHERE key = 'uses'").fetchone()
    return int(row[0]) if row else 0


def uses_of(db: sqlite3.Connection, project: str, ids: Sequence[str], now_ms: int) -> dict[MemoryId, dict[str, Any]]:
    """Of those that were ever used, the fields `uses`, `uses_14d` and `last_used` of a row. No count is below 0."""
    today = now_ms // DAY_MS
    found: dict[MemoryId, dict[str, Any]] = {}
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        query = (
            "SELECT memory, sum(count), sum(CASE WHEN day > ? THEN count ELSE 0 END), max(last) FROM used"
            f" WHERE project = ? AND memory IN ({','.join('?' * len(part))}) AND day > ? GROUP BY memory"
        )
        values = (today - RECENT_DAYS, project, *part, today - KEPT_DAYS)
        for memory, uses, recent, last in db.execute(query, values):
            fields: dict[str, Any] = {"uses": max(0, uses), "uses_14d": max(0, recent)}
            if last:
                fields["last_used"] = datetime.fromtimestamp(last / 1000, UTC).isoformat()
            found[memory] = fields
    return found

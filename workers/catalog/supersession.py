"""Which memory took the place of which.

A memory is superseded when a later one names it, or when it makes statements, all of them single-valued (Attribute,
Directive), and for each one a newer statement gives the same (subject, predicate) another object. Nothing less does:
a new memory that only mentions an entity retires nothing.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from contracts.base import MemoryId

#: Statement n replaces statement s: it gives the same slot another object and is newer, by time of validity, then by
#: when its memory was first written. Two values said to hold from the very same instant contradict, and both stand.
REPLACES = """
  n.project = s.project AND n.slot = s.slot AND n.single
  AND n.object <> s.object AND n.memory <> s.memory
  AND (n.since, n.created, n.position) > (s.since, s.created, s.position)
  AND NOT (n.dated AND s.dated AND n.since = s.since)
"""
#: Relations (numbers below 0) are claims too, but none is single-valued: they neither retire nor keep a memory.
_NEWER = f"""
SELECT s.memory, s.number, s.single, n.memory, n.since, n.created
FROM statement AS s LEFT JOIN statement AS n ON {REPLACES}
WHERE s.project = ? AND s.number >= 0 AND s.memory IN (MARKS)
ORDER BY s.memory, s.number, n.since DESC, n.created DESC, n.position DESC
"""


@dataclass(frozen=True, slots=True)
class Successor:
    """The newest memory in a memory's place; since when it has had one (epoch ms), by what was said of the world and by
    when that was written down."""

    memory: MemoryId
    since: int
    written: int

    def as_fields(self) -> dict[str, str]:
        return {
            "superseded_by": self.memory,
            "superseded_at": _iso(self.since),
            "superseded_written": _iso(self.written),
        }


def superseded_by(db: sqlite3.Connection, project: str, ids: Sequence[str]) -> dict[MemoryId, Successor]:
    """The successors of those among `ids` that have one."""
    result: dict[MemoryId, Successor] = {}
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        result.update(_by_statements(db, project, part))
        result.update(_by_name(db, project, part))
    return result


def _by_name(db: sqlite3.Connection, project: str, ids: Sequence[str]) -> dict[MemoryId, Successor]:
    query = (
        f"SELECT target, source, at, written FROM supersession WHERE project = ? AND target IN ({_marks(ids)})"
        " ORDER BY at, source"
    )
    result: dict[MemoryId, Successor] = {}
    for target, source, at, written in db.execute(query, (project, *ids)):
        earlier = result.get(target)
        result[target] = Successor(
            source, min(at, earlier.since) if earlier else at, min(written, earlier.written) if earlier else written
        )
    return result


def _by_statements(db: sqlite3.Connection, project: str, ids: Sequence[str]) -> dict[MemoryId, Successor]:
    """A memory has a successor from when the last of its statements was first replaced."""
    slots: dict[MemoryId, dict[int, list[tuple[str, int, int]]]] = defaultdict(lambda: defaultdict(list))
    for memory, number, single, *newer in db.execute(_NEWER.replace("MARKS", _marks(ids)), (project, *ids)):
        replacing = slots[memory][number]
        if single and newer[0]:
            replacing.append((newer[0], newer[1], newer[2]))
    result = {}
    for memory, statements in slots.items():
        if all(statements.values()):
            newest = max((replacing[0] for replacing in statements.values()), key=lambda one: (one[1], one[0]))
            since = max(min(since for _, since, _ in replacing) for replacing in statements.values())
            written = max(min(written for _, _, written in replacing) for replacing in statements.values())
            result[memory] = Successor(newest[0], since, written)
    return result


def _marks(ids: Sequence[str]) -> str:
    return ",".join("?" * len(ids))


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()

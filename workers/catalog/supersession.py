"""Which memory took the place of which.

A memory is superseded when a later one names it, or when it makes statements, all of them single-valued (Attribute,
Directive), and for each one a newer statement gives the same (subject, predicate) another object. Nothing less does:
a new memory that only mentions an entity retires nothing.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

#: Newest statement of the same slot with another object. Newer is by time of validity, then by the memory's creation,
#: which a later state of it (a link) leaves as it was, then by position.
_NEWER = """
SELECT s.memory, s.number, s.single, n.memory, n.since
FROM statement AS s LEFT JOIN statement AS n
  ON n.project = s.project AND n.subject = s.subject AND n.predicate = s.predicate AND n.single
  AND n.object <> s.object AND n.memory <> s.memory
  AND (n.since, n.created, n.position) > (s.since, s.created, s.position)
WHERE s.project = ? AND s.memory IN ({marks})
ORDER BY s.memory, s.number, n.since DESC, n.created DESC, n.position DESC
"""


def superseded_by(db: sqlite3.Connection, project: str, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """For each superseded id among `ids`: the memory that took its place, and when (RFC 3339)."""
    result: dict[str, tuple[str, str]] = {}
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        result.update(_by_statements(db, project, part))
        result.update(_by_name(db, project, part))
    return result


def _by_name(db: sqlite3.Connection, project: str, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    query = (
        f"SELECT target, source, at FROM supersession WHERE project = ? AND target IN ({_marks(ids)})"
        " ORDER BY at, source"
    )
    return {target: (source, _iso(at)) for target, source, at in db.execute(query, (project, *ids))}


def _by_statements(db: sqlite3.Connection, project: str, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    slots: dict[str, dict[int, tuple[str, int] | None]] = defaultdict(dict)
    for memory, number, single, newer, since in db.execute(_NEWER.format(marks=_marks(ids)), (project, *ids)):
        slots[memory].setdefault(number, (newer, since) if single and newer else None)
    result = {}
    for memory, newest in slots.items():
        taken = [slot for slot in newest.values() if slot]
        if taken and len(taken) == len(newest):
            source, since = max(taken, key=lambda slot: (slot[1], slot[0]))
            result[memory] = (source, _iso(since))
    return result


def _marks(ids: Sequence[str]) -> str:
    return ",".join("?" * len(ids))


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()

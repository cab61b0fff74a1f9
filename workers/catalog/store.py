"""The catalog's tables in SQLite. Effect and position are one transaction, so a kill leaves both or neither."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from contracts.base import Instant, MemoryId, Position, epoch_ms, now
from contracts.catalog import Claim, ClaimsRequest, ListRequest, MatchRequest, Moment, NeighboursRequest, Row
from contracts.memory import MemoryKind, MemoryRecord
from contracts.names import normalise
from contracts.ports import Entry
from contracts.shards import Shard
from contracts.stores import Told
from workers.catalog.claims import When, claims_asked
from workers.catalog.database import open_database
from workers.catalog.matching import matching, put_labels
from workers.catalog.sessions import beside, neighbour, put_place
from workers.catalog.supersession import superseded_by
from workers.catalog.uses import apply_uses, uses_of, uses_position

_ROW_FIELDS = set(Row.model_fields) & set(MemoryRecord.model_fields)


class CatalogStore:
    """The memories of one shard, and what all shards' memories say of them: a memory may be superseded by one of
    another shard. Safe for use from several threads: one connection under a lock, write-ahead logged."""

    def __init__(self, path: Path, shard: Shard) -> None:
        self._shard = shard
        path.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = open_database(path / "catalog.sqlite")
        kept = dict(self._db.execute("SELECT key, value FROM meta"))
        self.position: Position = kept.get("position", 0)
        self.live: int = kept.get("live", 0)  #: memories of this shard that are not forgotten

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply in log order; again is harmless."""
        with self._lock, self._db:
            live = self.live + sum(self._apply(position, record) for position, record in entries)
            kept = [("position", entries[-1][0]), ("live", live)]
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", kept)
        self.position, self.live = entries[-1][0], live

    def apply_uses(self, told: Sequence[Told]) -> None:
        """Count uses of this shard's memories; those at or below `uses_position` were counted before."""
        with self._lock, self._db:
            apply_uses(self._db, told, self._shard)

    @property
    def uses_position(self) -> Position:
        with self._lock:
            return uses_position(self._db)

    def hydrate(self, project: str, ids: Sequence[str], with_uses: bool = True) -> list[dict[str, Any]]:
        """The rows (as JSON objects) of those ids that exist, in the order asked."""
        with self._lock:
            found = self._fetch(project, ids)
            superseded = superseded_by(self._db, project, list(found))
            used = uses_of(self._db, project, list(found), epoch_ms(now())) if with_uses else {}
        rows = []
        for memory_id in ids:
            row = found.get(memory_id)
            if row is not None:
                successor = superseded.get(memory_id)
                row |= used.get(memory_id, {})
                rows.append(row | successor.as_fields() if successor else row)
        return rows

    def matching(self, request: MatchRequest) -> list[tuple[MemoryId, int]]:
        """Ids of the memories of this shard that pass a query's filters, with their event time, the newest first."""
        with self._lock:
            return matching(self._db, request)

    def page(self, project: str, request: ListRequest, after: tuple[int, str] | None) -> list[dict[str, Any]]:
        """Up to `limit` + 1 rows beyond the keyset `after` (created in ms, id); the one more says there is more."""
        where, values = _filters(project, request)
        newest = request.order == "newest"
        if after:
            where.append(f"(created, id) {'<' if newest else '>'} (?, ?)")
            values.extend(after)
        direction = "DESC" if newest else "ASC"
        query = (
            f"SELECT id FROM memory WHERE {' AND '.join(where)}"
            f" ORDER BY created {direction}, id {direction} LIMIT {request.limit + 1}"
        )
        with self._lock:
            ids = [row[0] for row in self._db.execute(query, values)]
        return self.hydrate(project, ids)

    def neighbours(self, request: NeighboursRequest) -> list[Moment | None]:
        """Of each moment, the nearest standing memory of its session on one side."""
        with self._lock:
            return [
                neighbour(self._db, request.project, moment, request.direction, request.within_ms)
                for moment in request.moments
            ]

    def beside(self, project: str, ids: Sequence[MemoryId], reach: int) -> list[list[tuple[MemoryId, int]]]:
        """Of each memory, those up to `reach` places after and before it in its session, with how many places."""
        with self._lock:
            return [beside(self._db, project, memory_id, reach) for memory_id in ids]

    def known_names(self, project: str, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Canonical form and type of the names that live memories mention; the oldest mention decides the form."""
        known: dict[str, tuple[str, str]] = {}
        with self._lock:
            for start in range(0, len(names), 500):
                part = names[start : start + 500]
                query = (
                    "SELECT name, canonical, type FROM name"
                    f" WHERE project = ? AND name IN ({','.join('?' * len(part))}) ORDER BY position, memory"
                )
                for name, canonical, kind in self._db.execute(query, (project, *part)):
                    known.setdefault(name, (canonical, kind))
        return known

    def claims(self, request: ClaimsRequest) -> tuple[list[Claim], set[MemoryId]]:
        """What stands on the names and predicates of a cue, and who only has replaced values of them."""
        at = epoch_ms(request.as_of or now())
        written = epoch_ms(request.believed_at or now())
        with self._lock:
            return claims_asked(self._db, request.project, request.cue, request.subject, When(at, written))

    def overdue(self, before: Instant, limit: int) -> list[tuple[str, MemoryId]]:
        """(project, id) of what was forgotten softly before an instant."""
        query = (
            "SELECT project, id FROM memory WHERE NOT live AND json_extract(doc, '$.tombstone.mode') = 'soft'"
            " AND json_extract(doc, '$.tombstone.at') < ? ORDER BY position LIMIT ?"
        )
        with self._lock:
            return [(project, memory_id) for project, memory_id in self._db.execute(query, (before.isoformat(), limit))]

    def _fetch(self, project: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            query = f"SELECT id, position, doc FROM memory WHERE project = ? AND id IN ({','.join('?' * len(part))})"
            for memory_id, position, doc in self._db.execute(query, (project, *part)):
                found[memory_id] = orjson.loads(doc) | {"position": position}
        return found

    def _apply(self, position: Position, record: MemoryRecord) -> int:
        """Returns by how many this shard's live memories became more: 1, 0 or -1."""
        db, key, more = self._db, (record.project, record.id), 0
        if self._shard.holds(record.id):
            row = db.execute("SELECT live FROM memory WHERE project = ? AND id = ?", key).fetchone()
            more = record.live - (row[0] if row else 0)
            doc = orjson.dumps(record.model_dump(mode="json", include=_ROW_FIELDS, by_alias=True))
            created = epoch_ms(record.created_at)
            db.execute(
                "INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, position, created, record.kind, record.session, record.live, doc, epoch_ms(record.event_time)),
            )
            put_labels(db, record)
            if not record.live:
                db.execute("DELETE FROM used WHERE project = ? AND memory = ?", key)
        put_place(db, position, record)
        db.execute("DELETE FROM name WHERE project = ? AND memory = ?", key)
        self._apply_claims(position, record)
        if record.live:
            self._apply_names(position, record)
        return more

    def _apply_names(self, position: Position, record: MemoryRecord) -> None:
        rows = [
            (record.project, normalise(name), record.id, entity.name, entity.type, position)
            for entity in record.entities
            for name in (entity.name, *entity.aliases)
        ]
        self._db.executemany("INSERT OR IGNORE INTO name VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _apply_claims(self, position: Position, record: MemoryRecord) -> None:
        """What the memory says of others: whom it supersedes, and its statements."""
        db, project, memory_id, at = self._db, record.project, record.id, epoch_ms(record.event_time)
        db.execute("DELETE FROM supersession WHERE project = ? AND source = ?", (project, memory_id))
        db.executemany(
            "INSERT OR REPLACE INTO supersession VALUES (?, ?, ?, ?, ?)",
            [(project, target, memory_id, at, epoch_ms(record.created_at)) for target in record.supersedes],
        )
        db.execute("DELETE FROM statement WHERE project = ? AND memory = ?", (project, memory_id))
        db.executemany(
            "INSERT INTO statement VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(project, memory_id, *claim, epoch_ms(record.created_at), position) for claim in _claims(record)],
        )


class _ClaimRow(NamedTuple):
    """The columns of table statement between the memory's id and `created`."""

    number: int
    slot: str
    subject: str
    predicate: str
    object: str
    single: bool
    since: int
    dated: bool
    until: int | None
    confidence: float
    live: bool


def _claims(record: MemoryRecord) -> Iterator[_ClaimRow]:
    at = epoch_ms(record.event_time)
    for number, one in enumerate(record.statements):
        yield _ClaimRow(
            number,
            one.slot,
            *one.triple,
            one.kind.single_valued,
            epoch_ms(one.valid_from) if one.valid_from else at,
            one.valid_from is not None,
            epoch_ms(one.valid_to) if one.valid_to else None,
            one.confidence * record.confidence,
            record.live,
        )
    for number, retired in enumerate(record.retired):
        yield _ClaimRow(number, retired.slot, "", "", "", True, epoch_ms(retired.since), False, None, 0.0, False)
    for number, link in enumerate(record.relations, 1):
        yield _ClaimRow(-number, "", *link.triple, False, at, False, None, record.confidence, record.live)


def _filters(project: str, request: ListRequest) -> tuple[list[str], list[Any]]:
    where: list[str] = ["project = ?"]
    values: list[Any] = [project]
    if not request.include_tombstoned:
        where.append("live")
    if request.kinds:
        where.append(f"kind IN ({','.join('?' * len(request.kinds))})")
        values.extend(str(kind) for kind in request.kinds)
    else:
        where.append("kind <> ?")
        values.append(str(MemoryKind.CONSOLIDATED))
    if request.session:
        where.append("session = ?")
        values.append(request.session)
    for tag in request.tags:
        where.append("EXISTS (SELECT 1 FROM json_each(doc, '$.tags') WHERE value = ?)")
        values.append(tag)
    for bound, operator in ((request.since, ">="), (request.until, "<=")):
        if bound:
            where.append(f"created {operator} ?")
            values.append(epoch_ms(bound))
    return where, values

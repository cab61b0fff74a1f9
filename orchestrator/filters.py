"""The filter chain: pure predicates, AND-combined, each drop counted under its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.memory import MemoryKind
from contracts.names import normalise
from contracts.recall import RecallRequest
from orchestrator.fusion import Candidate

Predicate = Callable[[Row, RecallRequest, datetime], bool]


def _kind(row: Row, request: RecallRequest, _: datetime) -> bool:
    """A summary belongs to an answer only where it is asked for: else it would stand beside what it was made of."""
    return row.kind in request.kinds if request.kinds else row.kind is not MemoryKind.CONSOLIDATED


def _type(row: Row, request: RecallRequest, _: datetime) -> bool:
    """A type names an entity type, a statement kind, a predicate or a relation type."""
    if not request.types:
        return True
    held = {normalise(entity.type) for entity in row.entities} | {normalise(rel.type) for rel in row.relations}
    for statement in row.statements:
        held |= {normalise(statement.kind), normalise(statement.predicate)}
    return any(normalise(wanted) in held for wanted in request.types)


def _context(row: Row, request: RecallRequest, _: datetime) -> bool:
    return request.session is None or row.session == request.session


def _temporal(row: Row, request: RecallRequest, _: datetime) -> bool:
    after = request.since is None or row.event_time >= request.since
    return after and (request.until is None or row.event_time <= request.until)


def _as_of(row: Row, request: RecallRequest, _: datetime) -> bool:
    happened = request.as_of is None or row.event_time <= request.as_of
    return happened and (request.believed_at is None or row.created_at <= request.believed_at)


def _confidence(row: Row, request: RecallRequest, _: datetime) -> bool:
    return row.confidence >= request.min_confidence


def _salience(row: Row, request: RecallRequest, _: datetime) -> bool:
    return row.salience >= request.min_salience


def _tombstone(row: Row, _: RecallRequest, __: datetime) -> bool:
    return row.tombstone is None


def _expiry(row: Row, _: RecallRequest, now: datetime) -> bool:
    return row.expires_at is None or row.expires_at > now


def _supersession(row: Row, request: RecallRequest, _: datetime) -> bool:
    """As of an earlier instant, what was superseded later still stood; and so did what nobody yet had said is over."""
    if row.superseded_by is None or request.include_superseded:
        return True
    return _later(row.superseded_at, request.as_of) or _later(row.superseded_written, request.believed_at)


def _later(instant: datetime | None, asked: datetime | None) -> bool:
    return asked is not None and instant is not None and instant > asked


CHAIN: tuple[tuple[str, Predicate], ...] = (
    ("kind", _kind),
    ("type", _type),
    ("context", _context),
    ("temporal", _temporal),
    ("as_of", _as_of),
    ("confidence", _confidence),
    ("salience", _salience),
    ("tombstone", _tombstone),
    ("expiry", _expiry),
    ("supersession", _supersession),
)


def apply_filters(
    candidates: Sequence[Candidate],
    rows: Mapping[MemoryId, Row],
    request: RecallRequest,
    now: datetime,
    stale: Collection[MemoryId] = (),
) -> tuple[list[Candidate], dict[str, int]]:
    """Those that pass, in the order given, and how many each reason dropped. Ids the catalog does not know (a lane
    ahead of it, or a ghost in a lane) are dropped as ``unknown``, `stale` ones (current in part, but not in what the
    cue asks for) as ``outdated``."""
    dropped: Counter[str] = Counter()
    kept = []
    for candidate in candidates:
        row = rows.get(candidate.id)
        reason = "unknown" if row is None else _first_failure(row, request, now)
        if reason is None and candidate.id in stale:
            reason = "outdated"
        if reason is None:
            kept.append(candidate)
        else:
            dropped[reason] += 1
    return kept, dict(dropped)


def _first_failure(row: Row, request: RecallRequest, now: datetime) -> str | None:
    return next((reason for reason, passes in CHAIN if not passes(row, request, now)), None)

"""The read verb: recall."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from contracts.base import (
    DEFAULT_MEMBERS,
    MAX_DEADLINE_MS,
    MAX_MEMBERS,
    Consistency,
    Instant,
    LaxMessage,
    MemoryId,
    Message,
    Name,
    Position,
    Text,
    TxnId,
    Unit,
)
from contracts.lanes import ItemKind, LaneStatus
from contracts.memory import MemoryKind
from contracts.usage import Metered

AnswerKind = Literal["Single", "Many", "None"]


class RecallRequest(Message):
    """Ask a project what it remembers about a cue. Filters are AND-combined. Without `kinds`, all count but upkeep's
    summaries.

    `as_of` asks how things stood at an instant of the world (event time), `believed_at` what the project had been told
    by then (time of writing).
    """

    cue: Text
    max_results: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = DEFAULT_MEMBERS
    kinds: tuple[MemoryKind, ...] = ()
    types: tuple[Name, ...] = ()
    session: Name | None = None
    subject: Name | None = None
    since: Instant | None = None
    until: Instant | None = None
    as_of: Instant | None = None
    believed_at: Instant | None = None
    min_confidence: Unit = 0.0
    min_salience: Unit = 0.0
    include_superseded: bool = False
    consistency: Consistency = "Eventual"
    position: Annotated[Position, Field(ge=1)] | None = None
    txn_id: TxnId | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=MAX_DEADLINE_MS)] = 1000
    trace: bool = False


class Vote(LaxMessage):
    """What one lane said of a member: its rank (from 1), its own score, and which items it found."""

    rank: int
    score: float
    items: tuple[str, ...] = ()


class Stated(LaxMessage):
    """What a grounded member states in answer to the cue, in normal form. `confidence` is over all `evidence` memories
    of the project that state the same."""

    subject: str
    predicate: str
    object: str
    confidence: float
    evidence: int


class Member(LaxMessage):
    """`score` is relevance in [0, 1]; `why` says in words what admitted the member; `superseded_by` is only ever set
    where superseded memories were asked for. `agrees` lists memories that assert the same and were folded in, `states`
    what that is."""

    id: MemoryId
    text: str
    kind: MemoryKind
    score: float
    provenance: dict[str, Vote]
    why: tuple[str, ...]
    created_at: Instant
    occurred_at: Instant | None = None
    session: str | None = None
    metadata: dict[str, Any] = {}
    superseded_by: MemoryId | None = None
    agrees: tuple[MemoryId, ...] = ()
    states: tuple[Stated, ...] = ()


class LaneOutcome(LaxMessage):
    status: LaneStatus
    position: Position = 0
    took_ms: float = 0.0
    hits: int = 0
    detail: str | None = None


class TraceHit(LaxMessage):
    item: str
    kind: ItemKind
    label: str
    score: float
    sources: tuple[MemoryId, ...]


class Trace(LaxMessage):
    """What every stage saw. `fused` is the fused and filtered pool, best first, at most 100 ids; `notes` are a lane's
    own words: the terms it looked for, the anchors it started from. `graph_mode` says what the graph lane's walk
    amounts to: what lies around one anchor, between two, or among more."""

    query_class: str
    class_reason: str
    temporal: bool
    list_intent: bool
    weights: dict[str, float]
    lanes: dict[str, tuple[TraceHit, ...]]
    notes: dict[str, dict[str, tuple[str, ...]]] = {}
    graph_mode: Literal["none", "star", "path", "subgraph"] = "none"
    fused: tuple[MemoryId, ...]
    dropped: dict[str, int]
    counts: dict[str, int]
    band: dict[str, float]
    timings_ms: dict[str, float]


class RecallReply(Metered):
    answer_kind: AnswerKind
    members: tuple[Member, ...]
    lanes: dict[str, LaneOutcome]
    degraded: bool
    reranked: bool
    rerank: str
    took_ms: float
    trace: Trace | None = None

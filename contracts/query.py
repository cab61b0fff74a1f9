"""The read verb with the caller at the controls: query, and the feedback on what it gave."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from contracts.base import (
    MAX_DEADLINE_MS,
    MAX_TAGS,
    Consistency,
    Instant,
    LaxMessage,
    MemoryId,
    Message,
    Name,
    Position,
    Text,
)
from contracts.memory import MemoryKind
from contracts.recall import LaneOutcome
from contracts.usage import Metered

MAX_K = 50
DEFAULT_K = 5
MAX_DEPTH = 3

ComputationTier = Literal["low", "medium", "high"]
StorageTier = Literal["hot", "warm", "cold"]
Predicate = Literal["tier", "include_summaries", "tags", "sources", "until", "since"]
Signal = Literal["semantic", "recency", "importance", "quality", "decay", "usage", "graph"]


class QueryFilters(Message):
    """AND-combined; within `sources` and within `tags` one match is enough. `since` and `until` bound event time, both
    inclusive. `include_summaries` lets memories of kind Consolidated in: left out they are out."""

    sources: Annotated[tuple[Name, ...], Field(max_length=MAX_TAGS)] = ()
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_TAGS)] = ()
    since: Instant | None = None
    until: Instant | None = None
    tier: StorageTier | None = None
    include_summaries: bool = False

    @property
    def given(self) -> tuple[Predicate, ...]:
        """The predicates that the caller asked for. An `include_summaries` that was left out is none of them."""
        asked: dict[Predicate, bool] = {
            "tier": self.tier is not None,
            "include_summaries": "include_summaries" in self.model_fields_set,
            "tags": bool(self.tags),
            "sources": bool(self.sources),
            "until": self.until is not None,
            "since": self.since is not None,
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)


class QueryRequest(Message):
    """The `k` best memories for a query, by seven weighted signals.

    - `k`: 1 to 50, default 5.
    - `weights`: signal name to a number of at least 0, laid over the defaults, then normalised to sum 1 (BAD_WEIGHTS).
    - `traversal_depth`: hops in the graph, 0 to 3; default the tier's (low 0, medium 2, high 3).
    - `session_id`: memories that scored well in the session are lifted, and its tier never falls.
    - `computation_tier`: forces low, medium or high; left out, the query's form decides.
    - `rerank`: the cross-encoder orders the first 50. `explain`: each memory says why it is there.
    - `strict_filters`: fewer than `k` rather than a memory that a filter refuses.
    - `deadline_ms`, `consistency`, `position`: as in a recall.
    """

    query: Text
    k: Annotated[int, Field(ge=1, le=MAX_K)] = DEFAULT_K
    weights: dict[str, float] = {}
    filters: QueryFilters = QueryFilters()
    traversal_depth: Annotated[int, Field(ge=0, le=MAX_DEPTH)] | None = None
    session_id: Name | None = None
    computation_tier: ComputationTier | None = None
    rerank: bool = False
    explain: bool = True
    strict_filters: bool = False
    consistency: Consistency = "Eventual"
    position: Annotated[Position, Field(ge=1)] | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=MAX_DEADLINE_MS)] = 1000


class Scores(LaxMessage):
    """The seven signals, each in [0, 1]; `orchestrator.signals` has their formulas."""

    semantic: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    quality: float = 0.0
    decay: float = 0.0
    usage: float = 0.0
    graph: float = 0.0


class QueryMemory(LaxMessage):
    """`score` in [0, 1] is the weighted sum of `scores` and the `session_boost`; `session` is the one in which the
    memory was encoded, `topic` the label of its topic, where it has one (not in tier low). `rerank_score` is the
    cross-encoder's, where it ran. `relaxed` names the filters that this memory does not pass. `parents` are the
    memories that a summary was made of (tier high)."""

    id: MemoryId
    text: str
    score: float
    scores: Scores
    explain: tuple[str, ...] = ()
    tier: StorageTier = "hot"
    kind: MemoryKind = MemoryKind.EPISODIC
    source: str | None = None
    tags: tuple[str, ...] = ()
    created_at: Instant
    occurred_at: Instant | None = None
    session: str | None = None
    topic: str | None = None
    metadata: dict[str, Any] = {}
    session_boost: float = 0.0
    rerank_score: float | None = None
    relaxed: tuple[Predicate, ...] = ()
    parents: tuple[MemoryId, ...] = ()


class QueryReply(Metered):
    """Best first; none at all is no error. Memories that pass every filter stand before those that a relaxed one let
    in. Within that, order is by `score`, save where tier high spreads the answer over topics or the cross-encoder ran.

    `tier_reason` says in words what chose the tier, `rerank` what became of reranking (``not asked``, ``done``,
    ``off``, ...). `lanes` holds those that were asked; `degraded` says that one of them is missing in the answer.
    """

    memories: tuple[QueryMemory, ...]
    computation_tier: ComputationTier
    tier_reason: str
    session_id: str | None = None
    latency_ms: int
    weights: Scores
    traversal_depth: int
    filter_relaxed: bool = False
    relaxed: tuple[Predicate, ...] = ()
    reranked: bool = False
    rerank: str = "not asked"
    lanes: dict[str, LaneOutcome] = {}
    degraded: bool = False


class FeedbackRequest(Message):
    """Was a memory of use? Useful counts as three uses, not useful takes one back. Sent again with the same
    `request_id` within two minutes it counts once; without one, each time."""

    id: MemoryId
    useful: bool
    request_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class FeedbackReply(LaxMessage):
    """`counted` is what the memory's uses change by: 0 where this request was counted before (`deduplicated`)."""

    id: MemoryId
    counted: int
    deduplicated: bool = False


class Use(LaxMessage):
    """Memories of one shard that were used at an instant, each counting `count` uses: what the stream of uses holds.
    A negative count takes uses back, and does not make a memory any fresher."""

    ids: tuple[MemoryId, ...]
    count: int = 1
    at: Instant


class SessionState(LaxMessage):
    """What a session remembers: the highest tier it was answered with, and the scores (before any boost) of memories
    that it was given, the latest first."""

    tier: ComputationTier | None = None
    scores: dict[MemoryId, float] = {}

"""What the orchestrator and the lanes say to each other. Columnar, so that a hundred hits validate as four lists."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from contracts.base import LaxMessage, MemoryId, Position, Project
from contracts.memory import EdgeKind


class Lane(StrEnum):
    SEMANTIC = "semantic"
    LEXICAL = "lexical"
    GRAPH = "graph"


class LaneStatus(StrEnum):
    OK = "ok"
    TIMEOUT = "timeout"  # it was asked and did not answer in time
    ABSENT = "absent"  # nobody listens
    OVERLOADED = "overloaded"  # it refused: its queue is full, or the time left is too short
    BEHIND = "behind"  # it has not applied the position asked for
    ERROR = "error"  # it answered with a failure or with garbage


ItemKind = Literal["memory", "statement", "entity", "relation"]


class TermStatistics(LaxMessage):
    """What the lexical lane knows of a cue's terms in one project: how many documents there are (`count`), how many
    tokens their two fields hold (`lengths`), and how many documents have each term (`df`). Terms are the lane's own;
    to all others they are names. Those of several shards add up, so that scores do not depend on their number."""

    count: int = 0
    lengths: tuple[int, int] = (0, 0)
    terms: tuple[str, ...] = ()
    df: tuple[int, ...] = ()


class TermsQuery(LaxMessage):
    """Ask one lexical shard for its statistics on the terms of a cue."""

    project: Project
    cue: str
    min_position: Position = 0
    remaining_ms: float = 1000.0


class TermsReply(LaxMessage):
    status: LaneStatus = LaneStatus.OK
    position: Position = 0
    statistics: TermStatistics = TermStatistics()
    took_ms: float = 0.0


class LaneQuery(LaxMessage):
    """Ask one shard of one lane for its best items. `vector` is packed (semantic only), `remaining_ms` counts from
    arrival, `min_position` is the log position the lane must have applied before it answers (0: any). `statistics`
    (lexical only) are those of all shards; without them a shard goes by its own."""

    project: Project
    cue: str
    vector: str = ""
    subject: str | None = None
    top_n: int = 100
    min_position: Position = 0
    remaining_ms: float = 1000.0
    statistics: TermStatistics | None = None


class LaneReply(LaxMessage):
    """A ranked list, best first. Row i is item `items[i]` of kind `kinds[i]` with lane score `scores[i]`, standing for
    the memories `sources[i]`.

    `evidence[i]` in [0, 1] is comparable within the lane: cosine for semantic, the idf-weighted share of the cue's
    terms for lexical, 1/(hops + 1) for graph. `confirmed[i]` says that the lane alone vouches for the item: an exact
    id or rare-term match (lexical), all named anchors of the cue (graph).
    """

    status: LaneStatus = LaneStatus.OK
    position: Position = 0
    items: tuple[str, ...] = ()
    kinds: tuple[ItemKind, ...] = ()
    labels: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    sources: tuple[tuple[MemoryId, ...], ...] = ()
    evidence: tuple[float, ...] = ()
    confirmed: tuple[bool, ...] = ()
    notes: dict[str, tuple[str, ...]] = {}
    took_ms: float = 0.0


class ScoreQuery(LaxMessage):
    """Ask a lane for its evidence on given memories, whether or not it ranked them, and (lexical only) on `texts` as
    if they were memories of the project, by the `statistics` of all shards where they are given."""

    project: Project
    cue: str
    vector: str = ""
    ids: tuple[MemoryId, ...] = ()
    texts: tuple[str, ...] = ()
    remaining_ms: float = 1000.0
    statistics: TermStatistics | None = None


class ScoreReply(LaxMessage):
    """`evidence[i]` for the memory `ids[i]` of the query, then for its texts: as in `LaneReply`, 0 for a memory that
    the lane does not hold."""

    evidence: tuple[float, ...] = ()
    confirmed: tuple[bool, ...] = ()
    took_ms: float = 0.0


class EdgesQuery(LaxMessage):
    """Ask one shard of the graph for edges that memories of that shard assert: those that begin at the given memories
    (`out`) or end at them (`in`), at most `most` a given memory, the heaviest first."""

    project: Project
    ids: tuple[MemoryId, ...]
    kinds: tuple[EdgeKind, ...]
    direction: Literal["out", "in"]
    most: int = 64
    min_position: Position = 0
    remaining_ms: float = 1000.0


class EdgesReply(LaxMessage):
    """Edge i goes from `sources[i]` to `targets[i]`; ordered by source, kind and target. The target may be a memory
    that is forgotten or was never stored. `cut` says that a memory had more edges than were asked for."""

    sources: tuple[MemoryId, ...] = ()
    kinds: tuple[EdgeKind, ...] = ()
    targets: tuple[MemoryId, ...] = ()
    weights: tuple[float, ...] = ()
    cut: bool = False
    position: Position = 0
    took_ms: float = 0.0

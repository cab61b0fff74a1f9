"""What the catalog answers: it is the one authority for text, metadata, tombstones and supersession."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from contracts.base import Instant, LaxMessage, MemoryId, Message, Name, Position, Project
from contracts.memory import Edge, Entity, MemoryKind, Relation, Statement, Tombstone, slot_of


class Row(LaxMessage):
    """A memory as the catalog holds it: all of a record but its vectors, and what other records say of it.

    `superseded_by` is the newest memory in its place: by naming it, or by holding a newer value of every statement
    this one makes (which therefore are all single-valued). It has had one since `superseded_at` by event time, since
    `superseded_written` by when that was written.

    `uses` counts replies that held the memory, and feedback, over the last 180 days, `uses_14d` over the last 14;
    `last_used` is the latest of them. Lean rows leave them out unless signals are asked for.
    """

    id: MemoryId
    text: str
    kind: MemoryKind
    position: Position
    version: int
    created_at: Instant
    occurred_at: Instant | None = None
    session: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    salience: float = 0.5
    confidence: float = 1.0
    quality: float = 0.5
    uses: int = 0
    uses_14d: int = 0
    last_used: Instant | None = None
    expires_at: Instant | None = None
    metadata: dict[str, Any] = {}
    entities: tuple[Entity, ...] = ()
    statements: tuple[Statement, ...] = ()
    relations: tuple[Relation, ...] = ()
    edges: tuple[Edge, ...] = ()
    supersedes: tuple[MemoryId, ...] = ()
    superseded_by: MemoryId | None = None
    superseded_at: Instant | None = None
    superseded_written: Instant | None = None
    tombstone: Tombstone | None = None

    @property
    def event_time(self) -> Instant:
        return self.occurred_at or self.created_at

    def exists(self, at: Instant) -> bool:
        """Neither forgotten nor expired."""
        return self.tombstone is None and (self.expires_at is None or self.expires_at > at)

    def stands(self, at: Instant) -> bool:
        """What no caller can relax: it exists, and nothing superseded it."""
        return self.exists(at) and self.superseded_by is None


class HydrateRequest(LaxMessage):
    """Ask for rows. `lean` ones hold only what filters look at, their text is empty; `types` adds what a type filter
    looks at, `signals` what a query's signals and filters do."""

    project: Project
    ids: tuple[MemoryId, ...]
    lean: bool = False
    types: bool = False
    signals: bool = False
    min_position: Position = 0
    remaining_ms: float = 1000.0


class MatchRequest(LaxMessage):
    """Which memories pass a query's filters? The newest by event time, at most `limit`: bounds are inclusive, one of
    `sources` and one of `tags` suffices, `summaries` lets memories of kind Consolidated in."""

    project: Project
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    summaries: bool = False
    limit: int = 400
    min_position: Position = 0
    remaining_ms: float = 1000.0


class MatchReply(LaxMessage):
    """`ids[i]` happened at `at[i]` (epoch ms); the newest first. Expired and superseded ones are among them."""

    ids: tuple[MemoryId, ...] = ()
    at: tuple[int, ...] = ()


class HydrateReply(LaxMessage):
    """The rows that exist, in the order asked; unknown ids are left out. With `more`, those behind the last row are
    missing because they did not fit: ask again for them."""

    rows: tuple[Row, ...]
    position: Position
    more: bool = False


class ClaimsRequest(LaxMessage):
    """What does the project claim of the names in this cue? `as_of` and `believed_at` as in a recall. Any shard's
    catalog knows the claims of all."""

    project: Project
    cue: str
    subject: str | None = None
    as_of: Instant | None = None
    believed_at: Instant | None = None
    min_position: Position = 0
    remaining_ms: float = 1000.0


class Claim(LaxMessage):
    """A statement (numbered from 0) or relation (from -1 downwards) of a memory, its parts in normal form.

    `confidence` is that of the triple over all `evidence` memories that assert it: 1 - Π (1 - confidence of each), so
    it falls when one of them is forgotten.
    """

    memory: MemoryId
    number: int
    subject: str
    predicate: str
    object: str
    since: int
    confidence: float = 1.0
    evidence: int = 1

    @property
    def triple(self) -> tuple[str, str, str]:
        return self.subject, self.predicate, self.object

    @property
    def slot(self) -> str:
        return slot_of(self.subject, self.predicate)


class ClaimsReply(LaxMessage):
    """`claims` stand, newest first; `stale` memories have only values that newer ones replaced."""

    claims: tuple[Claim, ...] = ()
    stale: tuple[MemoryId, ...] = ()


class OverdueRequest(LaxMessage):
    """Which memories of this shard were forgotten softly before an instant, in any project? At most `limit`."""

    before: Instant
    limit: int = 100


class OverdueReply(LaxMessage):
    overdue: tuple[tuple[Project, MemoryId], ...] = ()


class NamesRequest(LaxMessage):
    """Which of these normalised names does the project know as entities?"""

    project: Project
    names: tuple[str, ...]


class NamesReply(LaxMessage):
    """Canonical name and type of each known name, by its normalised form."""

    known: dict[str, tuple[str, str]]


class Moment(LaxMessage):
    """A memory's place in its session: order is by event time, then creation, then position (times in epoch ms)."""

    id: MemoryId
    session: str
    at: int
    created: int
    position: Position


class NeighboursRequest(LaxMessage):
    """Which memory of its session comes next after each of these (`after`), or came last before it (`before`), at most
    `within_ms` away? Only standing ones count: not forgotten, not expired, not superseded."""

    project: Project
    moments: tuple[Moment, ...]
    direction: Literal["after", "before"]
    within_ms: int
    min_position: Position = 0
    remaining_ms: float = 1000.0


class NeighboursReply(LaxMessage):
    """`found[i]` is this shard's nearest neighbour of the request's moment i, where it has one."""

    found: tuple[Moment | None, ...]
    position: Position


class BesideRequest(LaxMessage):
    """Which memories stand up to `reach` places beside these in their sessions? Any shard's catalog knows of all."""

    project: Project
    ids: tuple[MemoryId, ...]
    reach: int = 2


class BesideReply(LaxMessage):
    """`found[i]` has the neighbours of the request's id i: ids, and how many places after (+) or before (-) it."""

    found: tuple[tuple[tuple[MemoryId, int], ...], ...]


class ListRequest(Message):
    """Enumerate memories by creation time; without `kinds`, all but upkeep's summaries. The cursor belongs to its
    filters: with others it is STALE_CURSOR."""

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: str | None = None
    order: Literal["newest", "oldest"] = "newest"
    kinds: tuple[MemoryKind, ...] = ()
    session: Name | None = None
    tags: tuple[Name, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    include_tombstoned: bool = False


class ListPage(LaxMessage):
    """A list request as the orchestrator passes it on, to every shard from one keyset (created in ms, id)."""

    project: Project
    request: ListRequest
    after: tuple[int, str] | None = None


class ListReply(LaxMessage):
    memories: tuple[Row, ...]
    cursor: str | None = None


class InspectRequest(Message):
    id: MemoryId


class StoryEntry(LaxMessage):
    """One state in a memory's write story."""

    position: Position
    version: int
    at: Instant
    change: str


class InspectReply(LaxMessage):
    """A memory, its write story from the log, and how far each lane has applied the log."""

    found: bool
    memory: Row | None = None
    story: tuple[StoryEntry, ...] = ()
    lanes: dict[str, Position] = {}

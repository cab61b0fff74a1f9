"""A memory and its parts, and the log record that carries a memory's full state."""

from __future__ import annotations

import base64
import hashlib
from enum import StrEnum
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticKnownError

from contracts.base import Instant, LaxMessage, MemoryId, Message, Name, Project, Unit
from contracts.names import normalise, phrase

Vector = NDArray[np.float32]


class MemoryKind(StrEnum):
    EPISODIC = "Episodic"  # something happened
    SEMANTIC = "Semantic"  # something is so
    CONSOLIDATED = "Consolidated"  # made by upkeep out of others; callers may not ask for it


class StatementKind(StrEnum):
    """How many current values a (subject, predicate) of this kind may have: see `single_valued`."""

    FACT = "Fact"
    PREFERENCE = "Preference"
    EVENT = "Event"
    ATTRIBUTE = "Attribute"
    RELATION = "Relation"
    DIRECTIVE = "Directive"
    CUSTOM = "Custom"

    @property
    def single_valued(self) -> bool:
        """Attribute and Directive hold one current value: a newer one supersedes. The others accumulate."""
        return self in (StatementKind.ATTRIBUTE, StatementKind.DIRECTIVE)


class EdgeKind(StrEnum):
    CAUSED = "CAUSED"
    FOLLOWED_BY = "FOLLOWED_BY"
    DERIVED_FROM = "DERIVED_FROM"
    SIMILAR_TO = "SIMILAR_TO"
    CONTRADICTS = "CONTRADICTS"
    SUPPORTS = "SUPPORTS"
    REFERENCES = "REFERENCES"
    PART_OF = "PART_OF"


class Entity(Message):
    name: Name
    type: Name = "Thing"
    aliases: tuple[Name, ...] = ()


class Statement(Message):
    subject: Name
    predicate: Name
    object: Name
    kind: StatementKind = StatementKind.FACT
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    confidence: Unit = 1.0

    @property
    def sentence(self) -> str:
        """The statement as words, the text that lanes index: ``Diego works at billing team``."""
        return f"{self.subject} {self.predicate.replace('_', ' ')} {self.object}"

    @property
    def triple(self) -> tuple[str, str, str]:
        """Subject, predicate and object in normal form: what makes two statements the same."""
        return normalise(self.subject), phrase(self.predicate), normalise(self.object)

    @property
    def slot(self) -> str:
        subject, predicate, _ = self.triple
        return slot_of(subject, predicate)


class Relation(Message):
    """A typed link between two entities. On the wire its ends are ``from`` and ``to``."""

    source: Name = Field(alias="from")
    type: Name
    target: Name = Field(alias="to")
    properties: dict[Name, str | int | float | bool] = {}

    @property
    def sentence(self) -> str:
        return f"{self.source} {self.type.replace('_', ' ')} {self.target}"

    @property
    def triple(self) -> tuple[str, str, str]:
        """As `Statement.triple`."""
        return normalise(self.source), phrase(self.type), normalise(self.target)


class Edge(Message):
    kind: EdgeKind
    target: MemoryId
    weight: Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)] = 1.0


def check_weight(kind: EdgeKind, weight: float) -> float:
    """The weight, when it suits the kind. Raises the pydantic error for a number out of range: a contradiction may be
    anywhere in [-1, 1], all else is in [0, 1]."""
    least = -1.0 if kind is EdgeKind.CONTRADICTS else 0.0
    if not weight >= least:
        raise PydanticKnownError("greater_than_equal", {"ge": least})
    if weight > 1.0:
        raise PydanticKnownError("less_than_equal", {"le": 1.0})
    return weight


def _suits(edge: Edge) -> Edge:
    check_weight(edge.kind, edge.weight)
    return edge


#: An edge as a caller gives it. What is stored may be older than the rule, so `Edge` itself does not hold it.
AssertedEdge = Annotated[Edge, AfterValidator(_suits)]


class Tombstone(LaxMessage):
    at: Instant
    mode: Literal["soft", "hard"] = "soft"
    reason: str | None = None


class RetiredSlot(LaxMessage):
    """A slot that a hard-forgotten memory had given a value `since`: erasing the value must not revive an older one."""

    slot: str
    since: Instant


class MemoryRecord(LaxMessage):
    """The full state of one memory after one change: what a log message holds.

    The last record of a memory rebuilds it in every index, so nothing may live in an index that is not here.
    Vectors are base64 of little-endian float32, of the dimension and model that `model` names.
    """

    v: Literal[1] = 1
    id: MemoryId
    project: Project
    version: int = 1
    text: str
    kind: MemoryKind = MemoryKind.EPISODIC
    created_at: Instant
    changed_at: Instant
    occurred_at: Instant | None = None
    session: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    salience: float = 0.5
    confidence: float = 1.0
    quality: float = 0.5
    expires_at: Instant | None = None
    metadata: dict[str, Any] = {}
    entities: tuple[Entity, ...] = ()
    statements: tuple[Statement, ...] = ()
    relations: tuple[Relation, ...] = ()
    edges: tuple[Edge, ...] = ()
    supersedes: tuple[MemoryId, ...] = ()
    model: str = ""
    vector: str = ""
    statement_vectors: tuple[str, ...] = ()
    request_id: str | None = None
    digest: str = ""
    tombstone: Tombstone | None = None
    retired: tuple[RetiredSlot, ...] = ()
    txn: str | None = None

    @property
    def event_time(self) -> Instant:
        """When it happened, or failing that when it was written."""
        return self.occurred_at or self.created_at

    @property
    def live(self) -> bool:
        return self.tombstone is None


def pack_vector(vector: Vector) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def unpack_vector(packed: str) -> Vector:
    """The float32 vector of a packed string, shape (d,); read-only, as it shares the decoded bytes."""
    return np.frombuffer(base64.b64decode(packed), dtype="<f4")


def derive_id(*parts: str) -> MemoryId:
    """A memory id from its parts: 128 bits of SHA-256, as 26 characters of lower-case base32."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8")).digest()[:16]
    return base64.b32encode(digest).decode("ascii").rstrip("=").lower()


def slot_of(subject: str, predicate: str) -> str:
    """What a statement is about, subject and predicate in normal form, as a hash: statements of one slot compete."""
    return derive_id("slot", subject, predicate)

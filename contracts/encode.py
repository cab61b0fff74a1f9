"""Writing: encode and forget."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, field_validator

from contracts.base import (
    MAX_EDGES,
    MAX_ENTITIES,
    MAX_METADATA_BYTES,
    MAX_STATEMENTS,
    MAX_TAGS,
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
from contracts.memory import AssertedEdge, Entity, MemoryKind, Relation, Statement
from contracts.usage import Metered


class EncodeRequest(Message):
    """One memory to store. Only `text` is required.

    The same content (text, session, occurred_at, source, metadata) is one memory, however often it is sent, unless
    `allow_duplicates` is set. A `request_id` makes a retry safe, and a clash with other content visible.

    `created_at` is for what comes from elsewhere: when it was told, never in the future; `ttl_s` counts from then.
    Without `extract` the memory names and states what the request says, and nothing is found in its text.
    """

    text: Text
    request_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    kind: Literal[MemoryKind.EPISODIC, MemoryKind.SEMANTIC] = MemoryKind.EPISODIC
    session: Name | None = None
    occurred_at: Instant | None = None
    source: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_TAGS)] = ()
    importance: Unit = 0.5
    salience: Unit = 0.5
    confidence: Unit = 1.0
    ttl_s: Annotated[int, Field(ge=1, le=10 * 366 * 86400)] | None = None
    metadata: dict[Name, Any] = {}
    entities: Annotated[tuple[Entity, ...], Field(max_length=MAX_ENTITIES)] = ()
    statements: Annotated[tuple[Statement, ...], Field(max_length=MAX_STATEMENTS)] = ()
    relations: Annotated[tuple[Relation, ...], Field(max_length=MAX_STATEMENTS)] = ()
    edges: Annotated[tuple[AssertedEdge, ...], Field(max_length=MAX_EDGES)] = ()
    supersedes: Annotated[tuple[MemoryId, ...], Field(max_length=MAX_EDGES)] = ()
    vector: tuple[float, ...] | None = None
    created_at: Instant | None = None
    extract: bool = True
    allow_duplicates: bool = False
    txn_id: TxnId | None = None

    @field_validator("metadata")
    @classmethod
    def _metadata_is_small_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            size = len(orjson.dumps(value))
        except TypeError:  # so deep that it could never be written down again
            raise ValueError("metadata is nested too deeply") from None
        if size > MAX_METADATA_BYTES:
            raise ValueError(f"metadata is {size} bytes, at most {MAX_METADATA_BYTES}")
        return value


class EncodeReply(Metered):
    """`position` is 0 inside a transaction: nothing is in the log before the commit. So it is where `silent` is set:
    nothing was stored, and `id` is what the memory would have been."""

    id: MemoryId
    position: Position
    deduplicated: bool = False


class ForgetRequest(Message):
    id: MemoryId
    mode: Literal["soft", "hard"] = "soft"
    reason: Annotated[str, Field(max_length=1024)] | None = None
    txn_id: TxnId | None = None


class ForgetReply(LaxMessage):
    """`forgotten` is False when the memory was forgotten before: forgetting twice is no error. `position` is 0 inside
    a transaction."""

    id: MemoryId
    position: Position
    forgotten: bool


#: For so long a soft forget can be taken back; then the memory is erased for good.
GRACE_S = 7 * 86400


class RestoreRequest(Message):
    """Take back a soft forget, within its grace of 7 days."""

    id: MemoryId


class RestoreReply(LaxMessage):
    """`restored` is False when the memory was not forgotten: that is no error."""

    id: MemoryId
    position: Position
    restored: bool

"""The ports between what decides (workers, orchestrator) and what carries (infra). Docstrings state the guarantees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from contracts.base import MemoryId, Position
from contracts.memory import MemoryRecord
from contracts.shards import WHOLE, Shard
from contracts.usage import Tariff


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived. `arrived` is on the monotonic clock, in seconds."""

    subject: str
    data: bytes
    arrived: float
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A subject that a role answers. Replicas of one `queue` share the work. A MemlaneError that `handle` raises
    becomes an error reply, anything else INTERNAL. Calls of one with a `tariff` are counted."""

    name: str
    subject: str
    queue: str
    handle: Handler
    tariff: Tariff | None = None


class Role(Protocol):
    """What a process does: it answers its endpoints and, beside that, runs."""

    name: str

    def endpoints(self) -> Sequence[Endpoint]: ...

    async def run(self, ready: Callable[[], None]) -> None:
        """Work until cancelled. Calls `ready` once, when the endpoints may be announced."""
        ...

    def stats(self) -> dict[str, object]:
        """Small facts for status: positions, sizes."""
        ...


class Bus(Protocol):
    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        """The reply of one listener.

        Raises NoResponders at once when nobody listens, NoReply when the time is up, PayloadTooLarge before
        anything is sent that the server would cut the link for.
        """
        ...

    async def publish(self, subject: str, data: bytes) -> None:
        """Fire and forget. Raises PayloadTooLarge."""
        ...


class BusFault(Exception):
    """A request that got no reply. Each subclass is a different thing for the caller to do."""


class NoResponders(BusFault):
    """Nobody listens on the subject."""


class NoReply(BusFault):
    """Somebody listens, and did not answer in time."""


class PayloadTooLarge(BusFault):
    """Header and body are over what the server takes."""


class WrongPosition(Exception):
    """An append expected another last position of that memory; `found` is the present one, where known."""

    def __init__(self, found: Position | None = None) -> None:
        super().__init__(f"the memory's last position is {found}")
        self.found = found


Entry = tuple[Position, MemoryRecord]


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries in log order. `ack` says that their effect and position are stored; `pending` counts what is behind.
    `last` is the position of the last message: beyond the last entry where that could not be read."""

    entries: Sequence[Entry]
    ack: Callable[[], Awaitable[None]]
    pending: int = 0
    last: Position = 0


class Log(Protocol):
    async def append(self, record: MemoryRecord, expected: Position) -> Position:
        """Append when the memory's last position is `expected` (0: none yet), and return after the log has stored it.

        Raises WrongPosition when it is another, Unavailable when the log did not acknowledge in time (a retry is
        safe: the same expectation cannot succeed twice).
        """
        ...

    async def append_all(self, records: Sequence[tuple[MemoryRecord, Position]]) -> Position:
        """Append records, each with its memory's expected last position, all or none, and return the last position.
        At most one record a memory.

        Raises WrongPosition when any expectation fails, Unavailable when the log did not acknowledge; then it may
        have appended all, never some.
        """
        ...

    async def last(self, project: str, memory_id: MemoryId) -> Entry | None:
        """The newest record of a memory."""
        ...

    async def history(self, project: str, memory_id: MemoryId) -> list[Entry]:
        """The records of a memory that the log still holds, oldest first."""
        ...

    async def end(self, project: str, shard: Shard = WHOLE) -> Position:
        """The last position of a project's shard (by default all of them), 0 when it has none."""
        ...

    async def erase(self, project: str, memory_id: MemoryId, before: Position) -> None:
        """Remove the records of a memory below a position from the log, for good."""
        ...

    def follow(self, durable: str, shard: Shard, after: Position) -> AsyncIterator[Batch]:
        """The records of a shard above a position, in order and without gaps, and then whatever comes.

        Survives restarts of the server: what was lost under way is asked for again. A batch without entries says
        that nothing is pending.
        """
        ...


@dataclass(frozen=True, slots=True)
class IngestMessage:
    project: str
    data: bytes
    deliveries: int
    ack: Callable[[], Awaitable[None]]
    retry: Callable[[float], Awaitable[None]]  # seconds until the next delivery
    extend: Callable[[], Awaitable[None]]  # still at it: do not deliver to another


class IngestQueue(Protocol):
    async def pull(self, most: int) -> list[IngestMessage]:
        """Up to `most` messages, as soon as there is one; an empty list after about a second without any."""
        ...

    async def dead_letter(self, message: IngestMessage, code: str, reason: str) -> None:
        """Store the message and the reason in the dead-letter stream, then take it off the queue."""
        ...

    async def close(self) -> None:
        """Pull no more. What was pulled and not settled goes to another in time."""
        ...

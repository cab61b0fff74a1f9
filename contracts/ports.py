"""The ports between what decides (workers, orchestrator) and what carries (infra). Docstrings state the guarantees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from contracts.base import MemoryId, Position
from contracts.memory import MemoryRecord
from contracts.query import SessionState, Use
from contracts.schema import VersionedSchema
from contracts.txn import Step
from contracts.usage import Admission, Charge, Kind, Tariff


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

    async def end(self, project: str, shard: int | None) -> Position:
        """The last position of a project's shard (None: of all its shards), 0 when it has none."""
        ...

    async def erase(self, project: str, memory_id: MemoryId, before: Position) -> None:
        """Remove the records of a memory below a position from the log, for good."""
        ...

    def follow(self, durable: str, shard: int | None, after: Position) -> AsyncIterator[Batch]:
        """The records of a shard (None: of all) above a position, in order and without gaps, and then whatever comes.

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


class Transactions(Protocol):
    """What transactions have pending: each has a sequence of steps of its own, which nothing else reads."""

    async def last(self, project: str, txn_id: str) -> tuple[Position, Step] | None:
        """The newest step and its position."""
        ...

    async def append(self, project: str, txn_id: str, step: Step, expected: Position) -> Position:
        """Add a step when the newest is at `expected` (0: none yet). Raises WrongPosition, Unavailable."""
        ...

    async def steps(self, project: str, txn_id: str) -> list[Step]:
        """All steps, oldest first. Raises Unavailable when they could not all be read."""
        ...

    async def clear(self, project: str, txn_id: str) -> None:
        """Drop all steps but the newest."""
        ...


class RequestIds(Protocol):
    async def claim(self, project: str, request_id: str, digest: str) -> str:
        """Bind a request id to a digest, once. Returns the digest it is bound to: `digest`, or an earlier one."""
        ...


class WrongRevision(Exception):
    """Somebody else wrote in between: read again."""


class Schemas(Protocol):
    """The declared schema of each project. Both raise Unavailable when the store does not answer in time."""

    async def read(self, project: str) -> tuple[VersionedSchema, int]:
        """The newest schema and its revision; the empty one and 0 where none was declared."""
        ...

    async def write(self, project: str, schema: VersionedSchema, revision: int) -> None:
        """Replace the schema of that revision, and return after it is stored. Raises WrongRevision when it is no
        longer the newest, and then nothing is changed."""
        ...


class Ledger(Protocol):
    """What each project used, by UTC day and kind. Any number of processes share it."""

    async def admit(self, project: str, charge: Charge, limits: Charge) -> Admission:
        """Count a charge if no limit of the day is passed by it, all of it or nothing. Kinds without a limit always
        pass, and where none of the charge has one this neither waits nor raises. Of calls that race for the last unit,
        in whatever processes, exactly one is admitted. Raises Unavailable when the store did not answer."""
        ...

    def give_back(self, project: str, admission: Admission) -> None:
        """Undo an admission: the call failed. Neither waits nor raises."""
        ...

    def count(self, project: str, day: date, charge: Charge) -> None:
        """Count without regard to limits, within about a second. A negative number takes away."""
        ...

    async def read(self, project: str, day: date) -> dict[Kind, int]:
        """What was counted on a day; other processes' last second may be missing. Raises Unavailable."""
        ...


class Meter(Protocol):
    """A ledger together with the limits that hold."""

    async def admit(self, project: str, charge: Charge) -> Admission:
        """As `Ledger.admit`, with the project's own limits. A refused admission means silent mode: do nothing, and
        answer as if nothing were wrong. Raises Exhausted (QUOTA_EXCEEDED) in strict mode, INVALID_PROJECT."""
        ...

    def give_back(self, project: str, admission: Admission) -> None: ...

    def count(self, project: str, day: date, charge: Charge) -> None: ...


@dataclass(frozen=True, slots=True)
class Told:
    """One entry of the stream of uses: its place there, whose memories, and the use."""

    position: Position
    project: str
    use: Use


@dataclass(frozen=True, slots=True)
class UseBatch:
    """Uses in the order of their stream. `ack` says that their effect and position are stored."""

    told: Sequence[Told]
    ack: Callable[[], Awaitable[None]]


class Uses(Protocol):
    """The stream of uses: which memories were given in an answer, and feedback on them."""

    async def tell(self, project: str, shard: int, use: Use) -> None:
        """Append, and return after it is stored. Raises Unavailable; then it may be stored or not."""
        ...

    def follow(self, durable: str, shard: int, after: Position) -> AsyncIterator[UseBatch]:
        """The uses of a shard's memories above a position, in order and without gaps, and then whatever comes. A batch
        may come again: whoever follows skips what is at or below its position."""
        ...


class Sessions(Protocol):
    """What query sessions remember, shared by all orchestrators; forgotten when nothing was written for a while. A
    session belongs to its project. Both raise Unavailable when the store does not answer in time."""

    async def read(self, project: str, session_id: str) -> SessionState:
        """The state last written; an empty one where there is none."""
        ...

    async def write(self, project: str, session_id: str, state: SessionState) -> None:
        """Replace it: of two writers at once the later one wins."""
        ...

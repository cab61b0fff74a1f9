"""The ports to what is kept beside the log: transactions, request ids, schemas, the ledger, uses, sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from contracts.base import Position
from contracts.query import SessionState, Use
from contracts.schema import VersionedSchema
from contracts.txn import Step
from contracts.usage import Admission, Charge, Kind


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

    async def tell(self, project: str, use: Use, once: str | None = None) -> bool:
        """Append, and return after it is stored: False where one of the project with the same `once` was stored in the
        last two minutes. Raises Unavailable; then it may be stored or not."""
        ...

    def follow(self, durable: str, after: Position) -> AsyncIterator[UseBatch]:
        """The uses above a position, in order and without gaps, and then whatever comes. A batch may come
        again: whoever follows skips what is at or below its position."""
        ...


class Lease(Protocol):
    """Which process of several does what one is enough for."""

    async def hold(self, name: str, holder: str) -> bool:
        """Whether `holder` has the lease, taken or prolonged by this call for about a minute. Never raises: where the
        store does not answer, nobody has it."""
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

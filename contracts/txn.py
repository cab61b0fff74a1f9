"""Transactions: begin, then encode, forget and recall under the `txn_id`, then commit all of it at once or abort."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contracts.base import Instant, LaxMessage, Message, Position, TxnId, now
from contracts.encode import ForgetRequest
from contracts.errors import Conflict, ErrorCode, NotFound
from contracts.memory import MemoryRecord

#: Most operations of a transaction, and the most bytes they may take.
MOST_OPERATIONS, MOST_BYTES = 1000, 100 * 2**20
DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S = 30, 300


class BeginRequest(Message):
    """Begin a transaction. With a `txn_id` of the caller's own, beginning again is harmless while it is open."""

    txn_id: TxnId | None = None
    timeout_s: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_S)] = DEFAULT_TIMEOUT_S


class BeginReply(LaxMessage):
    """After `expires_at` nothing but an abort is possible, and nothing was ever visible outside."""

    txn_id: TxnId
    expires_at: Instant


class EndRequest(Message):
    """Commit or abort this transaction."""

    txn_id: TxnId


class CommitReply(LaxMessage):
    """`position` is that of the last record, 0 when the transaction held nothing to write: pass it to a recall with
    ReadAfterWrite. Committing again answers the same."""

    txn_id: TxnId
    operations_applied: int
    position: Position


class AbortReply(LaxMessage):
    """Aborting again answers the same."""

    txn_id: TxnId
    operations_discarded: int


class Step(LaxMessage):
    """One message of a transaction's own stream; the last one is its state. `number` and `size` count the operations
    so far and their bytes. An operation is a `record` to encode (as it would be if it were new) or a `forget`."""

    state: Literal["open", "committing", "committed", "aborted"] = "open"
    number: int = 0
    size: int = 0
    expires_at: Instant
    record: MemoryRecord | None = None
    forget: ForgetRequest | None = None
    position: Position = 0

    def check_open(self, txn_id: str) -> None:
        """Raises Conflict: TXN_CLOSED when it was ended, TXN_TIMEOUT when it expired."""
        if self.state != "open":
            raise txn_closed(txn_id, self.state)
        if self.expires_at <= now():
            raise Conflict(ErrorCode.TXN_TIMEOUT, "the transaction expired", txn_id=txn_id)


def txn_not_found(txn_id: str) -> NotFound:
    return NotFound(ErrorCode.TXN_NOT_FOUND, "no such transaction in this project", txn_id=txn_id)


def txn_closed(txn_id: str, state: str) -> Conflict:
    return Conflict(ErrorCode.TXN_CLOSED, f"the transaction is {state}", txn_id=txn_id, state=state)

"""One error tree and one error reply.

MemlaneError
├── InvalidRequest      the caller must change the request
├── Denied              the caller's credential does not allow it
├── NotFound            what the request names is not there
├── Conflict            the request contradicts what is stored
├── Exhausted           too much at once; try again later
├── Unavailable         a part did not answer in time; try again
└── Internal            our fault

Between processes a failure is a value: ``{"error": {code, category, message, details, retryable}}``.
Inside a process it is an exception of this tree; `to_reply` and `from_reply` are the only two crossings.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

from contracts.base import LaxMessage


class ErrorCode(StrEnum):
    """Stable names; a comment says what the caller does next."""

    INVALID_REQUEST = "INVALID_REQUEST"  # correct the field that details name
    INVALID_ENCODING = "INVALID_ENCODING"  # send UTF-8 JSON
    INVALID_PROJECT = "INVALID_PROJECT"  # use letters, digits, - and _, at most 64
    UNKNOWN_FIELD = "UNKNOWN_FIELD"  # remove or correct the field
    TEXT_EMPTY = "TEXT_EMPTY"  # send a text
    TEXT_TOO_LARGE = "TEXT_TOO_LARGE"  # split the text
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"  # send less in one message
    BAD_VECTOR_DIMENSION = "BAD_VECTOR_DIMENSION"  # send a vector of the model's dimension
    BAD_WEIGHTS = "BAD_WEIGHTS"  # give the signals in details numbers of at least 0, one of them above it
    OUT_OF_RANGE = "OUT_OF_RANGE"  # bring the number within the bounds in details
    ENTITY_TYPE_NOT_IN_SCHEMA = "ENTITY_TYPE_NOT_IN_SCHEMA"  # declare the type, or correct the name in details
    PREDICATE_NOT_IN_SCHEMA = "PREDICATE_NOT_IN_SCHEMA"  # declare the predicate, or correct it
    RELATION_TYPE_NOT_IN_SCHEMA = "RELATION_TYPE_NOT_IN_SCHEMA"  # declare the relation type, or correct it
    KIND_NOT_IN_SCHEMA = "KIND_NOT_IN_SCHEMA"  # leave kind out, or give the declared one in details
    NOT_PERMITTED = "NOT_PERMITTED"  # use a credential of that project
    MEMORY_NOT_FOUND = "MEMORY_NOT_FOUND"  # nothing to do: it is not there
    UNKNOWN_PROJECT = "UNKNOWN_PROJECT"  # encode something first, or correct the name
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"  # use a new request_id for new content
    GRACE_OVER = "GRACE_OVER"  # nothing to do: it is erased, or about to be
    TXN_NOT_FOUND = "TXN_NOT_FOUND"  # begin a transaction
    TXN_CLOSED = "TXN_CLOSED"  # it was committed or aborted: begin another
    TXN_TIMEOUT = "TXN_TIMEOUT"  # it expired and left nothing: begin another, with more time
    TXN_TOO_LARGE = "TXN_TOO_LARGE"  # commit what is there, or abort
    STALE_CURSOR = "STALE_CURSOR"  # begin the listing again
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"  # wait for retry_after_ms in details: the day begins anew at midnight UTC
    OVERLOADED = "OVERLOADED"  # back off, then try again
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"  # try again with more time
    CONSISTENCY_TIMEOUT = "CONSISTENCY_TIMEOUT"  # try again: the lane in details is behind
    LANES_LOST = "LANES_LOST"  # try again: no lane answered
    UNAVAILABLE = "UNAVAILABLE"  # try again: a needed part is away
    INTERNAL = "INTERNAL"  # report it, with the request id


class MemlaneError(Exception):
    """Base of every error we raise on purpose. `details` is JSON and never holds a secret."""

    category: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, code: ErrorCode, message: str, **details: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = details


class InvalidRequest(MemlaneError):
    category = "validation"


class Denied(MemlaneError):
    category = "denied"


class NotFound(MemlaneError):
    category = "not_found"


class Conflict(MemlaneError):
    category = "conflict"


class Exhausted(MemlaneError):
    category = "exhausted"
    retryable = True


class Unavailable(MemlaneError):
    category = "unavailable"
    retryable = True


class Internal(MemlaneError):
    category = "internal"


class Garbled(Internal, ValueError):
    """What another process sent, or a store gave back, is not what was agreed on."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(ErrorCode.INTERNAL, message, **details)


_TREE: dict[str, type[MemlaneError]] = {
    cls.category: cls for cls in (InvalidRequest, Denied, NotFound, Conflict, Exhausted, Unavailable, Internal)
}


class ErrorBody(LaxMessage):
    code: str
    category: str
    message: str
    details: dict[str, Any] = {}
    retryable: bool = False


class ErrorReply(LaxMessage):
    error: ErrorBody


def to_reply(error: BaseException) -> ErrorReply:
    """The wire form of an error. An exception outside the tree becomes INTERNAL, its type named, its text withheld."""
    if not isinstance(error, MemlaneError):
        error = Internal(ErrorCode.INTERNAL, "unexpected failure", kind=type(error).__name__)
    body = ErrorBody(
        code=str(error.code),
        category=error.category,
        message=error.message,
        details=error.details,
        retryable=error.retryable,
    )
    return ErrorReply(error=body)


def from_reply(body: ErrorBody) -> MemlaneError:
    """The exception for a received error; an unknown code or category (a newer server) becomes Internal."""
    cls = _TREE.get(body.category, Internal)
    code = ErrorCode(body.code) if body.code in ErrorCode.__members__ else ErrorCode.INTERNAL
    error = cls(code, body.message)
    error.details = dict(body.details)  # not as keywords: a detail may have any name
    return error

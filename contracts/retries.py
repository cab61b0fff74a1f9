"""When a call that failed is made again: pure rules, which the client obeys."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from pydantic import BaseModel

from contracts.encode import EncodeRequest, ForgetRequest
from contracts.errors import MemlaneError
from contracts.query import FeedbackRequest
from contracts.txn import BeginRequest

DEFAULT_RETRIES = 2
#: Seconds before the first further try; they double with each, up to LONGEST_S, and half of them is left to chance, so
#: that callers who failed together do not come back together.
FIRST_S, LONGEST_S = 0.1, 2.0


def pause_s(failed: int, error: MemlaneError, chance: Callable[[], float]) -> float | None:
    """Seconds to wait after this many failed tries (from 1), or None where trying again cannot help. An error that says
    when it is worth it (`retry_after_ms`) is waited for so long. `chance` gives numbers in [0, 1)."""
    if not error.retryable:
        return None
    after = error.details.get("retry_after_ms", 0)
    longest: float = min(FIRST_S * 2 ** (failed - 1), LONGEST_S)
    return max(longest * (1 + chance()) / 2, after / 1000 if isinstance(after, int | float) else 0.0)


def repeatable(request: BaseModel) -> BaseModel | None:
    """The request in a form that may be sent twice and has effect once; None where there is no such form.

    Most have it: the content of a memory is its identity, and all else asks or sets. What would count each time gets an
    id of its own. An operation of a transaction would stand in it twice, so that is left to the caller.
    """
    if isinstance(request, EncodeRequest | ForgetRequest) and request.txn_id is not None:
        return None
    new: dict[str, str] = {}
    if isinstance(request, FeedbackRequest) or (isinstance(request, EncodeRequest) and request.allow_duplicates):
        new = {} if request.request_id is not None else {"request_id": secrets.token_hex(16)}
    elif isinstance(request, BeginRequest) and request.txn_id is None:
        new = {"txn_id": secrets.token_hex(16)}
    return request.model_copy(update=new) if new else request


def shortened(request: BaseModel, left_s: float) -> BaseModel:
    """The request with what is left of its deadline, where it has one that is longer."""
    deadline_ms = getattr(request, "deadline_ms", None)
    if deadline_ms is None or deadline_ms <= left_s * 1000:
        return request
    return request.model_copy(update={"deadline_ms": max(int(left_s * 1000), 1)})

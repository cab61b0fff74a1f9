"""A budget of time: when it is over, what was found until then is the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from contracts.errors import ErrorCode, MemlaneError

#: Parts are given less than the budget by this, so that one which is behind says so before it is cut off.
MARGIN_S = 0.01


@dataclass(slots=True)
class Budget:
    """`deadline` is for the parts that are asked, on the monotonic clock; `spent` says, in the end, whether the time
    did not suffice."""

    deadline: float
    spent: bool = False


@contextmanager
def within(end: float) -> Iterator[Budget]:
    """Cut off what is done inside at `end`. A part that failed then for want of time was cut off too, and is no error;
    one that is behind the position asked for is (CONSISTENCY_TIMEOUT): more time, not less work, would help it."""
    budget = Budget(end - MARGIN_S)
    try:
        with anyio.move_on_at(end) as scope:
            yield budget
    except MemlaneError as error:
        late = time.monotonic() >= end - 2 * MARGIN_S
        if error.code is ErrorCode.CONSISTENCY_TIMEOUT or not error.retryable or not late:
            raise
        budget.spent = True
    else:
        budget.spent = scope.cancelled_caught

"""Whether a request can still be answered in its time, judged by how long those before it took."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

#: Service times older than this say nothing of now: so a lane that refused all is tried again, and one that was slow
#: at its start is not held to that.
FRESH_S = 2.0
#: Fewer than this are chance.
LEAST = 8
MOST = 256
#: A lane that has less time left than this refuses at once rather than answer nobody.
LEAST_TIME_S = 0.002


class Pace:
    """The service times of the last seconds, waiting for a thread included."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._took: deque[tuple[float, float]] = deque(maxlen=MOST)

    def took(self, seconds: float) -> None:
        """A request was served in so many seconds."""
        self._took.append((self._clock(), seconds))

    def can(self, left_s: float) -> bool:
        """Whether a request with so much time left is worth starting: a quarter of those lately served took no longer.
        The quarter, as a cheap cue may well be in time where the usual one is not."""
        if left_s < LEAST_TIME_S:
            return False
        since = self._clock() - FRESH_S
        lately = sorted(took for at, took in self._took if at >= since)
        return len(lately) < LEAST or lately[len(lately) // 4] <= left_s

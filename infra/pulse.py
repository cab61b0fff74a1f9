"""How busy a process is: the rate of its requests and how long they take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median

#: The rate is over so many seconds; so many requests at most are remembered for it.
WINDOW_S, MOST = 10.0, 4096


class Pulse:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._done: deque[tuple[float, float]] = deque(maxlen=MOST)

    def beat(self, took_s: float) -> None:
        """A request was answered."""
        self._done.append((self._clock(), took_s))

    def facts(self) -> dict[str, object]:
        """Requests a second, and their median in ms, lately; no median without requests."""
        present = self._clock()
        lately = [took for at, took in self._done if present - at <= WINDOW_S]
        rate = len(lately) / min(WINDOW_S, max(present - self._began, 1.0))
        return {"per_s": round(rate, 1), **({"median_ms": round(median(lately) * 1000, 2)} if lately else {})}

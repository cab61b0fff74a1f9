"""What is done once a reply has left: small jobs that no caller waits for, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio
import structlog

from contracts.errors import MemlaneError

logger = structlog.get_logger()

#: Jobs that may wait; beyond that new ones are dropped, as memory is worth more than a count.
MOST_WAITING = 1000

Job = Callable[[], Awaitable[None]]


class Afterwards:
    """Jobs run in the order in which they were handed in. One that fails is counted and forgotten; on a stop those that
    wait are lost."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._more = anyio.Event()
        self.failed = 0
        self.dropped = 0

    def soon(self, job: Job) -> None:
        """Never waits, never raises."""
        if len(self._jobs) >= MOST_WAITING:
            self.dropped += 1
            return
        self._jobs.append(job)
        self._more.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.drain()
            self._more = anyio.Event()
            await self._more.wait()

    async def drain(self) -> None:
        """Run all that wait now."""
        while self._jobs:
            job = self._jobs.popleft()
            try:
                await job()
            except MemlaneError as error:
                self.failed += 1
                logger.warning("a job after a reply failed", action="afterwards", code=error.code, error=error.message)
            except Exception:
                self.failed += 1
                logger.exception("a job after a reply failed", action="afterwards")

"""What is done once a reply has left: small jobs that no caller waits for, one after the other."""

from __future__ import annotations

import math
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
        self._send, self._receive = anyio.create_memory_object_stream[Job](math.inf)
        self._waiting = 0
        self.failed = 0
        self.dropped = 0

    def soon(self, job: Job) -> None:
        """Never waits, never raises."""
        if self._waiting >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting += 1
        self._send.send_nowait(job)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            job = await self._receive.receive()
            try:
                await job()
            except MemlaneError as error:
                self.failed += 1
                logger.warning("a job after a reply failed", action="afterwards", code=error.code, error=error.message)
            except Exception:
                self.failed += 1
                logger.exception("a job after a reply failed", action="afterwards")
            finally:
                self._waiting -= 1

    async def drain(self) -> None:
        """Run what waits, and return: for those who have no loop of their own."""
        while self._waiting:
            with anyio.move_on_after(0.05):
                await self.run()

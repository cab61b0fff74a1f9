"""Reclaim: what was forgotten softly and not restored within its grace is erased for good."""

from __future__ import annotations

from datetime import timedelta

import anyio
import structlog

from contracts import subjects, wire
from contracts.base import now
from contracts.catalog import OverdueReply, OverdueRequest
from contracts.encode import GRACE_S, ForgetRequest
from contracts.errors import MemlaneError
from contracts.ports import Bus, BusFault
from contracts.shards import Shard, all_shards
from workers.encode.writer import MemoryWriter

logger = structlog.get_logger()

ASK_TIMEOUT_S = 5.0


class Reclaimer:
    """Any number may run at once: a memory that another erased first is forgotten already, which is no error."""

    def __init__(self, bus: Bus, writer: MemoryWriter, shards: int, every_s: float) -> None:
        self._bus, self._writer, self._shards, self._every_s = bus, writer, shards, every_s
        self.reclaimed = 0

    async def run(self) -> None:
        """Sweep for ever. A shard whose catalog is away is swept the next time."""
        while True:
            await anyio.sleep(self._every_s)
            for shard in all_shards(self._shards):
                try:
                    await self._sweep(shard)
                except (BusFault, MemlaneError) as error:
                    logger.warning("could not reclaim", action="reclaim_failed", shard=str(shard), error=str(error))

    async def _sweep(self, shard: Shard) -> None:
        request = OverdueRequest(before=now() - timedelta(seconds=GRACE_S))
        data = await self._bus.request(subjects.catalog(shard, "overdue"), wire.encode(request), ASK_TIMEOUT_S)
        for project, memory_id in wire.decode_reply(OverdueReply, data).overdue:
            await self._writer.forget(project, ForgetRequest(id=memory_id, mode="hard", reason="grace over"))
            self.reclaimed += 1

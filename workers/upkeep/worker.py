"""The upkeep role: follows the log, answers for topics, and keeps house by a schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import anyio
import structlog

from contracts import subjects, wire
from contracts.base import Position
from contracts.errors import ErrorCode, NotFound
from contracts.ports import Bus, Call, Endpoint, Entry, Log
from contracts.shards import WHOLE
from contracts.stores import Lease
from contracts.topics import TopicsQuery, TopicsRequest
from workers.lane import Progress, follow
from workers.upkeep.index import TopicIndex
from workers.upkeep.rounds import Rounds

logger = structlog.get_logger()


#: The first round comes soon: what the catalogs alone know to be replaced counts until then.
FIRST_S = 5.0


class UpkeepWorker:
    """One process is enough; of more, each answers for topics, and one keeps house."""

    name = "upkeep"

    def __init__(
        self, log: Log, bus: Bus, lease: Lease, index: TopicIndex, replica: str, shards: int, every_s: float
    ) -> None:
        self._log, self._index, self._every_s = log, index, every_s
        self._durable = subjects.durable("upkeep", WHOLE, replica)
        self._progress = Progress(0)
        self._rounds = Rounds(bus, index, self._progress, lease, replica, shards)
        self._caught_up, self._wake = anyio.Event(), anyio.Event()
        self._written = 0

    def endpoints(self) -> Sequence[Endpoint]:
        return [
            Endpoint("topics", subjects.verb("*", "topics"), "upkeep", self._list),
            Endpoint("find", subjects.TOPICS, "upkeep", self._find),
        ]

    def stats(self) -> dict[str, object]:
        return {
            "position": self._progress.position,
            **self._index.counts(),
            "written": self._written,
            "acting": self._rounds.acting,
        }

    async def run(self, ready: Callable[[], None]) -> None:
        """Ready at once: until the log is replayed, what is not known yet is in no topic."""
        ready()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_house)
            await follow(self._log, self._durable, WHOLE, self, self._progress, self._caught_up.set)

    async def _keep_house(self) -> None:
        """The schedule: a round every so often, and at once where a word of a summary is to be forgotten for good. None
        before the log is replayed: what is merely not known yet would be taken for gone."""
        await self._caught_up.wait()
        wait_s = min(self._every_s, FIRST_S)
        while True:
            with anyio.move_on_after(wait_s):
                await self._wake.wait()
            wait_s = self._every_s
            self._wake = anyio.Event()
            started = time.monotonic()
            try:
                report = await self._rounds.run_once()
            except Exception:  # a fault of ours must not end the follower beside it
                logger.exception("round failed", action="upkeep_round_failed")
                continue
            self._written += report.written
            if report.projects:
                logger.info(
                    "round",
                    action="upkeep_round",
                    projects=report.projects,
                    written=report.written,
                    taken_away=report.taken_away,
                    failed=report.failed,
                    took_ms=round((time.monotonic() - started) * 1000, 1),
                    **{key: value for key, value in self._index.counts().items() if key != "projects"},
                )

    async def _find(self, call: Call) -> bytes:
        return wire.encode(self._index.find(wire.decode_reply(TopicsQuery, call.data)))

    async def _list(self, call: Call) -> bytes:
        project = subjects.project_of(call.subject)
        wire.check_project(project)
        request = wire.decode(TopicsRequest, call.data or b"{}")
        reply = self._index.listing(project, request.limit)
        if not reply.total and await self._log.end(project) == 0:
            raise NotFound(ErrorCode.UNKNOWN_PROJECT, "nothing was ever encoded into this project", project=project)
        return wire.encode(reply)

    @property
    def position(self) -> Position:
        return self._index.position

    async def apply(self, entries: Sequence[Entry]) -> None:
        """`workers.lane.Projection`: that of the index, which is waited for here."""
        await self._index.apply(entries)
        if self._index.erased():
            self._wake.set()

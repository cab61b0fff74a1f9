"""What every lane worker is: an index that follows the log and answers searches at a known position."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import anyio

from contracts import subjects, wire
from contracts.base import Position
from contracts.errors import ErrorCode, Exhausted
from contracts.lanes import Lane, LaneQuery, LaneReply, LaneStatus, ScoreQuery, ScoreReply
from contracts.ports import Call, Endpoint, Entry, Log
from contracts.shards import Shard
from workers.pace import Pace

R = TypeVar("R")


class Projection(Protocol):
    """Anything that is built from one shard of the log and may be thrown away.

    `apply` is idempotent: applying an entry twice, or an older run of entries again, ends in the same index. It
    stores effect first and `position` last, so that killed at any point and restarted it catches up. A record that
    is a tombstone removes its memory. Blocking work runs in a thread inside.
    """

    @property
    def position(self) -> Position:
        """The last applied position. After a kill, opening again gives the last one whose effect is stored."""
        ...

    async def apply(self, entries: Sequence[Entry]) -> None: ...


class LaneIndex(Projection, Protocol):
    """A projection that answers searches. Both may raise TimeoutError when the query's time is up."""

    async def search(self, query: LaneQuery) -> LaneReply:
        """The best items for the query's cue, best first, ties by item id. An empty index gives an empty list."""
        ...

    async def score(self, query: ScoreQuery) -> ScoreReply: ...

    async def close(self) -> None: ...


class Progress:
    """How far a follower has come; readers may wait for a position."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self._moved = anyio.Event()

    def advance(self, position: Position) -> None:
        self.position = max(self.position, position)
        self._moved.set()
        self._moved = anyio.Event()

    async def reached(self, position: Position, deadline: float) -> bool:
        """Wait until `position` is applied; False when the monotonic `deadline` comes first."""
        with anyio.move_on_at(deadline):
            while self.position < position:
                await self._moved.wait()
        return self.position >= position


async def follow(
    log: Log, durable: str, shard: Shard, index: Projection, progress: Progress, ready: Callable[[], None]
) -> None:
    """Keep an index in step with its shard of the log, for ever. Calls `ready` when it has caught up once."""
    caught_up = False
    async for batch in log.follow(durable, shard, index.position):
        fresh = [entry for entry in batch.entries if entry[0] > index.position]
        if fresh:
            await index.apply(fresh)
            progress.advance(fresh[-1][0])
        # What cannot be read has no effect that anybody could wait for.
        progress.advance(batch.last)
        await batch.ack()
        if not caught_up and batch.pending == 0:
            caught_up = True
            ready()


async def in_time(search: Awaitable[R]) -> R:
    """What it finds. Raises Exhausted (DEADLINE_EXCEEDED) when it had to stop before."""
    try:
        return await search
    except TimeoutError:
        raise Exhausted(ErrorCode.DEADLINE_EXCEEDED, "the lane was not done in time") from None


class LaneWorker:
    """The role of one replica of one shard of one lane."""

    def __init__(
        self, lane: Lane, shard: Shard, replica: str, index: LaneIndex, log: Log, pace: Pace | None = None
    ) -> None:
        self.name = str(lane)
        self._lane, self._shard, self._index, self._log = lane, shard, index, log
        self._durable = subjects.durable(lane, shard, replica)
        self._progress = Progress(index.position)
        self._pace = pace or Pace()
        self._refused = 0

    def endpoints(self) -> Sequence[Endpoint]:
        queue = f"{self._lane}-{self._shard}"
        return [
            Endpoint("search", subjects.lane(self._lane, self._shard, "search"), queue, self._search),
            Endpoint("score", subjects.lane(self._lane, self._shard, "score"), queue, self._score),
        ]

    def stats(self) -> dict[str, object]:
        return {"shard": str(self._shard), "position": self._progress.position, "overloaded": self._refused}

    async def run(self, ready: Callable[[], None]) -> None:
        try:
            await follow(self._log, self._durable, self._shard, self._index, self._progress, ready)
        finally:
            with anyio.CancelScope(shield=True):
                await self._index.close()

    async def _search(self, call: Call) -> bytes:
        query = wire.decode_reply(LaneQuery, call.data)
        deadline = call.arrived + query.remaining_ms / 1000
        if not self._pace.can(deadline - time.monotonic()):
            self._refused += 1
            return wire.encode(LaneReply(status=LaneStatus.OVERLOADED, position=self._progress.position))
        if not await self._progress.reached(query.min_position, deadline):
            return wire.encode(LaneReply(status=LaneStatus.BEHIND, position=self._progress.position))
        position, started = self._progress.position, time.monotonic()
        try:
            reply = await in_time(self._index.search(query))
        finally:  # what was given up for want of time counts too
            self._pace.took(time.monotonic() - started)
        took_ms = (time.monotonic() - call.arrived) * 1000
        return wire.encode(reply.model_copy(update={"position": position, "took_ms": took_ms}))

    async def _score(self, call: Call) -> bytes:
        reply = await in_time(self._index.score(wire.decode_reply(ScoreQuery, call.data)))
        return wire.encode(reply.model_copy(update={"took_ms": (time.monotonic() - call.arrived) * 1000}))

"""Term statistics of all shards together, so that lexical scores are the same on any number of shards."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from contracts import subjects, wire
from contracts.base import Position
from contracts.errors import MemlaneError
from contracts.lanes import Lane, LaneStatus, TermsQuery, TermsReply, TermStatistics
from contracts.ports import Bus, BusFault
from contracts.shards import Shard, all_shards

#: How long statistics serve again, and for how many cues. They change with every memory that is written, and little.
KEPT_S, MOST_KEPT = 1.0, 1024
#: Of the time that is left: what the search itself needs is not spent here.
SHARE = 0.4
#: Kept back from a shard's time for the way to it and home.
TRAVEL_MS = 2.0


@dataclass(frozen=True, slots=True)
class Told:
    """`whole` says that every shard has told; a shard that does not will not answer the search either."""

    statistics: TermStatistics | None = None
    whole: bool = True


@dataclass(frozen=True, slots=True)
class _Kept:
    statistics: TermStatistics
    positions: tuple[Position, ...]
    until: float


class TermStore:
    """What one process remembers of statistics, by project and cue."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    async def ask(self, bus: Bus, project: str, cue: str, positions: Sequence[Position], deadline: float) -> Told:
        """The statistics of all shards, each at its position or later; none for a single shard, which has its own.
        Never raises: shards that do not tell in time are left out."""
        if len(positions) == 1:
            return Told()
        kept = self._kept.get((project, cue))
        if kept and kept.until > time.monotonic() and all(map(int.__ge__, kept.positions, positions)):
            return Told(kept.statistics)
        replies = await _ask_all(bus, project, cue, positions, deadline)
        told = add([reply.statistics for reply in replies])
        if told is None or len(replies) < len(positions):
            return Told(told, whole=False)
        self._keep((project, cue), _Kept(told, tuple(one.position for one in replies), time.monotonic() + KEPT_S))
        return Told(told)

    def _keep(self, key: tuple[str, str], kept: _Kept) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


def add(parts: Sequence[TermStatistics]) -> TermStatistics | None:
    """The sum of the shards' statistics on the same cue; None of none."""
    if not parts:
        return None
    df: dict[str, int] = {}
    for part in parts:
        for term, count in zip(part.terms, part.df, strict=True):
            df[term] = df.get(term, 0) + count
    return TermStatistics(
        count=sum(part.count for part in parts),
        lengths=(sum(part.lengths[0] for part in parts), sum(part.lengths[1] for part in parts)),
        terms=tuple(df),
        df=tuple(df.values()),
    )


async def _ask_all(
    bus: Bus, project: str, cue: str, positions: Sequence[Position], deadline: float
) -> list[TermsReply]:
    """In the order of the shards, those that answered."""
    replies: dict[Shard, TermsReply] = {}
    left = (deadline - time.monotonic()) * SHARE

    async def ask(shard: Shard) -> None:
        query = TermsQuery(
            project=project, cue=cue, min_position=positions[shard.number], remaining_ms=left * 1000 - TRAVEL_MS
        )
        try:
            data = await bus.request(subjects.lane(Lane.LEXICAL, shard, "terms"), wire.encode(query), left)
            reply = wire.decode_reply(TermsReply, data)
            if reply.status is LaneStatus.OK and len(reply.statistics.terms) == len(reply.statistics.df):
                replies[shard] = reply
        except (BusFault, MemlaneError, ValueError):
            return  # it will not answer the search either, and there its state shows

    async with anyio.create_task_group() as tasks:
        for shard in all_shards(len(positions)):
            tasks.start_soon(partial(ask, shard))
    return [replies[shard] for shard in sorted(replies)]

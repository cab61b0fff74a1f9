"""A lane refuses what it cannot finish, by how long it took lately, and tries again."""

from __future__ import annotations

import time
from typing import Any

import pytest

from contracts import subjects, wire
from contracts.lanes import Lane, LaneQuery, LaneReply, LaneStatus
from contracts.ports import Call
from contracts.shards import WHOLE
from workers.lane import LaneWorker
from workers.pace import FRESH_S, LEAST, Pace


class Clock:
    def __init__(self) -> None:
        self.present = 100.0

    def __call__(self) -> float:
        return self.present


def paced(clock: Clock, *took: float) -> Pace:
    pace = Pace(clock)
    for seconds in took:
        pace.took(seconds)
    return pace


@pytest.mark.parametrize(
    ("took", "left_s", "can"),
    [
        ((), 0.01, True),
        ((), 0.001, False),  # no time at all
        ((0.5,) * (LEAST - 1), 0.01, True),  # too few to tell
        ((0.5,) * LEAST, 0.01, False),
        ((0.5,) * LEAST, 0.6, True),
        ((0.005,) * 3 + (0.5,) * 9, 0.01, False),
        ((0.005,) * 4 + (0.5,) * 9, 0.01, True),  # a quarter would be in time
    ],
)
def test_by_how_long_others_took(took: tuple[float, ...], left_s: float, can: bool) -> None:
    assert paced(Clock(), *took).can(left_s) is can


def test_what_was_slow_is_tried_again() -> None:
    clock = Clock()
    pace = paced(clock, *[0.5] * 50)
    assert not pace.can(0.1)
    clock.present += FRESH_S + 0.01
    assert pace.can(0.1)


class Index:
    """A lane's index that counts searches."""

    position = 7
    searches = 0

    async def search(self, query: LaneQuery) -> LaneReply:
        self.searches += 1
        return LaneReply()


async def test_a_lane_refuses_at_once_and_does_not_search() -> None:
    index, clock = Index(), Clock()
    anything: Any = index
    worker = LaneWorker(Lane.GRAPH, WHOLE, "a", anything, anything, paced(clock, *[5.0] * 20))
    [search] = [one for one in worker.endpoints() if one.name == "search"]

    async def ask(remaining_ms: float) -> LaneReply:
        data = wire.encode(LaneQuery(project="p", cue="c", remaining_ms=remaining_ms))
        call = Call(subjects.lane(Lane.GRAPH, WHOLE, "search"), data, time.monotonic())
        return wire.decode_reply(LaneReply, await search.handle(call))

    refused = await ask(1000)
    assert (refused.status, refused.position, index.searches) == (LaneStatus.OVERLOADED, 7, 0)
    assert (await ask(60_000)).status is LaneStatus.OK
    clock.present += FRESH_S + 0.01
    assert (await ask(1000)).status is LaneStatus.OK
    assert index.searches == 2

"""What a lane's role makes of an index that is out of time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import BaseModel

from contracts import wire
from contracts.errors import ErrorCode, Exhausted
from contracts.lanes import Lane, LaneQuery, ScoreQuery
from contracts.ports import Call
from contracts.shards import WHOLE
from workers.lane import LaneWorker


class Slow:
    position = 7

    async def search(self, _: LaneQuery) -> Any:
        raise TimeoutError

    score: Any = search


@pytest.mark.parametrize(
    ("endpoint", "query"),
    [(0, LaneQuery(project="p", cue="a", top_n=5)), (1, ScoreQuery(project="p", cue="a"))],
    ids=["search", "score"],
)
async def test_a_search_that_is_out_of_time_says_so(endpoint: int, query: BaseModel) -> None:
    index: Any = Slow()
    log: Any = None
    worker = LaneWorker(Lane.GRAPH, WHOLE, "a", index, log)
    with pytest.raises(Exhausted) as caught:
        await worker.endpoints()[endpoint].handle(Call("subject", wire.encode(query), time.monotonic()))
    assert caught.value.code is ErrorCode.DEADLINE_EXCEEDED

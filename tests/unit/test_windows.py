"""How far down the fused order recall looks."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from contracts import subjects, wire
from contracts.catalog import HydrateReply, HydrateRequest, Row
from contracts.lanes import Lane, LaneReply
from contracts.memory import MemoryKind, derive_id
from contracts.ports import NoResponders
from contracts.recall import RecallReply, RecallRequest
from contracts.shards import WHOLE
from orchestrator.catalog import Catalog
from orchestrator.look_up import WINDOW
from orchestrator.profiles import PROFILES
from orchestrator.recall import POOL, RecallService
from tests.unit.test_gather import FakeBus

IDS = [derive_id(str(number)) for number in range(POOL)]


class Ready:
    anywhere = (0,)

    async def check_project(self, project: str) -> None: ...

    async def positions(self, project: str, consistency: str, position: int | None = None) -> list[int]:
        return [0]


class CatalogBus(FakeBus):
    """A catalog that knows every id; `semantic` are of that kind, the rest are Episodic."""

    def __init__(self, semantic: set[str]) -> None:
        super().__init__()
        self.semantic, self.looked_at = semantic, 0

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        if subject != subjects.catalog(WHOLE, "hydrate"):
            return await super().request(subject, data, timeout_s)
        request = wire.decode_reply(HydrateRequest, data)
        self.looked_at += len(request.ids) if request.lean else 0
        rows = [
            Row(
                id=one,
                text="t",
                kind=MemoryKind.SEMANTIC if one in self.semantic else MemoryKind.EPISODIC,
                position=1,
                version=1,
                created_at=datetime(2024, 1, 1, tzinfo=UTC),
            )
            for one in request.ids
        ]
        return wire.encode(HydrateReply(rows=tuple(rows), position=1))


async def recall(evidence: list[float], semantic: set[str], **fields: object) -> tuple[RecallReply, CatalogBus]:
    """Over a lexical lane that ranks `IDS` with that evidence; the other lanes are away."""
    bus = CatalogBus(semantic)
    count = len(evidence)
    reply = LaneReply(
        items=tuple(IDS[:count]),
        kinds=("memory",) * count,
        scores=tuple(float(count - rank) for rank in range(count)),
        sources=tuple((one,) for one in IDS[:count]),
        evidence=tuple(evidence),
        confirmed=(False,) * count,
    )
    for away in (Lane.SEMANTIC, Lane.GRAPH):
        bus.set(subjects.lane(away, WHOLE, "search"), NoResponders())
    bus.set(subjects.lane(Lane.LEXICAL, WHOLE, "search"), wire.encode(reply))
    service = RecallService(bus, Catalog(bus, 1), Ready(), None, PROFILES["minilm"], 50)  # type: ignore[arg-type]
    request = wire.validate(RecallRequest, {"cue": "list all of them", **fields})
    return await service.recall("p", request, time.monotonic()), bus


async def test_one_window_is_enough_where_its_tail_is_off_topic() -> None:
    reply, bus = await recall([0.9] * 3 + [0.0] * (POOL - 3), set())
    assert (reply.answer_kind, len(reply.members), bus.looked_at) == ("Many", 3, WINDOW)


async def test_what_belongs_is_found_however_long_the_list() -> None:
    reply, bus = await recall([0.9] * 250 + [0.0] * (POOL - 250), set(), max_results=1000)
    assert (len(reply.members), bus.looked_at) == (250, 3 * WINDOW)


@pytest.mark.parametrize("rank", [150, POOL - 1])
async def test_filters_never_starve_the_answer(rank: int) -> None:
    """The only memory of the kind asked for is far down the order."""
    reply, bus = await recall([0.9] * POOL, {IDS[rank]}, kinds=["Semantic"])
    assert ([member.id for member in reply.members], bus.looked_at) == ([IDS[rank]], POOL)

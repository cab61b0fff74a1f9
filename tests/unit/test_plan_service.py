"""Plan and reason over two shards of real catalogs and graph, and the edges that link writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from contracts import subjects
from contracts.base import MAX_EDGES
from contracts.edges import PlanReply, PlanRequest, ReasonReply, ReasonRequest
from contracts.errors import ErrorCode, InvalidRequest, NotFound, Unavailable
from contracts.lanes import Lane
from contracts.memory import Edge, EdgeKind, MemoryRecord
from contracts.ports import Call, Entry
from contracts.shards import Shard, all_shards, shard_of
from tests.world import NOON, PROJECT, SHARDS, World

CAUSED, FOLLOWED, SUPPORTS = EdgeKind.CAUSED, EdgeKind.FOLLOWED_BY, EdgeKind.SUPPORTS


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


async def plan(world: World, start: str, goal: str, *, texts: bool = False, **fields: Any) -> PlanReply:
    ends = [{"text": one} if texts else {"id": world.id(one)} for one in (start, goal)]
    request = PlanRequest.model_validate({"start": ends[0], "goal": ends[1], **fields})
    return await world.plans.plan(PROJECT, request, time.monotonic())


async def reason(world: World, claim: str, *, text: bool = False, **fields: Any) -> ReasonReply:
    place = {"text": claim} if text else {"id": world.id(claim)}
    request = ReasonRequest.model_validate({"claim": place, **fields})
    return await world.reasons.reason(PROJECT, request, time.monotonic())


def paths(world: World, reply: PlanReply) -> list[str]:
    return [world.names([step.id for step in path.steps]) for path in reply.paths]


class TestSession:
    async def test_the_next_within_300_s_follows(self, world: World) -> None:
        for name, second in (("a", 0), ("b", 100), ("c", 400), ("d", 700.001)):
            await world.remember(name, second)
        assert {shard_of(world.id(name), SHARDS) for name in "abcd"} == {0, 1}
        reply = await plan(world, "a", "c")
        assert paths(world, reply) == ["a b c"]
        assert [step.weight for step in reply.paths[0].steps] == pytest.approx([1.0, 0.7, 0.1])
        assert (await plan(world, "c", "d")).status == "NoPathFound"
        assert (await plan(world, "b", "a")).status == "NoPathFound"

    async def test_what_is_encoded_later_may_have_happened_before(self, world: World) -> None:
        for name, second in (("c", 20), ("a", 0), ("b", 10)):
            await world.remember(name, second)
        assert paths(world, await plan(world, "a", "c")) == ["a b c"]

    async def test_at_one_time_the_order_is_that_of_writing_and_a_link_leaves_it(self, world: World) -> None:
        for name in "abc":
            await world.remember(name, 5)
        assert paths(world, await plan(world, "a", "c")) == ["a b c"]
        await world.link("a", EdgeKind.SIMILAR_TO, "c")
        assert paths(world, await plan(world, "a", "c")) == ["a b c"]
        assert (await plan(world, "c", "a")).paths == ()

    async def test_one_that_is_forgotten_expired_or_superseded_is_passed_over(self, world: World) -> None:
        for name, second in (("a", 0), ("gone", 1), ("c", 4)):
            await world.remember(name, second)
        await world.remember("old", 2)
        await world.remember("expired", 3, expires_at=NOON)
        await world.remember("new", supersedes=(world.id("old"),))
        await world.forget("gone")
        assert paths(world, await plan(world, "a", "c")) == ["a c"]

    async def test_other_sessions_and_none_are_apart(self, world: World) -> None:
        await world.remember("a", 0)
        await world.remember("b", 1, session="t")
        await world.remember("c", occurred_at=NOON + timedelta(seconds=2))
        assert (await plan(world, "a", "b")).status == (await plan(world, "a", "c")).status == "NoPathFound"

    async def test_only_where_the_kind_is_asked_for(self, world: World) -> None:
        await world.remember("a", 0)
        await world.remember("b", 1)
        assert (await plan(world, "a", "b", edge_kinds=["CAUSED"])).status == "NoPathFound"
        assert not [subject for subject in world.bus.asked if subject.endswith("neighbours")]

    async def test_an_asserted_edge_wins(self, world: World) -> None:
        await world.remember("a", 0)
        await world.remember("b", 1)
        await world.link("a", FOLLOWED, "b", 0.25)
        [path] = (await plan(world, "a", "b")).paths
        assert (path.steps[1].weight, path.steps[1].derived) == (0.25, False)


class TestPlan:
    async def test_texts_stand_for_what_is_near_and_are_embedded_together(self, world: World) -> None:
        world.angles = {"start": 0.0, "goal": 1.0, "a": 0.02, "b": 0.5, "c": 0.97}
        for name in "abc":
            await world.remember(name)
        await world.link("a", CAUSED, "b")
        await world.link("b", CAUSED, "c")
        reply = await plan(world, "start", "goal", texts=True)
        assert paths(world, reply) == ["b c", "a b c"], "b is near the start too"
        assert world.bus.asked.count(subjects.EMBED) == 1

    async def test_an_end_that_is_not_near_counts_less(self, world: World) -> None:
        world.angles = {"start": 0.0, "near": 0.0, "far": 2 / 3, "goal": 1.0, "g": 1.0}
        for name in ("near", "far", "g"):
            await world.remember(name)
        await world.link("near", CAUSED, "g")
        await world.link("far", CAUSED, "g")
        reply = await plan(world, "start", "goal", texts=True)
        assert paths(world, reply) == ["near g"], "far is nearer to the goal's text"

    async def test_the_forgotten_take_no_place_among_the_nearest(self, world: World) -> None:
        for number in range(6):
            await world.remember(f"gone{number}")
        for number in range(6):
            await world.forget(f"gone{number}")
        world.angles = {"a": 0.3, "b": 0.9, "start": 0.0, "goal": 1.0}
        await world.remember("a")
        await world.remember("b")
        await world.link("a", CAUSED, "b")
        assert paths(world, await plan(world, "start", "goal", texts=True)) == ["a b"]

    async def test_an_unknown_forgotten_or_expired_end_is_not_found(self, world: World) -> None:
        await world.remember("a")
        await world.remember("gone")
        await world.remember("expired", expires_at=NOON)
        await world.forget("gone")
        for name in ("unknown", "gone", "expired"):
            for ends, field in (((name, "a"), "start.id"), (("a", name), "goal.id")):
                with pytest.raises(NotFound) as caught:
                    await plan(world, *ends)
                assert (caught.value.code, caught.value.details["field"]) == (ErrorCode.MEMORY_NOT_FOUND, field)

    async def test_a_superseded_end_has_no_path(self, world: World) -> None:
        await world.remember("a")
        await world.remember("b", supersedes=(world.id("a"),))
        await world.link("a", CAUSED, "b")
        assert (await plan(world, "a", "b")).status == "NoPathFound"

    async def test_a_memory_is_a_path_to_itself(self, world: World) -> None:
        await world.remember("a")
        reply = await plan(world, "a", "a")
        assert (reply.status, paths(world, reply), reply.paths[0].score) == ("GoalReached", ["a"], 0.5)

    async def test_branches_beyond_the_cap_are_not_read_and_it_says_so(self, world: World) -> None:
        for name in ("a", "b", "c", "d", "z"):
            await world.remember(name, salience=0.9 if name == "c" else 0.5)
        for name in "bcd":
            await world.link("a", CAUSED, name)
        for name in "bc":
            await world.link(name, CAUSED, "z")
        for extra in ("x", "y"):
            await world.remember(extra)
            await world.link(extra, CAUSED, "z")
        assert sorted(paths(world, await plan(world, "a", "z"))) == ["a b z", "a c z"]
        narrow = await plan(world, "a", "z", max_branches=1)
        assert not narrow.complete
        assert set(paths(world, narrow)) <= {"a b z", "a c z"}

    async def test_a_graph_that_is_away_is_unavailable(self, world: World) -> None:
        await world.remember("a")
        await world.remember("b")
        del world.bus.handlers[subjects.lane(Lane.GRAPH, Shard(shard_of(world.id("a"), SHARDS), SHARDS), "edges")]
        for asked in (plan(world, "a", "b"), reason(world, "a")):
            with pytest.raises(Unavailable) as caught:
                await asked
            assert caught.value.details["lane"] == "graph"

    async def test_a_semantic_lane_that_is_away_is_unavailable_for_texts_only(self, world: World) -> None:
        await world.remember("a")
        del world.bus.handlers[subjects.lane(Lane.SEMANTIC, Shard(1, 2), "search")]
        assert (await plan(world, "a", "a")).status == "GoalReached"
        with pytest.raises(Unavailable):
            await plan(world, "a", "b", texts=True)

    async def test_a_slow_graph_ends_with_the_budget(self, world: World) -> None:
        await world.remember("a")
        await world.remember("b")

        async def slow(_: Call) -> bytes:
            await anyio.sleep(30)
            raise AssertionError

        for shard in all_shards(SHARDS):
            world.bus.handlers[subjects.lane(Lane.GRAPH, shard, "edges")] = slow
        with anyio.fail_after(5):
            reply = await plan(world, "a", "b", budget_ms=50)
            assert (reply.status, reply.complete) == ("BudgetExhausted", False)
            assert (await reason(world, "a", budget_ms=50)).status == "BudgetExhausted"

    async def test_read_after_write_waits_for_the_graph(self, world: World) -> None:
        await world.remember("a")
        await world.remember("b")
        served = dict(world.bus.handlers)
        await world.link("a", CAUSED, "b")
        stale = {subject: handle for subject, handle in served.items() if "lane" in subject}
        world.bus.handlers.update(stale)
        with pytest.raises(Unavailable) as caught:
            await plan(world, "a", "b", consistency="ReadAfterWrite", budget_ms=200)
        assert caught.value.code is ErrorCode.CONSISTENCY_TIMEOUT


class TestReason:
    async def test_evidence_across_shards_and_its_texts(self, world: World) -> None:
        for name in ("claim", "b", "c", "d"):
            await world.remember(name)
        await world.link("b", SUPPORTS, "claim")
        await world.link("c", SUPPORTS, "b", 0.9)
        await world.link("claim", EdgeKind.CONTRADICTS, "d", -0.5)
        reply = await reason(world, "claim")
        assert [(one.text, one.score, one.distance) for one in reply.supporting] == [("b", 0.5, 1), ("c", 0.3, 2)]
        assert [(one.text, one.score) for one in reply.contradicting] == [("d", 0.25)]
        assert (reply.status, reply.confidence) == ("Complete", round((0.8 - 0.25) / 1.05, 6))

    async def test_a_text_starts_at_the_nearest_with_their_cosine(self, world: World) -> None:
        world.angles = {"claim": 0.0, "a": 2 / 3, "b": 1.0}
        await world.remember("a")
        await world.remember("b")
        await world.link("b", SUPPORTS, "a")
        reply = await reason(world, "claim", text=True)
        assert [(one.text, one.similarity) for one in reply.basis] == [("a", pytest.approx(0.5, abs=1e-4))]
        assert [(one.text, one.score) for one in reply.supporting] == [("b", pytest.approx(0.25, abs=1e-4))]

    async def test_what_does_not_stand_says_nothing_and_leads_nowhere(self, world: World) -> None:
        for name in ("claim", "b", "c"):
            await world.remember(name)
        await world.link("b", SUPPORTS, "claim")
        await world.link("c", SUPPORTS, "b")
        await world.forget("b")
        assert (await reason(world, "claim")).supporting == ()


class TestLink:
    async def test_a_new_state_keeps_all_but_the_edges(self, world: World) -> None:
        await world.remember("a", 3, tags=("t",), metadata={"k": 1}, request_id="r", digest="d")
        await world.remember("b")
        _, before = await self.last(world, "a")
        reply = await world.link("a", CAUSED, "b", 0.5)
        position, after = await self.last(world, "a")
        assert (reply.changed, reply.position, reply.weight) == (True, position, 0.5)
        assert after.version == 2
        assert [(edge.kind, edge.target, edge.weight) for edge in after.edges] == [(CAUSED, world.id("b"), 0.5)]
        mine = {"version", "changed_at", "edges"}
        assert after.model_dump(exclude=mine) == before.model_dump(exclude=mine)

    async def test_relinking_overwrites_and_the_same_again_writes_nothing(self, world: World) -> None:
        await world.remember("a")
        await world.remember("b")
        assert [(await world.link("a", CAUSED, "b", weight)).changed for weight in (1.0, 1.0, 0.5)] == [
            True,
            False,
            True,
        ]
        assert (await world.link("a", SUPPORTS, "b")).changed
        _, record = await self.last(world, "a")
        assert [(edge.kind, edge.weight) for edge in record.edges] == [(CAUSED, 0.5), (SUPPORTS, 1.0)]
        assert [(await world.unlink("a", CAUSED, "b")).changed for _ in range(2)] == [True, False]
        _, record = await self.last(world, "a")
        assert [edge.kind for edge in record.edges] == [SUPPORTS]

    async def test_both_ends_must_be_there(self, world: World) -> None:
        await world.remember("a")
        await world.remember("gone")
        await world.link("a", CAUSED, "gone")
        await world.forget("gone")
        for source, target, field in (
            ("a", "no", "target"),
            ("no", "a", "source"),
            ("a", "gone", "target"),
            ("gone", "a", "source"),
        ):
            with pytest.raises(NotFound) as caught:
                await world.link(source, CAUSED, target)
            assert caught.value.details["field"] == field
        with pytest.raises(NotFound):
            await world.unlink("a", CAUSED, "no")
        assert [(await world.unlink("a", CAUSED, "gone")).changed for _ in range(2)] == [True, False]
        for call in (world.link, world.unlink):
            with pytest.raises(InvalidRequest):
                await call("a", CAUSED, "a")

    async def test_a_memory_has_so_many_edges_and_no_more(self, world: World) -> None:
        await world.remember("b")
        await world.remember("c")
        edges = tuple(Edge(kind=CAUSED, target=world.id(f"t{number}")) for number in range(MAX_EDGES - 1))
        await world.remember("a", edges=edges)
        await world.link("a", CAUSED, "b")
        with pytest.raises(InvalidRequest) as caught:
            await world.link("a", CAUSED, "c")
        assert (caught.value.code, caught.value.details["limit"]) == (ErrorCode.OUT_OF_RANGE, MAX_EDGES)
        assert (await world.link("a", CAUSED, "b", 0.5)).changed

    async def test_writers_at_once_lose_no_edge(self, world: World) -> None:
        names = "bcdef"
        for name in ("a", *names):
            await world.remember(name)
        last = world.log.last

        async def yielding(project: str, memory_id: str) -> Entry | None:
            found = await last(project, memory_id)
            await anyio.sleep(0)
            return found

        world.log.last = yielding  # type: ignore[method-assign]
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(world.link, "a", CAUSED, name)
        _, record = await self.last(world, "a")
        assert {edge.target for edge in record.edges} == {world.id(name) for name in names}
        assert record.version == 6

    @staticmethod
    async def last(world: World, name: str) -> tuple[int, MemoryRecord]:
        entry = await world.log.last(PROJECT, world.id(name))
        assert entry is not None
        return entry

"""Seed "Read pipeline": the graph reads, the enumeration reads, and what latency may depend on."""

from __future__ import annotations

import anyio

from contracts.shards import shard_of
from tests.conformance.conftest import NOISE, Mind, noise, texts

FRESH = {"consistency": "ReadAfterWrite", "budget_ms": 20_000}


class TestPlan:
    async def test_connecting_paths_through_the_edge_graph(self, mind: Mind) -> None:
        """Bidirectional search from a start state to a goal, over CAUSED, FOLLOWED_BY, DERIVED_FROM, PART_OF."""
        ids = [await mind.learn(text) for text in ("The fuse blew", "The pump stopped", "The cellar flooded")]
        await mind.memory.link(ids[0], "CAUSED", ids[1])
        await mind.memory.link(ids[1], "DERIVED_FROM", ids[2])
        reply = await mind.memory.plan({"text": "a blown fuse"}, {"id": ids[2]}, **FRESH)
        assert reply.status == "GoalReached"
        assert [step.id for step in reply.paths[0].steps] == ids

    async def test_other_kinds_are_not_walked_by_default(self, mind: Mind) -> None:
        """SIMILAR_TO is no way to get anywhere."""
        one, other = [await mind.learn(text) for text in ("The fuse blew", "The cellar flooded")]
        await mind.memory.link(one, "SIMILAR_TO", other)
        assert (await mind.memory.plan({"id": one}, {"id": other}, **FRESH)).status == "NoPathFound"
        named = await mind.memory.plan({"id": one}, {"id": other}, edge_kinds=["SIMILAR_TO"], **FRESH)
        assert named.status == "GoalReached"

    async def test_no_path_is_a_normal_empty_answer(self, mind: Mind) -> None:
        """It does not make up a path."""
        one, other = [await mind.learn(text) for text in ("The fuse blew", "The cellar flooded")]
        reply = await mind.memory.plan({"id": one}, {"id": other}, **FRESH)
        assert (reply.status, reply.paths) == ("NoPathFound", ())


class TestReason:
    async def test_both_sides_and_an_aggregate(self, mind: Mind) -> None:
        """SUPPORTS and DERIVED_FROM for, CONTRADICTS against, with a confidence over both."""
        claim = await mind.learn("The pump is reliable")
        support = await mind.learn("It ran a year without a fault")
        against = await mind.learn("It failed twice in June")
        await mind.memory.link(support, "SUPPORTS", claim)
        await mind.memory.link(against, "CONTRADICTS", claim, 0.9)
        reply = await mind.memory.reason({"text": "The pump is reliable"}, **FRESH)
        assert [one.id for one in reply.supporting] == [support]
        assert [one.id for one in reply.contradicting] == [against]
        assert 0 < reply.confidence < 1

    async def test_no_evidence_is_a_normal_empty_answer(self, mind: Mind) -> None:
        """It does not fabricate evidence."""
        claim = await mind.learn("The pump is reliable")
        reply = await mind.memory.reason({"id": claim}, **FRESH)
        assert (reply.supporting, reply.contradicting, reply.confidence) == ((), (), 0.0)


async def stored(mind: Mind, count: int) -> None:
    """Wait until the catalogs of all shards show so many memories: enumerations are of what they have applied."""
    with anyio.fail_after(15):
        while len((await mind.memory.list(limit=100)).memories) < count:
            await anyio.sleep(0.05)


class TestEnumeration:
    async def test_list_is_what_is_stored(self, mind: Mind) -> None:
        """No cue, no ranking: all of it, page by page."""
        await noise(mind)
        await stored(mind, len(NOISE))
        seen, cursor = [], None
        while True:
            page = await mind.memory.list(limit=3, **({"cursor": cursor} if cursor else {}))
            seen += [row.text for row in page.memories]
            cursor = page.cursor
            if not cursor:
                break
        assert len(seen) == len(set(seen)) == 8

    async def test_graph_fetch_is_the_typed_graph(self, mind: Mind) -> None:
        """Entities, statements, memories, and what joins them."""
        await mind.learn("Ana Ruiz works at Globex", ("Ana Ruiz", "works_at", "Globex"))
        await stored(mind, 1)
        graph = await mind.memory.graph_fetch()
        assert {node.kind for node in graph.nodes} == {"Entity", "Statement", "Memory"}
        ids = {node.id for node in graph.nodes}
        assert all({edge.source, edge.target} <= ids for edge in graph.edges)

    async def test_inspect_is_a_memorys_write_story(self, mind: Mind) -> None:
        """Every state it has had."""
        one, other = [await mind.learn(text) for text in ("The fuse blew", "The cellar flooded")]
        await mind.memory.link(one, "CAUSED", other)
        await mind.memory.forget(one)
        story = (await mind.memory.inspect(one)).story
        assert [entry.change for entry in story] == ["encoded", "linked", "forgotten (soft)"]


class TestShards:
    async def test_recalls_fan_out_and_merge_over_the_global_pool(self, mind: Mind) -> None:
        """Memories of all shards are in one answer, and in one band."""
        ids = [await mind.learn(f"Penguin colony {number} lives on the southern ice") for number in range(12)]
        assert {shard_of(one, 2) for one in ids} == {0, 1}
        reply = await mind.recall("penguin colonies on the southern ice")
        assert {member.id for member in reply.members} == set(ids)

    async def test_work_does_not_depend_on_the_result_count(self, mind: Mind) -> None:
        """There is no caller-chosen k: the lanes are asked for the same whatever max_results is."""
        await noise(mind)
        one, many = [await mind.recall("museum roof", max_results=most) for most in (1, 1000)]
        assert one.trace.counts == many.trace.counts
        assert one.trace.lanes == many.trace.lanes
        assert texts(one) == texts(many)[:1]

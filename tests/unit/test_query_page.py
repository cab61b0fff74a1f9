"""The page of a query over a bus without processes: who is asked in which tier, and what the answer is made of."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from contracts import subjects, wire
from contracts.base import now
from contracts.catalog import HydrateReply, HydrateRequest, MatchReply, MatchRequest, Row
from contracts.errors import ErrorCode, InvalidRequest, Unavailable
from contracts.lanes import Lane, LaneQuery, LaneReply, LaneStatus, ScoreQuery, ScoreReply
from contracts.memory import Edge, EdgeKind, Entity, MemoryKind, Tombstone, derive_id
from contracts.ports import NoReply, NoResponders
from contracts.query import QueryReply, QueryRequest, SessionState
from contracts.shards import WHOLE
from contracts.topics import TopicsFound, TopicsQuery
from contracts.work import RerankReply, RerankRequest
from orchestrator.afterwards import Afterwards
from orchestrator.catalog import Catalog
from orchestrator.query import QueryService
from orchestrator.session import SessionMemory
from orchestrator.uses import successful
from orchestrator.weights import DEFAULT, blend
from tests.unit.test_gather import FakeBus, silence

DAY = timedelta(days=1)
LONG = "one two three four five six"


class Ready:
    anywhere = (0,)

    async def check_project(self, project: str) -> None: ...

    async def positions(self, project: str, consistency: str, position: int | None = None) -> list[int]:
        return [9] if consistency == "ReadAfterWrite" else [0]


class Store:
    """`contracts.stores.Sessions` in a dictionary."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, str], SessionState] = {}
        self.away = False

    async def read(self, project: str, session_id: str) -> SessionState:
        if self.away:
            raise Unavailable(ErrorCode.UNAVAILABLE, "away")
        return self.states.get((project, session_id), SessionState())

    async def write(self, project: str, session_id: str, state: SessionState) -> None:
        if self.away:
            raise Unavailable(ErrorCode.UNAVAILABLE, "away")
        self.states[(project, session_id)] = state


def row(name: str, **fields: Any) -> Row:
    at = now() - 3 * DAY
    return Row(**{
        "id": derive_id(name), "text": name, "kind": MemoryKind.EPISODIC, "position": 1, "version": 1, "created_at": at,
    } | fields)  # fmt: skip


class World(FakeBus):
    """Memories with a cosine each and, where given, hops in the graph from any name. Their ids are made of their texts."""

    def __init__(self, cosines: Mapping[str, float], hops: Mapping[str, int] | None = None, **rows: Row) -> None:
        super().__init__(lexical=reply([]))
        self.rows = {one.id: one for one in (rows.get(name) or row(name) for name in [*cosines, *rows])}
        self.cosines = {derive_id(name): cosine for name, cosine in cosines.items()}
        self.hops = {derive_id(name): count for name, count in (hops or {}).items()}
        self.whole: list[int] = []
        self.store, self.afterwards = Store(), Afterwards()
        self.set(subjects.lane(Lane.SEMANTIC, WHOLE, "search"), self._nearest)
        self.set(subjects.lane(Lane.SEMANTIC, WHOLE, "score"), self._cosines)
        self.set(subjects.lane(Lane.GRAPH, WHOLE, "search"), self._reached)
        self.set(subjects.lane(Lane.GRAPH, WHOLE, "score"), self._near)
        self.set(subjects.catalog(WHOLE, "hydrate"), self._hydrate)
        self.set(subjects.catalog(WHOLE, "match"), self._match)
        self.matches: list[str] = []
        self.service = self.another()

    def another(self) -> QueryService:
        """One more orchestrator over the same parts."""
        sessions = SessionMemory(self.store, self.afterwards)
        return QueryService(self, Catalog(self, 1), Ready(), sessions)  # type: ignore[arg-type]

    async def query(self, text: str = LONG, **fields: Any) -> QueryReply:
        request = wire.validate(QueryRequest, {"query": text, **fields})
        answer = await self.service.query("p", request, time.monotonic())
        await self.afterwards.drain()
        return answer

    def asked_lanes(self) -> set[str]:
        return {subject.split(".")[3] for subject in self.asked if ".lane." in subject}

    async def _nearest(self, data: bytes) -> bytes:
        query = wire.decode_reply(LaneQuery, data)
        best = sorted(self.cosines.items(), key=lambda pair: -pair[1])[: query.top_n]
        return reply(best)

    async def _cosines(self, data: bytes) -> bytes:
        ids = wire.decode_reply(ScoreQuery, data).ids
        return evidence([max(0.0, self.cosines.get(one, 0.0)) for one in ids])

    async def _reached(self, data: bytes) -> bytes:
        return reply([(one, 1 / (hops + 1)) for one, hops in sorted(self.hops.items(), key=lambda pair: pair[1])])

    async def _near(self, data: bytes) -> bytes:
        ids = wire.decode_reply(ScoreQuery, data).ids
        return evidence([1 / (self.hops.get(one, math.inf) + 1) for one in ids])

    async def _hydrate(self, data: bytes) -> bytes:
        request = wire.decode_reply(HydrateRequest, data)
        if not request.lean:
            self.whole.append(len(request.ids))
        rows = [self.rows[one] for one in request.ids if one in self.rows]
        if request.lean:
            rows = [one.model_copy(update={"text": ""}) for one in rows]
        return wire.encode(HydrateReply(rows=tuple(rows), position=1))

    async def _match(self, data: bytes) -> bytes:
        wire.decode_reply(MatchRequest, data)
        ids = [derive_id(name) for name in self.matches]
        return wire.encode(MatchReply(ids=tuple(ids), at=(0,) * len(ids)))


def reply(hits: Sequence[tuple[str, float]]) -> bytes:
    ids, scores = tuple(one for one, _ in hits), tuple(score for _, score in hits)
    return wire.encode(
        LaneReply(
            items=ids, kinds=("memory",) * len(ids), scores=scores, sources=tuple((one,) for one in ids),
            evidence=tuple(max(0.0, score) for score in scores), confirmed=(False,) * len(ids),
        )
    )  # fmt: skip


def evidence(values: Sequence[float]) -> bytes:
    return wire.encode(ScoreReply(evidence=tuple(values), confirmed=(False,) * len(values)))


def texts(answer: QueryReply) -> list[str]:
    return [memory.text for memory in answer.memories]


THREE = {"a": 0.9, "b": 0.5, "c": -0.2}


class TestTiers:
    async def test_low_asks_the_vector_lane_and_nobody_else(self) -> None:
        world = World(THREE, {"c": 0})
        answer = await world.query("short")
        assert world.asked_lanes() == set(answer.lanes) == {"semantic"}
        assert world.calls == 3  # the embedding, the lane, and one look into the catalog for all
        assert (answer.computation_tier, answer.traversal_depth) == ("low", 0)
        assert all(memory.scores.graph == 0.0 for memory in answer.memories)

    @pytest.mark.parametrize(("tier", "depth"), [("medium", 2), ("high", 3)])
    async def test_the_others_ask_all_lanes(self, tier: str, depth: int) -> None:
        world = World(THREE)
        answer = await world.query("short", computation_tier=tier)
        assert world.asked_lanes() == set(answer.lanes) == {"semantic", "lexical", "graph"}
        assert (answer.computation_tier, answer.traversal_depth, answer.tier_reason) == (tier, depth, "forced")

    async def test_low_takes_the_nearest_and_the_signals_order_them(self) -> None:
        world = World({"a": 0.9, "b": 0.8, "c": 0.1}, b=row("b", importance=1.0), c=row("c", importance=1.0))
        answer = await world.query("short", k=2, weights={"importance": 100})
        assert texts(answer) == ["b", "a"]

    @pytest.mark.parametrize(
        ("fields", "found"),
        [
            ({"computation_tier": "low"}, ["warm", "fresh"]),
            ({"computation_tier": "medium"}, ["warm", "fresh"]),
            ({"computation_tier": "high"}, ["cold", "warm", "fresh"]),
            ({"computation_tier": "medium", "filters": {"tier": "cold"}, "strict_filters": True}, ["cold"]),
            ({"computation_tier": "high", "filters": {"tier": "warm"}, "strict_filters": True}, ["warm"]),
        ],
    )
    async def test_only_high_looks_at_what_nobody_has_used_for_long(
        self, fields: dict[str, Any], found: list[str]
    ) -> None:
        ages = {"cold": 300, "warm": 60, "fresh": 1}
        rows = {name: row(name, created_at=now() - days * DAY) for name, days in ages.items()}
        world = World({"cold": 0.9, "warm": 0.8, "fresh": 0.7}, **rows)
        reply = await world.query(**fields)
        assert sorted(one.text for one in reply.memories) == sorted(found)
        assert {one.text: one.tier for one in reply.memories} == {
            name: {"fresh": "hot"}.get(name, name) for name in found
        }

    async def test_a_depth_of_one_s_own(self) -> None:
        hops = {"b": 1, "c": 2}
        for depth, graph in ((0, [0.0, 0.0]), (1, [0.5, 0.0]), (2, [0.5, 0.3333])):
            answer = await World(THREE, hops).query(traversal_depth=depth)
            assert [memory.scores.graph for memory in answer.memories if memory.text != "a"] == graph


class TestScores:
    async def test_all_seven_and_their_sum(self) -> None:
        world = World(
            THREE, {"a": 0}, a=row("a", importance=0.6, quality=0.7, uses=5, uses_14d=5, created_at=now() - 30 * DAY)
        )
        first = (await world.query()).memories[0]
        assert first.scores.model_dump() == pytest.approx(
            {
                "semantic": 0.9, "recency": 0.5, "importance": 0.6, "quality": 0.7, "usage": 1 - math.exp(-1),
                "decay": math.exp(-1 / (1 + math.log(6))), "graph": 1.0,
            },
            abs=1e-3,
        )  # fmt: skip
        assert first.score == pytest.approx(blend(first.scores, DEFAULT), abs=1e-3)

    async def test_best_first_and_at_most_k(self) -> None:
        answer = await World(THREE).query(k=2)
        assert texts(answer) == ["a", "b"]
        assert [memory.score for memory in answer.memories] == sorted((m.score for m in answer.memories), reverse=True)

    async def test_weights_turn_the_order(self) -> None:
        world = World(THREE, c=row("c", importance=1.0), a=row("a", importance=0.0))
        answer = await world.query(weights={"semantic": 0, "importance": 10})
        assert texts(answer) == ["c", "b", "a"]
        assert answer.weights.semantic == 0.0

    async def test_a_score_does_not_depend_on_who_else_was_found(self) -> None:
        alone = await World({"a": 0.9}).query()
        among = await World({"a": 0.9} | {str(number): 0.95 for number in range(20)}).query(k=50)
        assert alone.memories[0].scores == next(m.scores for m in among.memories if m.text == "a")

    async def test_what_does_not_stand_is_not_there(self) -> None:
        rows = {
            "b": row("b", tombstone=Tombstone(at=now())),
            "c": row("c", superseded_by=derive_id("a")),
            "d": row("d", expires_at=now() - DAY),
        }
        world = World({"a": 0.1, "b": 0.9, "c": 0.9, "d": 0.9, "ghost": 0.9}, **rows)
        del world.rows[derive_id("ghost")]
        for tier in ("low", "medium", "high"):
            assert texts(await world.query(computation_tier=tier, filters={"tags": ["none"]})) == ["a"]

    async def test_low_looks_on_where_the_nearest_do_not_stand(self) -> None:
        dead = {f"dead{n}": row(f"dead{n}", tombstone=Tombstone(at=now())) for n in range(40)}
        world = World(dict.fromkeys(dead, 0.9) | {"a": 0.1}, **dead)
        assert texts(await world.query("short")) == ["a"]

    async def test_nothing_is_an_answer(self) -> None:
        answer = await World({}).query()
        assert (answer.memories, answer.filter_relaxed, answer.degraded) == ((), False, False)


class TestGraph:
    async def test_the_nearest_memory_s_names_are_walked_from(self) -> None:
        """From the anchor to what shares a name with it is one hop; the lane counts from the name."""
        world = World({"a": 0.9}, {"x": 0, "y": 1}, a=row("a", entities=(Entity(name="Acme"),)), x=row("x"), y=row("y"))
        world.set(subjects.lane(Lane.GRAPH, WHOLE, "score"), NoResponders())

        async def only_from_acme(data: bytes) -> bytes:
            query = wire.decode_reply(LaneQuery, data)
            return await world._reached(data) if query.cue == "Acme" else reply([])

        world.set(subjects.lane(Lane.GRAPH, WHOLE, "search"), only_from_acme)
        answer = await world.query(traversal_depth=2)
        assert {m.text: m.scores.graph for m in answer.memories} == {"a": 1.0, "x": 0.5, "y": 0.3333}
        said = {memory.text: " | ".join(memory.explain) for memory in answer.memories}
        assert "the walk in the graph begins here" in said["a"]
        assert "1 hop away in the graph" in said["x"]
        assert texts(await world.query(traversal_depth=1)) == ["a", "x"]
        assert texts(await world.query(traversal_depth=0)) == ["a"]

    async def test_a_lane_lost_is_a_degraded_answer(self) -> None:
        for lost in (NoResponders(), NoReply(), b"junk"):
            world = World(THREE, {"b": 0})
            world.set(subjects.lane(Lane.GRAPH, WHOLE, "search"), lost)
            answer = await world.query()
            assert answer.degraded
            assert answer.lanes["graph"].status is not LaneStatus.OK
            assert texts(answer)[0] == "a"

    async def test_all_lanes_lost_is_an_error(self) -> None:
        world = World(THREE)
        world.set(subjects.lane(Lane.SEMANTIC, WHOLE, "search"), NoResponders())
        with pytest.raises(Unavailable) as failed:
            await world.query("short")
        assert failed.value.code is ErrorCode.LANES_LOST

    async def test_without_the_catalog_there_is_no_answer(self) -> None:
        world = World(THREE)
        world.set(subjects.catalog(WHOLE, "hydrate"), NoResponders())
        with pytest.raises(Unavailable):
            await world.query()


class TestFilters:
    async def test_a_match_that_no_lane_ranks_is_found(self) -> None:
        many = {str(number): 0.9 - number / 10_000 for number in range(1500)}
        world = World(many | {"far": -0.5}, far=row("far", tags=("incident",)))
        world.matches = ["far"]
        answer = await world.query(filters={"tags": ["incident"]}, k=1)
        assert (texts(answer), answer.filter_relaxed) == (["far"], False)

    async def test_starvation_is_told_and_matches_come_first(self) -> None:
        world = World(THREE, c=row("c", tags=("incident",)))
        world.matches = ["c"]
        answer = await world.query(filters={"tags": ["incident"]}, k=2)
        assert (texts(answer), answer.filter_relaxed, answer.relaxed) == (["c", "a"], True, ("tags",))
        assert [memory.relaxed for memory in answer.memories] == [(), ("tags",)]
        strict = await world.query(filters={"tags": ["incident"]}, k=2, strict_filters=True)
        assert (texts(strict), strict.filter_relaxed, strict.relaxed) == (["c"], False, ())

    async def test_summaries_only_where_asked_for_and_high_follows_them_to_their_parents(self) -> None:
        made = tuple(Edge(kind=EdgeKind.DERIVED_FROM, target=derive_id(one)) for one in ("p", "gone"))
        world = World({"s": 0.9, "a": 0.5}, s=row("s", kind=MemoryKind.CONSOLIDATED, edges=made), p=row("p"))
        world.cosines[derive_id("p")] = 0.0
        world.set(subjects.lane(Lane.SEMANTIC, WHOLE, "search"), reply([(derive_id("s"), 0.9), (derive_id("a"), 0.5)]))
        assert texts(await world.query()) == ["a"]
        assert texts(await world.query(computation_tier="high")) == ["a", "p"]
        shown = await world.query(computation_tier="high", filters={"include_summaries": True})
        assert texts(shown) == ["s", "a", "p"]
        assert shown.memories[0].parents == tuple(edge.target for edge in made)


class TestSpread:
    async def test_high_sets_the_same_said_twice_apart(self) -> None:
        first, again = (
            "the gateway in Lisbon failed on Monday morning",
            "the gateway in Lisbon failed on Monday evening",
        )
        world = World({first: 0.9, again: 0.89, "refunds were late at the Porto branch": 0.8})
        medium, high = await world.query(), await world.query(computation_tier="high")
        assert texts(medium) == [first, again, "refunds were late at the Porto branch"]
        assert texts(high) == [first, "refunds were late at the Porto branch", again]


class TestSessions:
    async def test_the_second_query_lifts_what_scored_well_and_keeps_its_tier(self) -> None:
        world = World(THREE)
        first = await world.query(session_id="s")
        world.service = world.another()
        second = await world.query("and why?", session_id="s")
        assert (first.computation_tier, second.computation_tier) == ("medium", "medium")
        assert second.tier_reason == "kept from the session"
        for before, after in zip(first.memories, second.memories, strict=True):
            assert after.session_boost == pytest.approx(0.05 * before.score, abs=1e-3)
            assert after.score == pytest.approx(before.score + after.session_boost, abs=1e-3)

    async def test_boosts_do_not_add_up(self) -> None:
        world = World(THREE)
        scores = [(await world.query(session_id="s")).memories[0].score for _ in range(4)]
        assert scores[1:] == pytest.approx([scores[1]] * 3, abs=1e-3)

    async def test_other_sessions_and_projects_know_nothing(self) -> None:
        world = World(THREE)
        await world.query(session_id="s")
        assert (await world.query("short", session_id="t")).computation_tier == "low"
        assert set(world.store.states) == {("p", "s"), ("p", "t")}

    async def test_a_store_that_is_away_costs_the_session_and_no_answer(self) -> None:
        world = World(THREE)
        world.store.away = True
        assert texts(await world.query(session_id="s")) == ["a", "b", "c"]
        assert world.afterwards.failed == 1

    async def test_it_remembers_a_hundred(self) -> None:
        world = World({f"{number}": 0.5 for number in range(120)})
        for number in range(3):
            for one in range(120):
                world.cosines[derive_id(f"{one}")] = 0.9 if one // 40 == number else 0.1
            await world.query("short", session_id="s", k=40)
        state = world.store.states[("p", "s")]
        assert len(state.scores) == 100
        assert list(state.scores)[:40] != []
        assert {derive_id(f"{n}") for n in range(40, 120)} <= set(state.scores)


class TestRerank:
    async def test_the_cross_encoder_orders_the_first_fifty(self) -> None:
        world = World({f"{number}": 0.9 - number / 100 for number in range(60)})
        sizes: list[int] = []

        async def backwards(data: bytes) -> bytes:
            request = wire.decode_reply(RerankRequest, data)
            sizes.append(len(request.texts))
            return wire.encode(RerankReply(model="m", scores=tuple(int(text) / 100 for text in request.texts)))

        world.set(subjects.RERANK, backwards)
        for tier in ("low", "medium", "high"):
            answer = await world.query(computation_tier=tier, rerank=True, k=3)
            assert (texts(answer), answer.reranked, answer.rerank) == (["49", "48", "47"], True, "done")
            assert [memory.rerank_score for memory in answer.memories] == [0.49, 0.48, 0.47]
        assert sizes == [50, 50, 50]

    async def test_not_asked_and_off(self) -> None:
        world = World(THREE)
        assert (await world.query()).rerank == "not asked"
        off = await world.query(rerank=True)
        assert (off.reranked, off.rerank, texts(off)) == (False, "off", ["a", "b", "c"])


class TestExplain:
    async def test_sentences_follow_from_the_scores(self) -> None:
        old = row("c", created_at=now() - 200 * DAY)
        world = World(THREE, {"b": 0}, a=row("a", importance=0.9, quality=0.8, uses=3, uses_14d=3), b=row("b"), c=old)
        said = {memory.text: " | ".join(memory.explain) for memory in (await world.query()).memories}
        assert "close in meaning (0.90)" in said["a"]
        assert "recent (3d)" in said["a"]
        assert "marked as important (0.90)" in said["a"]
        assert "says much (0.80)" in said["a"]
        assert "used 3 times in the last 14 days" in said["a"]
        assert "graph" not in said["a"]
        assert "matched in the graph" in said["b"]
        assert said["c"] == "fading: unused for 200d"

    async def test_a_signal_without_weight_is_not_spoken_of(self) -> None:
        answer = await World(THREE).query(weights={"semantic": 0})
        assert not any("meaning" in sentence for memory in answer.memories for sentence in memory.explain)

    async def test_left_out_where_not_wanted(self) -> None:
        assert all(not memory.explain for memory in (await World(THREE).query(explain=False)).memories)


class TestUses:
    async def test_only_what_is_near_counts_as_used(self) -> None:
        world = World({"a": 0.9, "b": 0.29, "c": 0.1, "d": 0.8}, {"c": 0}, d=row("d"))
        for name in "abc":
            world.rows[derive_id(name)] = row(name, tags=("t",))
        world.matches = ["a", "b", "c"]
        answer = await world.query(filters={"tags": ["t"]})
        assert set(successful(answer)) == {derive_id("a"), derive_id("c")}


class TestTopics:
    """a and b are of one topic, c and d of another; a is the nearest memory, and nothing leads to any in the graph."""

    COSINES = {"a": 0.9, "b": 0.5, "c": 0.4, "d": 0.3, "e": 0.2}

    def world(self, **found: Any) -> World:
        world = World(self.COSINES)
        self.of = {derive_id(name): row for name, row in {"a": 0, "b": 0, "c": 1, "d": 1}.items()}
        self.found = {
            "topics": (derive_id("one"), derive_id("two")), "labels": ("login", "billing"), "sizes": (4, 3), **found,
        }  # fmt: skip
        self.queries: list[TopicsQuery] = []

        async def topics(data: bytes) -> bytes:
            query = wire.decode_reply(TopicsQuery, data)
            self.queries.append(query)
            return wire.encode(TopicsFound(of=tuple(self.of.get(one, -1) for one in query.ids), **self.found))

        world.set(subjects.TOPICS, topics)
        return world

    async def test_what_shares_the_nearest_one_s_topic_matches(self) -> None:
        answer = await self.world().query()
        assert {one.text: one.topic for one in answer.memories} == dict(
            zip("abcde", ["login", "login", "billing", "billing", None], strict=True)
        )
        assert {one.text: one.scores.graph for one in answer.memories} == dict(
            zip("abcde", [0.3333, 0.3333, 0.0, 0.0, 0.0], strict=True)
        )
        assert [one.text for one in answer.memories if "matched topic 'login'" in one.explain] == ["a", "b"]
        assert not any("billing" in sentence for one in answer.memories for sentence in one.explain)

    async def test_and_the_topic_that_the_query_itself_would_be_of(self) -> None:
        answer = await self.world(nearest=1, joins=True).query()
        assert {one.text for one in answer.memories if one.scores.graph} == set("abcd")

    async def test_a_summary_is_no_anchor(self) -> None:
        world = self.world()
        world.rows[derive_id("a")] = row("a", kind=MemoryKind.CONSOLIDATED)
        self.of = {derive_id("a"): 1, derive_id("b"): 0}
        answer = await world.query(filters={"include_summaries": True})
        assert [one.text for one in answer.memories if one.scores.graph] == ["b"]

    async def test_a_name_of_few_is_an_anchor_and_one_of_many_is_none(self) -> None:
        for many, matched in ((0, {"a", "b", "c", "d"}), (9, {"a", "b"})):
            world = self.world()
            world.hops = {derive_id("d"): 0}
            for number in range(many):
                name = f"named {number}"
                world.rows[derive_id(name)] = row(name)
                world.hops[derive_id(name)] = 0
            answer = await world.query(k=20)
            assert {one.text for one in answer.memories if any("matched topic" in it for it in one.explain)} == matched

    async def test_at_depth_none_nothing_is_shared(self) -> None:
        answer = await self.world().query(traversal_depth=0)
        assert not any(one.scores.graph for one in answer.memories)

    async def test_high_spreads_the_answer_over_topics(self) -> None:
        scores = {"a": 0.90, "b": 0.89, "c": 0.80, "d": 0.79}
        for tier, order in (("medium", "abcd"), ("high", "acbd")):
            world = self.world()
            world.cosines = {derive_id(name): cosine for name, cosine in scores.items()}
            answer = await world.query(k=4, computation_tier=tier, weights={"semantic": 100, "graph": 0})
            assert "".join(texts(answer)) == order

    async def test_low_does_not_ask(self) -> None:
        answer = await self.world().query("short")
        assert self.queries == []
        assert all(one.topic is None for one in answer.memories)

    async def test_without_upkeep_or_with_a_late_or_broken_one_there_are_no_topics(self) -> None:
        for fault in (None, NoReply(), b"{}", b"?", silence):
            world = self.world()
            world.set(subjects.TOPICS, fault)
            started = time.monotonic()
            answer = await world.query()
            assert time.monotonic() - started < 0.5
            assert "".join(texts(answer)) == "abcde"
            assert (answer.degraded, {one.topic for one in answer.memories}) == (False, {None})


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"query": "  "}, ErrorCode.TEXT_EMPTY),
            ({"query": "x" * 20_000}, ErrorCode.TEXT_TOO_LARGE),
            ({"k": 0}, ErrorCode.OUT_OF_RANGE),
            ({"k": 51}, ErrorCode.OUT_OF_RANGE),
            ({"traversal_depth": 4}, ErrorCode.OUT_OF_RANGE),
            ({"weights": {"semantics": 1}}, ErrorCode.BAD_WEIGHTS),
            ({"weights": {"semantic": "NaN"}}, ErrorCode.BAD_WEIGHTS),
            ({"weights": {"semantic": "much"}}, ErrorCode.INVALID_REQUEST),
            ({"filter": {}}, ErrorCode.UNKNOWN_FIELD),
            ({"filters": {"source": "slack"}}, ErrorCode.UNKNOWN_FIELD),
            ({"filters": {"tier": "lukewarm"}}, ErrorCode.INVALID_REQUEST),
            ({"filters": {"since": 5}}, ErrorCode.INVALID_REQUEST),
            ({"computation_tier": "max"}, ErrorCode.INVALID_REQUEST),
        ],
    )
    async def test_with_a_code(self, fields: dict[str, Any], code: ErrorCode) -> None:
        with pytest.raises(InvalidRequest) as refused:
            await World(THREE).query(fields.pop("query", LONG), **fields)
        assert refused.value.code is code

"""The second seed's contract, sentence by sentence, on both sets of engines."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import orjson
import pytest
from nats.aio.client import Client

from contracts import subjects
from contracts.base import now
from contracts.client import MemoryClient
from contracts.errors import ErrorCode, InvalidRequest, NotFound
from contracts.memory import Edge, EdgeKind, MemoryKind, MemoryRecord, derive_id
from contracts.query import QueryReply, Scores
from contracts.topics import TopicEntry
from infra.nats_bus import connect
from infra.nats_log import JetStreamLog
from infra.settings import Nats
from orchestrator.weights import DEFAULT, SIGNALS, blend
from tests.conformance.conftest import Mind, noise
from tests.stack import Stack

DAY = timedelta(days=1)
MFA = "Customer 8821 reported login failures after the MFA reset"
LOGIN = (
    "Customers cannot log in since the MFA reset",
    "The login page refuses all sign-ins after somebody reset MFA",
    "Every login fails: MFA was reset over night",
)
REFUND = (
    "The refund for invoice 17 was paid twice",
    "Finance holds back refunds of unpaid invoices",
    "An invoice was refunded without approval",
)
WORDS = "which login failures were reported after the reset"  # eight tokens: medium


async def query(mind: Mind, text: str = WORDS, **fields: Any) -> QueryReply:
    """Of all that was written."""
    return await mind.memory.query(text, **{"consistency": "ReadAfterWrite", "deadline_ms": 20_000, **fields})


def said(reply: QueryReply) -> list[str]:
    return [memory.text for memory in reply.memories]


def of(reply: QueryReply, text: str) -> Scores:
    return next(memory.scores for memory in reply.memories if memory.text == text)


async def until_used(mind: Mind, memory_id: str, uses: int) -> None:
    """Uses are told after the reply: wait until the catalog has counted them."""
    with anyio.fail_after(10):
        while True:
            row = (await mind.memory.inspect(memory_id)).memory
            if row is not None and row.uses >= uses:
                return
            await anyio.sleep(0.02)


async def until_topics(mind: Mind, *topics: set[str]) -> list[TopicEntry]:
    """Upkeep follows the log: wait until it has put these memories into these topics, and summed them up."""
    with anyio.fail_after(20):
        while True:
            found = (await mind.memory.topics()).topics
            if {frozenset(one.members) for one in found} == set(map(frozenset, topics)) and all(
                one.summary for one in found
            ):
                return list(found)
            await anyio.sleep(0.05)


class TestSignals:
    async def test_scoring_is_hybrid(self, mind: Mind) -> None:
        """Recall scores by several signals, not by cosine alone: of two like ones the more important is first."""
        await mind.learn(MFA, importance=0.1)
        await mind.learn(MFA + " yesterday", importance=1.0)
        assert said(await query(mind, "login failures after the MFA reset", computation_tier="medium"))[0] != MFA

    async def test_every_candidate_has_seven_scores_blended_by_weights(self, mind: Mind) -> None:
        """Each memory gets seven feature scores, blended by configurable weights."""
        await mind.learn(MFA)
        await noise(mind)
        for tier in ("low", "medium", "high"):
            reply = await query(mind, computation_tier=tier)
            for memory in reply.memories:
                assert set(memory.scores.model_dump()) == set(SIGNALS)
                assert all(0.0 <= value <= 1.0 for _, value in memory.scores)
                assert memory.score == pytest.approx(blend(memory.scores, reply.weights), abs=2e-3)

    async def test_default_weights(self, mind: Mind) -> None:
        """0.40, 0.15, 0.10, 0.10, 0.05, 0.10, 0.10."""
        await mind.learn(MFA)
        weights = (await query(mind)).weights
        assert [value for _, value in weights] == pytest.approx([0.40, 0.15, 0.10, 0.10, 0.05, 0.10, 0.10])

    async def test_semantic_is_the_cosine(self, mind: Mind) -> None:
        """The similarity of the embeddings of query and memory: 1 for the same words, little for others."""
        await mind.learn(MFA)
        await noise(mind)
        reply = await query(mind, MFA)
        assert of(reply, MFA).semantic == pytest.approx(1.0, abs=1e-3)
        assert all(memory.scores.semantic < 0.5 for memory in reply.memories if memory.text != MFA)

    async def test_recency_halves_in_thirty_days(self, mind: Mind) -> None:
        """Exponential decay over age with a half-life of 30 days."""
        for age in (0, 30, 60):
            await mind.learn(f"{MFA} {age}", occurred_at=(datetime.now(UTC) - age * DAY).isoformat())
        reply = await query(mind)
        assert [of(reply, f"{MFA} {age}").recency for age in (0, 30, 60)] == pytest.approx([1.0, 0.5, 0.25], abs=1e-2)

    async def test_importance_is_the_caller_s(self, mind: Mind) -> None:
        """Supplied by the caller, 0 to 1; one half where it is left out."""
        await mind.learn(MFA)
        await mind.learn(MFA + " twice", importance=0.6)
        reply = await query(mind)
        assert (of(reply, MFA).importance, of(reply, MFA + " twice").importance) == (0.5, 0.6)

    async def test_quality_comes_from_encode(self, mind: Mind) -> None:
        """The quality score that encoding gives: what tells something has more than filler."""
        await mind.learn(MFA)
        await mind.learn("ok thanks")
        reply = await query(mind)
        assert of(reply, MFA).quality > 0.4
        assert of(reply, "ok thanks").quality < 0.1

    async def test_decay_is_one_when_fresh(self, mind: Mind) -> None:
        """Low for what goes unused: near 1 for what was just written, however long ago it happened."""
        await mind.learn(MFA, occurred_at="2020-01-01T00:00:00Z")
        assert of(await query(mind), MFA).decay == pytest.approx(1.0, abs=1e-3)

    async def test_usage_counts_recent_recalls(self, mind: Mind) -> None:
        """Successful recalls of the last 14 days: none at first, and more with each; recall counts as query does."""
        memory_id = await mind.learn(MFA)
        assert of(await query(mind), MFA).usage == 0.0
        await until_used(mind, memory_id, 1)
        await mind.recall("login failures after the MFA reset")
        with anyio.fail_after(10):
            while (await mind.memory.inspect(memory_id)).memory.uses != 2:
                await anyio.sleep(0.02)
        assert of(await query(mind), MFA).usage == pytest.approx(1 - math.exp(-2 / 5), abs=1e-3)

    async def test_feedback_counts(self, mind: Mind) -> None:
        """Said to be useful is three uses, not useful one less; of a memory that is not there it is refused."""
        memory_id = await mind.learn(MFA)
        with anyio.fail_after(20):
            while (await mind.memory.inspect(memory_id)).memory is None:  # a recall would count as a use
                await anyio.sleep(0.02)
        assert (await mind.memory.feedback(memory_id, useful=True)).counted == 3
        await until_used(mind, memory_id, 3)
        assert (await mind.memory.feedback(memory_id, useful=False, request_id="f-1")).counted == -1
        again = await mind.memory.feedback(memory_id, useful=False, request_id="f-1")
        assert (again.counted, again.deduplicated) == (0, True)
        with anyio.fail_after(10):
            while (await mind.memory.inspect(memory_id)).memory.uses != 2:
                await anyio.sleep(0.02)
        assert of(await query(mind), MFA).usage == pytest.approx(1 - math.exp(-2 / 5), abs=1e-3)
        with pytest.raises(NotFound):
            await mind.memory.feedback(derive_id("nobody"), useful=True)

    async def test_graph_is_the_neighbourhood_over_hops(self, mind: Mind) -> None:
        """Relevance by hops: what the query names is 1, what is reached over a relation less, all else nothing."""
        await mind.learn("Ana Duarte runs the Globex account", entities=[{"name": "Ana Duarte"}, {"name": "Globex"}])
        await mind.learn(
            "Globex is supplied by Initech", entities=[{"name": "Globex"}, {"name": "Initech"}],
            relations=[{"from": "Globex", "type": "supplied_by", "to": "Initech"}],
        )  # fmt: skip
        await mind.learn("Museums are closed on Mondays this winter")
        reply = await query(mind, "what do we know about our account lead Ana Duarte")
        assert of(reply, "Ana Duarte runs the Globex account").graph == 1.0
        assert 0.0 < of(reply, "Globex is supplied by Initech").graph < 1.0
        assert of(reply, "Museums are closed on Mondays this winter").graph == 0.0

    async def test_weights_are_overridden_and_normalised(self, mind: Mind) -> None:
        """Weights are given per query and brought to a sum of 1."""
        await mind.learn(MFA)
        for given in ({"semantic": 0.5, "recency": 0.3, "importance": 0.2}, {"graph": 40.0}, {"semantic": 0}):
            weights = (await query(mind, weights=given)).weights
            assert math.fsum(value for _, value in weights) == pytest.approx(1.0)
            merged = DEFAULT.model_dump() | given
            for name, value in weights:
                assert value == pytest.approx(merged[name] / sum(merged.values()))

    @pytest.mark.parametrize("bad", [{"cluster": 1.0}, {"semantic": -1.0}, dict.fromkeys(SIGNALS, 0)])
    async def test_weights_that_make_no_sense_are_refused(self, mind: Mind, bad: dict[str, float]) -> None:
        await mind.learn(MFA)
        with pytest.raises(InvalidRequest) as refused:
            await query(mind, weights=bad)
        assert refused.value.code is ErrorCode.BAD_WEIGHTS
        assert refused.value.details["names"]


class TestTiers:
    async def test_a_short_query_without_filters_is_low_and_vector_only(self, mind: Mind) -> None:
        """Fewer than six tokens and no filters: the vector lane alone, no graph; six are more than few."""
        await mind.learn(MFA)
        low, more = (
            await query(mind, "login failures after MFA reset"),
            await query(mind, "one two three four five six"),
        )
        assert (low.computation_tier, set(low.lanes), low.traversal_depth) == ("low", {"semantic"}, 0)
        assert of(low, MFA).graph == 0.0
        assert more.computation_tier == "medium"

    async def test_medium_is_the_default_with_depth_two(self, mind: Mind) -> None:
        """All signals, graph depth 2; a filter is enough to get there."""
        await mind.learn(MFA)
        reply = await query(mind, "MFA", filters={"tier": "hot"})
        assert (reply.computation_tier, reply.traversal_depth) == ("medium", 2)
        assert set(reply.lanes) == {"semantic", "lexical", "graph"}

    async def test_high_has_depth_three_and_spreads_over_topics(self, mind: Mind) -> None:
        """Depth 3, reranked across clusters: what says the same again gives way to another matter."""
        first, again = "the payment gateway failed last Monday", "the payment gateway failed last Monday again"
        other = "refunds were late at the help desk"
        for text in (first, again, other):
            await mind.learn(text)
        text, weights = (
            "please compare what happened to the payment gateway",
            {"semantic": 0.1, "quality": 0, "graph": 0},
        )
        high = await query(mind, text, weights=weights)
        medium = await query(mind, text, weights=weights, computation_tier="medium")
        assert (high.computation_tier, high.traversal_depth) == ("high", 3)
        assert said(medium)[2] == other
        assert said(high)[1] == other

    @pytest.mark.parametrize("tier", ["low", "medium", "high"])
    async def test_a_tier_can_be_forced(self, mind: Mind, tier: str) -> None:
        """Whatever the query looks like."""
        await mind.learn(MFA)
        for text in ("MFA", "please compare what happened to the payment gateway"):
            assert (await query(mind, text, computation_tier=tier)).computation_tier == tier


class TestSummaries:
    @pytest.fixture
    async def link(self, service: Stack) -> AsyncIterator[Client]:
        client = await connect(Nats(url=service.url), "test")
        yield client
        await client.close()

    async def test_out_unless_included_and_expanded_in_high(self, mind: Mind, link: Client) -> None:
        """Summaries are left out unless included; high expands one to the memories it was made of."""
        parent = await mind.learn("Ticket 17: an agent could not sign in")
        shown = (await query(mind)).memories[0]
        summary = MemoryRecord(
            id=derive_id("summary", mind.memory.project), project=mind.memory.project,
            text="Summary: " + MFA, created_at=now(),
            changed_at=now(), kind=MemoryKind.CONSOLIDATED, edges=(Edge(kind=EdgeKind.DERIVED_FROM, target=parent),),
        )  # fmt: skip
        await JetStreamLog(link).append(summary, 0)
        assert [memory.id for memory in (await query(mind)).memories] == [shown.id]
        reply = await query(mind, filters={"include_summaries": True}, computation_tier="high")
        assert {memory.id for memory in reply.memories} == {parent, summary.id}
        assert [one.parents for one in reply.memories if one.id == summary.id] == [(parent,)]

    async def test_high_expands_the_summaries_that_upkeep_makes(self, mind: Mind) -> None:
        """Summary expansion: the memories that a summary was made of come with it, and it never takes their place."""
        ids = {await mind.learn(text) for text in LOGIN}
        await noise(mind)
        [topic] = await until_topics(mind, ids)
        plain = await query(mind, "give me an overview of login failures", k=50)
        assert plain.computation_tier == "high"
        assert ids <= {memory.id for memory in plain.memories}
        assert topic.summary not in {memory.id for memory in plain.memories}
        reply = await query(mind, "give me an overview of login failures", k=50, filters={"include_summaries": True})
        [summary] = [memory for memory in reply.memories if memory.id == topic.summary]
        assert (summary.kind, set(summary.parents)) == (MemoryKind.CONSOLIDATED, ids)
        assert ids <= {memory.id for memory in reply.memories}


class TestTopics:
    async def test_a_shared_topic_is_nearness_in_the_graph_and_explained(self, mind: Mind) -> None:
        """A sparse graph of shared entities and topic clusters; "matched topic '…'"."""
        ids = {await mind.learn(text) for text in LOGIN}
        await noise(mind)
        [topic] = await until_topics(mind, ids)
        assert "login" in topic.label
        reply = await query(mind, "why can customers not log in after the reset", k=50)
        assert reply.computation_tier == "medium"
        for memory in reply.memories:
            mine = memory.id in ids
            assert memory.topic == (topic.label if mine else None)
            assert (f"matched topic '{topic.label}'" in memory.explain) is mine
            assert memory.scores.graph >= 1 / 3 - 1e-3 if mine else memory.scores.graph == 0.0
        low = await query(mind, "customers cannot log in")
        assert low.computation_tier == "low"
        assert {(memory.topic, memory.scores.graph) for memory in low.memories} == {(None, 0.0)}

    async def test_high_ranks_across_clusters(self, mind: Mind) -> None:
        """Cross-cluster reranking: another topic comes before the same one a third time."""
        login = {await mind.learn(text) for text in LOGIN}
        refund = {await mind.learn(text) for text in REFUND}
        await until_topics(mind, login, refund)
        text, weights = "compare login failures and refunds", {"semantic": 0.5, "quality": 0, "graph": 0}
        of = {tier: await query(mind, text, k=6, weights=weights, computation_tier=tier) for tier in ("medium", "high")}  # type: ignore[arg-type]
        first = {tier: [memory.id in login for memory in reply.memories] for tier, reply in of.items()}
        assert first["medium"] == [True, True, True, False, False, False]
        assert first["high"][:2] == [True, False]


class TestFilters:
    async def test_the_request_of_the_seed_is_taken_as_it_stands(self, mind: Mind, service: Stack) -> None:
        """Its own JSON: query, k, filters, weights, traversal_depth, session_id."""
        when = "2026-05-01T00:00:00Z"
        await mind.learn(MFA, source="support_ticket", tags=["incident"], occurred_at=when)
        body = {
            "query": "MFA login issues",
            "k": 5,
            "filters": {
                "sources": ["support_ticket", "slack"],
                "tags": ["incident"],
                "since": "2026-04-01T00:00:00Z",
                "tier": "hot",
                "include_summaries": True,
            },
            "weights": {"semantic": 0.5, "recency": 0.3, "importance": 0.2},
            "traversal_depth": 2,
            "session_id": "ses_01HMRT…",
        }
        await query(mind)  # all is written
        client = await connect(Nats(url=service.url), "raw")
        try:
            subject = subjects.verb(mind.memory.project, "query")
            reply = orjson.loads((await client.request(subject, orjson.dumps(body), timeout=10)).data)
        finally:
            await client.close()
        [memory] = reply["memories"]
        assert {"id", "text", "score", "scores", "explain", "tier"} <= set(memory)
        assert (memory["text"], memory["tier"]) == (MFA, "hot")
        assert set(memory["scores"]) == set(SIGNALS)
        assert (reply["computation_tier"], reply["session_id"]) == ("medium", "ses_01HMRT…")
        assert isinstance(reply["latency_ms"], int)

    async def test_each_filter_refuses(self, mind: Mind) -> None:
        """One of the sources, one of the tags, not before, not after."""
        at = datetime(2026, 5, 1, tzinfo=UTC)
        await mind.learn(MFA + " one", source="slack", tags=["incident", "auth"], occurred_at=at.isoformat())
        await mind.learn(MFA + " two", source="mail", tags=["billing"], occurred_at=(at - 90 * DAY).isoformat())
        await mind.learn(MFA + " three")
        cases: list[tuple[dict[str, Any], set[str]]] = [
            ({"sources": ["slack", "support_ticket"]}, {"one"}),
            ({"sources": ["slack", "mail"]}, {"one", "two"}),
            ({"tags": ["auth", "billing"]}, {"one", "two"}),
            ({"since": at.isoformat(), "until": at.isoformat()}, {"one"}),
            ({"until": at.isoformat()}, {"one", "two"}),
            ({"tier": "hot"}, {"one", "two", "three"}),
            ({"tier": "cold"}, set()),
            ({"sources": ["slack"], "tags": ["billing"]}, set()),
        ]
        for filters, names in cases:
            reply = await query(mind, filters=filters, strict_filters=True)
            assert {text.rpartition(" ")[2] for text in said(reply)} == names, filters

    async def test_a_match_far_down_the_order_is_found(self, mind: Mind) -> None:
        """Filters never starve the answer by accident, however little the match has to do with the query."""
        await noise(mind)
        wanted = await mind.learn("Zebra crossings were repainted", tags=["street"])
        async with anyio.create_task_group() as tasks:
            for number in range(150):
                tasks.start_soon(mind.learn, f"{MFA}, ticket number {number}")
        reply = await query(mind, k=1, filters={"tags": ["street"]})
        assert ([memory.id for memory in reply.memories], reply.filter_relaxed) == ([wanted], False)

    async def test_starvation_is_told(self, mind: Mind) -> None:
        """Fewer than k: filter_relaxed and the predicates that gave way; strict_filters forbids it."""
        await mind.learn(MFA, tags=["incident"])
        await noise(mind)
        reply = await query(mind, k=3, filters={"tags": ["incident"], "tier": "hot"})
        assert (len(reply.memories), reply.filter_relaxed, reply.relaxed) == (3, True, ("tags",))
        assert [bool(memory.relaxed) for memory in reply.memories] == [False, True, True]
        strict = await query(mind, k=3, filters={"tags": ["incident"]}, strict_filters=True)
        assert (said(strict), strict.filter_relaxed, strict.relaxed) == ([MFA], False, ())

    async def test_what_is_never_relaxed(self, mind: Mind, service: Stack) -> None:
        """Forgotten, expired, superseded and other projects' memories stay out, however few are left."""
        await mind.learn(MFA + " kept")
        forgotten = await mind.learn(MFA + " forgotten")
        await mind.memory.forget(forgotten)
        await mind.learn(MFA + " old", ("Ana", "status", "locked out"))
        await mind.learn(MFA + " new", ("Ana", "status", "signed in"))
        await mind.learn(MFA + " expired", ttl_s=1)
        async with MemoryClient(service.url, project=mind.memory.project + "-other") as other:
            await other.encode(MFA + " foreign")
        await anyio.sleep(1.1)
        reply = await query(mind, k=50, filters={"tags": ["none"]})
        assert {text.rpartition(" ")[2] for text in said(reply)} == {"kept", "new"}


class TestSessions:
    async def test_memories_that_scored_well_are_lifted_and_the_tier_stays(self, mind: Mind) -> None:
        """Across queries of one session: a boost, and no demotion of a follow-up question."""
        await mind.learn(MFA)
        await noise(mind)
        first = await query(mind, session_id="ses", k=1)
        with anyio.fail_after(5):
            while (
                not (second := await query(mind, "and the login failures?", session_id="ses")).memories[0].session_boost
            ):
                await anyio.sleep(0.02)
        assert (first.computation_tier, second.computation_tier) == ("medium", "medium")
        assert second.memories[0].text == MFA
        assert 0.0 < second.memories[0].session_boost <= 0.05
        assert any("earlier in this session" in sentence for sentence in second.memories[0].explain)
        apart = await query(mind, "and the login failures?", session_id="another")
        assert (apart.computation_tier, apart.memories[0].session_boost) == ("low", 0.0)


class TestReply:
    async def test_memories_explain_themselves(self, mind: Mind) -> None:
        """Sentences that follow from the scores; none where they are not wanted."""
        await mind.learn(MFA, importance=0.9)
        [memory] = (await query(mind)).memories
        assert any(sentence.startswith("close in meaning") for sentence in memory.explain)
        assert any(sentence.startswith("recent (") for sentence in memory.explain)
        assert "marked as important (0.90)" in memory.explain
        [silent] = (await query(mind, explain=False)).memories
        assert silent.explain == ()

    async def test_nothing_is_a_success(self, mind: Mind) -> None:
        """An empty result is no error."""
        await mind.memory.forget(await mind.learn(MFA))
        reply = await query(mind)
        assert (reply.memories, reply.degraded, reply.filter_relaxed) == ((), False, False)

    async def test_projects_do_not_cross(self, mind: Mind, service: Stack) -> None:
        """Never a memory of another project, in any tier; and one that was never written to is told."""
        await mind.learn("Bicycles are repaired in spring")
        async with MemoryClient(service.url, project=mind.memory.project + "-apart") as other:
            await other.encode(MFA)
            for tier in ("low", "medium", "high"):
                assert said(await query(mind, MFA, computation_tier=tier)) == ["Bicycles are repaired in spring"]
        async with MemoryClient(service.url, project="never-written-to") as nobody:
            with pytest.raises(NotFound):
                await nobody.query(MFA)

    async def test_best_first_and_at_most_k(self, mind: Mind) -> None:
        """k memories, five where it is left out."""
        await mind.learn(MFA)
        await noise(mind)
        reply = await query(mind)
        assert len(reply.memories) == 5
        assert said(reply)[0] == MFA
        assert [memory.score for memory in reply.memories] == sorted((m.score for m in reply.memories), reverse=True)
        assert len((await query(mind, k=2)).memories) == 2


class TestAdvanced:
    async def test_the_graph_surfaces_what_shares_an_entity_but_no_phrasing(self, mind: Mind) -> None:
        """The candidates grow by hops from the top vector hit, up to traversal_depth."""
        await mind.learn(MFA, entities=[{"name": "Vesuvius"}])
        shared = "Vesuvius gets a new billing address"
        await mind.learn(shared, entities=[{"name": "Vesuvius"}])
        async with anyio.create_task_group() as tasks:
            for number in range(130):
                tasks.start_soon(mind.learn, f"login failures were reported after reset number {number}")
        near = await query(mind, MFA, k=50, traversal_depth=1, weights={"graph": 50})
        apart = await query(mind, MFA, k=50, traversal_depth=0, weights={"graph": 50})
        assert of(near, shared).graph == 0.5
        assert shared not in said(apart)

    async def test_the_reranker_is_asked_for(self, mind: Mind) -> None:
        """rerank: true has the cross-encoder order the first 50; where it is not loaded the reply says so."""
        await mind.learn(MFA)
        reply = await query(mind, rerank=True)
        assert reply.rerank in ("done", "off", "failed", "skipped_deadline")
        assert reply.reranked is (reply.rerank == "done")
        assert all((memory.rerank_score is not None) is reply.reranked for memory in reply.memories)
        assert (await query(mind)).rerank == "not asked"

"""Seed "Read pipeline": retrievers, fusion, filters, rerank, membership, read-your-writes. One test a sentence, named in
its docstring in our own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.catalog import Row
from contracts.recall import RecallReply
from orchestrator.fusion import DEGREES_WEIGHT, RRF_K
from tests.conformance.conftest import NOISE, Mind, noise, texts

LANES = {"semantic", "lexical", "graph"}


class TestRetrievers:
    @pytest.mark.parametrize(
        "cue", ["ACME-1247", "Who is Diego Marín?", "list all roofs", "is there water coming in somewhere?", "roof"]
    )
    async def test_all_three_lanes_are_asked_whatever_the_class(self, mind: Mind, cue: str) -> None:
        """A router chooses weights, no lane is ever absent."""
        await noise(mind)
        reply = await mind.recall(cue)
        assert {name: str(lane.status) for name, lane in reply.lanes.items()} == dict.fromkeys(LANES, "ok")

    async def test_the_semantic_lane_finds_paraphrases(self, mind: Mind) -> None:
        """Semantic: paraphrase and topical similarity."""
        await noise(mind)
        wanted = await mind.learn("The physician told him to stop smoking cigarettes")
        reply = await mind.recall("the doctor's advice about quitting tobacco")
        assert reply.trace.lanes["semantic"][0].sources == (wanted,)
        assert texts(reply) == ["The physician told him to stop smoking cigarettes"]

    @pytest.mark.parametrize("cue", ["ACME-1247", "acme 1247", "Kowalczyk", "tessellation"])
    async def test_the_lexical_lane_finds_exact_names_ids_and_rare_terms(self, mind: Mind, cue: str) -> None:
        """Lexical: exact names, ids such as ACME-1247, rare terms."""
        await noise(mind)
        text = "Kowalczyk closed ACME-1247 after the tessellation fix"
        wanted = await mind.learn(text)
        reply = await mind.recall(cue)
        assert reply.trace.lanes["lexical"][0].sources == (wanted,)
        assert texts(reply) == [text]

    async def test_the_graph_lane_walks_from_an_anchor(self, mind: Mind) -> None:
        """Graph: from an anchor entity over relations and statements to memories where it is subject or object."""
        await noise(mind)
        subject = await mind.learn("Zora took over the depot", ("Zora", "manages", "the depot"))
        target = await mind.learn(
            "Milo has a new boss", relations=[{"from": "Milo", "type": "reports_to", "to": "Zora"}]
        )
        reply = await mind.recall("What about Zora?")
        assert {one for hit in reply.trace.lanes["graph"] for one in hit.sources} == {subject, target}
        assert reply.trace.graph_mode == "star"

    @pytest.mark.parametrize(
        ("cue", "mode"),
        [("Zora and Milo", "path"), ("Zora, Milo and Ines", "subgraph"), ("nobody we know", "none")],
    )
    async def test_several_anchors_and_none(self, mind: Mind, cue: str, mode: str) -> None:
        """What joins two anchors, or more, ranks before what touches one; without an anchor the lane is empty."""
        for pair in (("Zora", "Milo"), ("Zora", "Rex"), ("Milo", "Ines")):
            await mind.learn(f"{pair[0]} met {pair[1]}", (pair[0], "met", pair[1]), claim_kind="Event")
        reply = await mind.recall(cue)
        assert reply.trace.graph_mode == mode
        memories = [hit for hit in reply.trace.lanes["graph"] if hit.kind == "memory"]
        assert bool(memories) == (mode != "none")
        if mode == "path":
            assert [hit.score > memories[1].score for hit in memories[:1]] == [True]
            assert (await mind.memory.inspect(memories[0].sources[0])).memory.text == "Zora met Milo"

    async def test_each_lane_is_capped(self, mind: Mind) -> None:
        """top_n per lane, 100 unless the class says otherwise."""
        for number in range(110):
            await mind.learn(f"Crate {number} holds oranges")
        reply = await mind.recall("oranges")
        assert len(reply.trace.lanes["lexical"]) == len(reply.trace.lanes["semantic"]) == 100

    async def test_lanes_surface_what_their_index_holds(self, mind: Mind) -> None:
        """Semantic and lexical: memories and statements; graph: entities and relations; the trace shows kinds."""
        wanted = await mind.learn(
            "Diego joined the billing team",
            ("Diego", "joined", "billing team"),
            relations=[{"from": "Diego", "type": "works_at", "to": "billing team"}],
        )
        reply = await mind.recall("Where does Diego work, which team?")
        lanes = reply.trace.lanes
        assert (
            {hit.kind for hit in lanes["semantic"]} == {hit.kind for hit in lanes["lexical"]} == {"memory", "statement"}
        )
        assert {"entity", "relation"} <= {hit.kind for hit in lanes["graph"]}
        assert "Diego —works_at→ billing team" in [hit.label for hit in lanes["graph"]]
        assert [member.id for member in reply.members] == [wanted], "all items resolve to their source memory"


class TestContext:
    async def test_what_was_said_beside_a_match_ranks_above_what_shares_a_word_with_the_cue(self, mind: Mind) -> None:
        """A memory's neighbours in its session count for it; across sessions they do not."""
        await noise(mind)
        talk = ("Hello again", "When did you two get your puppy?", "Oh, that was the week before Easter", "How lovely")
        said = [
            await mind.learn(text, session="talk", occurred_at=datetime(2024, 5, day, tzinfo=UTC))
            for day, text in enumerate(talk, 1)
        ]
        other = await mind.learn(
            "Oh, that was the week before Christmas", session="other", occurred_at=datetime(2024, 5, 3, tzinfo=UTC)
        )
        fused = (await mind.recall("when did they get the puppy?")).trace.fused
        assert fused[0] == said[1]
        assert fused.index(said[2]) < fused.index(other)


def by_degrees(reply: RecallReply) -> list[str]:
    """Both text lanes' scores, each stretched over its list from 0 to 1, added up."""
    degrees: dict[str, float] = {}
    for lane in ("semantic", "lexical"):
        hits = reply.trace.lanes[lane]
        low, high = min(hit.score for hit in hits), max(hit.score for hit in hits)
        for hit in hits:
            part = (hit.score - low) / (high - low) if high > low else 1.0
            degrees[hit.sources[0]] = degrees.get(hit.sources[0], 0.0) + part
    return sorted(degrees, key=lambda one: -degrees[one])


class TestFusion:
    async def test_the_order_is_the_weighted_sum_of_reciprocal_ranks(self, mind: Mind) -> None:
        """Σ w / (60 + rank) over the lanes and the list of both text lanes' degrees; what a list does not hold adds 0."""
        await noise(mind)
        await mind.learn("The museum shop sells violin strings")
        reply = await mind.recall("museum violin roof repairs please", max_results=1)
        lists = {
            lane: [hit.sources[0] for hit in hits if hit.kind == "memory"] for lane, hits in reply.trace.lanes.items()
        }
        assert not lists["graph"]
        scores: dict[str, float] = {}
        for lane in ("semantic", "lexical"):
            for rank, memory_id in enumerate(lists[lane], 1):
                scores[memory_id] = scores.get(memory_id, 0.0) + reply.trace.weights[lane] / (RRF_K + rank)
        for rank, memory_id in enumerate(by_degrees(reply), 1):
            scores[memory_id] = scores.get(memory_id, 0.0) + DEGREES_WEIGHT / (RRF_K + rank)
        expected = sorted(scores, key=lambda one: -scores[one])
        got = list(reply.trace.fused)
        assert [round(scores[one], 9) for one in got] == [round(scores[one], 9) for one in expected]

    @pytest.mark.parametrize(
        ("cue", "weights"),
        [
            ("roof", {"semantic": 1.0, "lexical": 1.0, "graph": 1.2}),
            ("Where is Diego?", {"semantic": 1.0, "lexical": 0.7, "graph": 2.0}),
            ("ACME-1247", {"semantic": 1.0, "lexical": 2.0, "graph": 0.7}),
            ("how do people get in at night?", {"semantic": 1.5, "lexical": 1.0, "graph": 0.5}),
        ],
    )
    async def test_the_router_adjusts_the_weights(self, mind: Mind, cue: str, weights: dict[str, float]) -> None:
        """Default weights; entity-anchored lifts graph, exact-term lexical, paraphrase semantic."""
        await mind.learn("The museum roof leaks")
        assert (await mind.recall(cue)).trace.weights == weights

    async def test_recency_only_for_temporal_cues(self, mind: Mind) -> None:
        """The boost is a tie-breaker by event time, and timeless facts are never penalised for being old."""
        old, new = [
            await mind.learn("The boiler was serviced", occurred_at=at, session=at[:4])
            for at in ("2020-01-01T00:00:00Z", datetime.now(UTC).isoformat())
        ]
        timeless, temporal = await mind.recall("boiler serviced"), await mind.recall("boiler serviced recently")
        assert list(timeless.trace.fused) == sorted([old, new])
        assert list(temporal.trace.fused) == [new, old]


class TestFilters:
    @pytest.mark.parametrize(
        ("fields", "asked", "reason"),
        [
            ({"kind": "Semantic"}, {"kinds": ["Episodic"]}, "kind"),
            ({"session": "a"}, {"session": "b"}, "context"),
            ({"occurred_at": "2024-01-01T00:00:00Z"}, {"since": "2024-02-01T00:00:00Z"}, "temporal"),
            ({"occurred_at": "2024-01-01T00:00:00Z"}, {"until": "2023-12-01T00:00:00Z"}, "temporal"),
            ({"confidence": 0.4}, {"min_confidence": 0.5}, "confidence"),
            ({"salience": 0.4}, {"min_salience": 0.5}, "salience"),
            ({}, {"types": ["Person"]}, "type"),
        ],
    )
    async def test_each(self, mind: Mind, fields: dict[str, Any], asked: dict[str, Any], reason: str) -> None:
        """A chain trims the pool: kind, context, temporal bounds, confidence, salience, type."""
        await mind.learn("The museum roof leaks", **fields)
        assert (await mind.recall("museum roof")).answer_kind == "Single"
        reply = await mind.recall("museum roof", **asked)
        assert (reply.answer_kind, reply.trace.dropped) == ("None", {reason: 1})

    async def test_they_are_and_combined(self, mind: Mind) -> None:
        """All must pass."""
        await mind.learn("The museum roof leaks", session="a", confidence=0.4)
        assert (await mind.recall("museum roof", session="a", min_confidence=0.3)).answer_kind == "Single"
        assert (await mind.recall("museum roof", session="a", min_confidence=0.5)).answer_kind == "None"
        assert (await mind.recall("museum roof", session="b", min_confidence=0.3)).answer_kind == "None"

    async def test_tombstones(self, mind: Mind) -> None:
        """Tombstone state."""
        gone = await mind.learn("The museum roof leaks")
        await mind.memory.forget(gone)
        assert (await mind.recall("museum roof")).answer_kind == "None"

    async def test_type_and_subject_steer_the_router(self, mind: Mind) -> None:
        """Type and subject filters can steer the lanes."""
        await mind.learn("Zora took over", entities=[{"name": "Zora", "type": "Person"}])
        for asked in ({"types": ["Person"]}, {"subject": "Zora"}):
            reply = await mind.recall("who took over", **asked)
            assert (reply.trace.query_class, reply.answer_kind) == ("entity-anchored", "Single")

    async def test_a_corrected_memory_stays_out(self, mind: Mind) -> None:
        """Supersession keeps the stale predecessor out of the default answer."""
        old = await mind.learn("Ana Ruiz works at Acme", ("Ana Ruiz", "works_at", "Acme"))
        new = await mind.learn("Ana Ruiz now works at Globex", ("Ana Ruiz", "works_at", "Globex"))
        reply = await mind.recall("Where does Ana Ruiz work?")
        assert (reply.answer_kind, [member.id for member in reply.members]) == ("Single", [new])
        both = await mind.recall("Where does Ana Ruiz work?", include_superseded=True)
        assert {member.id: member.superseded_by for member in both.members} == {old: new, new: None}


class TestRerank:
    async def test_without_a_model_the_fused_order_stands(self, mind: Mind) -> None:
        """Not a request flag; where no model is loaded the order is RRF's, and that is no error."""
        await mind.learn("The museum roof leaks")
        reply = await mind.recall("museum roof")
        assert (reply.reranked, reply.rerank, reply.answer_kind) == (False, "off", "Single")
        with pytest.raises(Exception, match="UNKNOWN_FIELD"):
            await mind.recall("museum roof", rerank=False)


class TestMembership:
    async def test_not_a_window_of_k(self, mind: Mind) -> None:
        """What clears the floor and the band around the best belongs, however many that are."""
        await noise(mind)
        for number in range(7):
            await mind.learn(f"Penguin colony {number} lives on the southern ice")
        reply = await mind.recall("penguin colonies on the southern ice")
        assert (reply.answer_kind, len(reply.members)) == ("Many", 7)
        band = reply.trace.band
        assert band["bar"] == pytest.approx(max(band["floor"], band["top"] * band["band"]), abs=1e-3)
        assert all(member.score >= band["bar"] - 1e-3 for member in reply.members)

    async def test_grounded_memories_are_admitted(self, mind: Mind) -> None:
        """Grounded source memories for a resolved subject and predicate."""
        await noise(mind)
        text = "As agreed on the phone, see the attachment"
        wanted = await mind.learn(text, ("Zora", "phone_number", "555-0199"))
        reply = await mind.recall("What is Zora's phone number?")
        assert wanted in [member.id for member in reply.members]
        assert reply.members[0].why[0] == "states: zora phone number 555-0199"

    async def test_lexically_confirmed_hits_are_admitted(self, mind: Mind) -> None:
        """An exact id is enough, however long the text around it."""
        await noise(mind)
        text = f"{' '.join(NOISE)} and in passing ACME-1247 {' '.join(NOISE)}"
        await mind.learn(text)
        assert texts(await mind.recall("what happened with ACME-1247 during the summer of last year")) == [text]

    async def test_off_topic_neighbours_of_a_name_are_not(self, mind: Mind) -> None:
        """Graph-confirmed means on topic: a neighbour of the anchor alone does not get in."""
        await mind.learn("Zora plays the cello", relations=[{"from": "Zora", "type": "plays", "to": "cello"}])
        await mind.learn("Zora owns a boat", relations=[{"from": "Zora", "type": "owns", "to": "boat"}])
        assert texts(await mind.recall("Which instrument does Zora play?")) == ["Zora plays the cello"]

    @pytest.mark.parametrize(("count", "kind"), [(0, "None"), (1, "Single"), (2, "Many"), (5, "Many")])
    async def test_the_kind_is_cardinality(self, mind: Mind, count: int, kind: str) -> None:
        """0 None, 1 Single, 2 and more Many."""
        await noise(mind)
        for number in range(count):
            await mind.learn(f"Penguin colony {number} lives on the southern ice")
        reply = await mind.recall("penguin colonies on the southern ice")
        assert (reply.answer_kind, len(reply.members)) == (kind, count)

    async def test_members_that_assert_the_same_are_one(self, mind: Mind) -> None:
        """Several members with the same value collapse to one Single: the newest, which names the others."""
        ids = [
            await mind.learn(text, ("Ana Ruiz", "works_at", "Globex"), occurred_at=f"2024-0{month}-01T00:00:00Z")
            for month, text in enumerate(("Ana Ruiz works at Globex", "Ana Ruiz is still at work at Globex"), 1)
        ]
        reply = await mind.recall("Where does Ana Ruiz work?")
        assert (reply.answer_kind, [(one.id, one.agrees) for one in reply.members]) == ("Single", [(ids[1], (ids[0],))])
        [stated] = reply.members[0].states
        assert (stated.object, stated.evidence, stated.confidence) == ("globex", 2, 1.0)

    async def test_two_current_values_are_shown_both(self, mind: Mind) -> None:
        """A contradiction is never silently resolved."""
        for city in ("Rome", "Oslo"):
            claim = {"subject": "Ana Ruiz", "predicate": "lives_in", "object": city, "kind": "Attribute"}
            await mind.memory.encode(
                f"Ana Ruiz lives in {city}", statements=[{**claim, "valid_from": "2024-01-01T00:00:00Z"}]
            )
        reply = await mind.recall("Where does Ana Ruiz live?")
        assert (reply.answer_kind, sorted(texts(reply))) == (
            "Many",
            ["Ana Ruiz lives in Oslo", "Ana Ruiz lives in Rome"],
        )

    async def test_the_ceiling_changes_neither_kind_nor_band(self, mind: Mind) -> None:
        """max_results never turns a Many into a Single."""
        for number in range(4):
            await mind.learn(f"Penguin colony {number} lives on the southern ice")
        whole = await mind.recall("penguin colonies on the southern ice")
        cut = await mind.recall("penguin colonies on the southern ice", max_results=1)
        assert (cut.answer_kind, len(cut.members), cut.members[0].id) == ("Many", 1, whole.members[0].id)
        assert cut.trace.band == whole.trace.band

    async def test_absence_is_explicit(self, mind: Mind) -> None:
        """None with an empty list, never a guess, and no error."""
        await noise(mind)
        reply = await mind.recall("Which telescope discovered the moons of Saturn?")
        assert (reply.answer_kind, reply.members, reply.degraded) == ("None", (), False)

    async def test_every_member_says_why(self, mind: Mind) -> None:
        """Score and lane provenance ride along."""
        await mind.learn("The museum roof leaks")
        [member] = (await mind.recall("museum roof leaks")).members
        assert 0 < member.score <= 1
        assert {"semantic", "lexical"} <= set(member.provenance)
        assert member.provenance["lexical"].rank == 1
        assert member.why


class TestReadYourWrites:
    async def test_inside_a_transaction(self, mind: Mind) -> None:
        """Pending tombstones drop committed hits, pending encodes are scored and merged, membership is of both."""
        old = await mind.learn("The museum roof leaks over the east wing")
        await mind.learn("The museum roof was built of copper")
        async with mind.memory.transaction() as txn:
            await txn.forget(old)
            await txn.encode("The museum roof was repaired in May")
            reply = await txn.recall("museum roof", consistency="ReadAfterWrite")
            assert (reply.answer_kind, sorted(texts(reply))) == (
                "Many", ["The museum roof was built of copper", "The museum roof was repaired in May"],
            )  # fmt: skip
            assert sorted(texts(await mind.recall("museum roof"))) == [
                "The museum roof leaks over the east wing", "The museum roof was built of copper",
            ]  # fmt: skip

    async def test_outside_one_read_after_write_waits(self, mind: Mind) -> None:
        """A just-encoded memory is found by the next ReadAfterWrite."""
        for number in range(20):
            written = await mind.memory.encode(f"Penguin colony {number} lives on the southern ice")
            reply = await mind.recall(f"penguin colony {number}", position=written.position)
            assert written.id in [member.id for member in reply.members]
            assert all(lane.status == "ok" for lane in reply.lanes.values())


class TestSchema:
    async def test_one_code_path_whether_or_not_a_schema_is_declared(self, mind: Mind) -> None:
        """The same answer before and after a declaration."""
        await mind.learn("Ana Ruiz works at Globex", ("Ana Ruiz", "works_at", "Globex"))
        before = await mind.recall("Where does Ana Ruiz work?")
        declared = await mind.memory.declare_schema({"predicates": [{"name": "owns", "kind": "Fact"}]})
        assert declared.applied
        after = await mind.recall("Where does Ana Ruiz work?")
        assert [member.id for member in after.members] == [member.id for member in before.members]
        assert after.trace.lanes == before.trace.lanes


def test_event_time_is_what_recency_and_bounds_go_by() -> None:
    """occurred_at, else creation."""
    at = datetime(2024, 1, 1, tzinfo=UTC)
    row = Row(id="a" * 26, text="", kind="Episodic", position=1, version=1, created_at=at)
    assert row.event_time == at
    assert row.model_copy(update={"occurred_at": at - timedelta(days=1)}).event_time == at - timedelta(days=1)

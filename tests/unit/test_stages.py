"""The pure stages of recall: fusion, recency, filters, membership and the merge of shards."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.catalog import Row
from contracts.lanes import Lane, LaneReply
from contracts.memory import Entity, MemoryKind, Relation, Statement, StatementKind, Tombstone, derive_id
from contracts.recall import RecallRequest
from orchestrator.filters import CHAIN, apply_filters
from orchestrator.fusion import MOST_TIED, RRF_K, Candidate, Hit, LaneVote, reciprocal_rank_fusion
from orchestrator.gather import merge
from orchestrator.membership import Answer, decide
from orchestrator.profiles import Profile
from orchestrator.recency import HALF_LIFE_DAYS, TEMPORAL_WEIGHT, boost_recent
from orchestrator.relevance import Evidence, judge, relevance

WHEN = datetime(2024, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
EVEN = {Lane.SEMANTIC: 1.0, Lane.LEXICAL: 1.0, Lane.GRAPH: 1.2}
IDS = [derive_id(str(number)) for number in range(60)]
A, B, C, D = IDS[:4]
UNIT = 1 / (RRF_K + 1)


def hit(memory: str, score: float, **fields: Any) -> Hit:
    return Hit(memory, "memory", "", score, (memory,), **fields)


def scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    return {candidate.id: candidate.score for candidate in candidates}


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.id for candidate in candidates]


class TestFusion:
    def test_the_formula_by_hand(self) -> None:
        lists = {
            Lane.SEMANTIC: [hit(A, 0.9), hit(B, 0.8)],
            Lane.LEXICAL: [hit(B, 7.0), hit(C, 3.0)],
            Lane.GRAPH: [hit(C, 0.5)],
        }
        fused = reciprocal_rank_fusion(lists, EVEN)
        assert scores(fused) == pytest.approx({A: 1 / 61, B: 1 / 62 + 1 / 61, C: 1 / 62 + 1.2 / 61})
        assert ids(fused) == [C, B, A]
        assert (fused[0].votes[Lane.LEXICAL].rank, fused[0].best_rank) == (2, 1)

    def test_k_and_weights(self) -> None:
        fused = reciprocal_rank_fusion({Lane.GRAPH: [hit(A, 1.0)]}, {Lane.GRAPH: 3.0}, k=2)
        assert scores(fused) == {A: 1.0}

    @pytest.mark.parametrize("lists", [{}, {Lane.SEMANTIC: []}, {lane: [] for lane in Lane}])
    def test_nothing(self, lists: dict[Lane, list[Hit]]) -> None:
        assert reciprocal_rank_fusion(lists, EVEN) == []

    def test_an_empty_lane_takes_nothing_away(self) -> None:
        alone = reciprocal_rank_fusion({Lane.SEMANTIC: [hit(A, 1.0)]}, EVEN)
        assert reciprocal_rank_fusion({Lane.SEMANTIC: [hit(A, 1.0)], Lane.GRAPH: []}, EVEN) == alone

    def test_ties_share_the_last_rank(self) -> None:
        fused = reciprocal_rank_fusion({Lane.LEXICAL: [hit(A, 2.0), hit(B, 1.0), hit(C, 1.0), hit(D, 0.5)]}, EVEN)
        ranks = {candidate.id: candidate.votes[Lane.LEXICAL].rank for candidate in fused}
        assert ranks == {A: 1, B: 3, C: 3, D: 4}
        assert {candidate.id: candidate.votes[Lane.LEXICAL].tied for candidate in fused} == {A: 1, B: 2, C: 2, D: 1}
        assert ids(fused) == [A, *sorted([B, C]), D]

    @pytest.mark.parametrize(("count", "counts"), [(MOST_TIED, True), (MOST_TIED + 1, False)])
    def test_a_lane_that_ties_too_many_adds_nothing_but_its_vote(self, count: int, counts: bool) -> None:
        fused = reciprocal_rank_fusion({Lane.GRAPH: [hit(memory, 1.0) for memory in IDS[:count]]}, EVEN)
        assert len(fused) == count
        assert all((candidate.score > 0) is counts for candidate in fused)
        assert all(candidate.votes[Lane.GRAPH].tied == count for candidate in fused)

    def test_an_item_stands_for_all_its_sources(self) -> None:
        entity = Hit("acme", "entity", "Acme", 1.0, (A, B), evidence=0.5, confirmed=True)
        fused = reciprocal_rank_fusion({Lane.GRAPH: [entity, hit(C, 0.5)]}, EVEN)
        assert scores(fused) == pytest.approx({A: 1.2 / 62, B: 1.2 / 62, C: 1.2 / 63})
        vote = fused[0].votes[Lane.GRAPH]
        assert (vote.items, vote.evidence, vote.confirmed) == (("Acme",), 0.5, True)

    def test_a_memory_counts_once_a_lane_by_its_best_item(self) -> None:
        statement = Hit(f"{A}#s0", "statement", "says", 0.7, (A,), evidence=0.7, confirmed=True)
        fused = reciprocal_rank_fusion({Lane.SEMANTIC: [hit(A, 0.9, evidence=0.9), statement, hit(B, 0.8)]}, EVEN)
        assert scores(fused) == pytest.approx({A: 1 / 61, B: 1 / 62})
        vote = fused[0].votes[Lane.SEMANTIC]
        assert (vote.score, vote.evidence, vote.confirmed, vote.items) == (0.9, 0.9, True, ("memory", "says"))

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(list(Lane)),
                st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
                st.lists(st.sampled_from(IDS[:8]), min_size=1, max_size=3, unique=True),
            ),
            max_size=25,
        ),
        st.randoms(use_true_random=False),
    )
    def test_the_order_of_arrival_does_not_show(
        self, rows: list[tuple[Lane, float, list[str]]], dice: random.Random
    ) -> None:
        def fuse(order: list[int]) -> bytes:
            lists: dict[Lane, list[Hit]] = {lane: [] for lane in Lane}
            for number in order:
                lane, score, sources = rows[number]
                lists[lane].append(Hit(str(number), "entity", "", score, tuple(sources)))
            return repr([(one.id, one.score) for one in reciprocal_rank_fusion(lists, EVEN)]).encode()

        order = list(range(len(rows)))
        shuffled = order.copy()
        dice.shuffle(shuffled)
        assert fuse(order) == fuse(shuffled)

    @given(st.lists(st.permutations(IDS[:12]), min_size=3, max_size=3))
    def test_nor_does_the_order_of_the_lanes(self, ranked: list[list[str]]) -> None:
        lists = {
            lane: [hit(memory, 1.0 - rank / 100) for rank, memory in enumerate(memories)]
            for lane, memories in zip(Lane, ranked, strict=True)
        }
        seen = {
            repr([(one.id, one.score) for one in reciprocal_rank_fusion({lane: lists[lane] for lane in lanes}, EVEN)])
            for lanes in permutations(Lane)
        }
        assert len(seen) == 1


def row(memory: str = A, **fields: Any) -> Row:
    return Row(**{"id": memory, "text": "t", "kind": MemoryKind.EPISODIC, "position": 1, "version": 1,
                  "created_at": WHEN} | fields)  # fmt: skip


class TestRecency:
    def gain(self, age: timedelta) -> float:
        (boosted,) = boost_recent([Candidate(A, 0.0)], {A: row(occurred_at=WHEN - age)}, WHEN)
        return boosted.score

    @given(st.integers(-(10**5), 10**5))
    def test_at_most_one_unit(self, hours: int) -> None:
        assert 0 <= self.gain(timedelta(hours=hours)) <= TEMPORAL_WEIGHT * UNIT <= UNIT

    def test_halves(self) -> None:
        assert self.gain(0 * DAY) == pytest.approx(TEMPORAL_WEIGHT * UNIT)
        assert self.gain(HALF_LIFE_DAYS * DAY) == pytest.approx(TEMPORAL_WEIGHT * UNIT / 2)

    def test_the_future_has_no_age(self) -> None:
        assert self.gain(-400 * DAY) == self.gain(0 * DAY)

    def test_by_event_time(self) -> None:
        rows = {A: row(A, occurred_at=WHEN - 300 * DAY), B: row(B, created_at=WHEN - 10 * DAY)}
        assert ids(boost_recent([Candidate(A, 0.1), Candidate(B, 0.1)], rows, WHEN)) == [B, A]

    def test_a_tie_breaker_not_a_ranking(self) -> None:
        rows = {A: row(A, occurred_at=WHEN - 900 * DAY), B: row(B)}
        assert ids(boost_recent([Candidate(B, 1 / 62), Candidate(A, 2 / 61)], rows, WHEN)) == [A, B]

    def test_nothing(self) -> None:
        assert boost_recent([], {}, WHEN) == []


STATED = row(
    entities=(Entity(name="Ana", type="Person"),),
    relations=(Relation(**{"from": "Ana", "type": "works_at", "to": "Acme"}),),
    statements=(Statement(subject="Ana", predicate="lives_in", object="Rome", kind=StatementKind.ATTRIBUTE),),
)


def drops(held: Row, now: datetime = WHEN, **fields: Any) -> dict[str, int]:
    kept, dropped = apply_filters([Candidate(held.id, 1.0)], {held.id: held}, RecallRequest(cue="c", **fields), now)
    assert len(kept) + sum(dropped.values()) == 1
    return dropped


class TestFilters:
    @pytest.mark.parametrize(
        ("reason", "held", "asked"),
        [
            ("kind", row(), {"kinds": (MemoryKind.SEMANTIC,)}),
            ("type", STATED, {"types": ("Place",)}),
            ("type", row(), {"types": ("Person",)}),
            ("context", row(session="a"), {"session": "b"}),
            ("context", row(), {"session": "b"}),
            ("temporal", row(), {"since": WHEN + DAY}),
            ("temporal", row(), {"until": WHEN - DAY}),
            ("as_of", row(), {"as_of": WHEN - DAY}),
            ("confidence", row(confidence=0.4), {"min_confidence": 0.5}),
            ("salience", row(salience=0.4), {"min_salience": 0.5}),
            ("tombstone", row(tombstone=Tombstone(at=WHEN)), {}),
            ("tombstone", row(tombstone=Tombstone(at=WHEN)), {"include_superseded": True}),
            ("expiry", row(expires_at=WHEN), {}),
            ("supersession", row(superseded_by=B, superseded_at=WHEN), {}),
        ],
    )
    def test_each_reason(self, reason: str, held: Row, asked: dict[str, Any]) -> None:
        assert drops(held, **asked) == {reason: 1}

    @pytest.mark.parametrize(
        ("held", "asked"),
        [
            (row(), {}),
            (row(), {"kinds": (MemoryKind.SEMANTIC, MemoryKind.EPISODIC)}),
            (STATED, {"types": ("person",)}),
            (STATED, {"types": ("Place", "attribute")}),
            (STATED, {"types": ("lives_in",)}),
            (STATED, {"types": ("works_at",)}),
            (row(session="a"), {"session": "a"}),
            (row(), {"since": WHEN, "until": WHEN}),
            (row(occurred_at=WHEN - 9 * DAY), {"until": WHEN - 8 * DAY}),
            (row(), {"as_of": WHEN}),
            (row(confidence=0.5), {"min_confidence": 0.5}),
            (row(salience=0.5), {"min_salience": 0.5}),
            (row(expires_at=WHEN + DAY), {}),
            (row(superseded_by=B, superseded_at=WHEN), {"include_superseded": True}),
        ],
    )
    def test_passes(self, held: Row, asked: dict[str, Any]) -> None:
        assert drops(held, **asked) == {}

    def test_supersession_as_of(self) -> None:
        held = row(occurred_at=WHEN - 9 * DAY, superseded_by=B, superseded_at=WHEN)
        assert drops(held, as_of=WHEN - DAY) == {}
        assert drops(held, as_of=WHEN) == {"supersession": 1}
        assert drops(held, as_of=WHEN + DAY) == {"supersession": 1}

    def test_what_was_believed(self) -> None:
        held = row(occurred_at=WHEN - 9 * DAY, superseded_by=B, superseded_at=WHEN - 5 * DAY, superseded_written=WHEN)
        assert drops(held, believed_at=WHEN + DAY) == {"supersession": 1}
        told = held.model_copy(update={"created_at": WHEN - 2 * DAY})
        assert drops(told, believed_at=WHEN - DAY) == {}
        assert drops(told, believed_at=WHEN - 3 * DAY) == {"as_of": 1}
        assert drops(told, as_of=WHEN - 2 * DAY) == {"supersession": 1}

    def test_every_reason_of_the_chain_is_named_once(self) -> None:
        names = [name for name, _ in CHAIN]
        assert len(names) == len(set(names)) == 10

    def test_and_combined_counted_under_the_first(self) -> None:
        held = row(session="a", confidence=0.1)
        assert drops(held, session="b", min_confidence=0.5) == {"context": 1}
        assert drops(held, session="a", min_confidence=0.5) == {"confidence": 1}

    def test_unknown_is_counted_and_order_kept(self) -> None:
        rows = {B: row(B), C: row(C, tombstone=Tombstone(at=WHEN)), D: row(D)}
        given_in = [Candidate(memory, 1.0) for memory in (D, A, C, B)]
        kept, dropped = apply_filters(given_in, rows, RecallRequest(cue="c"), WHEN)
        assert (ids(kept), dropped) == ([D, B], {"unknown": 1, "tombstone": 1})


PROFILE = Profile(
    cosine_share=0.5, alone_discount=0.25, abs_floor=0.4, rel_band=0.8, context_floor=0.5, context_band=0.5,
    rerank_floor=0.3, rerank_band=0.5,
)  # fmt: skip


def evidence(value: float, **fields: Any) -> Evidence:
    return Evidence(cosine=value, coverage=value, **fields)


def graph(memory: str, confirmed: bool = True) -> Candidate:
    return Candidate(memory, 0.1, {Lane.GRAPH: LaneVote(1, 1, 1.0, 0.5, confirmed, ("Ana",))})


def answer(
    found: dict[str, Evidence], most: int = 50, graphed: Sequence[str] = (), context: dict[str, float] | None = None
) -> Answer:
    candidates = [graph(memory) if memory in graphed else Candidate(memory, 0.1) for memory in found]
    return decide(candidates, found, judge(found, found, PROFILE, context or {}), most)


class TestMembership:
    def test_relevance(self) -> None:
        assert relevance(Evidence(cosine=0.6, coverage=1.0), PROFILE) == pytest.approx(0.8)
        assert relevance(Evidence(cosine=0.8), PROFILE) == pytest.approx(0.55)
        assert relevance(Evidence(), PROFILE) == 0.0
        assert relevance(Evidence(cosine=1.0, coverage=1.0, reranked=0.2), PROFILE) == 0.2

    def test_the_floor(self) -> None:
        assert answer({A: evidence(0.39)}).kind == "None"
        assert answer({A: evidence(0.4)}).kind == "Single"
        assert answer({}) == Answer("None", (), 0, {"floor": 0.4, "band": 0.8, "top": 0.0, "bar": 0.4})

    def test_the_band_around_the_best(self) -> None:
        found = answer({A: evidence(0.9), B: evidence(0.73), C: evidence(0.71)})
        assert [member.candidate.id for member in found.members] == [A, B]
        assert (found.kind, found.total, found.band["bar"]) == ("Many", 2, pytest.approx(0.72))

    def test_exact_terms_admit_whatever_the_relevance(self) -> None:
        found = answer({A: evidence(0.9), B: evidence(0.05, exact=True), C: evidence(0.05)})
        assert [member.candidate.id for member in found.members] == [A, B]
        assert found.members[1].why == ("holds the cue's exact or rare terms",)
        assert answer({A: evidence(0.0, exact=True)}).kind == "Single"

    def test_the_graph_admits_only_above_the_floor(self) -> None:
        found = answer({A: evidence(0.9), B: evidence(0.45), C: evidence(0.35), D: evidence(0.45)}, graphed=(B, C))
        assert [member.candidate.id for member in found.members] == [A, B]
        assert found.members[1].why == ("connected in the graph: Ana",)

    def test_the_graph_must_confirm(self) -> None:
        found = {A: evidence(0.9), B: evidence(0.45)}
        assert (
            decide([Candidate(A, 1.0), graph(B, confirmed=False)], found, judge(found, found, PROFILE), 50).total == 1
        )

    def test_the_ceiling_changes_neither_kind_nor_total(self) -> None:
        found = answer({memory: evidence(0.9) for memory in IDS[:7]}, most=1)
        assert (found.kind, found.total, len(found.members)) == ("Many", 7, 1)

    @pytest.mark.parametrize(("count", "kind"), [(0, "None"), (1, "Single"), (2, "Many"), (30, "Many")])
    def test_cardinality(self, count: int, kind: str) -> None:
        assert answer({memory: evidence(0.9) for memory in IDS[:count]}).kind == kind

    def test_best_first_ties_by_fused_score_then_id(self) -> None:
        found = {memory: evidence(0.9 if memory == C else 0.8) for memory in (A, B, C, D)}
        candidates = [Candidate(A, 0.1), Candidate(B, 0.1), Candidate(C, 0.0), Candidate(D, 0.2)]
        for order in permutations(candidates):
            members = decide(order, found, judge(found, found, PROFILE), 50).members
            assert [member.candidate.id for member in members] == [C, D, *sorted([A, B])]

    def test_reranked_scores_have_their_own_scale(self) -> None:
        found = answer({A: Evidence(reranked=0.8), B: Evidence(reranked=0.41), C: Evidence(reranked=0.39)})
        assert [member.candidate.id for member in found.members] == [A, B]
        assert found.band == {"floor": 0.3, "band": 0.5, "top": 0.8, "bar": 0.4}
        assert answer({A: Evidence(cosine=1.0, coverage=1.0, reranked=0.29)}).kind == "None"

    def test_what_the_cross_encoder_has_not_read_is_not_measured_on_another_scale(self) -> None:
        found = {A: Evidence(reranked=0.8), B: evidence(1.0), C: evidence(1.0, exact=True)}
        members = answer(found, graphed=[B]).members
        assert [(member.candidate.id, member.relevance) for member in members] == [(A, 0.8), (C, 0.0)]


class TestMembershipInContext:
    def test_neighbours_of_the_match_belong_by_their_share_of_the_best_context(self) -> None:
        found = answer({A: evidence(0.6), B: evidence(0.1), C: evidence(0.1)}, context={A: 2.0, B: 1.0, C: 0.9})
        assert [(one.candidate.id, one.relevance) for one in found.members] == [(A, 0.6), (B, pytest.approx(0.3))]
        assert found.band == {"floor": 0.5, "band": 0.5, "top": 0.6, "bar": 0.3}

    def test_somebody_must_meet_the_cue_alone(self) -> None:
        assert answer({A: evidence(0.49), B: evidence(0.1)}, context={A: 2.0, B: 4.0}).kind == "None"
        assert answer({A: evidence(0.5), B: evidence(0.1)}, context={A: 2.0, B: 4.0}).kind == "Many"

    def test_the_best_alone_sets_the_scale(self) -> None:
        found = answer({A: evidence(0.6), B: evidence(0.1), C: evidence(0.3)}, context={A: 2.0, B: 4.0, C: 3.0})
        assert [(one.candidate.id, one.relevance) for one in found.members] == [
            (A, 0.6), (B, 0.6), (C, pytest.approx(0.45))]  # fmt: skip

    def test_what_would_belong_alone_still_does(self) -> None:
        found = answer({A: evidence(0.6), B: evidence(0.5), C: evidence(0.4)}, context={A: 4.0, B: 1.0, C: 1.0})
        assert [(one.candidate.id, one.why[0]) for one in found.members] == [
            (A, "relevance 0.60 within the band from 0.30"), (B, "relevance 0.50 alone, from 0.48")]  # fmt: skip

    def test_what_stands_nowhere_yet_must_be_relevant_alone(self) -> None:
        found = {A: evidence(0.7), B: evidence(0.55), C: evidence(0.57)}
        assert [one.candidate.id for one in answer(found, context={A: 2.0}).members] == [A, C]

    def test_without_context_among_those_that_passed_the_old_band_holds(self) -> None:
        found = {A: evidence(0.9), B: evidence(0.73), C: evidence(0.71)}
        assert answer(found, context={D: 2.0}) == answer(found)

    def test_the_graph_admits_only_what_clears_the_floor_alone(self) -> None:
        found = {A: evidence(0.9), B: evidence(0.49), C: evidence(0.5)}
        members = answer(found, graphed=[B, C], context={A: 4.0, B: 1.0, C: 1.0}).members
        assert [one.candidate.id for one in members] == [A, C]


def reply(*rows: tuple[str, float, tuple[str, ...]], **fields: Any) -> LaneReply:
    count = len(rows)
    return LaneReply(**{
        "items": [name for name, _, _ in rows], "kinds": ["entity"] * count, "labels": [name.upper() for name, _, _ in rows],
        "scores": [score for _, score, _ in rows], "sources": [sources for _, _, sources in rows],
        "evidence": [score / 2 for _, score, _ in rows], "confirmed": [False] * count,
    } | fields)  # fmt: skip


class TestMerge:
    def test_by_score_ties_by_item_whatever_the_order_of_shards(self) -> None:
        replies = [reply(("b", 0.5, (A,)), ("d", 0.1, (A,))), reply(("a", 0.5, (B,))), reply(("c", 0.9, (C,))), reply()]
        merged = [merge(list(order), 10) for order in permutations(replies)]
        assert [found.item for found in merged[0]] == ["c", "a", "b", "d"]
        assert all(one == merged[0] for one in merged)

    def test_an_item_of_two_shards_joins_its_sources(self) -> None:
        one, other = reply(("x", 0.5, (A, B))), reply(("x", 0.7, (B, C)), confirmed=[True])
        for order in ([one, other], [other, one]):
            (found,) = merge(order, 10)
            assert (found.score, found.evidence, found.confirmed, found.label) == (0.7, 0.35, True, "X")
            assert sorted(found.sources) == sorted([A, B, C])

    def test_top_n_is_of_all_shards(self) -> None:
        replies = [reply(("a", 0.1, (A,)), ("b", 0.3, (B,))), reply(("c", 0.2, (C,)))]
        assert [found.item for found in merge(replies, 2)] == ["b", "c"]

    def test_labels_are_optional(self) -> None:
        assert merge([reply(("a", 0.1, (A,)), labels=())], 5)[0].label == ""

    def test_nothing(self) -> None:
        assert merge([], 5) == merge([reply()], 5) == []

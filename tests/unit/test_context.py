"""The context list: what a memory's neighbours in its session lend it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contracts.lanes import Lane
from orchestrator.context import LIFTING, WORTH, blend, lift, strongest, view_of
from orchestrator.fusion import CONTEXT_WEIGHT, DEGREES_WEIGHT, MOST_TIED, RRF_K, Hit, View, reciprocal_rank_fusion

A, B, C, D = ("a" * 26, "b" * 26, "c" * 26, "d" * 26)
EVEN = dict.fromkeys(Lane, 1.0)


def hit(memory: str, score: float) -> Hit:
    return Hit(memory, "memory", "", score, (memory,))


class TestBlend:
    def test_a_lanes_best_is_one_and_its_last_nought(self) -> None:
        lists = {Lane.SEMANTIC: [hit(A, 0.9), hit(B, 0.5), hit(C, 0.1)], Lane.LEXICAL: [hit(B, 12.0), hit(C, 4.0)]}
        assert blend(lists) == {A: 1.0, B: 0.5 + 1.0, C: 0.0}

    def test_a_list_of_one_is_a_best(self) -> None:
        assert blend({Lane.LEXICAL: [hit(A, 3.0)]}) == {A: 1.0}

    def test_the_graph_is_not_text(self) -> None:
        assert blend({Lane.GRAPH: [hit(A, 3.0)]}) == {}

    @given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
    def test_between_nought_and_two(self, scores: list[float]) -> None:
        hits = [hit(f"{number:026d}", score) for number, score in enumerate(scores)]
        assert all(0.0 <= value <= 2.0 for value in blend({Lane.SEMANTIC: hits, Lane.LEXICAL: hits}).values())


class TestLift:
    def test_an_answer_gains_from_its_question_more_than_the_other_way(self) -> None:
        own = {A: 1.0, B: 0.2}
        lifted = lift(own, {A: [(B, 1)], B: [(A, -1)]})
        assert lifted == {A: 1.0 + WORTH[-1] * 0.2, B: 0.2 + WORTH[1] * 1.0}
        assert WORTH[1] > WORTH[-1]

    def test_a_neighbour_that_no_lane_found_comes_in(self) -> None:
        assert lift({A: 1.0}, {A: [(D, 2)]})[D] == WORTH[2]

    def test_where_nobody_stands_beside_anybody_there_is_no_context(self) -> None:
        assert lift({A: 1.0, B: 0.5}, {}) == {}
        assert lift({A: 1.0, B: 0.5}, {A: [], B: []}) == {}

    def test_without_context_the_degrees_stand_for_themselves_and_weigh_less(self) -> None:
        assert view_of({A: 1.0}, {}) == ({A: 1.0}, DEGREES_WEIGHT)
        assert view_of({A: 1.0}, {A: 1.5}) == ({A: 1.5}, CONTEXT_WEIGHT)

    def test_only_the_strongest_lift(self) -> None:
        own = {f"{number:026d}": float(number) for number in range(LIFTING + 5)}
        assert len(strongest(own)) == LIFTING
        assert strongest(own)[0] == max(own)


class TestFusion:
    def test_context_is_one_more_list(self) -> None:
        fused = reciprocal_rank_fusion({Lane.LEXICAL: [hit(A, 2.0)]}, EVEN, view=View({A: 0.5, B: 1.0}, 3.0))
        scores = {one.id: one.score for one in fused}
        assert scores[B] == 3.0 / (RRF_K + 1)
        assert abs(scores[A] - 1 / (RRF_K + 1) - 3.0 / (RRF_K + 2)) < 1e-12

    def test_what_it_does_not_order_counts_for_nothing(self) -> None:
        alike = {f"{number:026d}": 1.0 for number in range(MOST_TIED + 1)}
        assert all(one.score == 0.0 for one in reciprocal_rank_fusion({}, EVEN, view=View(alike, 3.0)))

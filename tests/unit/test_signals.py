"""The seven signals and their weights: bounded, monotone, and refused where they make no sense."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.catalog import Row
from contracts.errors import ErrorCode, InvalidRequest
from contracts.memory import derive_id
from contracts.query import Scores
from orchestrator import signals
from orchestrator.weights import DEFAULT, SIGNALS, blend, weights_of

AT = datetime(2026, 4, 1, tzinfo=UTC)
DAY = timedelta(days=1)
days = st.floats(-4000, 4000, allow_nan=False)
counts = st.integers(-5, 10_000)
units = st.floats(0, 1)
numbers = st.floats(0, 1e308, allow_nan=False)


def ago(count: float) -> datetime:
    return AT - count * DAY


@given(st.floats(-2, 2), days, days, counts, counts, st.none() | st.integers(0, 9), st.integers(0, 3))
def test_every_signal_is_in_the_unit_interval(
    cosine: float, age: float, idle: float, uses: int, recent: int, hops: int | None, depth: int
) -> None:
    row = Row(
        id=derive_id("a"), text="t", kind="Episodic", position=1, version=1, created_at=ago(age),  # type: ignore[arg-type]
        last_used=ago(idle), uses=uses, uses_14d=recent,
    )  # fmt: skip
    scores = signals.scores_of(row, cosine, hops, depth, AT)
    assert all(0.0 <= value <= 1.0 for _, value in scores)
    assert 0.0 <= blend(scores, DEFAULT) <= 1.0


@given(days, days)
def test_what_is_older_is_never_more_recent_nor_better_retained(one: float, other: float) -> None:
    older, newer = max(one, other), min(one, other)
    assert signals.recency(ago(older), AT) <= signals.recency(ago(newer), AT)
    assert signals.decay(ago(older), None, 3, AT) <= signals.decay(ago(newer), None, 3, AT)


@given(counts, counts)
def test_more_uses_never_lower_usage_or_retention(one: int, other: int) -> None:
    few, many = min(one, other), max(one, other)
    assert signals.usage(few) <= signals.usage(many)
    assert signals.decay(ago(40), None, few, AT) <= signals.decay(ago(40), None, many, AT)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 3))
def test_nearer_in_the_graph_is_never_less(one: int, other: int, depth: int) -> None:
    assert signals.graph(max(one, other), depth) <= signals.graph(min(one, other), depth)


class TestByHand:
    def test_semantic(self) -> None:
        assert [signals.semantic(cosine) for cosine in (-0.4, 0.0, 0.88, 1.0001)] == [0.0, 0.0, 0.88, 1.0]

    def test_recency_halves_in_thirty_days_and_the_future_has_no_age(self) -> None:
        assert [signals.recency(ago(age), AT) for age in (-5, 0, 30, 60)] == [1.0, 1.0, 0.5, 0.25]

    def test_decay_is_one_when_fresh_and_falls_slower_the_more_used(self) -> None:
        assert signals.decay(AT, None, 0, AT) == 1.0
        assert signals.decay(ago(300), AT, 9, AT) == 1.0
        assert signals.decay(ago(30), None, 0, AT) == pytest.approx(1 / math.e)
        assert signals.decay(ago(20.8), None, 0, AT) == pytest.approx(0.5, abs=0.01)
        assert signals.decay(ago(71), None, 10, AT) == pytest.approx(0.5, abs=0.01)
        assert signals.decay(ago(0.5), None, 0, AT) > 0.94

    def test_usage_saturates(self) -> None:
        assert [round(signals.usage(n), 2) for n in (-1, 0, 1, 5, 15)] == [0.0, 0.0, 0.18, 0.63, 0.95]

    def test_graph_is_bounded_by_the_depth(self) -> None:
        assert [signals.graph(hops, 2) for hops in (0, 1, 2, 3, None)] == [1.0, 0.5, pytest.approx(1 / 3), 0.0, 0.0]
        assert signals.graph(None, 2, same_cluster=True) == signals.graph(3, 2, same_cluster=True) == 1 / 3
        assert signals.graph(None, 0, same_cluster=True) == 0.0

    def test_hops_come_back_from_evidence(self) -> None:
        assert [signals.hops_of(evidence) for evidence in (0.0, 1.0, 0.5, 1 / 3, 0.25)] == [None, 0, 1, 2, 3]


class TestWeights:
    def test_the_defaults_sum_to_one(self) -> None:
        assert math.fsum(value for _, value in DEFAULT) == pytest.approx(1.0)
        assert weights_of({}).model_dump() == pytest.approx(DEFAULT.model_dump())

    @given(st.dictionaries(st.sampled_from(SIGNALS), numbers))
    def test_whatever_is_given_sums_to_one(self, given_weights: dict[str, float]) -> None:
        if not any((DEFAULT.model_dump() | given_weights).values()):
            return
        weights = weights_of(given_weights)
        assert math.fsum(value for _, value in weights) == pytest.approx(1.0)
        assert all(value >= 0.0 for _, value in weights)

    def test_what_is_left_out_keeps_its_default_before_normalising(self) -> None:
        weights = weights_of({"semantic": 0.5, "recency": 0.3, "importance": 0.2})
        assert weights.semantic == pytest.approx(0.5 / 1.35)
        assert weights.graph == pytest.approx(0.1 / 1.35)

    def test_a_single_one_that_is_left_has_it_all(self) -> None:
        zeros = dict.fromkeys(SIGNALS, 0.0)
        assert weights_of(zeros | {"graph": 7.0}) == Scores(graph=1.0)

    @pytest.mark.parametrize(
        "bad",
        [{"cluster": 0.2}, {"semantic": -0.1}, {"recency": math.nan}, {"usage": math.inf}, dict.fromkeys(SIGNALS, 0.0)],
    )
    def test_refused(self, bad: dict[str, float]) -> None:
        with pytest.raises(InvalidRequest) as refused:
            weights_of(bad)
        assert refused.value.code is ErrorCode.BAD_WEIGHTS
        assert set(refused.value.details["names"]) == set(bad)
        assert refused.value.details["signals"] == list(SIGNALS)

    def test_the_blend_by_hand(self) -> None:
        scores = Scores(semantic=0.88, recency=1.0, importance=0.6, quality=0.71, decay=0.94, usage=0.3, graph=0.55)
        assert blend(scores, DEFAULT) == pytest.approx(0.765)

"""Clusters: what is alike is together, the same calls give the same clusters, what leaves leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.memory import Vector
from workers.upkeep.clusters import MERGE_EVERY, Clusters


def at(angle: float) -> Vector:
    """A unit vector in the plane, the angle in degrees."""
    return np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))], dtype=np.float32)


def clusters(*angles: float, join_at: float = 0.9, merge_at: float = 0.95) -> Clusters:
    made = Clusters(2, join_at, merge_at)
    for number, angle in enumerate(angles):
        made.add(str(number), at(angle))
    return made


def groups(made: Clusters) -> list[list[str]]:
    return [list(made.members(one)) for one in made]


#: Memories by name, each put at an angle or (None) taken out.
steps = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.integers(0, 359)), max_size=200)


def after(done: Sequence[tuple[str, int | None]]) -> Clusters:
    made = clusters()
    for name, angle in done:
        if angle is None:
            made.remove(name)
        else:
            made.add(name, at(angle))
    return made


class TestByHand:
    def test_alike_is_together_and_the_founder_gives_the_name(self) -> None:
        made = clusters(0, 90, 10, 100, 5)
        assert groups(made) == [["0", "2", "4"], ["1", "3"]]
        assert list(made) == ["0", "1"]
        assert made.of("4") == "0"

    def test_the_bar_is_the_mean_cosine_to_the_members(self) -> None:
        made = clusters(0, 20)
        near = made.nearest(at(10))
        assert near is not None
        assert near.likeness == pytest.approx(np.cos(np.radians(10)), abs=1e-6)

    def test_of_the_large_ones_only(self) -> None:
        made = clusters(0, 5, 90)
        assert made.nearest(at(90)).cluster == "2"  # type: ignore[union-attr]
        assert made.nearest(at(90), least=2).cluster == "0"  # type: ignore[union-attr]
        assert made.nearest(at(90), least=3) is None
        assert clusters().nearest(at(0)) is None

    def test_a_cluster_outlives_its_founder_and_ends_with_its_last(self) -> None:
        made = clusters(0, 5)
        made.remove("0")
        assert list(made) == ["0"]
        made.add("0", at(90))
        assert [made.of("0") == "0", made.of("1")] == [False, "0"]
        made.remove("1")
        made.remove("nobody")
        assert groups(made) == [["0"]]

    def test_close_ones_merge_into_the_larger(self) -> None:
        made = clusters(0, 30, 35, join_at=0.95, merge_at=0.83)
        assert groups(made) == [["0"], ["1", "2"]]
        made.merge()
        assert groups(made) == [["1", "2", "0"]]
        assert made.of("0") == "1"

    def test_they_merge_by_themselves_after_a_count(self) -> None:
        made = clusters(*([0, 30] * (MERGE_EVERY // 2)), join_at=0.95, merge_at=0.83)
        assert len(made) == 1

    def test_another_dimension_is_refused(self) -> None:
        with pytest.raises(ValueError, match="shape"):
            clusters().add("a", np.zeros(3, dtype=np.float32))

    def test_a_change_shows_in_the_stamp(self) -> None:
        made = clusters(0, 90)
        before = made.stamp("0"), made.stamp("1")
        made.add("2", at(1))
        assert (made.stamp("0") != before[0], made.stamp("1") == before[1]) == (True, True)


class TestLaws:
    @given(steps)
    def test_the_same_calls_give_the_same_clusters(self, done: list[tuple[str, int | None]]) -> None:
        one, other = after(done), after(done)
        assert (list(one), groups(one)) == (list(other), groups(other))

    @given(steps)
    def test_each_memory_is_in_one_cluster_and_each_mean_is_of_its_members(
        self, done: list[tuple[str, int | None]]
    ) -> None:
        made = after(done)
        there = {name for name, angle in dict(done).items() if angle is not None}
        assert sorted(name for members in groups(made) for name in members) == sorted(there)
        for cluster in made:
            members = made.members(cluster)
            assert all(made.of(name) == cluster for name in members)
            mean = np.mean([members[name] for name in members], axis=0)
            assert made.centroid(cluster) == pytest.approx(mean, abs=1e-4)

    @given(steps)
    def test_adding_again_where_it_is_changes_no_other(self, done: list[tuple[str, int | None]]) -> None:
        made = after(done)
        for cluster in list(made):
            for name in list(made.members(cluster)):
                rest = {one: made.of(one) for members in groups(made) for one in members if one != name}
                made.add(name, made.members(made.of(name) or "")[name])
                if made.of(name) == cluster:
                    assert {one: made.of(one) for one in rest} == rest

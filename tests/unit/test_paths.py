"""The search from both ends finds the best paths of all: checked against every simple path there is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.memory import EdgeKind
from orchestrator.arcs import Arc, Arcs
from orchestrator.bidirectional import Bidirectional
from orchestrator.paths import DIGITS, Ends, Path, best_paths, ends_of

NODES = "abcdefg"
CAUSED, FOLLOWED = EdgeKind.CAUSED, EdgeKind.FOLLOWED_BY

arcs_of = st.lists(
    st.builds(
        Arc,
        source=st.sampled_from(NODES),
        kind=st.sampled_from([CAUSED, FOLLOWED]),
        target=st.sampled_from(NODES),
        weight=st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.5]),
        derived=st.booleans(),
    ),
    max_size=18,
)
ends = st.dictionaries(st.sampled_from(NODES), st.sampled_from([0.3, 0.9, 1.0]), min_size=1, max_size=3)
saliences = st.fixed_dictionaries({node: st.sampled_from([0.25, 0.5, 1.0]) for node in NODES})


def search(
    arcs: Sequence[Arc],
    ends: Ends,
    salience: dict[str, float],
    *,
    max_steps: int = 8,
    max_paths: int = 5,
    width: int = 100,
) -> tuple[list[Path], Bidirectional, int]:
    """Read level by level what is asked for and nothing else."""
    found = Bidirectional(ends, salience, max_steps=max_steps, max_paths=max_paths, width=width)
    levels = 0
    while level := found.wanted():
        levels += 1
        out = level.direction == "out"
        found.add(level, [arc for arc in arcs if (arc.source if out else arc.target) in level.ids])
    paths, exact = found.paths()
    assert exact
    return paths, found, levels


def every_path(arcs: Sequence[Arc], ends: Ends, salience: dict[str, float], max_steps: int) -> list[Path]:
    """All simple paths, by trying everything; of parallel arcs the strongest."""
    known: dict[tuple[str, EdgeKind, str], Arc] = {}
    for arc in arcs:
        key = (arc.source, arc.kind, arc.target)
        if key not in known or (known[key].derived and not arc.derived):
            known[key] = arc

    def onward(path: tuple[Arc, ...], node: str) -> Iterator[tuple[Arc, ...]]:
        if node in ends.goals:
            yield path
        if len(path) < max_steps:
            been = {start, *(arc.target for arc in path)}
            for target in set(NODES) - been:
                parallel = [arc for arc in known.values() if (arc.source, arc.target) == (node, target)]
                if parallel:
                    best = min(parallel, key=lambda arc: (-abs(arc.weight), arc.kind))
                    yield from onward((*path, best), target)

    paths = []
    for start in ends.starts:
        for path in onward((), start):
            nodes = (start, *(arc.target for arc in path))
            count = len(path)
            weights = math.prod(abs(arc.weight) for arc in path) ** (1 / count) if count else 1.0
            standing = math.prod(salience[node] for node in nodes) ** (1 / len(nodes))
            score = weights * standing / (1 + count) * ends.starts[start] * ends.goals[nodes[-1]]
            paths.append(Path(round(score, DIGITS), nodes, path))
    return sorted(paths, key=lambda path: (-path.score, len(path.arcs), path.nodes))


@settings(max_examples=400, deadline=None)
@given(arcs_of, ends, ends, saliences, st.integers(1, 7), st.integers(1, 8))
def test_it_agrees_with_trying_everything(
    arcs: list[Arc],
    starts: dict[str, float],
    goals: dict[str, float],
    salience: dict[str, float],
    max_steps: int,
    max_paths: int,
) -> None:
    given_ends = Ends(starts, goals)
    expected = every_path(arcs, given_ends, salience, max_steps)[:max_paths]
    found, _, _ = search(arcs, given_ends, salience, max_steps=max_steps, max_paths=max_paths)
    assert [path.nodes for path in found] == [path.nodes for path in expected]
    assert [path.arcs for path in found] == [path.arcs for path in expected]
    assert [path.score for path in found] == pytest.approx([path.score for path in expected], abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(arcs_of, ends, ends, saliences)
def test_the_order_in_which_arcs_come_does_not_show(
    arcs: list[Arc], starts: dict[str, float], goals: dict[str, float], salience: dict[str, float]
) -> None:
    asserted = [Arc(arc.source, arc.kind, arc.target, 0.5) for arc in arcs]
    one, _, _ = search(asserted, Ends(starts, goals), salience, width=2)
    other, _, _ = search(asserted[::-1], Ends(starts, goals), salience, width=2)
    assert one == other


def chain(*nodes: str, weight: float = 1.0) -> list[Arc]:
    return [Arc(one, CAUSED, other, weight) for one, other in itertools.pairwise(nodes)]


EVEN = dict.fromkeys(NODES, 0.5)


def between(start: str, goal: str) -> Ends:
    return Ends({start: 1.0}, {goal: 1.0})


def test_an_arc_is_never_walked_backward() -> None:
    assert search(chain("a", "b", "c"), between("c", "a"), EVEN)[0] == []


def test_a_path_may_have_max_steps_arcs_and_no_more() -> None:
    arcs = chain("a", "b", "c", "d")
    assert [path.nodes for path in search(arcs, between("a", "d"), EVEN, max_steps=3)[0]] == [("a", "b", "c", "d")]
    assert search(arcs, between("a", "d"), EVEN, max_steps=2)[0] == []


def test_the_score_of_a_path() -> None:
    arcs = [Arc("a", CAUSED, "b", 0.5), Arc("b", CAUSED, "c", -0.125)]
    [path], _, _ = search(arcs, Ends({"a": 0.8}, {"c": 1.0}), {"a": 0.2, "b": 0.9, "c": 0.7})
    assert path.score == pytest.approx(0.8 / 3 * (0.5 * 0.125) ** 0.5 * (0.2 * 0.9 * 0.7) ** (1 / 3))


def test_a_start_that_is_the_goal_is_a_path_of_its_own_and_asks_for_nothing() -> None:
    [path], _, levels = search(chain("a", "b", "a"), between("a", "a"), EVEN)
    assert (path.nodes, path.score, levels) == (("a",), 0.5, 0)


def test_the_smaller_side_is_read_first() -> None:
    arcs = [Arc("a", CAUSED, other) for other in "bcdef"] + chain("b", "g")
    found = Bidirectional(between("a", "g"), EVEN, max_steps=4, max_paths=5, width=100)
    first = found.wanted()
    assert first is not None
    assert (first.direction, first.ids) == ("out", ("a",))
    found.add(first, arcs[:5])
    second = found.wanted()
    assert second is not None
    assert (second.direction, second.ids) == ("in", ("g",))


def test_it_stops_when_longer_paths_could_not_be_better() -> None:
    arcs = chain("a", "b") + chain("a", "c", "d", "e", "b")
    ones = dict.fromkeys(NODES, 1.0)
    paths, _, levels = search(arcs, between("a", "b"), ones, max_paths=1)
    assert [path.nodes for path in paths] == [("a", "b")]
    assert levels == 1


@pytest.mark.parametrize(
    ("arcs", "ends"),
    [
        ([Arc("a", CAUSED, "b", 0.1), *chain("a", "c", "b")], between("a", "b")),
        ([Arc("e", CAUSED, "b"), *chain("a", "c", "b")], Ends({"a": 1.0, "e": 0.4}, {"b": 1.0})),
    ],
)
def test_it_does_not_stop_while_a_longer_path_could_be_better(arcs: list[Arc], ends: Ends) -> None:
    ones = dict.fromkeys(NODES, 1.0)
    [path], _, _ = search(arcs, ends, ones, max_paths=1)
    assert path.nodes == ("a", "c", "b")


def test_a_level_that_is_too_wide_keeps_the_most_salient_and_says_so() -> None:
    arcs = [Arc("a", CAUSED, other) for other in "bcd"] + [Arc(other, CAUSED, "e") for other in "bcd"]
    arcs += [Arc("f", CAUSED, "g"), Arc("e", CAUSED, "g")]
    salience = EVEN | {"c": 0.9}
    paths, found, _ = search(arcs, between("a", "g"), salience, width=1)
    assert [path.nodes for path in paths][:1] == [("a", "c", "e", "g")]
    assert found.cut
    assert not search(arcs, between("a", "g"), salience)[1].cut


@pytest.mark.parametrize(("depth", "width"), [(7, 25), (9, 32), (10, 8)])
def test_a_graph_with_more_paths_than_anybody_reads_is_answered_soon(depth: int, width: int) -> None:
    layers = [[f"{layer}-{number}" for number in range(width)] for layer in range(depth)]
    arcs = [Arc(one, CAUSED, two, 0.7) for here, there in itertools.pairwise(layers) for one in here for two in there]
    known = Arcs()
    known.add(arcs)
    salience = dict.fromkeys((node for layer in layers for node in layer), 0.5)
    ends = Ends({"0-0": 1.0}, dict.fromkeys(layers[-1], 1.0))
    paths, exact = best_paths(known.onward(), ends, salience, 10, 5)
    assert exact
    assert [path.nodes[:-1] for path in paths] == [tuple(f"{layer}-0" for layer in range(depth - 1))] * 5
    assert [path.nodes[-1] for path in paths] == sorted(layers[-1])[:5]


def test_where_there_is_a_path_one_is_found_however_many_walks_go_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heavy arcs among a dozen memories promise more than the light ones on the only way out."""
    crowd = [f"c{number:02}" for number in range(12)]
    arcs = [Arc(one, CAUSED, two) for one in crowd for two in crowd]
    arcs += [Arc(crowd[0], CAUSED, "x", 0.01), Arc("x", CAUSED, "y", 0.01), Arc("y", CAUSED, "z", 0.01)]
    salience = dict.fromkeys([*crowd, "x", "y", "z"], 0.5)
    monkeypatch.setattr("orchestrator.paths.MOST_LOOKS", 50)
    known = Arcs()
    known.add(arcs)
    paths, exact = best_paths(known.onward(), Ends({crowd[0]: 1.0}, {"z": 1.0}), salience, 10, 5)
    assert ([path.nodes for path in paths], exact) == ([(crowd[0], "x", "y", "z")], False)


def test_an_asserted_arc_wins_over_a_derived_one() -> None:
    for arcs in (
        [Arc("a", FOLLOWED, "b", 0.9, derived=True), Arc("a", FOLLOWED, "b", 0.2)],
        [Arc("a", FOLLOWED, "b", 0.2), Arc("a", FOLLOWED, "b", 0.9, derived=True)],
    ):
        [path], _, _ = search(arcs, between("a", "b"), EVEN)
        assert path.arcs == (Arc("a", FOLLOWED, "b", 0.2),)


@pytest.mark.parametrize(
    ("starts", "goals", "expected"),
    [
        ({"a": 0.9, "b": 0.5}, {"b": 0.8, "c": 0.4}, ("a", "bc")),
        ({"a": 0.9, "b": 0.8}, {"b": 0.8, "c": 0.4}, ("ab", "c")),
        ({"a": 0.9}, {"a": 0.5}, ("a", "a")),
        ({"a": 1.0}, {"a": 0.9, "b": 0.5}, ("a", "b")),
        ({}, {"a": 0.9}, ("", "a")),
    ],
)
def test_a_memory_near_both_texts_stands_at_one_end(
    starts: dict[str, float], goals: dict[str, float], expected: tuple[str, str]
) -> None:
    found = ends_of(starts, goals)
    assert ("".join(found.starts), "".join(found.goals)) == expected

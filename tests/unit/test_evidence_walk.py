"""What speaks for a claim and against it: checked against every simple walk there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.edges import Evidence
from contracts.memory import EdgeKind
from orchestrator.arcs import Arc
from orchestrator.evidence_walk import DIGITS, IN_KINDS, OUT_KINDS, EvidenceWalk, Finding
from orchestrator.reason import confidence

NODES = "abcdef"
SUPPORTS, DERIVED, CONTRADICTS = EdgeKind.SUPPORTS, EdgeKind.DERIVED_FROM, EdgeKind.CONTRADICTS

arcs_of = st.lists(
    st.builds(
        Arc,
        source=st.sampled_from(NODES),
        kind=st.sampled_from([SUPPORTS, DERIVED, CONTRADICTS, EdgeKind.CAUSED]),
        target=st.sampled_from(NODES),
        weight=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0, -0.9]),
    ),
    max_size=14,
)
bases = st.dictionaries(st.sampled_from(NODES), st.sampled_from([0.4, 0.7, 1.0]), max_size=3)


def walk(
    arcs: Sequence[Arc], basis: dict[str, float], *, depth: int = 3, threshold: float = 0.0, width: int = 100
) -> EvidenceWalk:
    """Read level by level what is asked for and nothing else."""
    found = EvidenceWalk(basis, depth=depth, threshold=threshold, width=width)
    while not found.done:
        wanted = found.wanted()
        outward = [arc for arc in arcs if arc.source in wanted and arc.kind in OUT_KINDS]
        found.add(outward + [arc for arc in arcs if arc.target in wanted and arc.kind in IN_KINDS])
    return found


def sides(found: EvidenceWalk) -> tuple[list[Finding], list[Finding]]:
    return found.sides(100)


def every_finding(arcs: Sequence[Arc], basis: dict[str, float], depth: int) -> Iterator[Finding]:
    """All simple walks, by trying everything."""
    for start, similarity in basis.items():
        stack: list[tuple[tuple[str, ...], tuple[EdgeKind, ...], float, bool]] = [((start,), (), similarity, True)]
        while stack:
            nodes, kinds, product, for_claim = stack.pop()
            if kinds and product > 0:
                yield Finding(round(product / (1 + len(kinds)), DIGITS), nodes, kinds, for_claim)
            if len(kinds) == depth:
                continue
            for arc in arcs:
                steps = []
                if arc.source == nodes[-1] and arc.kind in (DERIVED, CONTRADICTS):
                    steps.append(arc.target)
                if arc.target == nodes[-1] and arc.kind in (SUPPORTS, CONTRADICTS):
                    steps.append(arc.source)
                for other in steps:
                    if other not in nodes:
                        side = for_claim != (arc.kind is CONTRADICTS)
                        stack.append(((*nodes, other), (*kinds, arc.kind), product * abs(arc.weight), side))


@settings(max_examples=500, deadline=None)
@given(arcs_of, bases, st.integers(1, 5), st.sampled_from([0.0, 0.1, 0.2, 0.5]))
def test_it_agrees_with_trying_everything(
    arcs: list[Arc], basis: dict[str, float], depth: int, threshold: float
) -> None:
    best: dict[str, Finding] = {}
    for finding in every_finding(arcs, basis, depth):
        known = best.get(finding.id)
        if finding.score >= threshold and (known is None or preference(finding) < preference(known)):
            best[finding.id] = finding
    expected = sorted(best.values(), key=lambda one: (-one.score, len(one.kinds), one.id))
    for_claim, against = sides(walk(arcs, basis, depth=depth, threshold=threshold))
    for found, side in ((for_claim, True), (against, False)):
        wanted = [one for one in expected if one.for_claim is side]
        assert [(one.id, len(one.kinds)) for one in found] == [(one.id, len(one.kinds)) for one in wanted]
        assert [one.score for one in found] == pytest.approx([one.score for one in wanted])


def preference(finding: Finding) -> tuple[float, bool, int]:
    return -finding.score, not finding.for_claim, len(finding.kinds)


CLAIM = {"a": 1.0}


def named(findings: Sequence[Finding]) -> list[str]:
    return [finding.id for finding in findings]


def test_support_comes_against_its_arrow_and_derivation_along_it() -> None:
    arcs = [Arc("b", SUPPORTS, "a"), Arc("a", SUPPORTS, "c"), Arc("a", DERIVED, "d"), Arc("e", DERIVED, "a")]
    for_claim, against = sides(walk(arcs, CLAIM))
    assert (named(for_claim), against) == (["b", "d"], [])


@pytest.mark.parametrize("arc", [Arc("a", CONTRADICTS, "b", 0.6), Arc("b", CONTRADICTS, "a", -0.6)])
def test_a_contradiction_holds_both_ways_and_by_the_size_of_its_weight(arc: Arc) -> None:
    for_claim, against = sides(walk([arc], CLAIM))
    assert (for_claim, named(against), against[0].score) == ([], ["b"], 0.3)


def test_each_contradiction_changes_sides() -> None:
    arcs = [
        Arc("b", CONTRADICTS, "a"), Arc("c", SUPPORTS, "b"), Arc("d", CONTRADICTS, "b"), Arc("e", SUPPORTS, "d"),
    ]  # fmt: skip
    for_claim, against = sides(walk(arcs, CLAIM, depth=5))
    assert (named(for_claim), named(against)) == (["d", "e"], ["b", "c"])


def test_the_score_of_evidence() -> None:
    arcs = [Arc("b", SUPPORTS, "a", 0.8), Arc("c", SUPPORTS, "b", 0.5)]
    [near, far], _ = sides(walk(arcs, {"a": 0.9}))
    assert near == Finding(pytest.approx(0.9 * 0.8 / 2), ("a", "b"), (SUPPORTS,), True)  # type: ignore[arg-type]
    assert far.score == pytest.approx(0.9 * 0.8 * 0.5 / 3)
    assert far.nodes == ("a", "b", "c")


def test_a_basis_is_evidence_only_where_another_leads_to_it() -> None:
    assert sides(walk([Arc("b", SUPPORTS, "a"), Arc("a", SUPPORTS, "b")], CLAIM))[0][0].id == "b"
    for_claim, _ = sides(walk([Arc("b", SUPPORTS, "a")], {"a": 0.9, "b": 0.5}))
    assert [(one.id, one.nodes) for one in for_claim] == [("b", ("a", "b"))]


def test_on_both_sides_it_is_listed_where_it_scores_higher() -> None:
    weak, strong = Arc("b", SUPPORTS, "a", 0.4), Arc("b", CONTRADICTS, "a", 0.9)
    for_claim, against = sides(walk([weak, strong], CLAIM))
    assert (for_claim, named(against)) == ([], ["b"])
    for_claim, against = sides(walk([Arc("b", SUPPORTS, "a"), Arc("b", CONTRADICTS, "a")], CLAIM))
    assert (named(for_claim), against) == (["b"], [])


def test_the_threshold_is_the_least_score() -> None:
    arcs = [Arc("b", SUPPORTS, "a", 0.4), Arc("c", SUPPORTS, "a", 0.39)]
    assert named(sides(walk(arcs, CLAIM, threshold=0.2))[0]) == ["b"]


def test_the_depth_is_told_only_where_more_might_have_counted() -> None:
    arcs = [Arc("b", SUPPORTS, "a"), Arc("c", SUPPORTS, "b"), Arc("d", SUPPORTS, "c")]
    assert walk(arcs, CLAIM, depth=2).depth_reached
    assert not walk(arcs, CLAIM, depth=5).depth_reached
    assert not walk(arcs, CLAIM, depth=2, threshold=0.3).depth_reached


def test_a_level_that_is_too_wide_keeps_the_best_and_says_so() -> None:
    arcs = [
        Arc("b", SUPPORTS, "a", 0.9),
        Arc("c", SUPPORTS, "a", 0.5),
        Arc("d", SUPPORTS, "b"),
        Arc("e", SUPPORTS, "c"),
    ]
    found = walk(arcs, CLAIM, width=1)
    assert named(sides(found)[0]) == ["b", "d", "c"]
    assert found.cut


def test_nothing_near_is_done_at_once() -> None:
    found = walk([], {})
    assert found.done
    assert sides(found) == ([], [])


def evidence(*scores: float) -> list[Evidence]:
    return [
        Evidence(id="a" * 26, text="", score=score, distance=1, path=(SUPPORTS,), from_id="b" * 26) for score in scores
    ]


@pytest.mark.parametrize(
    ("supporting", "contradicting", "expected"),
    [((), (), 0.0), ((0.5,), (), 1.0), ((), (0.5,), -1.0), ((0.3,), (0.1,), 0.5), ((0.2, 0.2), (0.4,), 0.0)],
)
def test_confidence(supporting: tuple[float, ...], contradicting: tuple[float, ...], expected: float) -> None:
    assert confidence(evidence(*supporting), evidence(*contradicting)) == expected

"""Walking outward from what is near a claim, to what speaks for it and what speaks against it.

Evidence for a memory is what SUPPORTS it and what it is DERIVED_FROM; evidence against it is what it CONTRADICTS or is
contradicted by: a contradiction holds both ways. What speaks for a memory on one side is on that side, and a
contradiction changes sides, so what contradicts a contradiction speaks for the claim. Only |weight| counts: a negative
weight of CONTRADICTS is one end of that kind's scale and not its opposite. An edge of weight 0 says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contracts.base import MemoryId
from contracts.memory import EdgeKind
from orchestrator.arcs import Arc

#: What to read of a memory: arcs of these kinds that begin there, and that end there.
OUT_KINDS = (EdgeKind.DERIVED_FROM, EdgeKind.CONTRADICTS)
IN_KINDS = (EdgeKind.SUPPORTS, EdgeKind.CONTRADICTS)

DIGITS = 12


@dataclass(frozen=True, slots=True)
class Finding:
    """A memory reached from a basis: `nodes` begins with the one and ends with the other; `for_claim` is its side."""

    score: float
    nodes: tuple[MemoryId, ...]
    kinds: tuple[EdgeKind, ...]
    for_claim: bool

    @property
    def id(self) -> MemoryId:
        return self.nodes[-1]

    @property
    def order(self) -> tuple[float, int, MemoryId]:
        """Of evidence on one side, the best first."""
        return -self.score, len(self.kinds), self.id


@dataclass(frozen=True, slots=True)
class _Walk:
    nodes: tuple[MemoryId, ...]
    kinds: tuple[EdgeKind, ...]
    product: float
    for_claim: bool

    def score(self) -> float:
        return round(self.product / (1 + len(self.kinds)), DIGITS)


class EvidenceWalk:
    """A level at a time: read the arcs of `wanted`, give them to `add`, until none are wanted.

    Of all simple walks from any basis, the best one to each memory is found. Only the best walk to a memory, by basis
    and side, need go on: a walk that comes back to a memory it passed is worse than the one without the detour.
    """

    def __init__(self, basis: Mapping[MemoryId, float], *, depth: int, threshold: float, width: int) -> None:
        self._depth, self._threshold, self._width = depth, threshold, width
        self._level = [_Walk((node,), (), similarity, True) for node, similarity in basis.items()]
        self._next: dict[MemoryId, list[tuple[MemoryId, EdgeKind, float]]] = {}
        self._best: dict[tuple[MemoryId, MemoryId, bool], float] = {}
        self._found: dict[MemoryId, Finding] = {}
        self._steps = 0
        #: Whether a level had more memories than were read.
        self.cut = False
        self._limit()

    @property
    def depth_reached(self) -> bool:
        """Whether there were memories left, at the end, whose evidence might have counted."""
        return self._steps == self._depth and bool(self._level)

    def wanted(self) -> list[MemoryId]:
        """The memories to walk on from whose arcs are not known yet. They may be none although `done` is False."""
        return sorted({walk.nodes[-1] for walk in self._level} - self._next.keys())

    @property
    def done(self) -> bool:
        return not self._level or self._steps == self._depth

    def add(self, arcs: Iterable[Arc]) -> None:
        """The arcs at the wanted memories; then go one level on."""
        fresh = set(self.wanted())
        self._next.update((node, []) for node in fresh)
        for arc in arcs:
            if arc.weight == 0:
                continue
            if arc.source in fresh and arc.kind in OUT_KINDS:
                self._next[arc.source].append((arc.target, arc.kind, arc.strength))
            if arc.target in fresh and arc.kind in IN_KINDS:
                self._next[arc.target].append((arc.source, arc.kind, arc.strength))
        self._advance()

    def sides(self, most: int) -> tuple[list[Finding], list[Finding]]:
        """What speaks for the claim and what against it, the best `most` of each."""
        ordered = sorted(self._found.values(), key=lambda finding: finding.order)
        sides = ([one for one in ordered if one.for_claim is side] for side in (True, False))
        supporting, contradicting = (side[:most] for side in sides)
        return supporting, contradicting

    def _advance(self) -> None:
        self._steps += 1
        fresh: dict[tuple[MemoryId, MemoryId, bool], _Walk] = {}
        for walk in self._level:
            for node, kind, strength in self._next[walk.nodes[-1]]:
                if node in walk.nodes:
                    continue
                side = walk.for_claim is not (kind is EdgeKind.CONTRADICTS)
                onward = _Walk((*walk.nodes, node), (*walk.kinds, kind), walk.product * strength, side)
                key = (walk.nodes[0], node, side)
                if onward.product <= self._best.get(key, 0.0) or not self._counts(onward.score()):
                    continue
                if key not in fresh or _first(onward) < _first(fresh[key]):
                    fresh[key] = onward
        for key, walk in fresh.items():
            self._best[key] = walk.product
            self._note(walk)
        self._level = [walk for walk in fresh.values() if self._may_go_on(walk)]
        self._limit()

    def _note(self, walk: _Walk) -> None:
        finding = Finding(walk.score(), walk.nodes, walk.kinds, walk.for_claim)
        known = self._found.get(finding.id)
        if known is None or _preference(finding) < _preference(known):
            self._found[finding.id] = finding

    def _may_go_on(self, walk: _Walk) -> bool:
        return self._counts(round(walk.product / (2 + len(walk.kinds)), DIGITS))

    def _counts(self, score: float) -> bool:
        return score > 0 and score >= self._threshold

    def _limit(self) -> None:
        """Keep the walks to the memories that are reached best."""
        best: dict[MemoryId, float] = {}
        for walk in self._level:
            best[walk.nodes[-1]] = max(best.get(walk.nodes[-1], 0.0), walk.product)
        kept = sorted(best, key=lambda node: (-best[node], node))[: self._width]
        self.cut = self.cut or len(kept) < len(best)
        self._level = [walk for walk in self._level if walk.nodes[-1] in kept]


def _first(walk: _Walk) -> tuple[float, tuple[MemoryId, ...]]:
    return -walk.product, walk.nodes


def _preference(finding: Finding) -> tuple[float, bool, int, tuple[MemoryId, ...]]:
    """Of two findings of one memory the better score counts, of equal ones the one for the claim."""
    return -finding.score, not finding.for_claim, len(finding.kinds), finding.nodes

"""The best paths through arcs that are all there: best first, exact, without a look at what cannot be among them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from contracts.base import MemoryId
from orchestrator.arcs import Arc

Onward = Mapping[MemoryId, Mapping[MemoryId, Arc]]

#: Partial paths kept in sight. A graph so dense that they do not suffice has more paths than anybody reads.
MOST_LOOKS = 20_000
#: Scores that differ by less are the same, so that rounding errors decide no order.
DIGITS = 12


@dataclass(frozen=True, slots=True)
class Path:
    """A way from a start to a goal: one node more than arcs."""

    score: float
    nodes: tuple[MemoryId, ...]
    arcs: tuple[Arc, ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """Where paths begin and end, each with its similarity in (0, 1] to what was asked; 1 for what was named by id."""

    starts: Mapping[MemoryId, float]
    goals: Mapping[MemoryId, float]


def ends_of(starts: Mapping[MemoryId, float], goals: Mapping[MemoryId, float]) -> Ends:
    """The ends, where a memory that is near both texts stands at the one it is nearer to (the start, where it is as
    near to both). A memory does not leave an end that would be empty without it."""
    shared = starts.keys() & goals.keys()
    to_start = {node for node in shared if starts[node] >= goals[node]}
    kept_starts = {node: near for node, near in starts.items() if node not in shared - to_start}
    kept_goals = {node: near for node, near in goals.items() if node not in to_start}
    return Ends(kept_starts or starts, kept_goals or goals)


def score(edges: int, strength: float, salience: float) -> float:
    """Of a path of `edges` edges, whose |weights| multiply to `strength`, and saliences to `salience`."""
    mean_strength = strength ** (1 / edges) if edges else 1.0
    return float(1 / (1 + edges) * mean_strength * salience ** (1 / (edges + 1)))


def best_paths(
    onward: Onward, ends: Ends, salience: Mapping[MemoryId, float], max_steps: int, max_paths: int
) -> tuple[list[Path], bool]:
    """The best simple paths of at most `max_steps` arcs, in order (score, then fewer arcs, then ids), and whether all
    that could be among them were looked at. A path may pass through other starts and goals on its way. Where there is
    a path at all, at least one is found.
    """
    search = _BestFirst(onward, ends, salience)
    lengths = search.lengths(max_steps)
    paths = list(islice(search.run(lengths), max_paths))
    exact = search.looks < MOST_LOOKS
    if lengths and not paths:
        # A walk of the least length passes no memory twice, so this one cannot go astray.
        paths = list(islice(_BestFirst(onward, ends, salience).run(lengths[:1]), max_paths))
    return paths, exact


#: (-score or the best it may become, arcs in the end, nodes): what is taken from the heap first.
_Entry = tuple[float, int, tuple[MemoryId, ...], tuple[Arc, ...], float]


class _BestFirst:
    """A*. For paths of one length the logarithm of the score is a sum over arcs and nodes, so the best rest of a walk
    is known beforehand; only that it may come back to a memory it passed is not, and makes the estimate too good."""

    def __init__(self, onward: Onward, ends: Ends, salience: Mapping[MemoryId, float]) -> None:
        self._onward, self._ends, self._salience = _between(onward, ends), ends, salience
        self._rest: dict[int, list[dict[MemoryId, float]]] = {}
        self.looks = 0

    def lengths(self, most: int) -> list[int]:
        """Those of walks from a start to a goal, at most `most`."""
        level, found = set(self._ends.starts), []
        for length in range(most + 1):
            if level & self._ends.goals.keys():
                found.append(length)
            level = {target for node in level for target in self._onward.get(node, ())}
        return found

    def run(self, lengths: Iterable[int]) -> Iterator[Path]:
        """Simple paths of these lengths, the best first."""
        heap: list[_Entry] = []
        for length in lengths:
            self._rest[length] = self._rests(length)
            for start, near in self._ends.starts.items():
                value = _log(near) + _log(self._salience[start]) / (length + 1)
                self._push(heap, length, (start,), (), value)
        while heap and self.looks < MOST_LOOKS:
            key, length, nodes, arcs, value = heapq.heappop(heap)
            if len(arcs) == length:
                yield Path(-key, nodes, arcs)
                continue
            for target, arc in self._onward.get(nodes[-1], {}).items():
                if target not in nodes:
                    step = self._step(arc, length)
                    self._push(heap, length, (*nodes, target), (*arcs, arc), value + step)

    def _push(
        self, heap: list[_Entry], length: int, nodes: tuple[MemoryId, ...], arcs: tuple[Arc, ...], value: float
    ) -> None:
        """`value` is the logarithm of the score, but for the factor of the length, as far as the path has come."""
        rest = self._rest[length][length - len(arcs)].get(nodes[-1])
        if rest is not None:
            self.looks += 1
            bound = math.exp(value + rest) / (1 + length)
            heapq.heappush(heap, (-round(bound, DIGITS), length, nodes, arcs, value))

    def _rests(self, length: int) -> list[dict[MemoryId, float]]:
        """By the number of arcs that are left, and node: the best that a walk from there to a goal adds."""
        rests = [{goal: _log(near) for goal, near in self._ends.goals.items()}]
        if not length:
            return rests
        steps = [(arc, self._step(arc, length)) for arcs in self._onward.values() for arc in arcs.values()]
        for _ in range(length):
            after = rests[-1]
            rest: dict[MemoryId, float] = {}
            for arc, step in steps:
                if arc.target in after:
                    value = step + after[arc.target]
                    rest[arc.source] = max(rest.get(arc.source, value), value)
            rests.append(rest)
        return rests

    def _step(self, arc: Arc, length: int) -> float:
        return _log(arc.strength) / length + _log(self._salience[arc.target]) / (length + 1)


def _between(onward: Onward, ends: Ends) -> Onward:
    """The arcs that lie on some walk from a start to a goal: most of what a search reads leads nowhere."""
    backward: dict[MemoryId, list[MemoryId]] = {}
    for source, targets in onward.items():
        for target in targets:
            backward.setdefault(target, []).append(source)
    useful = _reach(ends.starts, onward) & _reach(ends.goals, backward)
    return {
        source: {target: arc for target, arc in targets.items() if target in useful}
        for source, targets in onward.items()
        if source in useful
    }


def _reach(nodes: Iterable[MemoryId], steps: Mapping[MemoryId, Iterable[MemoryId]]) -> set[MemoryId]:
    reached, left = set(nodes), list(nodes)
    while left:
        fresh = set(steps.get(left.pop(), ())) - reached
        reached |= fresh
        left.extend(fresh)
    return reached


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf

"""The best paths through arcs that are all there: best first, exact, without a look at what cannot be among them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Partial:
    nodes: tuple[MemoryId, ...]
    arcs: tuple[Arc, ...]
    strength: float
    salience: float


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
    that could be among them were looked at. A path begins at a start, ends at the first goal where it stops; it may
    pass through other starts and goals."""
    search = _BestFirst(onward, ends, salience, max_steps)
    paths: list[Path] = []
    for path in search.run():
        paths.append(path)
        if len(paths) == max_paths:
            break
    return paths, search.looks < MOST_LOOKS


class _BestFirst:
    """A*: a partial path is as good as the best that it could become, so complete ones come out in order."""

    def __init__(self, onward: Onward, ends: Ends, salience: Mapping[MemoryId, float], max_steps: int) -> None:
        self._onward, self._ends, self._salience, self._max_steps = onward, ends, salience, max_steps
        self._left = _distances(onward, ends.goals)
        self._best_goal = max(ends.goals.values(), default=0.0)
        self.looks = 0

    def run(self) -> Iterator[Path]:
        # (-score or bound, fewest arcs, nodes, 0 for complete): unique, so partials are never compared.
        heap: list[tuple[float, int, tuple[MemoryId, ...], int, _Partial]] = []
        for start in self._ends.starts:
            self._push(heap, _Partial((start,), (), 1.0, self._salience[start]))
        while heap and self.looks < MOST_LOOKS:
            key, _, nodes, open_, partial = heapq.heappop(heap)
            if not open_:
                yield Path(-key, nodes, partial.arcs)
                continue
            for target, arc in self._onward.get(nodes[-1], {}).items():
                if target not in nodes and target in self._left:
                    self._push(heap, self._extended(partial, arc))

    def _extended(self, partial: _Partial, arc: Arc) -> _Partial:
        return _Partial(
            (*partial.nodes, arc.target),
            (*partial.arcs, arc),
            partial.strength * arc.strength,
            partial.salience * self._salience[arc.target],
        )

    def _push(self, heap: list[tuple[float, int, tuple[MemoryId, ...], int, _Partial]], partial: _Partial) -> None:
        """Once as complete, where it is at a goal, and once as what may become of it."""
        self.looks += 1
        edges, last = len(partial.arcs), partial.nodes[-1]
        near = self._ends.starts[partial.nodes[0]]
        if last in self._ends.goals:
            exact = score(edges, partial.strength, partial.salience) * near * self._ends.goals[last]
            heapq.heappush(heap, (-round(exact, DIGITS), edges, partial.nodes, 0, partial))
        onward = max(self._left.get(last, self._max_steps + 1), 1)
        if edges + onward <= self._max_steps:
            lengths = range(edges + onward, self._max_steps + 1)
            bound = max(score(length, partial.strength, partial.salience) for length in lengths)
            bound *= near * self._best_goal
            heapq.heappush(heap, (-round(bound, DIGITS), edges + onward, partial.nodes, 1, partial))


def _distances(onward: Onward, goals: Mapping[MemoryId, float]) -> dict[MemoryId, int]:
    """Arcs to the nearest goal, of every node that has a way to one."""
    back: dict[MemoryId, list[MemoryId]] = {}
    for source, targets in onward.items():
        for target in targets:
            back.setdefault(target, []).append(source)
    left = dict.fromkeys(goals, 0)
    level = list(goals)
    while level:
        further = list(dict.fromkeys(source for node in level for source in back.get(node, ()) if source not in left))
        for source in further:
            left[source] = left[level[0]] + 1
        level = further
    return left

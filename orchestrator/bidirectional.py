"""Breadth-first search from both ends, a level at a time. It decides what to read next; somebody else reads it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from contracts.base import MemoryId
from orchestrator.arcs import Arc, Arcs
from orchestrator.paths import Ends, Path, best_paths, score


@dataclass(frozen=True, slots=True)
class Level:
    """Memories whose arcs are wanted: those that begin (`out`) or end (`in`) there."""

    direction: Literal["out", "in"]
    ids: tuple[MemoryId, ...]


class _Side:
    def __init__(self, direction: Literal["out", "in"], ends: Iterable[MemoryId], width: int) -> None:
        self.direction, self._width = direction, width
        self.cut = False
        self._met: set[MemoryId] = set()
        self.frontier: tuple[MemoryId, ...] = ()
        self._advance(list(ends))

    def meet(self, arcs: Iterable[Arc], salience: Mapping[MemoryId, float]) -> None:
        ends = {arc.target if self.direction == "out" else arc.source for arc in arcs}
        self._advance(sorted(ends - self._met, key=lambda node: (-salience[node], node)))

    def _advance(self, fresh: list[MemoryId]) -> None:
        self._met.update(fresh)
        self.frontier = tuple(fresh[: self._width])
        self.cut = self.cut or len(fresh) > self._width


class Bidirectional:
    """After levels that together number n, the arcs of every path of at most n arcs are known, unless some were cut:
    of such a path, the first ones are within reach of its start and all others within reach of its goal. `salience`
    has every memory that was met; of each level the `width` most salient ones are read.
    """

    def __init__(
        self, ends: Ends, salience: Mapping[MemoryId, float], *, max_steps: int, max_paths: int, width: int
    ) -> None:
        self._ends, self._salience = ends, salience
        self._max_steps, self._max_paths = max_steps, max_paths
        self._sides = (_Side("out", ends.starts, width), _Side("in", ends.goals, width))
        self._arcs = Arcs()
        self._levels = 0

    @property
    def cut(self) -> bool:
        """Whether a level had more memories than were read."""
        return any(side.cut for side in self._sides)

    def wanted(self) -> Level | None:
        """The next level to read: of the side with fewer memories there, the start's where both have as many. None
        when nothing more can matter: a side has no more, the paths would be too long, or could not be good enough."""
        forward, backward = self._sides
        if not forward.frontier or not backward.frontier or self._levels == self._max_steps or self._settled():
            return None
        side = backward if len(backward.frontier) < len(forward.frontier) else forward
        return Level(side.direction, side.frontier)

    def add(self, level: Level, arcs: Iterable[Arc]) -> None:
        """What was read of the level."""
        arcs = list(arcs)
        self._arcs.add(arcs)
        self._levels += 1
        self._sides[0 if level.direction == "out" else 1].meet(arcs, self._salience)

    def paths(self) -> tuple[list[Path], bool]:
        """The best paths through what is known, and whether none of them was overlooked there."""
        return best_paths(self._arcs.onward(), self._ends, self._salience, self._max_steps, self._max_paths)

    def _settled(self) -> bool:
        """Whether there are enough paths, all of them better than any longer one could be."""
        if len(self._ends.starts) == 1 and self._ends.starts.keys() == self._ends.goals.keys():
            return True  # one is there already
        found, _ = self.paths() if self._levels else ([], True)
        if len(found) < self._max_paths:
            return False
        ends = (self._ends.starts, self._ends.goals)
        best = math.prod(max(end.values()) for end in ends)
        salience = math.prod(max(self._salience[node] for node in end) for end in ends)
        lengths = range(self._levels + 1, self._max_steps + 1)
        return all(found[-1].score > best * score(length, 1.0, salience) for length in lengths)

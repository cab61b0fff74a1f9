"""An edge as the walks see it, and how several of the same ends and kind become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from contracts.base import MemoryId
from contracts.memory import EdgeKind


@dataclass(frozen=True, slots=True)
class Arc:
    """An edge from one memory to another. `derived`: nobody asserted it, the two follow each other in a session."""

    source: MemoryId
    kind: EdgeKind
    target: MemoryId
    weight: float = 1.0
    derived: bool = False

    @property
    def strength(self) -> float:
        """|weight|, in [0, 1]."""
        return abs(self.weight)


class Arcs:
    """The arcs that were read so far, one of each (source, kind, target): an asserted one wins over a derived one."""

    def __init__(self) -> None:
        self._all: dict[tuple[MemoryId, EdgeKind, MemoryId], Arc] = {}

    def add(self, arcs: Iterable[Arc]) -> None:
        for arc in arcs:
            key = (arc.source, arc.kind, arc.target)
            if key not in self._all or (self._all[key].derived and not arc.derived):
                self._all[key] = arc

    def onward(self) -> dict[MemoryId, dict[MemoryId, Arc]]:
        """By source and target, the strongest arc; of equals the first by kind."""
        found: dict[MemoryId, dict[MemoryId, Arc]] = {}
        for arc in sorted(self._all.values(), key=lambda arc: (-arc.strength, arc.kind)):
            if arc.source != arc.target:
                found.setdefault(arc.source, {}).setdefault(arc.target, arc)
        return found

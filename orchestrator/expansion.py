"""The walk in the graph: from what a query names, and from the memory that is nearest to it by meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.lanes import Lane, LaneStatus
from contracts.memory import MemoryKind
from contracts.ports import Bus
from orchestrator.catalog import Catalog
from orchestrator.fusion import Hit
from orchestrator.gather import Gathered, Question, gather
from orchestrator.signals import hops_of

#: Nearest memories among which one that stands is looked for, and names of it that are walked from.
NEAREST, NAMES = 8, 8
#: From the nearest memory to a name in it is half a step: what mentions the same name is one hop away from the memory.
TO_NAME = 1


@dataclass(frozen=True, slots=True)
class Walked:
    """`hops` from the anchor, within the depth; `through` is what led there. `hits` are the lane's own, within it."""

    anchor: MemoryId | None = None
    hops: Mapping[MemoryId, int] = field(default_factory=dict)
    through: Mapping[MemoryId, str] = field(default_factory=dict)
    hits: Sequence[Hit] = ()


async def walk_from_nearest(
    bus: Bus, catalog: Catalog, question: Question, gathered: Gathered, depth: int, at: datetime, deadline: float
) -> Walked:
    """Ask the graph lane what shares names with the nearest standing memory, up to `depth` hops away. Nothing where
    depth is 0, the graph lane has failed already, nothing is near, or that memory has no names. Raises Unavailable when
    the catalog does not answer."""
    nearest, lane = nearest_of(gathered), gathered.outcomes.get(Lane.GRAPH)
    if depth <= 0 or not nearest or lane is None or lane.status is not LaneStatus.OK:
        return Walked()
    rows = await catalog.facets(question.project, nearest, True, question.positions, deadline)
    anchor = next((rows[one] for one in nearest if one in rows and is_anchor(rows[one], at)), None)
    if anchor is None or not anchor.entities:
        return Walked()
    asked = Question(question.project, _names(anchor), None, question.top_n, question.positions)
    found = await gather(bus, asked, deadline, (Lane.GRAPH,))
    hits = within(found.lists[Lane.GRAPH], depth - TO_NAME)
    hops, through = _reached(hits)
    return Walked(anchor.id, {**hops, anchor.id: 0}, through, hits)


def nearest_of(gathered: Gathered) -> list[MemoryId]:
    """The memories at the head of the semantic lane's list, nearest first."""
    hits = gathered.lists.get(Lane.SEMANTIC, [])
    return list(dict.fromkeys(one for hit in hits[: 4 * NEAREST] for one in hit.sources))[:NEAREST]


def is_anchor(row: Row, at: datetime) -> bool:
    """Whether a walk may begin here: a summary stands for its parents, which are as near, and mentions no names."""
    return row.stands(at) and row.kind is not MemoryKind.CONSOLIDATED


def within(hits: Sequence[Hit], depth: int) -> list[Hit]:
    """The graph lane's hits that are at most `depth` hops from what was asked for."""
    return [hit for hit in hits if (hops := hops_of(hit.evidence)) is not None and hops <= depth]


def _reached(hits: Sequence[Hit]) -> tuple[dict[MemoryId, int], dict[MemoryId, str]]:
    hops: dict[MemoryId, int] = {}
    through: dict[MemoryId, str] = {}
    for hit in hits:
        steps = (hops_of(hit.evidence) or 0) + TO_NAME
        for memory in hit.sources:
            hops[memory] = min(steps, hops.get(memory, steps))
            if hit.label:
                through.setdefault(memory, hit.label)
    return hops, through


def _names(row: Row) -> str:
    return "; ".join(entity.name for entity in row.entities[:NAMES])

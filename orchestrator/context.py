"""Context: what was said beside a memory counts for it. A turn of talk rarely holds all the words of its own matter.

The view is a fourth list for the fusion: both text lanes' scores of a memory, each stretched over its list, and a share
of what its neighbours in the session have. Degrees tell more than ranks (Bruch, Gai and Ingber 2022).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from contracts import subjects, wire
from contracts.base import MemoryId
from contracts.catalog import BesideReply, BesideRequest
from contracts.errors import MemlaneError
from contracts.lanes import Lane
from contracts.ports import Bus, BusFault
from orchestrator.fusion import CONTEXT_WEIGHT, DEGREES_WEIGHT, Hit, View

#: What a neighbour's score is worth, by how many places lie between. What follows a match is worth more than what came
#: before: an answer follows its question.
WORTH = {1: 0.5, -1: 0.25, 2: 0.25, -2: 0.125}
REACH = 2
#: Memories whose neighbours are looked up; the rest are too weak to lift anybody.
LIFTING = 100
#: A lookup that takes longer is not waited for.
CONTEXT_S = 0.1

Beside = Mapping[MemoryId, Sequence[tuple[MemoryId, int]]]


def blend(lists: Mapping[Lane, Sequence[Hit]]) -> dict[MemoryId, float]:
    """The sum of both text lanes' scores of each memory, in [0, 2]: a lane's best is 1, its last 0."""
    blended: dict[MemoryId, float] = defaultdict(float)
    for lane in (Lane.SEMANTIC, Lane.LEXICAL):
        best: dict[MemoryId, float] = {}
        for hit in lists.get(lane, ()):
            for memory_id in hit.sources:
                best[memory_id] = max(hit.score, best.get(memory_id, hit.score))
        low, high = min(best.values(), default=0.0), max(best.values(), default=0.0)
        for memory_id, score in best.items():
            blended[memory_id] += (score - low) / (high - low) if high > low else 1.0
    return dict(blended)


def lift(own: Mapping[MemoryId, float], beside: Beside) -> dict[MemoryId, float]:
    """Each memory's score and its share of its neighbours': ``own + Σ worth(distance) · neighbour's own``. Neighbours
    that no lane found come in with that share alone. Empty where nobody stands beside anybody: then there is no
    context."""
    if not any(beside.values()):
        return {}
    lifted = dict(own)
    for memory_id, neighbours in beside.items():
        for other, distance in neighbours:
            lifted[other] = lifted.get(other, 0.0) + WORTH.get(distance, 0.0) * own[memory_id]
    return lifted


def view_of(own: Mapping[MemoryId, float], context: Mapping[MemoryId, float]) -> View:
    """What the fusion takes: the context where there is one, else the memories' own scores."""
    return View(context, CONTEXT_WEIGHT) if context else View(own, DEGREES_WEIGHT)


async def look_around(
    bus: Bus, project: str, lists: Mapping[Lane, Sequence[Hit]], deadline: float
) -> tuple[View, dict[MemoryId, float]]:
    """What the fusion takes besides the lanes' lists, and the context: empty where nobody stands beside anybody."""
    own = blend(lists)
    context = lift(own, await neighbours_of(bus, project, strongest(own), deadline))
    return view_of(own, context), context


def strongest(own: Mapping[MemoryId, float]) -> list[MemoryId]:
    return sorted(own, key=lambda one: (-own[one], one))[:LIFTING]


async def neighbours_of(bus: Bus, project: str, ids: Sequence[MemoryId], deadline: float) -> Beside:
    """Who stands beside each of them. Nobody, where the catalog does not say so in time (monotonic seconds)."""
    left = min(deadline - time.monotonic(), CONTEXT_S)
    request = BesideRequest(project=project, ids=tuple(ids), reach=REACH)
    if not ids or left <= 0:
        return {}
    try:
        data = await bus.request(subjects.catalog(None, "beside"), wire.encode(request), left)
        return dict(zip(ids, wire.decode_reply(BesideReply, data).found, strict=True))
    except (BusFault, MemlaneError, ValueError):
        return {}

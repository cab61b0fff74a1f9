"""Plan: from a start to a goal along edges."""

from __future__ import annotations

import time
from collections.abc import Sequence

from anyio import to_thread

from contracts import watch
from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.edges import PlanPath, PlanReply, PlanRequest, PlanStep
from contracts.ports import Bus
from orchestrator.bidirectional import Bidirectional
from orchestrator.budget import within
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon
from orchestrator.neighbourhood import Neighbourhood, Scope
from orchestrator.paths import Path, ends_of
from orchestrator.places import Places, check_places

#: For the texts, beyond the budget.
TEXTS_S = 1.0


class PlanService:
    def __init__(self, bus: Bus, catalog: Catalog, horizon: Horizon) -> None:
        self._bus, self._catalog, self._horizon = bus, catalog, horizon
        self._places = Places(bus)

    async def plan(self, project: str, request: PlanRequest, arrived: float) -> PlanReply:
        """The best paths. None is an answer, and so is what was found when the budget ran out.

        Raises InvalidRequest for a bad text, NotFound for an unknown project or an end that is not there, Unavailable
        when the catalog, the graph, or for a text the embed role or the semantic lane, does not answer.
        """
        check_places({"start": request.start, "goal": request.goal})
        await self._horizon.check_project(project)
        positions = await self._horizon.positions(project, request.consistency)
        watch.stage("walk")
        search: Bidirectional | None = None
        with within(arrived + request.budget_ms / 1000) as budget:
            scope = Scope(project, request.session, positions, budget.deadline)
            around = Neighbourhood(self._bus, self._catalog, scope)
            search = await self._begin(request, around)
            while level := await to_thread.run_sync(search.wanted):  # it may think for a while in a dense graph
                search.add(level, await around.arcs(level.ids, request.edge_kinds, level.direction))
        watch.stage("paths")
        found, exact = await to_thread.run_sync(search.paths) if search else ([], True)
        watch.stage("texts")
        paths = await self._render(project, found, time.monotonic() + TEXTS_S)
        short = budget.spent or search is None or search.cut or around.cut
        return PlanReply(
            status="GoalReached" if paths else "BudgetExhausted" if short else "NoPathFound",
            paths=tuple(paths),
            complete=exact and not short,
            took_ms=round((time.monotonic() - arrived) * 1000, 3),
        )

    async def _begin(self, request: PlanRequest, around: Neighbourhood) -> Bidirectional:
        near = await self._places.find({"start": request.start, "goal": request.goal}, around)
        return Bidirectional(
            ends_of(near["start"], near["goal"]),
            around.salience,
            max_steps=request.max_steps,
            max_paths=request.max_paths,
            width=request.max_branches,
        )

    async def _render(self, project: str, found: Sequence[Path], deadline: float) -> list[PlanPath]:
        """The paths with their texts. One through a memory that was forgotten meanwhile is left out."""
        ids = list(dict.fromkeys(node for path in found for node in path.nodes))
        rows = await self._catalog.hydrate(project, ids, self._horizon.anywhere, deadline) if ids else {}
        live = {memory_id: row for memory_id, row in rows.items() if row.tombstone is None}
        return [_path(path, live) for path in found if live.keys() >= set(path.nodes)]


def _path(path: Path, rows: dict[MemoryId, Row]) -> PlanPath:
    edges = len(path.arcs)
    first = PlanStep(id=path.nodes[0], text=rows[path.nodes[0]].text, transition="Initial", distance_to_goal=edges)
    steps = [
        PlanStep(
            id=arc.target,
            text=rows[arc.target].text,
            transition=arc.kind,
            weight=arc.weight,
            derived=arc.derived,
            distance_to_goal=edges - number,
        )
        for number, arc in enumerate(path.arcs, start=1)
    ]
    return PlanPath(score=path.score, steps=(first, *steps))

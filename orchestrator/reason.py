"""Reason: what memories say for a claim, and what against it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from contracts import watch
from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.edges import Basis, Evidence, ReasonReply, ReasonRequest
from contracts.ports import Bus
from orchestrator.budget import within
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon
from orchestrator.evidence_walk import IN_KINDS, OUT_KINDS, EvidenceWalk, Finding
from orchestrator.neighbourhood import Neighbourhood, Scope
from orchestrator.places import Near, Places, check_places
from orchestrator.together import both

#: For the texts, beyond the budget.
TEXTS_S = 1.0
#: Memories whose edges are read at one level.
WIDTH = 64


class ReasonService:
    def __init__(self, bus: Bus, catalog: Catalog, horizon: Horizon) -> None:
        self._bus, self._catalog, self._horizon = bus, catalog, horizon
        self._places = Places(bus)

    async def reason(self, project: str, request: ReasonRequest, arrived: float) -> ReasonReply:
        """Evidence on both sides, and what it comes to. None is an answer, and so is what was found when the budget
        ran out.

        Raises InvalidRequest for a bad text, NotFound for an unknown project or a claim's id that is not there,
        Unavailable when the catalog, the graph, or for a text the embed role or the semantic lane, does not answer.
        """
        check_places({"claim": request.claim})
        await self._horizon.check_project(project)
        positions = await self._horizon.positions(project, request.consistency)
        watch.stage("walk")
        basis: Near = {}
        walk = EvidenceWalk({}, depth=request.depth, threshold=request.threshold, width=WIDTH)
        with within(arrived + request.budget_ms / 1000) as budget:
            scope = Scope(project, request.session, positions, budget.deadline)
            around = Neighbourhood(self._bus, self._catalog, scope)
            basis = (await self._places.find({"claim": request.claim}, around))["claim"]
            walk = EvidenceWalk(basis, depth=request.depth, threshold=request.threshold, width=WIDTH)
            while not walk.done:
                wanted = walk.wanted()
                outward, inward = await both(around.arcs(wanted, OUT_KINDS, "out"), around.arcs(wanted, IN_KINDS, "in"))
                walk.add(outward + inward)
        watch.stage("texts")
        supporting, contradicting = walk.sides(request.max_evidence)
        ids = dict.fromkeys([*basis, *(finding.id for finding in (*supporting, *contradicting))])
        rows = await self._texts(project, list(ids), time.monotonic() + TEXTS_S)
        sides = _render(supporting, rows), _render(contradicting, rows)
        short = budget.spent or walk.cut or around.cut
        return ReasonReply(
            status="BudgetExhausted" if short else "DepthLimitReached" if walk.depth_reached else "Complete",
            basis=tuple(
                Basis(id=one, text=rows[one].text, similarity=near) for one, near in basis.items() if one in rows
            ),
            supporting=sides[0],
            contradicting=sides[1],
            confidence=confidence(sides[0], sides[1]),
            took_ms=round((time.monotonic() - arrived) * 1000, 3),
        )

    async def _texts(self, project: str, ids: Sequence[MemoryId], deadline: float) -> dict[MemoryId, Row]:
        """The rows. One that was forgotten meanwhile is left out."""
        rows = await self._catalog.hydrate(project, ids, self._horizon.anywhere, deadline) if ids else {}
        return {memory_id: row for memory_id, row in rows.items() if row.tombstone is None}


def confidence(supporting: Sequence[Evidence], contradicting: Sequence[Evidence]) -> float:
    """(S - C) / (S + C) over the scores, in [-1, 1]; 0 for no evidence at all."""
    for_it, against = (sum(one.score for one in side) for side in (supporting, contradicting))
    return round((for_it - against) / (for_it + against), 6) if for_it + against else 0.0


def _render(findings: Sequence[Finding], rows: Mapping[MemoryId, Row]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            id=finding.id,
            text=rows[finding.id].text,
            score=finding.score,
            distance=len(finding.kinds),
            path=finding.kinds,
            from_id=finding.nodes[0],
            via=finding.nodes[1:-1],
        )
        for finding in findings
        if finding.id in rows
    )

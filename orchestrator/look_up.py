"""Look up: what the catalog and the lanes say of the fused pool, as far down as an answer may reach."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.base import MemoryId, now
from contracts.catalog import Row
from contracts.ports import Bus
from contracts.recall import RecallRequest
from orchestrator.catalog import Catalog
from orchestrator.evidence import collect_evidence
from orchestrator.filters import apply_filters
from orchestrator.fusion import Candidate, order
from orchestrator.gather import Gathered, Question
from orchestrator.grounding import Grounding
from orchestrator.pending import Pending, pending_candidates, pending_evidence
from orchestrator.profiles import Profile
from orchestrator.relevance import Evidence, judge
from orchestrator.together import both

#: The fused order is looked at in windows of this many, until `ENOUGH` candidates have passed the filters and the lower
#: half of the last window held none that could be a member beside the best one.
WINDOW, ENOUGH = 100, 50
#: Evidence that takes longer than this is not waited for.
EVIDENCE_S = 0.25


@dataclass(frozen=True, slots=True)
class Fused:
    """The fused order, the context it came with, and what a first place in the semantic lane weighs in it."""

    pool: list[Candidate]
    context: Mapping[MemoryId, float]
    first: float


@dataclass(slots=True)
class Seen:
    """What was looked up of the pool, and which of it passed the filters, in fused order."""

    kept: list[Candidate] = field(default_factory=list)
    facets: dict[MemoryId, Row] = field(default_factory=dict)
    evidence: dict[MemoryId, Evidence] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)

    def newest_first(self, memory_id: MemoryId) -> float:
        """A sort key of a memory that passed."""
        return -self.facets[memory_id].event_time.timestamp()


class LookUp:
    """One request's look-up. `deadline` is in monotonic seconds."""

    def __init__(
        self, bus: Bus, catalog: Catalog, profile: Profile, question: Question, request: RecallRequest, deadline: float
    ) -> None:
        self._bus, self._catalog, self._profile = bus, catalog, profile
        self._question, self._request, self._deadline = question, request, deadline
        self._seen = Seen()

    async def run(self, gathered: Gathered, grounding: Grounding, fused: Fused, pending: Pending) -> Seen:
        """Raises Unavailable when the catalog is late."""
        seen = self._seen
        for part in grounding.windows(fused.pool, WINDOW):
            passed = await self._window(part, gathered, grounding, pending)
            if len(seen.kept) >= ENOUGH and not self._hopeful(passed[len(passed) // 2 :], fused):
                break
        if pending.records:
            await self._overlay(gathered, pending, fused.first)
        seen.kept.sort(key=order)
        return seen

    def _hopeful(self, tail: list[Candidate], fused: Fused) -> bool:
        """Whether any of these could be a member, but for the graph's word. A better one below only raises the bar."""
        evidence = self._seen.evidence
        band = judge([one.id for one in self._seen.kept], evidence, self._profile, fused.context)
        return any(evidence[one.id].exact or band.holds(one.id) for one in tail)

    async def _window(
        self, part: list[Candidate], gathered: Gathered, grounding: Grounding, pending: Pending
    ) -> list[Candidate]:
        """Facets from the catalog and evidence from the lanes, both at once. Returns what passed the filters."""
        question = self._question
        ids = [candidate.id for candidate in part]
        statements = bool(self._request.types or pending.values)
        facets, evidence = await both(
            self._catalog.facets(question.project, ids, statements, question.positions, self._deadline),
            collect_evidence(self._bus, question, gathered, part, self._evidence_by()),
        )
        facets = {one: row for one, row in facets.items() if one not in pending.records}
        hidden = {one for one, row in facets.items() if pending.hides(row)}
        part = [candidate for candidate in part if candidate.id not in hidden and candidate.id not in pending.records]
        passed = self._filter(part, facets, evidence, grounding)
        self._seen.dropped.update({"pending": len(hidden)} if hidden else {})
        return passed

    async def _overlay(self, gathered: Gathered, pending: Pending, weight: float) -> None:
        """Add what the transaction has pending, under the same filters."""
        evidence = await pending_evidence(self._bus, self._question, pending, gathered, self._evidence_by())
        found = pending_candidates(pending, evidence, gathered, weight)
        self._filter(found, pending.rows, evidence, Grounding())

    def _filter(
        self,
        part: list[Candidate],
        facets: dict[MemoryId, Row],
        evidence: dict[MemoryId, Evidence],
        grounding: Grounding,
    ) -> list[Candidate]:
        passed, dropped = apply_filters(part, facets, self._request, now(), grounding.stale)
        self._seen.kept += passed
        self._seen.facets |= facets
        self._seen.evidence |= evidence
        self._seen.dropped.update(dropped)
        return passed

    def _evidence_by(self) -> float:
        return min(self._deadline, time.monotonic() + EVIDENCE_S)

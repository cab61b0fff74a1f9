"""Recall: one request's way from cue to answer. This page is the pipeline; every stage has a module of its own."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial

from contracts import wire
from contracts.base import MAX_CUE_BYTES, MemoryId, now
from contracts.catalog import Row
from contracts.errors import ErrorCode, Unavailable
from contracts.lanes import LaneStatus
from contracts.ports import Bus
from contracts.recall import RecallReply, RecallRequest
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon, check_consistency
from orchestrator.evidence import collect_evidence
from orchestrator.filters import apply_filters
from orchestrator.fusion import Candidate, order, reciprocal_rank_fusion
from orchestrator.gather import Gathered, Question, gather
from orchestrator.grounding import Grounding, ground
from orchestrator.membership import Evidence, decide, eligible
from orchestrator.profiles import Profile
from orchestrator.recency import boost_recent
from orchestrator.render import Timings, render_members, render_trace
from orchestrator.rerank import Reranker
from orchestrator.router import route
from orchestrator.together import both

#: Shares of the caller's time: lanes must be in by the first, evidence and facets by the second, the cross-encoder by
#: the third; the rest is for the members' texts and the way home.
GATHER_SHARE, LOOK_UP_SHARE, RERANK_SHARE = 0.70, 0.80, 0.92
#: Candidates beyond this rank are not looked at: they come from the tail of one lane's list.
POOL = 400
#: The fused order is looked at in windows of this many, until `ENOUGH` candidates have passed the filters and the lower
#: half of the last window held none that could be a member.
WINDOW, ENOUGH = 100, 50


@dataclass(slots=True)
class Seen:
    """What was looked up of the pool, and which of it passed the filters."""

    kept: list[Candidate] = field(default_factory=list)
    facets: dict[MemoryId, Row] = field(default_factory=dict)
    evidence: dict[MemoryId, Evidence] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)

    def newest_first(self, memory_id: MemoryId) -> float:
        """A sort key of a memory that passed."""
        return -self.facets[memory_id].event_time.timestamp()


class RecallService:
    """Stateless but for what it remembers of projects: run any number."""

    def __init__(self, bus: Bus, catalog: Catalog, horizon: Horizon, profile: Profile, rerank_top: int) -> None:
        self._bus, self._catalog, self._horizon = bus, catalog, horizon
        self._profile, self._reranker = profile, Reranker(bus, rerank_top)

    async def recall(self, project: str, request: RecallRequest, arrived: float) -> RecallReply:
        """Answer a cue.

        Raises InvalidRequest for a bad cue, NotFound for an unknown project, Unavailable when all lanes
        are lost (LANES_LOST), time is up (DEADLINE_EXCEEDED), the catalog is away (UNAVAILABLE) or a lane is behind
        what the consistency asks (CONSISTENCY_TIMEOUT). A single lane's failure is no error: see `degraded`.
        """
        wire.check_text(request.cue, "cue", MAX_CUE_BYTES)
        timings = Timings(arrived)
        budget_s = request.deadline_ms / 1000
        reference = request.as_of or now()

        await self._horizon.check_project(project)
        way = route(request)
        question = await self._question(project, request, way.top_n)
        gather_by = arrived + GATHER_SHARE * budget_s
        gathered, grounding = await both(
            gather(self._bus, question, gather_by),
            ground(self._bus, project, request, question.positions, gather_by),
        )
        self._check(gathered, request)
        timings.mark("gather")

        pool = reciprocal_rank_fusion(gathered.lists, way.weights)[:POOL]
        timings.mark("fusion")

        seen = await self._look_up(question, gathered, grounding, pool, request, arrived + LOOK_UP_SHARE * budget_s)
        kept = boost_recent(seen.kept, seen.facets, reference) if way.temporal else seen.kept
        timings.mark("look_up")

        hydrate = partial(self._catalog.hydrate, project, positions=question.positions, deadline=arrived + budget_s)
        reranked = await self._reranker.rerank(request.cue, kept, hydrate, arrived + RERANK_SHARE * budget_s)
        for memory_id, score in reranked.scores.items():
            seen.evidence[memory_id] = replace(seen.evidence[memory_id], reranked=score)
        timings.mark("rerank")

        answer = decide(
            reranked.candidates, seen.evidence, self._profile, request.max_results, grounding, seen.newest_first
        )
        ids = [member.candidate.id for member in answer.members]
        rows = await hydrate(ids)
        answer = answer.without([one for one in ids if one not in rows or rows[one].tombstone])
        timings.mark("hydrate")
        return RecallReply(
            answer_kind=answer.kind,
            members=render_members(answer, rows),
            lanes={str(lane): outcome for lane, outcome in gathered.outcomes.items()},
            degraded=any(outcome.status is not LaneStatus.OK for outcome in gathered.outcomes.values()),
            reranked=reranked.outcome == "done",
            rerank=reranked.outcome,
            took_ms=timings.total_ms(),
            trace=render_trace(way, gathered, pool, reranked.candidates, seen.dropped, answer, timings)
            if request.trace
            else None,
        )

    async def _question(self, project: str, request: RecallRequest, top_n: int) -> Question:
        positions = self._horizon.anywhere
        if request.consistency == "ReadAfterWrite":
            positions = await self._horizon.required(project, request.position)
        return Question(project, request.cue, request.subject, top_n, positions)

    def _check(self, gathered: Gathered, request: RecallRequest) -> None:
        if request.consistency == "ReadAfterWrite":
            check_consistency(gathered)
        if gathered.answered:
            return
        statuses = {str(lane): str(outcome.status) for lane, outcome in gathered.outcomes.items()}
        if set(statuses.values()) <= {LaneStatus.TIMEOUT, LaneStatus.OVERLOADED}:
            raise Unavailable(ErrorCode.DEADLINE_EXCEEDED, "no lane could answer in time", lanes=statuses)
        raise Unavailable(ErrorCode.LANES_LOST, "no lane answered", lanes=statuses)

    async def _look_up(
        self,
        question: Question,
        gathered: Gathered,
        grounding: Grounding,
        pool: list[Candidate],
        request: RecallRequest,
        deadline: float,
    ) -> Seen:
        """Facets from the catalog and evidence from the lanes, both at once, of as many windows as it takes. What was
        looked at is in fused order."""
        seen = Seen()
        for part in grounding.windows(pool, WINDOW):
            ids = [candidate.id for candidate in part]
            facets, evidence = await both(
                self._catalog.facets(question.project, ids, bool(request.types), question.positions, deadline),
                collect_evidence(self._bus, question, gathered, part, min(deadline, time.monotonic() + 0.25)),
            )
            kept, dropped = apply_filters(part, facets, request, now(), grounding.stale)
            seen.kept += kept
            seen.facets |= facets
            seen.evidence |= evidence
            seen.dropped.update(dropped)
            tail = kept[len(kept) // 2 :]
            if len(seen.kept) >= ENOUGH and not any(eligible(evidence[one.id], self._profile) for one in tail):
                break
        seen.kept.sort(key=order)
        return seen

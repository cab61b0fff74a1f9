"""Recall: one request's way from cue to answer. This page is the pipeline; every stage has a module of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from contracts import wire
from contracts.base import MAX_CUE_BYTES, MemoryId, now
from contracts.catalog import Row
from contracts.lanes import Lane, LaneStatus
from contracts.ports import Bus
from contracts.recall import RecallReply, RecallRequest
from contracts.stores import Transactions
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon, check_answered, check_consistency
from orchestrator.context import look_around
from orchestrator.fusion import reciprocal_rank_fusion
from orchestrator.gather import Question, gather
from orchestrator.grounding import ground
from orchestrator.look_up import Fused, LookUp
from orchestrator.membership import decide
from orchestrator.pending import NOTHING, Pending, read_pending
from orchestrator.profiles import Profile
from orchestrator.recency import boost_recent
from orchestrator.relevance import judge
from orchestrator.render import Timings, render_members, render_trace
from orchestrator.rerank import Reranker
from orchestrator.router import route
from orchestrator.together import both

#: Shares of the caller's time: lanes must be in by the first, evidence and facets by the second, the cross-encoder by
#: the third; the rest is for the members' texts and the way home.
GATHER_SHARE, LOOK_UP_SHARE, RERANK_SHARE = 0.70, 0.80, 0.92
#: Candidates beyond this rank are not looked at: they come from the tail of one lane's list.
POOL = 400


class RecallService:
    """Stateless but for what it remembers of projects: run any number."""

    def __init__(
        self,
        bus: Bus,
        catalog: Catalog,
        horizon: Horizon,
        transactions: Transactions,
        profile: Profile,
        rerank_top: int,
    ) -> None:
        self._bus, self._catalog, self._horizon, self._transactions = bus, catalog, horizon, transactions
        self._profile, self._reranker = profile, Reranker(bus, rerank_top)

    async def recall(self, project: str, request: RecallRequest, arrived: float) -> RecallReply:
        """Answer a cue.

        Raises InvalidRequest for a bad cue, NotFound for an unknown project or transaction, Conflict for a transaction
        that is over, Unavailable when all lanes are lost (LANES_LOST), time is up (DEADLINE_EXCEEDED), the catalog is
        away (UNAVAILABLE) or a lane is behind what the consistency asks (CONSISTENCY_TIMEOUT). A single lane's failure
        is no error: see `degraded`.
        """
        wire.check_text(request.cue, "cue", MAX_CUE_BYTES)
        timings = Timings(arrived, "gather")
        budget_s = request.deadline_ms / 1000
        reference = request.as_of or request.believed_at or now()

        pending = await self._pending(project, request)
        way = route(request)
        positions = await self._horizon.positions(project, request.consistency, request.position)
        question = Question(project, request.cue, request.subject, way.top_n, positions)
        gather_by = arrived + GATHER_SHARE * budget_s
        gathered, grounding = await both(
            gather(self._bus, question, gather_by),
            ground(self._bus, project, request, question.positions, gather_by),
        )
        if request.consistency == "ReadAfterWrite":
            check_consistency(gathered)
        check_answered(gathered)
        grounding = pending.ground(grounding)

        timings.begin("fusion")
        view, context = await look_around(self._bus, project, gathered.lists, gather_by)
        pool = reciprocal_rank_fusion(gathered.lists, way.weights, view=view)[:POOL]
        fused = Fused(pool, context, way.weights[Lane.SEMANTIC] + view.weight)

        timings.begin("look_up")
        look_up = LookUp(self._bus, self._catalog, self._profile, question, request, arrived + LOOK_UP_SHARE * budget_s)
        seen = await look_up.run(gathered, grounding, fused, pending)
        kept = boost_recent(seen.kept, seen.facets, reference) if way.temporal else seen.kept

        timings.begin("rerank")

        async def hydrate(ids: Sequence[MemoryId]) -> Mapping[MemoryId, Row]:
            stored = [one for one in ids if one not in pending.records]
            rows = await self._catalog.hydrate(project, stored, question.positions, arrived + budget_s)
            return rows | pending.rows

        reranked = await self._reranker.rerank(request.cue, kept, hydrate, arrived + RERANK_SHARE * budget_s)
        for memory_id, score in reranked.scores.items():
            seen.evidence[memory_id] = replace(seen.evidence[memory_id], reranked=score)

        timings.begin("hydrate")
        considered = [candidate.id for candidate in reranked.candidates]
        band = judge(considered, seen.evidence, self._profile, context)
        answer = decide(reranked.candidates, seen.evidence, band, request.max_results, grounding, seen.newest_first)
        ids = [member.candidate.id for member in answer.members]
        rows = await hydrate(ids)
        answer = answer.without([one for one in ids if one not in rows or rows[one].tombstone])
        timings.end()
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

    async def _pending(self, project: str, request: RecallRequest) -> Pending:
        """A project is there once something was written to it, or is about to be."""
        pending = await read_pending(self._transactions, project, request.txn_id) if request.txn_id else NOTHING
        if not pending.records:
            await self._horizon.check_project(project)
        return pending

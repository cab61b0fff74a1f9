"""Query: one request's way from words to the k best memories. This page is the pipeline; stages are modules."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from contracts import watch, wire
from contracts.base import MAX_CUE_BYTES, MemoryId, now
from contracts.catalog import MatchRequest, Row
from contracts.lanes import LaneStatus
from contracts.memory import MemoryKind
from contracts.ports import Bus
from contracts.query import QueryMemory, QueryReply, QueryRequest
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon, check_answered, check_consistency
from orchestrator.expansion import walk_from_nearest
from orchestrator.explain import explain
from orchestrator.fusion import Candidate
from orchestrator.gather import Question, gather
from orchestrator.narrowing import Narrowed, narrow, refusing, storage_tier
from orchestrator.pool import FILTERED_TOP_N, TOP_N, made_of, parents, pool_of, windows
from orchestrator.rerank import Reranker
from orchestrator.scoring import Scored, Scorer, Terms
from orchestrator.session import SessionMemory
from orchestrator.spread import HEAD, spread
from orchestrator.tiers import Choice, choose
from orchestrator.together import both
from orchestrator.weights import weights_of

#: Shares of the caller's time: lanes must be in by the first, the walk from the nearest memory by the second, scores by
#: the third, the cross-encoder by the fourth; the rest is for texts and the way home.
GATHER_SHARE, WALK_SHARE, SCORE_SHARE, RERANK_SHARE = 0.60, 0.72, 0.85, 0.93
#: Memories that the catalog names because they pass the filters, however far from the query.
MATCHING = 400
RERANK_TOP = 50


class QueryService:
    """Stateless: sessions and uses are in stores that all orchestrators share."""

    def __init__(self, bus: Bus, catalog: Catalog, horizon: Horizon, sessions: SessionMemory) -> None:
        self._bus, self._catalog, self._horizon, self._sessions = bus, catalog, horizon, sessions
        self._reranker = Reranker(bus, RERANK_TOP)

    async def query(self, project: str, request: QueryRequest, arrived: float) -> QueryReply:
        """Answer a query. `arrived` is in monotonic seconds.

        Raises InvalidRequest for a bad query or bad weights (BAD_WEIGHTS), NotFound for an unknown project, Unavailable
        when all lanes that the tier asks are lost (LANES_LOST), time is up (DEADLINE_EXCEEDED), the catalog is away
        (UNAVAILABLE) or a lane is behind what the consistency asks (CONSISTENCY_TIMEOUT). One lane's failure is no
        error, nor is the session store's.
        """
        wire.check_text(request.query, "query", MAX_CUE_BYTES)
        watch.stage("gather")
        weights, at, budget_s = weights_of(request.weights), now(), request.deadline_ms / 1000
        await self._horizon.check_project(project)
        session = await self._sessions.read(project, request.session_id)
        choice = choose(request, session.tier)

        question = await self._question(project, request)
        gathered, matching = await both(
            gather(self._bus, question, arrived + GATHER_SHARE * budget_s, choice.tier.lanes),
            self._matching(question, request, arrived + GATHER_SHARE * budget_s),
        )
        if request.consistency == "ReadAfterWrite":
            check_consistency(gathered)
        check_answered(gathered)
        watch.stage("walk")
        walked = await walk_from_nearest(
            self._bus, self._catalog, question, gathered, choice.depth, at, arrived + WALK_SHARE * budget_s
        )

        watch.stage("score")
        cold = choice.tier.cold or request.filters.tier == "cold"
        terms = Terms(weights, choice.depth, session, at, cold, choice.tier.topics)
        scorer = Scorer(self._bus, self._catalog, question, terms, arrived + SCORE_SHARE * budget_s, arrived + budget_s)
        wanted = max(request.k, RERANK_TOP if request.rerank else 0)
        for part in windows(pool_of(gathered, walked, matching, choice.depth), request, choice, wanted):
            await scorer.score(part, gathered, walked)
            if sum(1 for one in scorer.seen.scored.values() if not refusing(one.row, request.filters, at)) >= wanted:
                break
        if choice.tier.expand:
            await scorer.score(parents(scorer.seen.scored), gathered, walked)

        ranked = sorted(scorer.seen.scored.values(), key=_vector_order if choice.tier.name == "low" else _order)
        narrowed = narrow([one.row for one in ranked], request.filters, request.k, request.strict_filters, at)
        shown = [scorer.seen.scored[one] for one in narrowed.failed]
        if choice.tier.name == "low":  # the vector alone says which; the signals say in which order
            shown = sorted(shown[:wanted], key=_order)
        watch.stage("rerank")
        outcome, reranked = await self._rerank(request, shown, scorer, arrived + RERANK_SHARE * budget_s)
        ids = await _arranged(shown, reranked, scorer, choice)
        ids.sort(key=lambda one: bool(narrowed.failed[one]))

        watch.stage("texts")
        rows = await scorer.texts_of(ids[: request.k])
        memories = [
            _render(scorer.seen.scored[one], rows[one], request, terms, narrowed, reranked, choice)
            for one in ids[: request.k]
            if one in rows
        ]
        self._sessions.remember(
            project,
            request.session_id,
            session,
            choice.tier.name,
            {one.id: scorer.seen.scored[one.id].base for one in memories},
        )
        return QueryReply(
            memories=tuple(memories),
            computation_tier=choice.tier.name,
            tier_reason=choice.reason,
            session_id=request.session_id,
            latency_ms=math.ceil((time.monotonic() - arrived) * 1000),
            weights=weights,
            traversal_depth=choice.depth,
            filter_relaxed=bool(narrowed.relaxed),
            relaxed=narrowed.relaxed,
            reranked=outcome == "done",
            rerank=outcome,
            lanes={str(lane): one for lane, one in gathered.outcomes.items()},
            degraded=any(one.status is not LaneStatus.OK for one in gathered.outcomes.values()),
        )

    async def _question(self, project: str, request: QueryRequest) -> Question:
        positions = await self._horizon.positions(project, request.consistency, request.position)
        top_n = FILTERED_TOP_N if request.filters.given else TOP_N
        return Question(project, request.query, None, top_n, positions)

    async def _matching(self, question: Question, request: QueryRequest, deadline: float) -> list[MemoryId]:
        """Memories that pass the filters: without them a match that no lane ranks high would never be seen."""
        filters = request.filters
        if not filters.given:
            return []
        wanted = MatchRequest(
            project=question.project, sources=filters.sources, tags=filters.tags, since=filters.since,
            until=filters.until, summaries=filters.include_summaries, limit=MATCHING,
        )  # fmt: skip
        return await self._catalog.matching(wanted, question.positions, deadline)

    async def _rerank(
        self, request: QueryRequest, shown: Sequence[Scored], scorer: Scorer, deadline: float
    ) -> tuple[str, Mapping[MemoryId, float]]:
        """What became of reranking, and the cross-encoder's scores."""
        if not request.rerank:
            return "not asked", {}
        candidates = [Candidate(one.id, one.score) for one in shown]
        done = await self._reranker.rerank(request.query, candidates, scorer.texts_of, deadline)
        return done.outcome, done.scores


async def _arranged(
    shown: Sequence[Scored], reranked: Mapping[MemoryId, float], scorer: Scorer, choice: Choice
) -> list[MemoryId]:
    """The order after the cross-encoder, where it ran, and after spreading, where the tier does."""
    scores = {one.id: reranked.get(one.id, one.score) for one in shown}
    ids = sorted(scores, key=lambda one: -reranked.get(one, -1.0)) if reranked else list(scores)
    if choice.tier.spread:
        ids = spread(ids, scores.__getitem__, await scorer.texts_of(ids[:HEAD]), scorer.group_of)
    return ids


def _order(one: Scored) -> tuple[float, MemoryId]:
    return (-one.score, one.id)


def _vector_order(one: Scored) -> tuple[float, MemoryId]:
    return (-one.scores.semantic - one.boost, one.id)


def _render(
    one: Scored,
    row: Row,
    request: QueryRequest,
    terms: Terms,
    narrowed: Narrowed,
    reranked: Mapping[MemoryId, float],
    choice: Choice,
) -> QueryMemory:
    relaxed = narrowed.failed[one.id]
    is_summary = row.kind is MemoryKind.CONSOLIDATED
    return QueryMemory(
        id=row.id,
        text=row.text,
        score=round(one.score, 4),
        scores=one.scores.model_copy(update={name: round(value, 4) for name, value in one.scores}),
        explain=explain(one, terms.weights, terms.at, relaxed) if request.explain else (),
        tier=storage_tier(row, terms.at),
        kind=row.kind,
        source=row.source,
        tags=row.tags,
        created_at=row.created_at,
        occurred_at=row.occurred_at,
        session=row.session,
        topic=one.topic.label if one.topic else None,
        metadata=row.metadata,
        session_boost=round(one.boost, 4),
        rerank_score=reranked.get(one.id),
        relaxed=relaxed,
        parents=made_of(row) if is_summary and choice.tier.expand else (),
    )

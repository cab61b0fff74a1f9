"""From decisions to the reply: members with their provenance, and the trace."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal

from contracts import watch
from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.lanes import Lane
from contracts.recall import Member, Stated, Trace, TraceHit, Vote
from orchestrator.fusion import Candidate
from orchestrator.gather import Gathered
from orchestrator.membership import Answer, Belonging
from orchestrator.router import Route

TRACE_POOL = 100
_MODES: tuple[Literal["none", "star", "path", "subgraph"], ...] = ("none", "star", "path", "subgraph")


class Timings:
    """Milliseconds of each stage, the first one's from the moment the request arrived (monotonic seconds)."""

    def __init__(self, arrived: float, first: str) -> None:
        self._arrived = self._began = arrived
        self._stage = first
        self.stages: dict[str, float] = {}
        watch.stage(first)

    def begin(self, stage: str) -> None:
        """The stage before is over. Whoever watches is told."""
        self.end()
        self._stage = stage
        watch.stage(stage)

    def end(self) -> None:
        present = time.monotonic()
        self.stages[self._stage] = round((present - self._began) * 1000, 3)
        self._began = present

    def total_ms(self) -> float:
        return round((time.monotonic() - self._arrived) * 1000, 3)


def render_members(answer: Answer, rows: Mapping[MemoryId, Row]) -> tuple[Member, ...]:
    return tuple(_member(belonging, rows[belonging.candidate.id]) for belonging in answer.members)


def render_trace(
    way: Route,
    gathered: Gathered,
    pool: Sequence[Candidate],
    kept: Sequence[Candidate],
    dropped: dict[str, int],
    answer: Answer,
    timings: Timings,
) -> Trace:
    """`kept` is the filtered pool in its final order."""
    lanes = {
        str(lane): tuple(
            TraceHit(item=hit.item, kind=hit.kind, label=hit.label, score=hit.score, sources=hit.sources[:TRACE_POOL])
            for hit in hits
        )
        for lane, hits in gathered.lists.items()
    }
    return Trace(
        query_class=str(way.query_class),
        class_reason=way.reason,
        temporal=way.temporal,
        list_intent=way.list_intent,
        weights={str(lane): weight for lane, weight in way.weights.items()},
        lanes=lanes,
        notes={str(lane): dict(notes) for lane, notes in gathered.notes.items() if notes},
        graph_mode=_MODES[min(len(gathered.notes.get(Lane.GRAPH, {}).get("anchors", ())), 3)],
        fused=tuple(candidate.id for candidate in kept[:TRACE_POOL]),
        dropped=dropped,
        counts={"fused": len(pool), "filtered": len(kept), "members": answer.total},
        band=answer.band,
        timings_ms=timings.stages,
    )


def _member(belonging: Belonging, row: Row) -> Member:
    return Member(
        id=row.id,
        text=row.text,
        kind=row.kind,
        score=round(belonging.relevance, 4),
        provenance={
            str(lane): Vote(rank=vote.rank, score=vote.score, items=vote.items[:8])
            for lane, vote in belonging.candidate.votes.items()
        },
        why=belonging.why,
        created_at=row.created_at,
        occurred_at=row.occurred_at,
        session=row.session,
        metadata=row.metadata,
        superseded_by=row.superseded_by,
        agrees=belonging.agrees,
        states=_states(belonging),
    )


def _states(belonging: Belonging) -> tuple[Stated, ...]:
    return tuple(
        Stated(
            subject=claim.subject,
            predicate=claim.predicate,
            object=claim.object,
            confidence=claim.confidence,
            evidence=claim.evidence,
        )
        for claim in {claim.triple: claim for claim in belonging.claims}.values()
    )

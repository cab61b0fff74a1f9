"""Evidence on the whole pool: what the semantic and the lexical lane say of each candidate, ranked by them or not."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import anyio

from contracts import subjects, wire
from contracts.base import MemoryId
from contracts.lanes import Lane, ScoreQuery, ScoreReply
from contracts.ports import Bus
from contracts.shards import Shard, shard_of
from orchestrator.fusion import Candidate
from orchestrator.gather import Gathered, Question
from orchestrator.relevance import Evidence

Scores = dict[MemoryId, tuple[float, bool]]


async def collect_evidence(
    bus: Bus, question: Question, gathered: Gathered, candidates: Sequence[Candidate], deadline: float
) -> dict[MemoryId, Evidence]:
    """One `Evidence` a candidate. What a lane said in its ranked list is kept; unless that list was all it has, it is
    asked for the rest. Where it does not answer in time the evidence is 0, which never admits anybody."""
    found: dict[Lane, Scores] = {}
    async with anyio.create_task_group() as tasks:
        for lane in (Lane.SEMANTIC, Lane.LEXICAL):
            tasks.start_soon(_collect, bus, lane, question, gathered, candidates, deadline, found)
    return {candidate.id: _evidence(candidate.id, found) for candidate in candidates}


async def lane_scores(
    bus: Bus, lane: Lane, question: Question, gathered: Gathered, candidates: Sequence[Candidate], deadline: float
) -> dict[MemoryId, float]:
    """One lane's evidence on the candidates, by the same rules; those it has none on are left out."""
    found: dict[Lane, Scores] = {}
    await _collect(bus, lane, question, gathered, candidates, deadline, found)
    return {memory_id: evidence for memory_id, (evidence, _) in found[lane].items()}


async def _collect(
    bus: Bus,
    lane: Lane,
    question: Question,
    gathered: Gathered,
    candidates: Sequence[Candidate],
    deadline: float,
    found: dict[Lane, Scores],
) -> None:
    scores: Scores = {}
    shards = len(question.positions)
    missing: dict[Shard, list[MemoryId]] = {}
    for candidate in candidates:
        vote = candidate.votes.get(lane)
        if vote is not None:
            scores[candidate.id] = (vote.evidence, vote.confirmed)
            continue
        shard = Shard(shard_of(candidate.id, shards), shards)
        if (lane, shard) not in gathered.exhausted:
            missing.setdefault(shard, []).append(candidate.id)
    found[lane] = scores
    if lane is Lane.SEMANTIC and not gathered.vector:
        return
    async with anyio.create_task_group() as tasks:
        for shard, ids in missing.items():
            tasks.start_soon(_ask, bus, lane, shard, question, gathered, ids, deadline, scores)


async def _ask(
    bus: Bus,
    lane: Lane,
    shard: Shard,
    question: Question,
    gathered: Gathered,
    ids: Sequence[MemoryId],
    deadline: float,
    scores: Scores,
) -> None:
    left = deadline - time.monotonic()
    query = ScoreQuery(
        project=question.project,
        cue=question.cue,
        vector=gathered.vector if lane is Lane.SEMANTIC else "",
        statistics=gathered.statistics if lane is Lane.LEXICAL else None,
        ids=tuple(ids),
        remaining_ms=left * 1000,
    )
    try:
        data = await bus.request(subjects.lane(lane, shard, "score"), wire.encode(query), left)
        reply = wire.decode_reply(ScoreReply, data)
        scores.update(zip(ids, zip(reply.evidence, reply.confirmed, strict=True), strict=True))
    except Exception:  # a lane that fails here is a lane without evidence; gather has told of its state
        return


def _evidence(memory_id: MemoryId, found: Mapping[Lane, Scores]) -> Evidence:
    cosine, _ = found[Lane.SEMANTIC].get(memory_id, (0.0, False))
    coverage, exact = found[Lane.LEXICAL].get(memory_id, (0.0, False))
    return Evidence(cosine=cosine, coverage=coverage, exact=exact)

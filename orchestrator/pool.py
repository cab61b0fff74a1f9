"""The candidates of a query: who is looked at, in which order, and how many at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.lanes import Lane
from contracts.memory import EdgeKind, MemoryKind
from contracts.query import QueryRequest
from orchestrator.expansion import Walked, within
from orchestrator.fusion import Candidate, reciprocal_rank_fusion
from orchestrator.gather import Gathered
from orchestrator.scoring import Scored
from orchestrator.tiers import Choice

#: Items asked of a lane, and candidates scored at once; with filters the net is cast wider.
TOP_N, WINDOW = 100, 150
FILTERED_TOP_N, FILTERED_WINDOW = 400, 800
#: Summaries whose parents tier high fetches, and how many of each.
SUMMARIES, PARENTS = 5, 10
_EVEN = dict.fromkeys(Lane, 1.0)


def pool_of(gathered: Gathered, walked: Walked, matching: Sequence[MemoryId], depth: int) -> list[Candidate]:
    """All candidates: what the lanes ranked, fused; what the walk reached; what passes the filters."""
    lists = dict(gathered.lists)
    lists[Lane.GRAPH] = within(lists.get(Lane.GRAPH, []), depth)
    pool = {one.id: one for one in reciprocal_rank_fusion(lists, _EVEN)}
    reached = {one.id: one.score for one in reciprocal_rank_fusion({Lane.GRAPH: walked.hits}, _EVEN)}
    for memory_id in [*reached, *matching]:
        pool.setdefault(memory_id, Candidate(memory_id, 0.0))
    passes = set(matching)

    def order(one: Candidate) -> tuple[bool, float, float, MemoryId]:
        score = one.score + reached.get(one.id, 0.0)
        return one.id not in passes, -score, one.best_rank or math.inf, one.id  # many alike score 0 and have a rank

    return sorted(pool.values(), key=order)


def windows(pool: Sequence[Candidate], request: QueryRequest, choice: Choice, wanted: int) -> list[Sequence[Candidate]]:
    """The parts in which the pool is looked at, until enough of it may be shown. Low takes what it needs and some more,
    as not all of it will stand; with filters nearly all is looked at, as most of it may be refused."""
    size = 2 * wanted + 10 if choice.tier.name == "low" else WINDOW
    size = FILTERED_WINDOW if request.filters.given else size
    return [pool[start : start + size] for start in range(0, len(pool), size)]


def parents(scored: Mapping[MemoryId, Scored]) -> list[Candidate]:
    """The memories that the nearest summaries were made of, whether or not the summaries themselves may be shown."""
    summaries = [one for one in scored.values() if one.row.kind is MemoryKind.CONSOLIDATED]
    summaries.sort(key=lambda one: (-one.scores.semantic, one.id))
    return [Candidate(parent, 0.0) for one in summaries[:SUMMARIES] for parent in made_of(one.row)]


def made_of(row: Row) -> tuple[MemoryId, ...]:
    return tuple(edge.target for edge in row.edges if edge.kind is EdgeKind.DERIVED_FROM)[:PARENTS]

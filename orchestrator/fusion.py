"""Weighted reciprocal rank fusion: many ranked lists of items to one ranked list of memories."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contracts.base import MemoryId
from contracts.lanes import ItemKind, Lane

#: Cormack, Clarke and Büttcher 2009: large enough that no single list's top dominates.
RRF_K = 60


@dataclass(frozen=True, slots=True)
class Hit:
    """One item of a lane's ranked list, and the memories it stands for."""

    item: str
    kind: ItemKind
    label: str
    score: float
    sources: tuple[MemoryId, ...]
    evidence: float = 0.0
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class LaneVote:
    """A lane's word on one memory: its rank among the lane's memories, and what it found."""

    rank: int
    score: float
    evidence: float
    confirmed: bool
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    id: MemoryId
    score: float
    votes: Mapping[Lane, LaneVote] = field(default_factory=dict)

    @property
    def best_rank(self) -> int:
        return min((vote.rank for vote in self.votes.values()), default=0)


def reciprocal_rank_fusion(
    lists: Mapping[Lane, Sequence[Hit]], weights: Mapping[Lane, float], k: int = RRF_K
) -> list[Candidate]:
    """``score(d) = Σ w / (k + rank(d))``, best first; ties by best rank, then id, so that the order of arrival, of
    shards and of hashing never shows.

    An item stands for its source memories. Memories that a lane scores alike share the last of their ranks: three
    hundred mentions of one name are then each weak evidence, and no arbitrary one of them is first.
    """
    votes: dict[MemoryId, dict[Lane, LaneVote]] = defaultdict(dict)
    for lane, hits in lists.items():
        for memory_id, vote in _vote(hits).items():
            votes[memory_id][lane] = vote
    candidates = [
        Candidate(memory_id, sum(weights[lane] / (k + vote.rank) for lane, vote in by_lane.items()), by_lane)
        for memory_id, by_lane in votes.items()
    ]
    return sorted(candidates, key=order)


def order(candidate: Candidate) -> tuple[float, int, MemoryId]:
    """The sort key of the fused order."""
    return (-candidate.score, candidate.best_rank, candidate.id)


def _vote(hits: Sequence[Hit]) -> dict[MemoryId, LaneVote]:
    best: dict[MemoryId, list[Hit]] = defaultdict(list)
    for hit in hits:
        for memory_id in hit.sources:
            best[memory_id].append(hit)
    descending = sorted(-max(hit.score for hit in found) for found in best.values())
    votes = {}
    for memory_id, found in best.items():
        score = max(hit.score for hit in found)
        votes[memory_id] = LaneVote(
            rank=bisect_right(descending, -score),
            score=score,
            evidence=max(hit.evidence for hit in found),
            confirmed=any(hit.confirmed for hit in found),
            items=tuple(dict.fromkeys(hit.label or hit.kind for hit in found)),
        )
    return votes

"""Weighted reciprocal rank fusion: many ranked lists of items to one ranked list of memories."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from contracts.base import MemoryId
from contracts.lanes import ItemKind, Lane

#: Cormack, Clarke and Büttcher 2009: large enough that no single list's top dominates.
RRF_K = 60
#: A lane that scores more memories than this alike has not ordered them: such a vote shows in the provenance and adds
#: nothing to the sum. Else one name that half of a project mentions would lift an arbitrary half.
MOST_TIED = 20
#: Of the view, beside the lanes' weights of about 1: it holds what two lanes say, in degrees and not in ranks. With
#: neighbours in it, it leads wherever it speaks clearly. Measured in infra/DECISIONS.md.
DEGREES_WEIGHT, CONTEXT_WEIGHT = 4.0, 32.0


class View(NamedTuple):
    """One more list: memories by a score of what several lanes say together."""

    scores: Mapping[MemoryId, float]
    weight: float


NO_VIEW = View({}, 0.0)


class Hit(NamedTuple):
    """One item of a lane's ranked list, and the memories it stands for."""

    item: str
    kind: ItemKind
    label: str
    score: float
    sources: tuple[MemoryId, ...]
    evidence: float = 0.0
    confirmed: bool = False


class LaneVote(NamedTuple):
    """A lane's word on one memory: its rank among the lane's memories, how many share it, and what it found."""

    rank: int
    tied: int
    score: float
    evidence: float
    confirmed: bool
    items: tuple[str, ...]

    def reciprocal(self, k: int) -> float:
        """``1 / (k + rank)``, or 0 where the lane did not order."""
        return 0.0 if self.tied > MOST_TIED else 1.0 / (k + self.rank)


@dataclass(frozen=True, slots=True)
class Candidate:
    id: MemoryId
    score: float
    votes: Mapping[Lane, LaneVote] = field(default_factory=dict)

    @property
    def best_rank(self) -> int:
        return min((vote.rank for vote in self.votes.values()), default=0)


def reciprocal_rank_fusion(
    lists: Mapping[Lane, Sequence[Hit]],
    weights: Mapping[Lane, float],
    k: int = RRF_K,
    view: View = NO_VIEW,
) -> list[Candidate]:
    """``score(d) = Σ w / (k + rank(d))``, best first; ties by best rank, then id, so that the order of arrival, of
    shards and of hashing never shows.

    An item stands for its source memories. Memories that a lane scores alike share the last of their ranks, and more
    than `MOST_TIED` of them count for nothing.
    """
    votes: dict[MemoryId, dict[Lane, LaneVote]] = defaultdict(dict)
    for lane, hits in lists.items():
        for memory_id, vote in _vote(hits).items():
            votes[memory_id][lane] = vote
    ranks, alike = _ranked(view.scores)
    candidates = []
    for memory_id in dict.fromkeys([*votes, *view.scores]):
        parts = [weights[lane] * vote.reciprocal(k) for lane, vote in votes[memory_id].items()]
        degree = view.scores.get(memory_id)
        if degree is not None and alike[degree] <= MOST_TIED:
            parts.append(view.weight / (k + ranks[degree]))
        # exact: a plain sum's last bit depends on which lane came first, and with it the order of ties
        candidates.append(Candidate(memory_id, math.fsum(parts), votes[memory_id]))
    return sorted(candidates, key=order)


def order(candidate: Candidate) -> tuple[float, int, MemoryId]:
    """The sort key of the fused order."""
    return (-candidate.score, candidate.best_rank, candidate.id)


def _ranked(best: Mapping[MemoryId, float]) -> tuple[dict[float, int], Counter[float]]:
    """Of each score: the last of the ranks that memories of that score share, and how many they are."""
    alike = Counter(best.values())
    scores = sorted(alike, reverse=True)
    return dict(zip(scores, accumulate(alike[score] for score in scores), strict=True)), alike


def _vote(hits: Sequence[Hit]) -> dict[MemoryId, LaneVote]:
    found: dict[MemoryId, list[Hit]] = defaultdict(list)
    for hit in hits:
        for memory_id in hit.sources:
            found[memory_id].append(hit)
    best = {memory_id: max(hit.score for hit in its) for memory_id, its in found.items()}
    last_rank, alike = _ranked(best)
    return {
        memory_id: LaneVote(
            rank=last_rank[best[memory_id]],
            tied=alike[best[memory_id]],
            score=best[memory_id],
            evidence=max(hit.evidence for hit in its),
            confirmed=any(hit.confirmed for hit in its),
            items=tuple(dict.fromkeys(hit.label or hit.kind for hit in its)),
        )
        for memory_id, its in found.items()
    }

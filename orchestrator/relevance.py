"""Relevance: how much each candidate has to do with the cue, in [0, 1], and from where on it belongs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contracts.base import MemoryId
from orchestrator.profiles import Profile

NO_CONTEXT: Mapping[MemoryId, float] = {}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one candidate's relevance to the cue, each in [0, 1]."""

    cosine: float = 0.0
    coverage: float = 0.0
    exact: bool = False  # the lexical lane vouches: an exact id, or all terms with a rare one among them
    reranked: float | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """The relevance of all candidates, and the bars they must clear. Nobody clears a bar while `top` is below `floor`.

    Where neighbours count, a memory's relevance is its share of the best context, on the scale of the best memory's own
    relevance: what is said beside the match belongs with it, and the cue must still be met by somebody alone. What
    would belong alone (`own`, from `bar_alone` on) still does.
    """

    scores: Mapping[MemoryId, float]
    own: Mapping[MemoryId, float]
    floor: float
    share: float
    top: float
    bar: float
    bar_alone: float

    def best(self, memory_id: MemoryId) -> float:
        """A candidate's relevance: the larger of both."""
        return max(self.scores[memory_id], self.own[memory_id])

    def holds(self, memory_id: MemoryId) -> bool:
        """Whether a candidate is relevant enough by itself or by where it stands."""
        score, own = self.scores[memory_id], self.own[memory_id]
        return 0 < score >= self.bar or 0 < own >= self.bar_alone


def relevance(evidence: Evidence, profile: Profile) -> float:
    """One number in [0, 1]; never RRF, whose top is always the same."""
    if evidence.reranked is not None:
        return evidence.reranked
    blend = profile.cosine_share * evidence.cosine + (1 - profile.cosine_share) * evidence.coverage
    return max(blend, evidence.cosine - profile.alone_discount)


def judge(
    ids: Iterable[MemoryId],
    evidence: Mapping[MemoryId, Evidence],
    profile: Profile,
    context: Mapping[MemoryId, float] = NO_CONTEXT,
) -> Band:
    """The band around the best of these candidates. Where the cross-encoder spoke, it speaks alone: what it has not
    read has no relevance, as other scales do not compare with its own."""
    ids = list(ids)
    if any(evidence[one].reranked is not None for one in ids):
        own = {one: evidence[one].reranked or 0.0 for one in ids}
        return _alone(own, profile.rerank_floor, profile.rerank_band)
    own = {one: relevance(evidence[one], profile) for one in ids}
    highest = max((context.get(one, 0.0) for one in ids), default=0.0)
    if highest <= 0:
        return _alone(own, profile.abs_floor, profile.rel_band)
    top = max(own.values())
    # what a transaction has pending stands nowhere yet, and must belong alone
    scores = {one: top * context.get(one, 0.0) / highest for one in ids}
    floor, share = profile.context_floor, profile.context_band
    if top < floor:
        return Band(scores, own, floor, share, top, floor, floor)
    return Band(scores, own, floor, share, top, top * share, max(profile.abs_floor, top * profile.rel_band))


def _alone(own: Mapping[MemoryId, float], floor: float, share: float) -> Band:
    top = max(own.values(), default=0.0)
    bar = max(floor, top * share)
    return Band(own, own, floor, share, top, bar, bar)

"""Membership: which candidates belong to the answer. Not a top-k: a band, then pure cardinality."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from contracts.base import MemoryId
from contracts.catalog import Claim
from contracts.lanes import Lane
from contracts.recall import AnswerKind
from orchestrator.fusion import Candidate
from orchestrator.grounding import Grounding
from orchestrator.profiles import Profile

UNGROUNDED = Grounding()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one candidate's relevance to the cue, each in [0, 1]."""

    cosine: float = 0.0
    coverage: float = 0.0
    exact: bool = False  # the lexical lane vouches: an exact id, or all terms with a rare one among them
    reranked: float | None = None


@dataclass(frozen=True, slots=True)
class Belonging:
    """A member before it is rendered: its relevance and what admitted it."""

    candidate: Candidate
    relevance: float
    why: tuple[str, ...]
    claims: tuple[Claim, ...] = ()
    agrees: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """`kind` and `total` are of all that belong; `members` is cut to the ceiling, which changes neither."""

    kind: AnswerKind
    members: tuple[Belonging, ...]
    total: int
    band: dict[str, float]

    def without(self, gone: Collection[MemoryId]) -> Answer:
        """The answer less some members: those that were forgotten while it was made."""
        if not gone:
            return self
        members = tuple(member for member in self.members if member.candidate.id not in gone)
        total = self.total - (len(self.members) - len(members))
        return replace(self, kind=_kind(total), members=members, total=total)


def decide(
    candidates: Sequence[Candidate],
    evidence: dict[MemoryId, Evidence],
    profile: Profile,
    max_results: int,
    grounding: Grounding = UNGROUNDED,
    age: Callable[[MemoryId], float] = lambda _: 0.0,
) -> Answer:
    """A candidate joins when its relevance clears the floor and the band around the best, or when the lexical lane
    vouches for it, or when it is grounded, or when the graph lane vouches and it clears the floor: an off-topic
    neighbour of a name does not get in. Grounded members come first; those that answer the same are one member, the
    newest by `age`. None when nobody joins."""
    scored = [(candidate, relevance(evidence[candidate.id], profile)) for candidate in candidates]
    reranked = any(evidence[candidate.id].reranked is not None for candidate in candidates)
    floor = profile.rerank_floor if reranked else profile.abs_floor
    share = profile.rerank_band if reranked else profile.rel_band
    top = max((score for _, score in scored), default=0.0)
    bar = max(floor, top * share)
    members = []
    for candidate, score in scored:
        claims = grounding.claims.get(candidate.id, ())
        why = (*_grounds(claims), *_why(candidate, evidence[candidate.id], score, floor, bar))
        if why:
            members.append(Belonging(candidate, score, why, claims))
    members = _fold(members, age)
    members.sort(key=lambda one: (not one.claims, -one.relevance, -one.candidate.score, one.candidate.id))
    band = {"floor": floor, "band": share, "top": round(top, 4), "bar": round(bar, 4)}
    return Answer(_kind(len(members)), tuple(members[:max_results]), len(members), band)


def eligible(evidence: Evidence, best: float, profile: Profile) -> bool:
    """Whether a candidate could be a member beside one of relevance `best`, but for the graph's word. A better one that
    is found later only raises the bar."""
    bar = max(profile.abs_floor, best * profile.rel_band)
    return evidence.exact or relevance(evidence, profile) >= bar


def relevance(evidence: Evidence, profile: Profile) -> float:
    """One number in [0, 1]; never RRF, whose top is always the same."""
    if evidence.reranked is not None:
        return evidence.reranked
    blend = profile.cosine_share * evidence.cosine + (1 - profile.cosine_share) * evidence.coverage
    return max(blend, evidence.cosine - profile.alone_discount)


def _fold(members: Sequence[Belonging], age: Callable[[MemoryId], float]) -> list[Belonging]:
    """Members that give the same answer become one, the newest, which names the others."""
    alike: dict[frozenset[tuple[str, str, str]], list[Belonging]] = defaultdict(list)
    for member in members:
        if member.claims:
            alike[frozenset(claim.triple for claim in member.claims)].append(member)
    folded = [member for member in members if not member.claims]
    for same in alike.values():
        newest, *others = sorted(same, key=lambda one: (age(one.candidate.id), one.candidate.id))
        folded.append(replace(newest, agrees=tuple(one.candidate.id for one in others)))
    return folded


def _grounds(claims: Sequence[Claim]) -> tuple[str, ...]:
    return tuple(f"states: {' '.join(triple)}" for triple in sorted({claim.triple for claim in claims})[:3])


def _why(candidate: Candidate, evidence: Evidence, score: float, floor: float, bar: float) -> tuple[str, ...]:
    why = []
    if score >= bar and score > 0:
        why.append(f"relevance {score:.2f} within the band from {bar:.2f}")
    if evidence.exact:
        why.append("holds the cue's exact or rare terms")
    graph = candidate.votes.get(Lane.GRAPH)
    if graph and graph.confirmed and score >= floor:
        why.append(f"connected in the graph: {', '.join(graph.items[:3])}")
    return tuple(why)


def _kind(count: int) -> AnswerKind:
    return "None" if count == 0 else "Single" if count == 1 else "Many"

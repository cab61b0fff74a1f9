"""Membership: which candidates belong to the answer. Not a top-k: a band, then pure cardinality."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from contracts.base import MemoryId
from contracts.catalog import Claim
from contracts.lanes import Lane
from contracts.recall import AnswerKind
from orchestrator.fusion import Candidate
from orchestrator.grounding import Grounding
from orchestrator.relevance import Band, Evidence

UNGROUNDED = Grounding()


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
    evidence: Mapping[MemoryId, Evidence],
    band: Band,
    max_results: int,
    grounding: Grounding = UNGROUNDED,
    age: Callable[[MemoryId], float] = lambda _: 0.0,
) -> Answer:
    """A candidate joins when its relevance is within the band, or when the lexical lane vouches for it, or when it is
    grounded, or when the graph lane vouches and it clears the floor by itself: an off-topic neighbour of a name does
    not get in. Grounded members come first; those that answer the same are one member, the newest by `age`. None when
    nobody joins."""
    members = []
    for candidate in candidates:
        claims = grounding.claims.get(candidate.id, ())
        why = (*_grounds(claims), *_why(candidate, evidence[candidate.id], band))
        if why:
            members.append(Belonging(candidate, band.best(candidate.id), why, claims))
    members = _fold(members, age)
    members.sort(key=lambda one: (not one.claims, -one.relevance, -one.candidate.score, one.candidate.id))
    said = {"floor": band.floor, "band": band.share, "top": round(band.top, 4), "bar": round(band.bar, 4)}
    return Answer(_kind(len(members)), tuple(members[:max_results]), len(members), said)


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


def _why(candidate: Candidate, evidence: Evidence, band: Band) -> tuple[str, ...]:
    why = []
    if band.scores[candidate.id] >= band.bar > 0:
        why.append(f"relevance {band.scores[candidate.id]:.2f} within the band from {band.bar:.2f}")
    elif band.holds(candidate.id):
        why.append(f"relevance {band.own[candidate.id]:.2f} alone, from {band.bar_alone:.2f}")
    if evidence.exact:
        why.append("holds the cue's exact or rare terms")
    graph = candidate.votes.get(Lane.GRAPH)
    if graph and graph.confirmed and band.own[candidate.id] >= band.floor:
        why.append(f"connected in the graph: {', '.join(graph.items[:3])}")
    return tuple(why)


def _kind(count: int) -> AnswerKind:
    return "None" if count == 0 else "Single" if count == 1 else "Many"

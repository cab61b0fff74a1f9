"""From candidates to scored memories: the catalog's rows and the lanes' evidence, as seven signals and one score."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.lanes import Lane
from contracts.ports import Bus
from contracts.query import Scores, SessionState
from contracts.topics import TopicId
from orchestrator.catalog import Catalog
from orchestrator.evidence import lane_scores
from orchestrator.expansion import Walked, is_anchor, nearest_of
from orchestrator.fusion import Candidate
from orchestrator.gather import Gathered, Question
from orchestrator.narrowing import storage_tier
from orchestrator.session import boost
from orchestrator.signals import hops_of, scores_of
from orchestrator.together import both
from orchestrator.topics import MOST_NAMED, Topic, Topics, ask_topics
from orchestrator.weights import blend

#: Up to so many candidates, whole rows are fetched at once: a second way for the texts would cost more.
WHOLE = 40
#: Evidence that takes longer than this is not waited for.
EVIDENCE_S = 0.25


@dataclass(frozen=True, slots=True)
class Scored:
    """`base` is the weighted sum of `scores`, `score` that and the session's `boost`, at most 1. `through` names what
    in the graph led to the memory; `anchor` says that nothing did, and the walk began here. `matched` says that its
    `topic` is one of an anchor, or the query's own."""

    row: Row
    scores: Scores
    base: float
    boost: float
    through: str | None = None
    anchor: bool = False
    topic: Topic | None = None
    matched: bool = False

    @property
    def id(self) -> MemoryId:
        return self.row.id

    @property
    def score(self) -> float:
        return min(1.0, self.base + self.boost)


@dataclass(frozen=True, slots=True)
class Terms:
    """What scores are reckoned with: the same for all candidates of a query. Without `cold`, memories that nobody has
    used for long are not looked at; without `topics`, upkeep is not asked."""

    weights: Scores
    depth: int
    session: SessionState
    at: datetime
    cold: bool = True
    topics: bool = False


@dataclass(slots=True)
class Seen:
    """All that was scored so far; `texts` holds whole rows, those whose text is known. What does not stand is not
    here."""

    scored: dict[MemoryId, Scored] = field(default_factory=dict)
    texts: dict[MemoryId, Row] = field(default_factory=dict)


class Scorer:
    """One query's scorer. Scores must be in by `score_by`, texts by `texts_by`, in monotonic seconds."""

    def __init__(
        self, bus: Bus, catalog: Catalog, question: Question, terms: Terms, score_by: float, texts_by: float
    ) -> None:
        self._bus, self._catalog, self._question, self._terms = bus, catalog, question, terms
        self._score_by, self._texts_by = score_by, texts_by
        self._ask_topics, self._shared = terms.topics, frozenset[TopicId]()
        self.seen = Seen()

    async def score(self, part: Sequence[Candidate], gathered: Gathered, walked: Walked) -> None:
        """Add these candidates. A lane that does not answer leaves its signal at 0, as does one that was not asked; an
        upkeep that does not answer is asked no more. Raises Unavailable when the catalog does not: of tombstones nobody
        else knows."""
        fresh = [one for one in part if one.id not in self.seen.scored]
        if not fresh:
            return
        (rows, topics), (cosines, near) = await both(
            both(self._rows([one.id for one in fresh]), self._topics(fresh, gathered)),
            both(self._evidence(Lane.SEMANTIC, fresh, gathered), self._evidence(Lane.GRAPH, fresh, gathered)),
        )
        rows = {one.id: rows[one.id] for one in fresh if one.id in rows and self._reaches(rows[one.id])}
        self._shared |= topics.shared(self._anchors(rows, gathered, near, walked))
        for one in fresh:
            if one.id in rows:
                topic = topics.of.get(one.id)
                self.seen.scored[one.id] = self._scored(one, rows[one.id], cosines, near, walked, topic)

    def _reaches(self, row: Row) -> bool:
        terms = self._terms
        return row.stands(terms.at) and (terms.cold or storage_tier(row, terms.at) != "cold")

    async def texts_of(self, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Row]:
        """Whole rows of those that still stand."""
        missing = [one for one in ids if one not in self.seen.texts]
        if missing:
            question = self._question
            found = await self._catalog.hydrate(question.project, missing, question.positions, self._texts_by)
            self.seen.texts |= {one: row for one, row in found.items() if row.stands(self._terms.at)}
        return {one: self.seen.texts[one] for one in ids if one in self.seen.texts}

    def group_of(self, row: Row) -> str | None:
        """What a memory is about: its topic, or where it has none its session."""
        topic = self.seen.scored[row.id].topic
        return topic.id if topic else row.session

    async def _rows(self, ids: Sequence[MemoryId]) -> Mapping[MemoryId, Row]:
        question = self._question
        if len(ids) > WHOLE:
            return await self._catalog.signals(question.project, ids, question.positions, self._score_by)
        rows = await self._catalog.hydrate(question.project, ids, question.positions, self._score_by)
        self.seen.texts |= rows
        return rows

    async def _evidence(self, lane: Lane, part: Sequence[Candidate], gathered: Gathered) -> dict[MemoryId, float]:
        if lane not in gathered.outcomes:
            return {}
        deadline = min(self._score_by, time.monotonic() + EVIDENCE_S)
        return await lane_scores(self._bus, lane, self._question, gathered, part, deadline)

    async def _topics(self, part: Sequence[Candidate], gathered: Gathered) -> Topics:
        if not self._ask_topics:
            return Topics()
        ids = [one.id for one in part]
        topics = await ask_topics(self._bus, self._question.project, ids, gathered.vector, self._score_by)
        self._ask_topics = topics.answered
        return topics

    def _anchors(
        self, rows: Mapping[MemoryId, Row], gathered: Gathered, near: Mapping[MemoryId, float], walked: Walked
    ) -> list[MemoryId]:
        """The nearest memory by meaning, and those that the query names where they are few."""
        at = self._terms.at
        named = [one for one in rows if hops_of(near.get(one, 0.0)) == 0]
        nearest = walked.anchor or next(
            (one for one in nearest_of(gathered) if one in rows and is_anchor(rows[one], at)), None
        )
        return [*(named if len(named) <= MOST_NAMED else ()), *([nearest] if nearest else ())]

    def _scored(
        self,
        one: Candidate,
        row: Row,
        cosines: Mapping[MemoryId, float],
        near: Mapping[MemoryId, float],
        walked: Walked,
        topic: Topic | None,
    ) -> Scored:
        terms = self._terms
        ways = [hops for hops in (hops_of(near.get(one.id, 0.0)), walked.hops.get(one.id)) if hops is not None]
        matched = topic is not None and topic.id in self._shared
        scores = scores_of(row, cosines.get(one.id, 0.0), min(ways, default=None), terms.depth, terms.at, matched)
        vote = one.votes.get(Lane.GRAPH)
        label = next((item for item in vote.items if item not in _KINDS), None) if vote else None
        base = blend(scores, terms.weights)
        through = label or walked.through.get(one.id)
        lift, is_anchor = boost(terms.session, one.id), one.id == walked.anchor and not label
        return Scored(row, scores, base, lift, through, is_anchor, topic, matched)


#: What a vote shows for a hit without a label.
_KINDS = ("memory", "statement", "entity", "relation")

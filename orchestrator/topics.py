"""The topics of a query's candidates: asked of upkeep, which an answer never waits for long and never needs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contracts import subjects, wire
from contracts.base import MemoryId
from contracts.errors import MemlaneError
from contracts.ports import Bus, BusFault
from contracts.topics import TopicId, TopicsFound, TopicsQuery

#: Topics that take longer than this are not waited for.
TOPICS_S = 0.05
#: A name that more memories mention than this stands for no topic: they are about anything.
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Topic:
    """A cluster of memories that are about the same; `size` counts those that stand."""

    id: TopicId
    label: str
    size: int


@dataclass(frozen=True, slots=True)
class Topics:
    """`of` has the topics of the memories asked for; those without one are not in it. `query` is the topic that the
    query itself would belong to. `answered` is False where upkeep did not."""

    of: Mapping[MemoryId, Topic] = field(default_factory=dict)
    query: TopicId | None = None
    answered: bool = False

    def shared(self, anchors: Sequence[MemoryId]) -> frozenset[TopicId]:
        """The topics of the anchors, and that of the query."""
        found = {self.of[one].id for one in anchors if one in self.of}
        return frozenset(found | ({self.query} if self.query else set()))


async def ask_topics(bus: Bus, project: str, ids: Sequence[MemoryId], vector: str, deadline: float) -> Topics:
    """What upkeep says by `deadline` (monotonic seconds), at most `TOPICS_S` from now. Never raises: without upkeep
    there are no topics."""
    left = min(deadline - time.monotonic(), TOPICS_S)
    query = TopicsQuery(project=project, ids=tuple(ids), vector=vector, remaining_ms=left * 1000)
    try:
        found = wire.decode_reply(TopicsFound, await bus.request(subjects.TOPICS, wire.encode(query), left))
        topics = [Topic(*row) for row in zip(found.topics, found.labels, found.sizes, strict=True)]
        of = {one: topics[row] for one, row in zip(ids, found.of, strict=True) if row >= 0}
        return Topics(of, topics[found.nearest].id if found.joins else None, True)
    except (BusFault, MemlaneError, ValueError, IndexError):  # absent, late, or a reply that is no evidence
        return Topics()

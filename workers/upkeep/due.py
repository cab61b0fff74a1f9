"""Which summaries are to be written and which to be taken away: decided from a project's topics alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.base import MAX_EDGES, Instant, MemoryId
from contracts.topics import TopicId, summary_id
from workers.upkeep.topics import ProjectTopics

#: A summary is written anew when its topic has grown or shrunk by this share since.
CHANGED_BY = 1 / 3


@dataclass(frozen=True, slots=True)
class Writing:
    """A topic to sum up: from `parents`, the most central first, of the `size` members that stand. `replaces` says that
    an older summary is there."""

    topic: TopicId
    parents: tuple[MemoryId, ...]
    size: int
    replaces: bool


@dataclass(frozen=True, slots=True)
class Due:
    writings: Sequence[Writing] = ()
    #: Summaries whose topic is gone or too small.
    strays: Sequence[MemoryId] = ()


def due(topics: ProjectTopics, min_members: int, at: Instant) -> Due:
    """What would make the summaries in the log those of the topics. Pure; in the order of the topics' founding.

    A summary is stale when one of its parents is no longer a standing member of its topic (forgotten, expired,
    superseded, or gone over elsewhere), or when the topic's size differs by a third from what it was then.
    """
    writings, fresh = [], set()
    for topic in topics.clusters:
        if len(topics.clusters.members(topic)) < min_members:
            continue
        standing = topics.standing(topic, at)
        if len(standing) < min_members:
            continue
        memory_id = summary_id(topics.project, topic)
        fresh.add(memory_id)
        summary = topics.summaries.get(memory_id)
        if summary is not None and not _stale(summary.parents, summary.size, standing):
            continue
        writings.append(Writing(topic, tuple(standing[:MAX_EDGES]), len(standing), summary is not None))
    strays = [memory_id for memory_id in topics.summaries if memory_id not in fresh]
    return Due(writings, strays)


def asked_of(topics: ProjectTopics, min_members: int) -> list[MemoryId]:
    """The memories of which it matters whether they stand: the members of clusters that may count."""
    clusters = (topics.clusters.members(one) for one in topics.clusters)
    return [memory_id for members in clusters if len(members) >= min_members for memory_id in members]


def _stale(parents: Sequence[MemoryId], size: int, standing: Sequence[MemoryId]) -> bool:
    if not set(parents) <= set(standing):
        return True
    return abs(len(standing) - size) >= CHANGED_BY * size

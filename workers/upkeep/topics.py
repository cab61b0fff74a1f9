"""A project's topics: its clusters with what is known of their members, and the summaries that the log holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice

from contracts.base import Instant, MemoryId
from contracts.memory import EdgeKind, MemoryKind, MemoryRecord, Vector, unpack_vector
from contracts.topics import TopicId, summary_id
from workers.analysis import stem
from workers.upkeep.clusters import Clusters, Near
from workers.upkeep.labels import label_of, words_of

#: A label is of so many members at most, the oldest: a hundred texts say what a topic is about.
NAMED_AFTER = 100
#: A summary of ours names its topic and the topic's size in its metadata; what else is Consolidated is not ours.
TOPIC, SIZE = "topic_id", "topic_size"


@dataclass(frozen=True, slots=True)
class Member:
    """What a label and the clock need of a memory. Its text is the catalog's to keep."""

    words: tuple[str, ...]
    expires_at: Instant | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A live summary as the log has it."""

    topic: TopicId
    parents: tuple[MemoryId, ...]
    size: int


@dataclass(slots=True)
class ProjectTopics:
    """Follows one project's records, in log order. Which memories are in which cluster depends on the log alone; which
    of them stand also on the clock and, for what newer statements replaced, on `retired`, which the catalog tells.

    `changed` says that something may be due; `erased` that a memory whose words are in a summary is forgotten for good.
    """

    project: str
    clusters: Clusters
    members: dict[MemoryId, Member] = field(default_factory=dict)
    summaries: dict[MemoryId, Summary] = field(default_factory=dict)
    retired: frozenset[MemoryId] = frozenset()
    changed: bool = False
    erased: bool = False
    _replaced: set[MemoryId] = field(default_factory=set)
    _texts: Counter[str] = field(default_factory=Counter)
    _labels: dict[TopicId, tuple[int, str]] = field(default_factory=dict)

    def apply(self, record: MemoryRecord) -> None:
        """Apply one record; again is harmless. Raises ValueError for a vector that is none or of another dimension."""
        if record.kind is MemoryKind.CONSOLIDATED:
            self._apply_summary(record)
            return
        self.changed = True
        for target in record.supersedes:
            self._replaced.add(target)
            self._drop(target)
        if not record.live or record.id in self._replaced:
            self._drop(record.id)
            hard = record.tombstone is not None and record.tombstone.mode == "hard"
            self.erased |= hard and any(record.id in one.parents for one in self.summaries.values())
            return
        vector = unpack_vector(record.vector)
        known = self.clusters.vector(record.id)
        if known is None or known.tobytes() != vector.tobytes():
            self._drop(record.id)
            self.clusters.add(record.id, vector)
        self._keep(record)

    def retire(self, ids: Collection[MemoryId]) -> None:
        """Say which memories do not stand, though the log has them live."""
        if self.retired != (retired := frozenset(ids)):
            self.retired = retired
            self._labels.clear()

    def standing(self, topic: TopicId, at: Instant) -> list[MemoryId]:
        """The members that stand, the most central first, ties by id."""
        found = [one for one in self.clusters.members(topic) if self.stands(one, at)]
        centroid, vectors = self.clusters.centroid(topic), self.clusters.members(topic)
        return sorted(found, key=lambda one: (-round(float(vectors[one] @ centroid), 6), one))

    def stands(self, memory_id: MemoryId, at: Instant) -> bool:
        member = self.members.get(memory_id)
        if member is None or memory_id in self.retired:
            return False
        return member.expires_at is None or member.expires_at > at

    def size(self, topic: TopicId, at: Instant) -> int:
        return sum(1 for one in self.clusters.members(topic) if self.stands(one, at))

    def topic_of(self, memory_id: MemoryId, at: Instant) -> TopicId | None:
        return self.clusters.of(memory_id) if self.stands(memory_id, at) else None

    def nearest(self, vector: Vector, least: int) -> Near | None:
        if vector.shape != (self.clusters.dimension,):
            return None
        return self.clusters.nearest(vector, least)

    def label(self, topic: TopicId, at: Instant) -> str:
        """The topic's label; reckoned anew when its members changed."""
        stamp = self.clusters.stamp(topic)
        kept = self._labels.get(topic)
        if kept is None or kept[0] != stamp:
            standing = (one for one in self.clusters.members(topic) if self.stands(one, at))
            kept = self._labels[topic] = stamp, self.label_of(list(islice(standing, NAMED_AFTER)))
        return kept[1]

    def label_of(self, ids: Sequence[MemoryId]) -> str:
        """What these memories alone would be called."""
        return label_of((self.members[one].words for one in ids), self._texts, len(self.clusters))

    def summary_of(self, topic: TopicId) -> MemoryId | None:
        memory_id = summary_id(self.project, topic)
        return memory_id if memory_id in self.summaries else None

    def _apply_summary(self, record: MemoryRecord) -> None:
        self.summaries.pop(record.id, None)
        if record.live and TOPIC in record.metadata:
            parents = tuple(edge.target for edge in record.edges if edge.kind is EdgeKind.DERIVED_FROM)
            self.summaries[record.id] = Summary(record.metadata[TOPIC], parents, record.metadata.get(SIZE, 0))

    def _keep(self, record: MemoryRecord) -> None:
        member = Member(words_of(record.text), record.expires_at)
        before = self.members.get(record.id)
        if before is not None:
            self._count(before, -1)
        self._count(member, 1)
        self.members[record.id] = member

    def _drop(self, memory_id: MemoryId) -> None:
        self.clusters.remove(memory_id)
        member = self.members.pop(memory_id, None)
        if member is not None:
            self._count(member, -1)

    def _count(self, member: Member, by: int) -> None:
        for name in {stem(word) for word in member.words}:
            self._texts[name] += by
            if self._texts[name] <= 0:
                del self._texts[name]

"""The topics of all projects, in memory: a projection of the whole log, and what is read from it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import anyio.to_thread
import structlog

from contracts.base import Instant, MemoryId, Position, now
from contracts.memory import MemoryRecord, unpack_vector
from contracts.ports import Entry
from contracts.topics import TopicEntry, TopicId, TopicsFound, TopicsQuery, TopicsReply
from workers.upkeep.clusters import Clusters
from workers.upkeep.topics import ProjectTopics

logger = structlog.get_logger()

#: Members that a listing shows of a topic.
MEMBERS_SHOWN = 5


class TopicIndex:
    """`workers.lane.Projection` over all shards. Nothing of it is on disk: a hard forget leaves nothing behind, and a
    start replays the log. Reads and `apply` may run at once."""

    def __init__(self, min_members: int, join_at: float, merge_at: float) -> None:
        """A topic counts from `min_members` standing members on."""
        self.min_members = min_members
        self._join_at, self._merge_at = join_at, merge_at
        self._projects: dict[str, ProjectTopics] = {}
        self._position: Position = 0
        self.lock = threading.Lock()

    @property
    def position(self) -> Position:
        return self._position

    async def apply(self, entries: Sequence[Entry]) -> None:
        await anyio.to_thread.run_sync(self._apply, entries)

    def projects(self) -> list[str]:
        return sorted(self._projects)

    def of(self, project: str) -> ProjectTopics | None:
        """One project's topics; hold `lock` while reading them."""
        return self._projects.get(project)

    def find(self, query: TopicsQuery) -> TopicsFound:
        """The topics that count, of these memories and of the query vector. Raises ValueError for a vector that is
        none."""
        with self.lock:
            topics = self._projects.get(query.project)
            if topics is None:
                return TopicsFound(of=(-1,) * len(query.ids), position=self._position)
            at, rows = now(), _Rows(topics, self.min_members)
            of = tuple(rows.row(topics.topic_of(one, at), at) for one in query.ids)
            near = topics.nearest(unpack_vector(query.vector), self.min_members) if query.vector else None
            nearest = rows.row(near.cluster, at) if near else -1
            return TopicsFound(
                topics=tuple(rows.known),
                labels=tuple(topics.label(one, at) for one in rows.known),
                sizes=tuple(rows.sizes[one] for one in rows.known),
                of=of,
                nearest=nearest,
                likeness=round(near.likeness, 4) if near else 0.0,
                joins=near is not None and nearest >= 0 and near.likeness >= self._join_at,
                position=self._position,
            )

    def listing(self, project: str, limit: int) -> TopicsReply:
        """The project's topics that count, the largest first, ties by id."""
        with self.lock:
            topics, at = self._projects.get(project), now()
            if topics is None:
                return TopicsReply(position=self._position)
            sizes = {one: topics.size(one, at) for one in topics.clusters}
            found = sorted((-size, one) for one, size in sizes.items() if size >= self.min_members)
            shown = tuple(
                TopicEntry(
                    id=one,
                    label=topics.label(one, at),
                    size=-size,
                    members=tuple(topics.standing(one, at)[:MEMBERS_SHOWN]),
                    summary=topics.summary_of(one),
                )
                for size, one in found[:limit]
            )
            return TopicsReply(topics=shown, total=len(found), position=self._position)

    def erased(self) -> bool:
        """Whether a memory whose words a summary may hold was forgotten for good, and no round has been since."""
        return any(one.erased for one in self._projects.values())

    def counts(self) -> dict[str, object]:
        """How many projects, topics that count (but for what was retired) and summaries there are."""
        with self.lock:
            held = list(self._projects.values())
            topics = sum(1 for one in held for it in one.clusters if len(one.clusters.members(it)) >= self.min_members)
            return {"projects": len(held), "topics": topics, "summaries": sum(len(one.summaries) for one in held)}

    def _apply(self, entries: Sequence[Entry]) -> None:
        for position, record in entries:
            with self.lock:
                self._apply_one(record)
                self._position = position

    def _apply_one(self, record: MemoryRecord) -> None:
        """One bad record must not stop the role: it is logged, and is in no topic."""
        try:
            topics = self._projects.get(record.project)
            if topics is None:
                if not record.vector:
                    return
                clusters = Clusters(len(unpack_vector(record.vector)), self._join_at, self._merge_at)
                topics = self._projects[record.project] = ProjectTopics(record.project, clusters)
            topics.apply(record)
        except ValueError as error:
            logger.warning("record in no topic", action="topics_skip", memory=record.id, error=str(error))


class _Rows:
    """The topics of one reply, numbered as they come; those that do not count have -1."""

    def __init__(self, topics: ProjectTopics, least: int) -> None:
        self._topics, self._least = topics, least
        self.known: dict[TopicId, int] = {}
        self.sizes: dict[TopicId, int] = {}

    def row(self, topic: MemoryId | None, at: Instant) -> int:
        if topic is None:
            return -1
        if topic not in self.sizes:
            self.sizes[topic] = self._topics.size(topic, at)
        if self.sizes[topic] < self._least:
            return -1
        return self.known.setdefault(topic, len(self.known))

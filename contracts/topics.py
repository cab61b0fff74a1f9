"""Topics: clusters of memories that are about the same, as the upkeep role finds them, and their summaries."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from contracts.base import Instant, LaxMessage, MemoryId, Message, Position, Project
from contracts.memory import derive_id

MAX_TOPICS = 100

#: A topic goes by the id of the memory that founded it.
TopicId = MemoryId


def summary_id(project: str, topic: TopicId) -> MemoryId:
    """The memory id of a topic's summary: there is one, however often it is written."""
    return derive_id(project, "summary", topic)


class TopicsQuery(LaxMessage):
    """To which topics do these memories belong, and which is a packed query vector nearest to?"""

    project: Project
    ids: tuple[MemoryId, ...] = ()
    vector: str = ""
    remaining_ms: float = 50.0


class TopicsFound(LaxMessage):
    """Topic i is called `labels[i]` and has `sizes[i]` members that stand. `of[j]` is the topic of the query's memory
    j, -1 where it has none. The query vector is nearest to topic `nearest` (-1: there is none), with `likeness` as its
    mean cosine to the members, and with `joins` as near as a memory must be to belong to it."""

    topics: tuple[TopicId, ...] = ()
    labels: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    of: tuple[int, ...] = ()
    nearest: int = -1
    likeness: float = 0.0
    joins: bool = False
    position: Position = 0


class SummariseRequest(LaxMessage):
    """Store a topic's summary: from upkeep to encode, and nobody's to pay for. `parents` are the memories whose words
    are in it, `size` the members that the topic had. What is there under its id and live is left as it is."""

    project: Project
    topic: TopicId
    label: str
    text: str
    parents: tuple[MemoryId, ...]
    size: int
    occurred_at: Instant | None = None
    remaining_ms: float = 10_000.0


class TopicsRequest(Message):
    """The project's topics, the largest first."""

    limit: Annotated[int, Field(ge=1, le=MAX_TOPICS)] = 20


class TopicEntry(LaxMessage):
    """`members` are the few most central of its `size` memories; `summary` is the memory that sums it up, where that is
    written."""

    id: TopicId
    label: str
    size: int
    members: tuple[MemoryId, ...]
    summary: MemoryId | None = None


class TopicsReply(LaxMessage):
    """`total` counts all topics; `position` is how far in the log they are known."""

    topics: tuple[TopicEntry, ...] = ()
    total: int = 0
    position: Position = 0

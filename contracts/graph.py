"""The typed graph of a project, page by page: what graph_fetch takes and gives, and how pages become one graph."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from contracts.base import Instant, LaxMessage, MemoryId, Message, Name
from contracts.memory import Statement, derive_id
from contracts.names import normalise
from contracts.schema import DEFAULT_ENTITY_TYPE

HAS_STATEMENT = "HasStatement"
MENTIONS = "Mentions"
MAX_KEY_CHARS = 64  #: of an entity's name in its node id


class NodeKind(StrEnum):
    ENTITY = "Entity"
    STATEMENT = "Statement"
    MEMORY = "Memory"


def entity_id(name: str) -> str:
    """The node id of an entity, the same for every spelling of its name: ``e:`` and the name in normal form. A long
    name's hash stands for it, so that what one memory adds to a page always fits into a message."""
    key = normalise(name) or name
    return f"e:{key if len(key) <= MAX_KEY_CHARS else derive_id(key)}"


def statement_id(statement: Statement) -> str:
    """The node id of a statement: the same whichever memory makes it, and whatever its kind."""
    said = (statement.subject, statement.predicate.replace("_", " "), statement.object)
    return f"s:{derive_id(*map(normalise, said))}"


class GraphFetchRequest(Message):
    """A page of the graph: that of up to `limit` memories, oldest first; fewer where they would fill a message.

    `types` keeps entities of these types alone (as each memory gives them), and of the rest what hangs on them:
    statements by subject, relations and facts by both ends, memories that mention one. `include_edges` (memory to
    memory) needs `include_memories`. The cursor belongs to all fields but `limit`: with others it is STALE_CURSOR.
    """

    limit: Annotated[int, Field(ge=1, le=500)] = 200
    cursor: str | None = None
    include_statements: bool = True
    include_memories: bool = True
    include_edges: bool = True
    include_tombstoned: bool = False
    types: Annotated[tuple[Name, ...], Field(max_length=64)] = ()

    @model_validator(mode="after")
    def _edges_need_memories(self) -> GraphFetchRequest:
        if self.include_edges and not self.include_memories:
            raise ValueError("include_edges needs include_memories: edges link memories")
        return self


class GraphNode(LaxMessage):
    """`type` is an entity's type, a statement's or a memory's kind. `at` is when a memory happened, or since when a
    statement holds. A placeholder is a memory that an edge leads to and this page does not hold: perhaps another one
    does, perhaps none."""

    id: str
    kind: NodeKind
    label: str
    type: str | None = None
    at: Instant | None = None
    superseded_by: MemoryId | None = None
    tombstoned: bool = False
    placeholder: bool = False


class GraphEdge(LaxMessage):
    """`kind` by its ends: from a memory Mentions (an entity), HasStatement (a statement) or an edge kind (a memory,
    with `weight`); from an entity HasStatement (a statement it is the subject of), a relation type or a predicate (an
    entity). One of a kind between the same two nodes."""

    source: str
    target: str
    kind: str
    weight: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.source, self.target, self.kind


class GraphFetchReply(LaxMessage):
    """Both ends of an edge are in the page that has it, so the same node may come in several: `union` makes one."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    cursor: str | None = None


def union(pages: Iterable[GraphFetchReply]) -> GraphFetchReply:
    """One graph of several pages in the order they came: each id once. A memory stands before its placeholder, an
    entity with a type before one without, else the first that came."""
    nodes: dict[str, GraphNode] = {}
    edges: dict[tuple[str, str, str], GraphEdge] = {}
    for page in pages:
        for node in page.nodes:
            known = nodes.get(node.id)
            if known is None or (_vague(known) and not _vague(node)):
                nodes[node.id] = node
        for edge in page.edges:
            edges.setdefault(edge.key, edge)
    return GraphFetchReply(nodes=tuple(nodes.values()), edges=tuple(edges.values()))


def _vague(node: GraphNode) -> bool:
    return node.placeholder or (node.kind is NodeKind.ENTITY and node.type == DEFAULT_ENTITY_TYPE)

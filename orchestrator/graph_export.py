"""From catalog rows to the typed graph: pure, and each memory on its own, so that pages may be cut anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from contracts.catalog import Row
from contracts.graph import (
    HAS_STATEMENT,
    MENTIONS,
    GraphEdge,
    GraphFetchReply,
    GraphFetchRequest,
    GraphNode,
    NodeKind,
    entity_id,
    statement_id,
    union,
)
from contracts.memory import Entity
from contracts.names import normalise
from contracts.schema import DEFAULT_ENTITY_TYPE, key_of

#: Characters of a text that its node shows.
LABEL_CHARS = 120


def graph_of(rows: Iterable[Row], layers: GraphFetchRequest) -> GraphFetchReply:
    """The graph of some memories, each node and edge once; both ends of every edge are among the nodes."""
    return union(part_of(row, layers) for row in rows)


def part_of(row: Row, layers: GraphFetchRequest) -> GraphFetchReply:
    """What one memory adds to the graph. An entity shows only where something links to it."""
    part = _Part(row, frozenset(map(key_of, layers.types)))
    if layers.include_memories and not part.add_memory():
        return GraphFetchReply(nodes=(), edges=())
    part.add_links()
    if layers.include_statements:
        part.add_statements(layers.include_memories)
    if layers.include_edges:
        part.add_edges()
    return GraphFetchReply(nodes=tuple(part.nodes.values()), edges=tuple(part.edges))


@dataclass(slots=True)
class _Part:
    row: Row
    types: frozenset[str]
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: list[GraphEdge] = field(default_factory=list)
    _entities: dict[str, Entity] = field(default_factory=dict, init=False)  # by every name and alias, normalised

    def __post_init__(self) -> None:
        for entity in self.row.entities:
            for alias in entity.aliases:
                self._entities.setdefault(normalise(alias), entity)
        for entity in self.row.entities:
            self._entities[normalise(entity.name)] = entity  # a name stands before another's alias
        ends = [statement.subject for statement in self.row.statements]
        ends += [end for relation in self.row.relations for end in (relation.source, relation.target)]
        for name in ends:
            self._entities.setdefault(normalise(name), Entity(name=name))

    def add_memory(self) -> bool:
        """The memory and what it mentions; False when a type filter leaves nothing of it."""
        row = self.row
        mentioned = [entity for entity in self._entities.values() if self._wanted(entity)]
        if self.types and not mentioned:
            return False
        self.nodes[row.id] = GraphNode(
            id=row.id,
            kind=NodeKind.MEMORY,
            label=_label(row.text),
            type=str(row.kind),
            at=row.event_time,
            superseded_by=row.superseded_by,
            tombstoned=row.tombstone is not None,
        )
        for target in dict.fromkeys(self._add_entity(entity) for entity in mentioned):
            self._link(row.id, target, MENTIONS)
        return True

    def add_links(self) -> None:
        """Entity to entity: relations, and statements whose object is an entity too."""
        for relation in self.row.relations:
            self._between(relation.source, relation.target, relation.type)
        for statement in self.row.statements:
            self._between(statement.subject, statement.object, statement.predicate)

    def add_statements(self, from_memory: bool) -> None:
        for statement in self.row.statements:
            subject = self._entities[normalise(statement.subject)]
            if not self._wanted(subject):
                continue
            key = statement_id(statement)
            self.nodes[key] = GraphNode(
                id=key,
                kind=NodeKind.STATEMENT,
                label=_label(statement.sentence),
                type=str(statement.kind),
                at=statement.valid_from or self.row.event_time,
            )
            self._link(self._add_entity(subject), key, HAS_STATEMENT)
            if from_memory:
                self._link(self.row.id, key, HAS_STATEMENT)

    def add_edges(self) -> None:
        for edge in self.row.edges:
            self.nodes.setdefault(
                edge.target, GraphNode(id=edge.target, kind=NodeKind.MEMORY, label=edge.target, placeholder=True)
            )
            self._link(self.row.id, edge.target, str(edge.kind), edge.weight)

    def _between(self, source: str, target: str, kind: str) -> None:
        ends = [self._entities.get(normalise(name)) for name in (source, target)]
        known = [entity for entity in ends if entity and self._wanted(entity)]
        if len(known) == len(ends):
            first, second = map(self._add_entity, known)
            self._link(first, second, kind)

    def _wanted(self, entity: Entity) -> bool:
        return not self.types or key_of(entity.type) in self.types

    def _add_entity(self, entity: Entity) -> str:
        key = entity_id(entity.name)
        known = self.nodes.get(key)
        if known is None or known.type == DEFAULT_ENTITY_TYPE:
            self.nodes[key] = GraphNode(id=key, kind=NodeKind.ENTITY, label=_label(entity.name), type=entity.type)
        return key

    def _link(self, source: str, target: str, kind: str, weight: float | None = None) -> None:
        self.edges.append(GraphEdge(source=source, target=target, kind=kind, weight=weight))


def _label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LABEL_CHARS else line[: LABEL_CHARS - 1] + "…"

"""What one memory asserts in the graph: the pure translation of a log record into keys, links and edges."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.base import MemoryId, epoch_ms
from contracts.memory import MemoryRecord, derive_id
from contracts.names import normalise


def key_of(project: str, name: str) -> str:
    """The key of a node. Every key begins with its project, so no lookup by key can leave it."""
    return f"{project}/{name}"


def name_in(key: str) -> str:
    """The part of a key after the project."""
    return key.partition("/")[2]


def words_of(name: str) -> str:
    """A name normalised word by word, the form in which a cue's spans spell it: ``Acme, Inc`` is ``acme inc``."""
    return " ".join(word for word in (normalise(part) for part in name.split()) if word)


@dataclass(frozen=True, slots=True)
class Link:
    """A relation or statement of a memory; `id` is the same for the same triple, whichever memory asserts it."""

    id: str
    type: str
    source: str
    target: str
    statement: bool


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge to another memory, which may not be stored yet."""

    kind: str
    target: MemoryId
    weight: float


@dataclass(frozen=True, slots=True)
class Facts:
    """A live memory's part of the graph. `entities` maps an entity's key to its name and type; it holds both ends of
    every link. `aliases` are pairs of a name's key and an entity's key."""

    key: str
    project: str
    id: MemoryId
    at: int
    entities: dict[str, tuple[str, str]]
    links: tuple[Link, ...]
    aliases: tuple[tuple[str, str], ...]
    arrows: tuple[Arrow, ...]


class _Collector:
    def __init__(self, project: str) -> None:
        self._project = project
        self.entities: dict[str, tuple[str, str]] = {}
        self.aliases: dict[tuple[str, str], None] = {}
        self.links: dict[str, Link] = {}

    def entity(self, name: str, kind: str | None = None) -> str | None:
        """The key of an entity, noted; None for a name of punctuation only, which no cue can spell."""
        normal = normalise(name)
        if not normal:
            return None
        key = key_of(self._project, normal)
        if kind or key not in self.entities:
            self.entities[key] = (name, kind or "Thing")
        self._alias(words_of(name), key)
        return key

    def alias(self, name: str, key: str) -> None:
        for form in (normalise(name), words_of(name)):
            self._alias(form, key)

    def _alias(self, form: str, key: str) -> None:
        if form and form != name_in(key):
            self.aliases.setdefault((key_of(self._project, form), key))

    def link(self, source: str, kind: str, target: str, statement: bool) -> None:
        begin, end = self.entity(source), self.entity(target)
        if begin and end:
            link_id = derive_id(self._project, name_in(begin), kind, name_in(end))
            self.links.setdefault(link_id, Link(link_id, kind, begin, end, statement))


def facts_of(record: MemoryRecord) -> Facts:
    """The facts of a live record."""
    found = _Collector(record.project)
    for entity in record.entities:
        if key := found.entity(entity.name, entity.type):
            for alias in entity.aliases:
                found.alias(alias, key)
    for relation in record.relations:
        found.link(relation.source, relation.type, relation.target, statement=False)
    for statement in record.statements:
        found.link(statement.subject, statement.predicate, statement.object, statement=True)
    arrows = {(edge.kind, edge.target): Arrow(str(edge.kind), edge.target, edge.weight) for edge in record.edges}
    return Facts(
        key=key_of(record.project, record.id),
        project=record.project,
        id=record.id,
        at=epoch_ms(record.event_time),  # an integer, as one of the two stores loses the zone of a datetime
        entities=found.entities,
        links=tuple(found.links.values()),
        aliases=tuple(found.aliases),
        arrows=tuple(arrows.values()),
    )

"""How the graph lane ranks: anchors weigh by how few memories mention them, and weight fades with every hop.

A hop is a link between two entities or an edge between two memories; to mention is no hop. So an anchor, its links
and the memories that mention it are at hop 0, its neighbours and theirs at hop 1, what lies behind them at hop 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from contracts.base import MemoryId
from contracts.lanes import ItemKind, LaneReply, ScoreReply
from contracts.names import normalise, spans
from workers.graph.facts import name_in

ANCHORS = 8  #: named entities that one cue may start from, the rarest first
SOURCES = 50  #: memories that stand for one entity, the newest first
CHILDREN = 100  #: links followed from one anchor, the newest first
STRETCH = 300  #: links of one anchor that are looked at to find those
CROWD = 200  #: the walk does not pass through an entity with more mentions
SOME, FEW = 20, 5  #: what is followed from a neighbour, and from what lies behind it
MOST = 200  #: memories shared with other anchors, for each anchor
READABLE = 1000  #: an anchor with more mentions is not read through to find what it shares with others
SPECIFIC = 10  #: a lone anchor with so few memories confirms them
WORDS = 400  #: words of a cue in which names are looked for

#: Bounds as Cypher parameters.
BOUNDS: dict[str, object] = {"children": CHILDREN, "stretch": STRETCH, "some": SOME, "few": FEW, "most": MOST}

_KINDS: dict[ItemKind, int] = {"memory": 0, "relation": 1, "entity": 2, "statement": 3}


@dataclass(frozen=True, slots=True)
class Node:
    """An entity as the walk met it, with the newest memories that mention it."""

    key: str
    name: str
    mentions: int
    recent: tuple[MemoryId, ...]

    @property
    def weight(self) -> float:
        return 1.0 / math.log2(2 + max(self.mentions, 1))


@dataclass(frozen=True, slots=True)
class Step:
    """A link met on the walk from an anchor, at hop 0, or at hop 1 through `via`; `end` is the entity behind it."""

    anchor: str
    via: str
    id: str
    label: str
    memory: MemoryId
    end: Node


@dataclass(slots=True)
class Walk:
    """All that one search read. `shared` holds a memory and anchors that it mentions, `joined` a memory at hop 0,
    a memory that an edge joins to it, and the edge's weight."""

    steps: list[Step] = field(default_factory=list)
    shared: list[tuple[MemoryId, Sequence[str]]] = field(default_factory=list)
    joined: list[tuple[MemoryId, MemoryId, float]] = field(default_factory=list)


def label_of(source: str, kind: str, target: str) -> str:
    return f"{source} —{kind}→ {target}"


def forms_in(cue: str, subject: str | None) -> list[str]:
    """What in a cue may be a name, in normal form and longest first."""
    forms = dict.fromkeys([normalise(cue), *spans(" ".join(cue.split()[:WORDS]))])
    if subject:
        forms.update(dict.fromkeys([normalise(subject)]))
    return [form for form in forms if form]


class Anchors:
    """The entities that a cue names.

    A name inside a longer one does not count, and a name that several entities bear is one concept: any of them
    will do.
    """

    def __init__(self, found: Iterable[tuple[str, Node]], subject: str | None = None) -> None:
        by_form: dict[str, dict[str, Node]] = {}
        for form, node in found:
            by_form.setdefault(name_in(form), {})[node.key] = node
        asked = normalise(subject) if subject else None
        kept = {form: nodes for form, nodes in by_form.items() if form == asked or not _inside(form, by_form)}
        rarest = sorted({n.key: n for nodes in kept.values() for n in nodes.values()}.values(), key=_rarity)
        self.nodes = {node.key: node for node in rarest[:ANCHORS]}
        groups = (frozenset(self.nodes.keys() & nodes.keys()) for nodes in kept.values())
        self.concepts = sorted({group for group in groups if group}, key=sorted)

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.nodes.values()]

    @property
    def keys(self) -> list[str]:
        """Rarest first."""
        return list(self.nodes)

    @property
    def rarer(self) -> list[str]:
        """Anchors to read through for memories that they share with others: all but the commonest will do."""
        return [key for key in self.keys[:-1] if self.nodes[key].mentions <= READABLE]

    @property
    def memories(self) -> list[MemoryId]:
        """Memories at hop 0, those of the rarest anchor first."""
        found = dict.fromkeys(m for node in self.nodes.values() for m in node.recent[:SOURCES])
        return list(found)[:CHILDREN]

    @property
    def checked(self) -> list[MemoryId]:
        """Memories in which to look for further anchors, where reading the anchors through leaves out pairs."""
        return self.memories if len(self.rarer) < len(self.keys) - 1 else []

    def through(self, near: Iterable[Step]) -> list[tuple[str, str]]:
        """Pairs of an anchor and a neighbour of it to walk on from, the rarest neighbours first."""
        found = {(step.end.mentions, step.end.key, step.anchor) for step in near}
        passable = [(anchor, key) for mentions, key, anchor in sorted(found) if mentions <= CROWD]
        return [pair for pair in passable if pair[1] not in self.nodes][:SOME]


def _rarity(node: Node) -> tuple[int, str]:
    return node.mentions, node.key


def _inside(form: str, forms: Iterable[str]) -> bool:
    return any(form != other and f" {form} " in f" {other} " for other in forms)


@dataclass(slots=True)
class Item:
    kind: ItemKind
    id: str
    label: str = ""
    sources: dict[MemoryId, None] = field(default_factory=dict)
    reached: dict[str, tuple[float, int]] = field(default_factory=dict)  # anchor: best value, fewest hops

    def reach(self, anchor: str, value: float, hops: int) -> None:
        best, fewest = self.reached.get(anchor, (0.0, hops))
        self.reached[anchor] = (max(best, value), min(fewest, hops))

    @property
    def evidence(self) -> float:
        return 1.0 / (1 + min((hops for _, hops in self.reached.values()), default=math.inf))

    def score(self, anchors: Anchors) -> float:
        values = {key: value for key, (value, _) in self.reached.items()}
        return sum(max(values.get(key, 0.0) for key in sorted(concept)) for concept in anchors.concepts)

    def confirmed(self, anchors: Anchors) -> bool:
        direct = {key for key, (_, hops) in self.reached.items() if hops == 0}
        if len(anchors.concepts) >= 2:
            return all(direct & concept for concept in anchors.concepts)
        return any(anchors.nodes[key].mentions <= SPECIFIC for key in direct)


class Ranking:
    """Items as they are reached from anchors; `reply` orders them."""

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self._items: dict[tuple[ItemKind, str], Item] = {}
        for node in anchors.nodes.values():
            self._entity(node, SOURCES).reach(node.key, node.weight, 0)
            for memory in node.recent[:SOURCES]:
                self.memory(memory).reach(node.key, node.weight, 0)

    def _item(self, kind: ItemKind, item_id: str, label: str = "") -> Item:
        return self._items.setdefault((kind, item_id), Item(kind, item_id, label))

    def memory(self, memory: MemoryId) -> Item:
        item = self._item("memory", memory)
        item.sources[memory] = None
        return item

    def _entity(self, node: Node, most: int) -> Item:
        item = self._item("entity", name_in(node.key), node.name)
        item.sources.update(dict.fromkeys(node.recent[:most]))
        return item

    def add(self, walk: Walk) -> Ranking:
        for memory, keys in walk.shared:
            for key in keys:
                self.memory(memory).reach(key, self._anchors.nodes[key].weight, 0)
        # A path is as specific as the least specific entity on it.
        through = {step.end.key: step.end.weight for step in walk.steps if not step.via}
        for step in walk.steps:
            self._step(step, through.get(step.via, 0.0) if step.via else math.inf)
        for origin, memory, weight in walk.joined:
            for key, (value, hops) in list(self.memory(origin).reached.items()):
                if hops == 0:
                    self.memory(memory).reach(key, value * abs(weight) / 2, 1)
        return self

    def _step(self, step: Step, through: float) -> None:
        anchor, hops = self._anchors.nodes[step.anchor], 1 if step.via else 0
        value = min(anchor.weight, through) / (hops + 1)
        link = self._item("relation", step.id, step.label)
        link.sources[step.memory] = None
        link.reach(step.anchor, value, hops)
        self.memory(step.memory).reach(step.anchor, value, hops)
        if step.end.key == step.anchor:
            return
        beyond = min(anchor.weight, through, step.end.weight) / (hops + 2)
        self._entity(step.end, FEW if step.via else SOME).reach(step.anchor, beyond, hops + 1)
        if not step.via:
            for memory in step.end.recent[:SOME]:
                self.memory(memory).reach(step.anchor, beyond, 1)

    def reply(self, top_n: int) -> LaneReply:
        """The best items: by score, memories before relations before entities, then by id."""
        scored = [(item.score(self._anchors), item) for item in self._items.values() if item.sources]
        scored.sort(key=lambda pair: (-pair[0], _KINDS[pair[1].kind], pair[1].id))
        best = scored[:top_n]
        return LaneReply(
            items=tuple(item.id for _, item in best),
            kinds=tuple(item.kind for _, item in best),
            labels=tuple(item.label for _, item in best),
            scores=tuple(score for score, _ in best),
            sources=tuple(tuple(item.sources)[:SOURCES] for _, item in best),
            evidence=tuple(item.evidence for _, item in best),
            confirmed=tuple(item.confirmed(self._anchors) for _, item in best),
            notes={"anchors": tuple(self._anchors.names)},
        )


NO_ANCHOR = LaneReply(notes={"anchors": ()})


def scores(
    ids: Sequence[MemoryId],
    anchors: Anchors,
    steps: Iterable[Step],
    mentioned: Mapping[MemoryId, Sequence[str]],
    beside: Mapping[MemoryId, Sequence[str]],
) -> ScoreReply:
    """Evidence on given memories: `mentioned` holds the entities of each, `beside` the anchors of those that an edge
    joins to it."""
    near: dict[str, set[str]] = {}
    for step in steps:
        near.setdefault(step.end.key, set()).add(step.anchor)
    items = []
    for memory in ids:
        item = Item("memory", memory)
        for key in mentioned.get(memory, ()):
            for anchor in near.get(key, ()):
                item.reach(anchor, 0.0, 1)
            if key in anchors.nodes:
                item.reach(key, 0.0, 0)
        for anchor in beside.get(memory, ()):
            item.reach(anchor, 0.0, 1)
        items.append(item)
    return ScoreReply(
        evidence=tuple(item.evidence for item in items), confirmed=tuple(item.confirmed(anchors) for item in items)
    )

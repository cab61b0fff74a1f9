"""The graph lane in plain Python over a dictionary: what the store-backed index must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from contracts.base import MemoryId, Position
from contracts.lanes import EdgesQuery, EdgesReply, LaneQuery, LaneReply, ScoreQuery, ScoreReply
from contracts.ports import Entry
from contracts.shards import Shard
from workers.graph import ranking, rows
from workers.graph.facts import Facts, Link, facts_of, key_of
from workers.graph.ranking import (
    CHILDREN,
    FEW,
    MOST,
    SOME,
    SOURCES,
    STRETCH,
    Anchors,
    Node,
    Step,
    Walk,
)
from workers.graph.store import position_key, position_of

Pair = tuple[Facts, Link]


class ReferenceGraph:
    """What several shards share: the facts of live memories, and each shard's position."""

    def __init__(self) -> None:
        self.facts: dict[str, Facts] = {}
        self.positions: dict[Shard, Position] = {}

    def mentioning(self, entity: str) -> list[Facts]:
        """Newest first."""
        return sorted((f for f in self.facts.values() if entity in f.entities), key=lambda f: (-f.at, f.id))

    def node(self, entity: str, most: int = 2 * SOURCES) -> Node:
        mentioning = self.mentioning(entity)
        name = next((f.entities[entity][0] for f in reversed(self.facts.values()) if entity in f.entities), "")
        return Node(entity, name, len(mentioning), tuple(f.id for f in mentioning[:most]))

    def named(self, forms: Iterable[str]) -> Iterable[tuple[str, Node]]:
        wanted = set(forms)
        pairs = {(key, key) for facts in self.facts.values() for key in facts.entities}
        pairs |= {pair for facts in self.facts.values() for pair in facts.aliases}
        return ((form, self.node(entity)) for form, entity in sorted(pairs) if form in wanted)

    def links_of(self, entity: str) -> list[Pair]:
        """Newest first."""
        found = [(f, link) for f in self.facts.values() for link in f.links if entity in (link.source, link.target)]
        return sorted(found[-STRETCH:], key=lambda pair: (-pair[0].at, pair[1].id, pair[0].key))

    def joined(self, memory: str) -> list[tuple[Facts, float]]:
        """Live memories at the other end of an edge, newest first."""
        own = self.facts.get(memory)
        found = [(self.facts.get(key_of(own.project, a.target)), a.weight) for a in own.arrows] if own else []
        for facts in self.facts.values():
            targets = ((key_of(facts.project, a.target), a.weight) for a in facts.arrows)
            found += [(facts, weight) for target, weight in targets if target == memory and facts.key != memory]
        live = [(facts, weight) for facts, weight in found if facts]
        return sorted(live, key=lambda pair: (-pair[0].at, pair[0].id))


class ReferenceIndex:
    """A LaneIndex of one shard that lasts as long as its graph."""

    def __init__(self, graph: ReferenceGraph, shard: Shard, wipe: bool = False) -> None:
        self._graph, self._shard = graph, shard
        if wipe:
            self._graph.positions[shard] = 0
            kept = {key: facts for key, facts in graph.facts.items() if not shard.holds(facts.id)}
            graph.facts.clear()
            graph.facts.update(kept)

    @property
    def position(self) -> Position:
        return position_of(self._shard, {position_key(one): at for one, at in self._graph.positions.items()})

    async def apply(self, entries: Sequence[Entry]) -> None:
        for position, record in entries:
            if position <= self.position:
                continue
            self._graph.facts.pop(key_of(record.project, record.id), None)
            if record.live:
                self._graph.facts[key_of(record.project, record.id)] = facts_of(record)
            self._graph.positions[self._shard] = position

    async def search(self, query: LaneQuery) -> LaneReply:
        anchors = self._anchors(query.project, query.cue, query.subject)
        reply = ranking.NO_ANCHOR
        if anchors.nodes:
            reply = ranking.Ranking(anchors).add(self._walk(query.project, anchors)).reply(query.top_n)
        return reply.model_copy(update={"position": self.position})

    async def score(self, query: ScoreQuery) -> ScoreReply:
        anchors = self._anchors(query.project, query.cue, None)
        mentioned: dict[MemoryId, list[str]] = {}
        beside: dict[MemoryId, list[str]] = {}
        for memory in query.ids:
            key = key_of(query.project, memory)
            if key in self._graph.facts:
                mentioned[memory] = list(self._graph.facts[key].entities)
            beside[memory] = [e for f, _ in self._graph.joined(key) for e in f.entities if e in anchors.nodes]
        return ranking.scores(query.ids, anchors, self._links(anchors), mentioned, beside)

    async def edges(self, query: EdgesQuery) -> EdgesReply:
        found: list[dict[str, Any]] = []
        for key in (key_of(query.project, memory) for memory in dict.fromkeys(query.ids)):
            held: list[dict[str, Any]] = [
                {"key": key, "source": facts.id, "kind": arrow.kind, "target": arrow.target, "weight": arrow.weight}
                for facts in self._graph.facts.values()
                for arrow in facts.arrows
                if self._shard.holds(facts.id) and facts.project == query.project and arrow.kind in query.kinds
                if key == (facts.key if query.direction == "out" else key_of(facts.project, arrow.target))
            ]
            held.sort(key=lambda row: (-abs(row["weight"]), row["kind"], row["source"], row["target"]))
            found += held[: query.most + 1]
        return rows.edges_of(found, query.most).model_copy(update={"position": self.position})

    async def close(self) -> None:
        pass

    def _anchors(self, project: str, cue: str, subject: str | None) -> Anchors:
        forms = [key_of(project, form) for form in ranking.forms_in(cue, subject)]
        return Anchors(self._graph.named(forms), subject)

    def _walk(self, project: str, anchors: Anchors) -> Walk:
        near = self._links(anchors)
        walk = Walk(steps=near + self._far(anchors, near))
        for anchor in anchors.keys[:-1]:
            walk.shared += self._shared(anchor, anchors)
        for memory in anchors.memories:
            joined = self._graph.joined(key_of(project, memory))[:SOME]
            walk.joined += [(memory, facts.id, weight) for facts, weight in joined]
        return walk

    def _shared(self, anchor: str, anchors: Anchors) -> list[tuple[MemoryId, list[str]]]:
        named = ((f, [key for key in f.entities if key in anchors.nodes]) for f in self._graph.mentioning(anchor))
        found = [(facts, keys) for facts, keys in named if len(keys) > 1]
        found.sort(key=lambda pair: (-len(pair[1]), -pair[0].at, pair[0].id))
        return [(facts.id, keys) for facts, keys in found[:MOST]]

    def _links(self, anchors: Anchors) -> list[Step]:
        return [
            self._step(anchor, "", anchor, pair, SOME)
            for anchor in anchors.keys
            for pair in self._graph.links_of(anchor)[:CHILDREN]
        ]

    def _far(self, anchors: Anchors, near: list[Step]) -> list[Step]:
        steps = []
        for anchor, via in anchors.through(near):
            pairs = (p for p in self._graph.links_of(via) if _beyond(p[1], via) not in anchors.nodes)
            steps += [self._step(anchor, via, via, pair, FEW) for pair in list(pairs)[:FEW]]
        return steps

    def _step(self, anchor: str, via: str, origin: str, pair: Pair, most: int) -> Step:
        facts, link = pair
        source, target = self._graph.node(link.source, 0), self._graph.node(link.target, 0)
        end = self._graph.node(_beyond(link, origin), most)
        return Step(anchor, via, link.id, ranking.label_of(source.name, link.type, target.name), facts.id, end)


def _beyond(link: Link, origin: str) -> str:
    return link.target if link.source == origin else link.source

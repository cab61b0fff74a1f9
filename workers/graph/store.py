"""Writing to the graph: one transaction that replaces what memories assert and moves the position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neo4j import AsyncManagedTransaction

from contracts.base import MemoryId, Position
from contracts.memory import MemoryRecord
from contracts.ports import Entry
from contracts.shards import Shard, shard_named, slot_of_id
from workers.graph import cypher
from workers.graph.bolt import Row, rows_of
from workers.graph.facts import Facts, facts_of, key_of
from workers.graph.ranking import SOURCES
from workers.graph.rows import pack_mention, unpack_mention

WIPED = 500  #: memories removed in one transaction
ROWS = 1000  #: rows sent to the store in one statement
KEPT = 2 * SOURCES  #: newest mentions kept at an entity, so that forgetting some leaves enough


_PREFIX = "graph/"


def position_key(shard: Shard) -> str:
    """Replicas of a shard that share a database share the position: what one has applied, all have."""
    return f"{_PREFIX}{shard}"


def position_of(shard: Shard, applied: Mapping[str, Position]) -> Position:
    """The position of a shard, given those of all by key. A shard that has none yet begins where the shards of another
    number of them that hold its memories have all come to: what they have applied is there already."""
    if (own := applied.get(position_key(shard))) is not None:
        return own
    known = {one: at for key, at in applied.items() if (one := shard_named(key.removeprefix(_PREFIX)))}
    reached = [0]
    for of in {one.of for one in known}:
        step = min(of, shard.of)
        over = [Shard(number, of) for number in range(shard.number % step, of, step)]
        reached.append(min(known.get(one, 0) for one in over))
    return max(reached)


@dataclass(slots=True)
class Change:
    """What happens to one entity in a batch."""

    name: str | None = None
    type: str | None = None
    gone: set[MemoryId] = field(default_factory=set)
    come: dict[MemoryId, int] = field(default_factory=dict)

    def recent(self, before: Sequence[str]) -> list[tuple[int, MemoryId]]:
        """The newest mentions after the change, out of those kept before."""
        kept = [
            (at, memory) for at, memory in map(unpack_mention, before) if memory not in self.gone | self.come.keys()
        ]
        kept += [(at, memory) for memory, at in self.come.items()]
        return sorted(kept, key=lambda mention: (-mention[0], mention[1]))[:KEPT]


async def each(tx: AsyncManagedTransaction, query: str, rows: Iterable[Any], **parameters: Any) -> list[Row]:
    """Run a query over `$rows`, a bounded number at a time; no rows, no query."""
    answers: list[Row] = []
    for chunk in _chunks(list(rows)):
        answers += await rows_of(tx, query, rows=chunk, **parameters)
    return answers


def _chunks(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), ROWS):
        yield rows[start : start + ROWS]


async def apply_entries(tx: AsyncManagedTransaction, shard: Shard, entries: Sequence[Entry]) -> Position:
    """Apply entries above the stored position and move it, in the given transaction. Returns the position then."""
    to = entries[-1][0]
    key = position_key(shard)
    (held,) = await rows_of(tx, cypher.HOLD_POSITION, key=key, to=to)
    applied: Position = held["applied"]
    if to <= applied:
        return applied
    latest: dict[str, MemoryRecord] = {}
    for position, record in entries:
        if position > applied:
            # The last record of a memory is its full state: earlier ones in the batch leave no trace.
            latest.pop(key_of(record.project, record.id), None)
            latest[key_of(record.project, record.id)] = record
    await Replacement(tx, to, list(latest), [facts_of(r) for r in latest.values() if r.live]).run()
    await rows_of(tx, cypher.MOVE_POSITION, key=key, to=to)
    return to


async def wipe_some(tx: AsyncManagedTransaction, shard: Shard) -> bool:
    """Remove some of a shard's memories; once there are none, its position is 0. Says whether to go on."""
    found = await rows_of(tx, cypher.OF_SHARD, slots=shard.slots, most=WIPED)
    if found:
        await Replacement(tx, 0, [row["key"] for row in found], []).run()
    else:
        await rows_of(tx, cypher.RESET_POSITION, key=position_key(shard))
    return bool(found)


class Replacement:
    """Replaces what memories `keys` asserted by `facts`; a key without facts is forgotten."""

    def __init__(self, tx: AsyncManagedTransaction, to: Position, keys: list[str], facts: list[Facts]) -> None:
        self._tx, self._to, self._keys, self._facts = tx, to, keys, facts
        self._entities: dict[str, Change] = {}
        self._names: dict[tuple[str, str], int] = {}

    async def run(self) -> None:
        before = await each(self._tx, cypher.ASSERTED, sorted(self._keys))
        self._plan(before)
        # Entities are held first, in one order for all writers, so that writers of hot ones queue up.
        held = {row["key"]: row for row in await self._hold()}
        await self._retract(before, held)
        await self._assert()
        await self._rename()
        await self._count(held)
        await self._sweep(before)

    def _plan(self, before: list[Row]) -> None:
        for row in before:
            for entity in row["entities"]:
                self._change(entity).gone.add(row["id"])
            for pair in zip(row["forms"] or (), row["form_of"] or (), strict=True):
                self._names[pair] = self._names.get(pair, 0) - 1
        for facts in self._facts:
            for key, (name, kind) in facts.entities.items():
                change = self._change(key)
                change.come[facts.id] = facts.at
                change.name = name
                change.type = kind if kind != "Thing" or change.type is None else change.type
            for pair in facts.aliases:
                self._names[pair] = self._names.get(pair, 0) + 1

    def _change(self, key: str) -> Change:
        return self._entities.setdefault(key, Change())

    async def _hold(self) -> list[Row]:
        rows = [{"key": key, "project": key.partition("/")[0], "to": self._to} for key in sorted(self._entities)]
        return await each(self._tx, cypher.HOLD_ENTITIES, rows)

    async def _retract(self, before: list[Row], held: dict[str, Row]) -> None:
        """Remove mentions, edges and links. A link is looked for from its rarer end."""
        known = [row["key"] for row in before]
        await each(self._tx, cypher.DROP_MENTIONS, known)
        await each(self._tx, cypher.DROP_EDGES, known)
        links = {
            (row["key"], min(ends, key=lambda end: (held[end]["mentions"], end)))
            for row in before
            for ends in zip(row["begins"] or (), row["ends"] or (), strict=True)
        }
        await each(self._tx, cypher.DROP_LINKS, [{"memory": memory, "end": end} for memory, end in sorted(links)])

    async def _assert(self) -> None:
        await each(self._tx, cypher.WRITE_MEMORIES, map(_memory_row, self._facts))
        mentions = ({"memory": f.key, "entity": entity} for f in self._facts for entity in f.entities)
        await each(self._tx, cypher.WRITE_MENTIONS, mentions)
        links = (_link_row(facts, index) for facts in self._facts for index in range(len(facts.links)))
        await each(self._tx, cypher.WRITE_LINKS, links)
        edges = (_edge_row(facts, index) for facts in self._facts for index in range(len(facts.arrows)))
        await each(self._tx, cypher.WRITE_EDGES, edges)

    async def _rename(self) -> None:
        changed = sorted((form, entity, more) for (form, entity), more in self._names.items() if more)
        rows = [{"form": form, "entity": entity, "more": more, "to": self._to} for form, entity, more in changed]
        await each(self._tx, cypher.WRITE_NAMES, rows)
        fewer = sorted({form for form, _, more in changed if more < 0})
        await each(self._tx, cypher.DROP_NAMINGS, fewer)
        await each(self._tx, cypher.DROP_NAMES, fewer)

    async def _count(self, held: dict[str, Row]) -> None:
        rows, short = [], []
        for key, change in self._entities.items():
            was = held[key]
            mentions = was["mentions"] - len(change.gone) + len(change.come)
            recent = change.recent(was["recent"])
            rows.append(
                {
                    "key": key,
                    "name": change.name or was["name"],
                    "type": change.type if change.type not in (None, "Thing") else was["type"] or change.type,
                    "mentions": mentions,
                    "recent": [pack_mention(at, memory) for at, memory in recent],
                }
            )
            if len(recent) < min(mentions, SOURCES):
                short.append(rows[-1])
        await self._refill(short)
        await each(self._tx, cypher.WRITE_ENTITIES, rows)

    async def _refill(self, short: list[Row]) -> None:
        """Read the newest mentions anew where forgetting has used up those kept."""
        by_key = {row["key"]: row for row in short}
        for row in short:
            row["recent"] = []
        for found in await each(self._tx, cypher.NEWEST, by_key, most=KEPT):
            by_key[found["key"]]["recent"].append(pack_mention(found["at"], found["id"]))

    async def _sweep(self, before: list[Row]) -> None:
        await each(self._tx, cypher.DROP_ENTITIES, [key for key, change in self._entities.items() if change.gone])
        live = {facts.key for facts in self._facts}
        buried = [key for key in self._keys if key not in live]
        await each(self._tx, cypher.BURY, buried)
        targets = {target for row in before for target in row["targets"]}
        await each(self._tx, cypher.DROP_PLACEHOLDERS, sorted(targets.union(buried)))


def _memory_row(facts: Facts) -> Row:
    return {
        "key": facts.key,
        "project": facts.project,
        "id": facts.id,
        "slot": slot_of_id(facts.id),
        "at": facts.at,
        "live": True,
        "forms": [form for form, _ in facts.aliases],
        "form_of": [entity for _, entity in facts.aliases],
        "begins": [link.source for link in facts.links],
        "ends": [link.target for link in facts.links],
    }


def _link_row(facts: Facts, index: int) -> Row:
    link = facts.links[index]
    return {
        "id": link.id,
        "type": link.type,
        "source": link.source,
        "target": link.target,
        "statement": link.statement,
        "memory": facts.key,
        "at": facts.at,
        "project": facts.project,
    }


def _edge_row(facts: Facts, index: int) -> Row:
    arrow = facts.arrows[index]
    return {
        "memory": facts.key,
        "target": key_of(facts.project, arrow.target),
        "project": facts.project,
        "id": arrow.target,
        "kind": arrow.kind,
        "weight": arrow.weight,
    }

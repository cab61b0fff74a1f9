"""Rows that the store answers with, as the values that ranking works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from contracts.base import MemoryId
from contracts.lanes import EdgesReply
from contracts.memory import EdgeKind
from workers.graph.facts import name_in
from workers.graph.ranking import Anchors, Node, Step, Walk, label_of

Row = Mapping[str, Any]


def pack_mention(at: int, memory: MemoryId) -> str:
    """One entry of an entity's newest mentions, as it is stored."""
    return f"{at}|{memory}"


def unpack_mention(packed: str) -> tuple[int, MemoryId]:
    at, _, memory = packed.partition("|")
    return int(at), memory


def node_of(key: str, name: str, mentions: int, recent: Sequence[str] | None) -> Node:
    return Node(key, name, mentions, tuple(unpack_mention(packed)[1] for packed in recent or ()))


def anchors_of(rows: Sequence[Row], subject: str | None) -> Anchors:
    found = ((row["form"], node_of(row["key"], row["name"], row["mentions"], row["recent"])) for row in rows)
    return Anchors(found, subject)


def walk_of(rows: Sequence[Row]) -> Walk:
    """The parts of cypher.WALK, or its links alone."""
    walk = Walk()
    for row in rows:
        part, anchor, values = row["part"], row["anchor"], row["row"]
        if part in ("link", "far"):
            walk.steps.append(_step(anchor, row["via"], values))
        elif part == "shared":
            walk.shared.append((values[0], [anchor, *values[1]]))
        elif part == "joined":
            walk.joined.append((name_in(anchor), values[0], values[1]))
    return walk


def _step(anchor: str, via: str, values: Sequence[Any]) -> Step:
    link, kind, memory, source, target, *end = values
    return Step(anchor, via, link, label_of(source, kind, target), name_in(memory), node_of(*end))


def keys_by_memory(rows: Sequence[Row], part: str) -> dict[MemoryId, list[str]]:
    """Entity keys of the memories in one part of cypher.SCORE."""
    return {name_in(row["anchor"]): row["row"] for row in rows if row["part"] == part}


def edges_of(rows: Sequence[Row], most: int) -> EdgesReply:
    """The rows of cypher.EDGES_OUT or EDGES_IN, which were asked for one more a memory than `most`: the last goes."""
    seen: Counter[str] = Counter()
    kept = set()
    for row in rows:
        seen[row["key"]] += 1
        if seen[row["key"]] <= most:
            kept.add((row["source"], row["kind"], row["target"], row["weight"]))
    columns = list(zip(*sorted(kept), strict=True)) or [(), (), (), ()]
    return EdgesReply(
        sources=columns[0],
        kinds=tuple(EdgeKind(kind) for kind in columns[1]),
        targets=columns[2],
        weights=columns[3],
        cut=any(count > most for count in seen.values()),
    )

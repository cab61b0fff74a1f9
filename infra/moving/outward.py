"""Out of a project: every live memory, oldest first, a page at a time, with references in place of ids."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from contracts.base import MAX_ENTITIES, MemoryId, epoch_ms, now
from contracts.catalog import Row
from contracts.client import MemoryClient
from infra.moving.portable import ref_of, to_line, to_portable

#: References of memories that were looked up are kept up to this many; more are looked up again.
MOST_KEPT = 50_000
#: What is no part of any export, in words.
NEVER = (
    "forgotten memories", "earlier states of a memory", "vectors", "topics and their summaries", "uses and feedback",
    "the schema", "sessions of queries",
)  # fmt: skip


@dataclass
class Carried:
    """How many memories went out, and what had to stay behind, by reason."""

    memories: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


async def outward(memory: MemoryClient, carried: Carried) -> AsyncIterator[dict[str, Any]]:
    """The fields of each memory that goes out, and into `carried` the count of what does not.

    Memories of the same millisecond come in the order of their references, since the order of their ids is another in
    each project. What is written meanwhile may or may not be among them.
    """
    known = _Known(memory)
    at = now()
    same: list[Row] = []
    async for row in memory.memories(order="oldest"):
        if same and epoch_ms(row.created_at) != epoch_ms(same[-1].created_at):
            for fields in await _together(known, same, carried):
                yield fields
            same = []
        if row.exists(at):
            same.append(row)
        else:
            carried.left_out["memories that have expired"] += 1
    for fields in await _together(known, same, carried):
        yield fields


async def _together(known: _Known, rows: list[Row], carried: Carried) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        if not await known.goes(row):
            carried.left_out["memories whose successor was forgotten"] += 1
            continue
        named = [edge.target for edge in row.edges] + list(row.supersedes)
        refs = {target: ref for target in named if (ref := await known.ref(target)) is not None}
        carried.left_out["edges to memories that are not there"] += sum(edge.target not in refs for edge in row.edges)
        carried.left_out["names found in a text beyond the first 256"] += max(len(row.entities) - MAX_ENTITIES, 0)
        carried.memories += 1
        found.append(to_portable(known.project, row, refs))
    return sorted(found, key=lambda fields: (fields["ref"], to_line(fields)))


class _Known:
    """The memories that others name: each is looked up once, or again where it was long ago."""

    def __init__(self, memory: MemoryClient) -> None:
        self._memory, self.project = memory, memory.project
        self._refs: OrderedDict[MemoryId, str | None] = OrderedDict()

    async def ref(self, memory_id: MemoryId) -> str | None:
        """The reference of a memory that goes out, None for one that does not."""
        if memory_id not in self._refs:
            row = (await self._memory.inspect(memory_id)).memory
            goes = row is not None and await self.goes(row, frozenset({memory_id}))
            self._refs[memory_id] = ref_of(self.project, row) if row is not None and goes else None
            if len(self._refs) > MOST_KEPT:
                self._refs.popitem(last=False)
        return self._refs[memory_id]

    async def goes(self, row: Row, asked: frozenset[MemoryId] = frozenset()) -> bool:
        """Whether a memory goes out. One that was superseded goes with its successor alone: where that was forgotten,
        it would stand again in the other project, which forgetting is never to bring about."""
        if not row.exists(now()):
            return False
        if row.superseded_by is None or row.superseded_by in asked:  # each other's, so one of them is superseded there
            return True
        successor = (await self._memory.inspect(row.superseded_by)).memory
        return successor is not None and await self.goes(successor, asked | {row.superseded_by})

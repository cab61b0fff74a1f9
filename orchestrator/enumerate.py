"""The reads that rank nothing: list what is stored, export it as a graph, inspect one memory's write story."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio.lowlevel

from contracts import wire
from contracts.catalog import InspectReply, InspectRequest, ListPage, ListReply, ListRequest, Row, StoryEntry
from contracts.graph import GraphFetchReply, GraphFetchRequest, union
from contracts.memory import MemoryRecord
from contracts.ports import Log
from orchestrator.catalog import Catalog, place_of
from orchestrator.consistency import Horizon
from orchestrator.cursor import binding_of, seal, unseal
from orchestrator.graph_export import part_of

TIMEOUT_S = 5.0
GRAPH_TIMEOUT_S = 10.0
#: Memories that a graph page asks of the catalog at once.
GRAPH_STEP = 100
#: A graph page ends before it is larger than this as JSON: the bus takes 1 MiB a message.
MOST_GRAPH_BYTES = 700_000


class EnumerationService:
    def __init__(self, log: Log, catalog: Catalog, horizon: Horizon) -> None:
        self._log, self._catalog, self._horizon = log, catalog, horizon

    async def list(self, project: str, request: ListRequest) -> ListReply:
        """One page over all shards. Raises InvalidRequest (STALE_CURSOR) for a cursor of other filters."""
        await self._horizon.check_project(project)
        binding = binding_of(request)
        after = unseal(request.cursor, binding) if request.cursor else None
        page = ListPage(project=project, request=request, after=after)
        rows = await self._catalog.listed(page, time.monotonic() + TIMEOUT_S)
        shown = rows[: request.limit]
        return ListReply(memories=tuple(shown), cursor=seal(shown[-1], binding) if len(rows) > len(shown) else None)

    async def graph_fetch(self, project: str, request: GraphFetchRequest) -> GraphFetchReply:
        """One page, over all shards; complete in itself. Raises NotFound (UNKNOWN_PROJECT), InvalidRequest
        (STALE_CURSOR) and Unavailable when the catalog does not answer."""
        await self._horizon.check_project(project)
        deadline = time.monotonic() + GRAPH_TIMEOUT_S
        binding = binding_of(request)
        place = unseal(request.cursor, binding) if request.cursor else None
        parts: list[GraphFetchReply] = []
        last: Row | None = None
        room, more = MOST_GRAPH_BYTES, True
        while more and len(parts) < request.limit:
            step = min(GRAPH_STEP, request.limit - len(parts))
            listing = ListRequest(limit=step, order="oldest", include_tombstoned=request.include_tombstoned)
            rows = await self._catalog.listed(ListPage(project=project, request=listing, after=place), deadline)
            more = len(rows) > step
            for row in rows[:step]:
                part = part_of(row, request)
                room -= len(wire.encode(part))
                if room < 0 and parts:
                    return _graph_page(parts, last, binding)
                parts.append(part)
                last, place = row, place_of(row)
                await anyio.lowlevel.checkpoint()  # a page takes long enough to be felt by the recalls beside it
        return _graph_page(parts, last if more else None, binding)

    async def inspect(self, project: str, request: InspectRequest) -> InspectReply:
        """A memory as the catalog has it and every state of it that the log holds. A foreign or unknown id is not
        found, which is no error."""
        story = await self._log.history(project, request.id)
        if not story:
            return InspectReply(found=False)
        rows = await self._catalog.hydrate(project, [request.id], self._horizon.anywhere, time.monotonic() + TIMEOUT_S)
        before = [None, *(record for _, record in story)]
        entries = tuple(
            StoryEntry(position=position, version=record.version, at=record.changed_at, change=_change(record, last))
            for (position, record), last in zip(story, before, strict=False)
        )
        return InspectReply(found=True, memory=rows.get(request.id), story=entries)


def _change(record: MemoryRecord, before: MemoryRecord | None) -> str:
    """What was done to the memory, told from its state and the one before it (None: the log holds none)."""
    if record.tombstone:
        return f"forgotten ({record.tombstone.mode})"
    if before is not None and before.live:
        held = {(edge.kind, edge.target) for edge in before.edges}
        return "unlinked" if held - {(edge.kind, edge.target) for edge in record.edges} else "linked"
    if before is not None and before.created_at == record.created_at:
        return "restored"
    if before is None and record.version > 1:
        return "changed"  # the log no longer holds the state before
    return "encoded" if record.version == 1 else "encoded again"


def _graph_page(parts: Sequence[GraphFetchReply], last: Row | None, binding: str) -> GraphFetchReply:
    cursor = seal(last, binding) if last else None
    return union(parts).model_copy(update={"cursor": cursor})

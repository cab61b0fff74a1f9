"""The reads that rank nothing: list what is stored, inspect one memory's write story."""

from __future__ import annotations

import time

from contracts.catalog import InspectReply, InspectRequest, ListPage, ListReply, ListRequest, StoryEntry
from contracts.memory import MemoryRecord
from contracts.ports import Log
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon
from orchestrator.cursor import binding_of, seal, unseal

TIMEOUT_S = 5.0


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

    async def inspect(self, project: str, request: InspectRequest) -> InspectReply:
        """A memory as the catalog has it and every state of it that the log holds. A foreign or unknown id is not
        found, which is no error."""
        story = await self._log.history(project, request.id)
        if not story:
            return InspectReply(found=False)
        rows = await self._catalog.hydrate(project, [request.id], self._horizon.anywhere, time.monotonic() + TIMEOUT_S)
        entries = tuple(
            StoryEntry(position=position, version=record.version, at=record.changed_at, change=_change(record))
            for position, record in story
        )
        return InspectReply(found=True, memory=rows.get(request.id), story=entries)


def _change(record: MemoryRecord) -> str:
    if record.tombstone:
        return f"forgotten ({record.tombstone.mode})"
    return "encoded" if record.version == 1 else "encoded again"

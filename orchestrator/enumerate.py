"""The reads that rank nothing: list what is stored, inspect one memory's write story."""

from __future__ import annotations

import base64
import hashlib
import time

import orjson

from contracts.base import epoch_ms
from contracts.catalog import InspectReply, InspectRequest, ListPage, ListReply, ListRequest, Row, StoryEntry
from contracts.errors import ErrorCode, InvalidRequest
from contracts.memory import MemoryRecord
from contracts.ports import Log
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon

TIMEOUT_S = 5.0


class EnumerationService:
    def __init__(self, log: Log, catalog: Catalog, horizon: Horizon) -> None:
        self._log, self._catalog, self._horizon = log, catalog, horizon

    async def list(self, project: str, request: ListRequest) -> ListReply:
        """One page over all shards. Raises InvalidRequest (STALE_CURSOR) for a cursor of other filters."""
        await self._horizon.check_project(project)
        filters = _filters_hash(request)
        after = _open_cursor(request.cursor, filters) if request.cursor else None
        page = ListPage(project=project, request=request, after=after)
        rows = await self._catalog.page(page, time.monotonic() + TIMEOUT_S)
        rows.sort(key=lambda row: (epoch_ms(row.created_at), row.id), reverse=request.order == "newest")
        shown = rows[: request.limit]
        return ListReply(
            memories=tuple(shown), cursor=_cursor(shown[-1], filters) if len(rows) > len(shown) and shown else None
        )

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
    if before is None and record.version > 1:
        return "changed"  # the log no longer holds the state before
    return "encoded" if record.version == 1 else "encoded again"


def _filters_hash(request: ListRequest) -> str:
    """What a cursor is bound to: everything but the page size and the cursor itself."""
    fields = request.model_dump(mode="json", exclude={"cursor", "limit"})
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _cursor(row: Row, filters: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([filters, epoch_ms(row.created_at), row.id])).decode()


def _open_cursor(cursor: str, filters: str) -> tuple[int, str]:
    try:
        bound, created, memory_id = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
        after = (int(created), str(memory_id))
    except (ValueError, TypeError):
        raise InvalidRequest(ErrorCode.STALE_CURSOR, "not a cursor of this service", field="cursor") from None
    if bound != filters:
        raise InvalidRequest(ErrorCode.STALE_CURSOR, "the cursor belongs to other filters", field="cursor")
    return after

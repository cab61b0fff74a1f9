"""The read that exports a project as a typed graph, in pages that are complete in themselves."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio.lowlevel

from contracts import wire
from contracts.catalog import ListPage, ListRequest, Row
from contracts.graph import GraphFetchReply, GraphFetchRequest, union
from orchestrator.catalog import Catalog, place_of
from orchestrator.consistency import Horizon
from orchestrator.cursor import binding_of, seal, unseal
from orchestrator.graph_export import part_of

TIMEOUT_S = 10.0
#: Memories asked of the catalog at once.
STEP = 100
#: A page ends before it is larger than this as JSON: the bus takes 1 MiB a message.
MOST_BYTES = 700_000


class GraphFetchService:
    def __init__(self, catalog: Catalog, horizon: Horizon) -> None:
        self._catalog, self._horizon = catalog, horizon

    async def fetch(self, project: str, request: GraphFetchRequest) -> GraphFetchReply:
        """One page, over all shards. Raises NotFound (UNKNOWN_PROJECT), InvalidRequest (STALE_CURSOR) and Unavailable
        when the catalog does not answer."""
        await self._horizon.check_project(project)
        deadline = time.monotonic() + TIMEOUT_S
        binding = binding_of(request)
        place = unseal(request.cursor, binding) if request.cursor else None
        parts: list[GraphFetchReply] = []
        last: Row | None = None
        room, more = MOST_BYTES, True
        while more and len(parts) < request.limit:
            step = min(STEP, request.limit - len(parts))
            listing = ListRequest(limit=step, order="oldest", include_tombstoned=request.include_tombstoned)
            rows = await self._catalog.listed(ListPage(project=project, request=listing, after=place), deadline)
            more = len(rows) > step
            for row in rows[:step]:
                part = part_of(row, request)
                room -= len(wire.encode(part))
                if room < 0 and parts:
                    return _page(parts, last, binding)
                parts.append(part)
                last, place = row, place_of(row)
                await anyio.lowlevel.checkpoint()  # a page takes long enough to be felt by the recalls beside it
        return _page(parts, last if more else None, binding)


def _page(parts: Sequence[GraphFetchReply], last: Row | None, binding: str) -> GraphFetchReply:
    cursor = seal(last, binding) if last else None
    return union(parts).model_copy(update={"cursor": cursor})

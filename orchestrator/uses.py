"""Uses of memories: those that a reply held, and what callers say of one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from contracts.base import MemoryId, now
from contracts.errors import ErrorCode, NotFound
from contracts.query import FeedbackReply, FeedbackRequest, QueryReply, Use
from contracts.stores import Uses
from orchestrator.afterwards import Afterwards
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon

#: What feedback counts, beside 1 for a reply that holds the memory.
USEFUL, NOT_USEFUL = 3, -1
#: Of a longer reply only the first so many count: the caller hardly used them all.
MOST_RETURNED = 50
#: A query always gives k memories if it can; those less near than this, and out of the graph's reach, only fill up.
NEAR = 0.3
TIMEOUT_S = 5.0


def successful(reply: QueryReply) -> list[MemoryId]:
    """The memories of a reply whose showing counts as a use: near to the query, and let in by no relaxed filter."""
    return [
        one.id for one in reply.memories if not one.relaxed and (one.scores.semantic >= NEAR or one.scores.graph > 0.0)
    ]


class UsesService:
    def __init__(self, uses: Uses, catalog: Catalog, horizon: Horizon, afterwards: Afterwards) -> None:
        self._uses, self._catalog, self._horizon, self._afterwards = uses, catalog, horizon, afterwards

    def returned(self, project: str, ids: Sequence[MemoryId]) -> None:
        """A reply holds these. Told after the reply has left; that the stream is away is no caller's trouble."""
        if ids:
            at, part = now(), tuple(ids[:MOST_RETURNED])

            async def tell() -> None:
                await self._uses.tell(project, Use(ids=part, at=at))

            self._afterwards.soon(tell)

    async def feedback(self, project: str, request: FeedbackRequest) -> FeedbackReply:
        """Count it, and answer once that is stored. Sent again it counts again, unless it has a request id.

        Raises NotFound (UNKNOWN_PROJECT, MEMORY_NOT_FOUND for a memory that is not in the project or was forgotten) and
        Unavailable when catalog or stream do not answer.
        """
        await self._horizon.check_project(project)
        deadline = time.monotonic() + TIMEOUT_S
        rows = await self._catalog.facets(project, [request.id], False, self._horizon.anywhere, deadline)
        row = rows.get(request.id)
        if row is None or row.tombstone:
            raise NotFound(ErrorCode.MEMORY_NOT_FOUND, "no such memory", id=request.id)
        count = USEFUL if request.useful else NOT_USEFUL
        use = Use(ids=(request.id,), count=count, at=now())
        fresh = await self._uses.tell(project, use, request.request_id)
        return FeedbackReply(id=request.id, counted=count if fresh else 0, deduplicated=not fresh)

"""The catalog role: follows the log and the stream of uses, and answers what is asked of rows, names and claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread
import orjson

from contracts import subjects, wire
from contracts.base import Position
from contracts.catalog import (
    BesideReply,
    BesideRequest,
    ClaimsReply,
    ClaimsRequest,
    HydrateRequest,
    ListPage,
    MatchReply,
    MatchRequest,
    NamesReply,
    NamesRequest,
    NeighboursReply,
    NeighboursRequest,
    OverdueReply,
    OverdueRequest,
)
from contracts.errors import ErrorCode, Unavailable
from contracts.memory import MemoryKind
from contracts.ports import Call, Endpoint, Entry, Log
from contracts.shards import WHOLE, Shard
from contracts.stores import Uses
from workers.catalog.store import CatalogStore
from workers.lane import Progress, follow

#: A hydrate reply stops here and leaves the rest to a second request: the bus takes 1 MiB a message.
MOST_REPLY_BYTES = 700_000

_FILTERED = {
    "id", "kind", "position", "version", "created_at", "occurred_at", "session", "confidence", "salience", "expires_at",
    "superseded_by", "superseded_at", "superseded_written", "tombstone",
}  # fmt: skip
_TYPED = {"entities", "statements", "relations"}
_SIGNALS = {"source", "tags", "importance", "quality", "uses", "uses_14d", "last_used"}


class _Applied:
    """The store as a follower's index; `search` and `score` are not a catalog's to answer."""

    def __init__(self, store: CatalogStore) -> None:
        self._store = store

    @property
    def position(self) -> Position:
        return self._store.position

    async def apply(self, entries: Sequence[Entry]) -> None:
        await anyio.to_thread.run_sync(self._store.apply, entries)


class CatalogWorker:
    name = "catalog"

    def __init__(self, shard: Shard, replica: str, store: CatalogStore, log: Log, uses: Uses | None = None) -> None:
        self._shard, self._store, self._log, self._uses = shard, store, log, uses
        self._durable = subjects.durable("catalog", shard, replica)
        self._uses_durable = subjects.durable("catalog-uses", shard, replica)
        self._progress = Progress(store.position)

    def endpoints(self) -> Sequence[Endpoint]:
        queue = f"catalog-{self._shard}"
        own = {
            "hydrate": self._hydrate,
            "list": self._list,
            "neighbours": self._neighbours,
            "overdue": self._overdue,
            "match": self._match,
        }
        of_all = {"claims": self._claims, "names": self._names, "beside": self._beside}
        return [
            *(Endpoint(op, subjects.catalog(self._shard, op), queue, handle) for op, handle in own.items()),
            *(Endpoint(op, subjects.catalog(None, op), "catalog", handle) for op, handle in of_all.items()),
        ]

    def stats(self) -> dict[str, object]:
        return {"shard": str(self._shard), "position": self._progress.position, "memories": self._store.live}

    async def run(self, ready: Callable[[], None]) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                if self._uses is not None:
                    tasks.start_soon(self._follow_uses, self._uses)
                await follow(self._log, self._durable, WHOLE, _Applied(self._store), self._progress, ready)
        finally:
            self._store.close()

    async def _follow_uses(self, uses: Uses) -> None:
        """Beside the log, and no condition of being ready: a count that is late only shifts two signals a little."""
        async for batch in uses.follow(self._uses_durable, self._store.uses_position):
            await anyio.to_thread.run_sync(self._store.apply_uses, batch.told)
            await batch.ack()

    async def _hydrate(self, call: Call) -> bytes:
        request = wire.decode_reply(HydrateRequest, call.data)
        position = await self._reach(request.min_position, call.arrived + request.remaining_ms / 1000)
        with_uses = request.signals or not request.lean
        rows = await anyio.to_thread.run_sync(self._store.hydrate, request.project, request.ids, with_uses)
        return _page([_lean(row, request.types, request.signals) for row in rows] if request.lean else rows, position)

    async def _match(self, call: Call) -> bytes:
        request = wire.decode_reply(MatchRequest, call.data)
        await self._reach(request.min_position, call.arrived + request.remaining_ms / 1000)
        found = await anyio.to_thread.run_sync(self._store.matching, request)
        return wire.encode(MatchReply(ids=tuple(one for one, _ in found), at=tuple(at for _, at in found)))

    async def _neighbours(self, call: Call) -> bytes:
        request = wire.decode_reply(NeighboursRequest, call.data)
        position = await self._reach(request.min_position, call.arrived + request.remaining_ms / 1000)
        found = await anyio.to_thread.run_sync(self._store.neighbours, request)
        return wire.encode(NeighboursReply(found=tuple(found), position=position))

    async def _beside(self, call: Call) -> bytes:
        request = wire.decode_reply(BesideRequest, call.data)
        found = await anyio.to_thread.run_sync(self._store.beside, request.project, request.ids, request.reach)
        return wire.encode(BesideReply(found=tuple(map(tuple, found))))

    async def _reach(self, wanted: Position, deadline: float) -> Position:
        """The position applied, once it is at least `wanted`. Raises Unavailable (CONSISTENCY_TIMEOUT)."""
        if not await self._progress.reached(wanted, deadline):
            raise Unavailable(
                ErrorCode.CONSISTENCY_TIMEOUT, "the catalog is behind", lane="catalog", position=self._progress.position
            )
        return self._progress.position

    async def _overdue(self, call: Call) -> bytes:
        request = wire.decode_reply(OverdueRequest, call.data)
        found = await anyio.to_thread.run_sync(self._store.overdue, request.before, request.limit)
        return wire.encode(OverdueReply(overdue=tuple(found)))

    async def _names(self, call: Call) -> bytes:
        request = wire.decode_reply(NamesRequest, call.data)
        known = await anyio.to_thread.run_sync(self._store.known_names, request.project, request.names)
        return wire.encode(NamesReply(known=known))

    async def _claims(self, call: Call) -> bytes:
        request = wire.decode_reply(ClaimsRequest, call.data)
        await self._reach(request.min_position, call.arrived + request.remaining_ms / 1000)
        claims, stale = await anyio.to_thread.run_sync(self._store.claims, request)
        return wire.encode(ClaimsReply(claims=tuple(claims), stale=tuple(sorted(stale))))

    async def _list(self, call: Call) -> bytes:
        page = wire.decode_reply(ListPage, call.data)
        rows = await anyio.to_thread.run_sync(self._store.page, page.project, page.request, page.after)
        return _page(rows, self._progress.position)


def _lean(row: dict[str, object], types: bool, signals: bool = False) -> dict[str, object]:
    """Only what filters look at, and of that only what is set; its text is empty."""
    kept = _FILTERED | (_TYPED if types else set()) | (_SIGNALS if signals else set())
    if signals and row["kind"] == MemoryKind.CONSOLIDATED:
        kept = kept | {"edges"}  # a summary's parents
    return {"text": ""} | {name: value for name, value in row.items() if name in kept and value is not None}


def _page(rows: list[dict[str, object]], position: Position) -> bytes:
    """As many rows as fit; `more` says that some did not."""
    parts: list[bytes] = []
    size = 0
    for row in rows:
        part = orjson.dumps(row)
        size += len(part) + 1
        if parts and size > MOST_REPLY_BYTES:
            break
        parts.append(part)
    more = b"true" if len(parts) < len(rows) else b"false"
    return b'{"rows":[%s],"position":%d,"more":%s}' % (b",".join(parts), position, more)

"""Uses of memories: counted once, by day, through restarts, on a real SQLite file and a real NATS server."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from nats.aio.client import Client

from contracts import subjects, wire
from contracts.base import now
from contracts.catalog import HydrateReply, HydrateRequest, MatchReply, MatchRequest, Row
from contracts.memory import Edge, EdgeKind, MemoryKind, MemoryRecord, Tombstone, derive_id
from contracts.ports import Call
from contracts.query import Use
from contracts.shards import WHOLE
from contracts.stores import Told
from infra.nats_log import JetStreamLog
from infra.nats_uses import StreamUses
from workers.catalog import CatalogStore, CatalogWorker
from workers.catalog.uses import KEPT_DAYS

_numbers = itertools.count(1)
DAY = timedelta(days=1)
A, B = derive_id("a"), derive_id("b")


def record(name: str, **fields: Any) -> MemoryRecord:
    return MemoryRecord(**{
        "id": derive_id(name), "project": "p", "text": name, "created_at": now(), "changed_at": now(),
    } | fields)  # fmt: skip


def told(position: int, *ids: str, count: int = 1, days_ago: int = 0, project: str = "p") -> Told:
    return Told(position, project, Use(ids=ids, count=count, at=now() - days_ago * DAY))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CatalogStore]:
    store = CatalogStore(tmp_path / "catalog", WHOLE)
    store.apply([(1, record("a")), (2, record("b")), (3, record("a", project="q"))])
    yield store
    store.close()


def row(store: CatalogStore, memory: str = A, project: str = "p") -> Row:
    return Row.model_validate(store.hydrate(project, [memory])[0])


class TestTable:
    def test_counts_by_window_and_project(self, store: CatalogStore) -> None:
        store.apply_uses([told(1, A, B), told(2, A, days_ago=13), told(3, A, days_ago=14), told(4, A, days_ago=60)])
        store.apply_uses([told(5, A, days_ago=KEPT_DAYS + 1)])
        found = row(store)
        assert (found.uses, found.uses_14d) == (4, 2)
        assert found.last_used is not None
        assert now() - found.last_used < DAY / 24
        assert (row(store, B).uses, row(store, project="q").uses) == (1, 0)
        assert row(store, project="q").last_used is None

    def test_what_comes_again_counts_once(self, store: CatalogStore) -> None:
        batch = [told(4, A), told(9, A), told(12, B)]
        for start in (0, 1, 2, 0):
            store.apply_uses(batch[start:])
        store.apply_uses([])
        assert (row(store).uses, row(store, B).uses, store.uses_position) == (2, 1, 12)

    def test_taking_back_stops_at_zero_and_makes_nothing_fresher(self, store: CatalogStore) -> None:
        store.apply_uses([told(1, A, count=-1), told(2, A, count=-1)])
        assert (row(store).uses, row(store).uses_14d, row(store).last_used) == (0, 0, None)
        store.apply_uses([told(3, A, count=3, days_ago=2), told(4, A, count=-1)])
        found = row(store)
        assert found.uses == 0
        assert found.last_used is not None
        assert now() - found.last_used > DAY

    def test_survives_reopening_with_its_position(self, tmp_path: Path) -> None:
        store = CatalogStore(tmp_path / "other", WHOLE)
        store.apply([(1, record("a"))])
        store.apply_uses([told(7, A, count=3)])
        store.close()
        again = CatalogStore(tmp_path / "other", WHOLE)
        again.apply_uses([told(7, A, count=3)])
        assert (row(again).uses, again.uses_position) == (3, 7)
        again.close()

    def test_a_forgotten_memory_has_none(self, store: CatalogStore) -> None:
        store.apply_uses([told(1, A)])
        store.apply([(4, record("a", text="", version=2, tombstone=Tombstone(at=now())))])
        store.apply([(5, record("a", version=3))])
        assert row(store).uses == 0


class Quiet:
    """A log and a stream of uses that nothing is in."""

    async def follow(self, *_: object) -> AsyncIterator[Any]:
        await anyio.sleep_forever()
        yield None


async def ask(store: CatalogStore, op: str, request: Any) -> bytes:
    worker = CatalogWorker(WHOLE, "a", store, Quiet())  # type: ignore[arg-type]
    [endpoint] = [one for one in worker.endpoints() if one.name == op]
    return await endpoint.handle(Call(endpoint.subject, wire.encode(request), anyio.current_time()))


class TestRows:
    async def test_lean_rows_have_uses_only_where_signals_are_asked_for(self, store: CatalogStore) -> None:
        store.apply_uses([told(1, A)])
        for fields, uses in (({"lean": True}, 0), ({"lean": True, "signals": True}, 1), ({}, 1)):
            request = HydrateRequest(project="p", ids=(A,), **fields)  # type: ignore[arg-type]
            [found] = wire.decode_reply(HydrateReply, await ask(store, "hydrate", request)).rows
            assert found.uses == uses

    async def test_signals_bring_what_queries_filter_by(self, store: CatalogStore) -> None:
        made = Edge(kind=EdgeKind.DERIVED_FROM, target=B)
        given = {"source": "chat", "tags": ("x",), "importance": 0.9, "quality": 0.7, "edges": (made,)}
        store.apply([(4, record("c", **given)), (5, record("d", kind=MemoryKind.CONSOLIDATED, **given))])
        request = HydrateRequest(project="p", ids=(derive_id("c"), derive_id("d")), lean=True, signals=True)
        plain, summary = wire.decode_reply(HydrateReply, await ask(store, "hydrate", request)).rows
        assert (plain.source, plain.tags, plain.importance, plain.quality, plain.text) == ("chat", ("x",), 0.9, 0.7, "")
        assert (plain.edges, summary.edges) == ((), (made,))


class TestMatch:
    @pytest.mark.parametrize(
        ("fields", "names"),
        [
            ({}, "edcba"),
            ({"sources": ("chat",)}, "ca"),
            ({"sources": ("chat", "mail")}, "cba"),
            ({"tags": ("x", "y")}, "dcb"),
            ({"sources": ("chat",), "tags": ("x", "y")}, "c"),
            ({"tags": ("none",)}, ""),
            ({"summaries": True}, "fedcba"),
            ({"limit": 2}, "ed"),
            ({"since": now() - 30 * DAY, "until": now() - 10 * DAY}, "cb"),
        ],
    )
    async def test_what_passes_newest_first(self, tmp_path: Path, fields: dict[str, Any], names: str) -> None:
        given: dict[str, dict[str, Any]] = {
            "a": {"source": "chat"},
            "b": {"source": "mail", "tags": ("x",)},
            "c": {"source": "chat", "tags": ("x", "y")},
            "d": {"tags": ("y",)},
            "e": {},
            "f": {"kind": MemoryKind.CONSOLIDATED, "tags": ("z",)},
        }
        store = CatalogStore(tmp_path, WHOLE)
        for position, (name, more) in enumerate(given.items(), 1):
            at = now() - (41 - 10 * position) * DAY if position <= 4 else now() + position * DAY
            store.apply([(position, record(name, occurred_at=at - DAY, **more))])
        store.apply([(7, record("g", source="chat")), (8, record("g", version=2, tombstone=Tombstone(at=now())))])
        store.apply([(9, record("h", project="q", source="chat"))])
        reply = wire.decode_reply(MatchReply, await ask(store, "match", MatchRequest(project="p", **fields)))
        assert reply.ids == tuple(derive_id(name) for name in names)
        assert list(reply.at) == sorted(reply.at, reverse=True)
        store.close()

    async def test_labels_follow_the_last_state(self, store: CatalogStore) -> None:
        store.apply([(4, record("a", tags=("old",))), (5, record("a", version=2, tags=("new",)))])
        for tag, ids in (("old", ()), ("new", (A,))):
            reply = wire.decode_reply(MatchReply, await ask(store, "match", MatchRequest(project="p", tags=(tag,))))
            assert reply.ids == ids


class TestStream:
    async def test_in_order_from_a_position(self, client: Client) -> None:
        uses, project = StreamUses(client), f"u{next(_numbers)}"
        for count in range(1, 4):
            await uses.tell(project, Use(ids=(A, B), count=count, at=now()))
        seen = await self._read(uses, project, 0, 3)
        assert [(one.use.ids, one.use.count) for one in seen] == [((A, B), n) for n in (1, 2, 3)]
        later = await self._read(uses, project, seen[0].position, 2)
        assert [one.use.count for one in later] == [2, 3]

    async def _read(self, uses: StreamUses, project: str, after: int, most: int) -> list[Told]:
        seen: list[Told] = []
        with anyio.fail_after(10):
            async for batch in uses.follow(f"test-{next(_numbers)}", after):
                seen += (one for one in batch.told if one.project == project)
                await batch.ack()
                if len(seen) >= most:
                    break
        return seen

    async def test_the_same_request_is_stored_once(self, client: Client) -> None:
        """By project; a request without an id is one of its own each time."""
        uses, use, project = StreamUses(client), Use(ids=(A,), at=now()), f"u{next(_numbers)}"
        told = [await uses.tell(project, use, once) for once in ("é\r\n", "é\r\n", "other", None, None)]
        assert told == [True, False, True, True, True]
        assert await uses.tell(f"{project}x", use, "other")
        assert len(await self._read(uses, project, 0, 4)) == 4

    async def test_garbage_is_skipped(self, client: Client) -> None:
        project = f"u{next(_numbers)}"
        await client.jetstream().publish(subjects.used(project), b"junk")
        uses = StreamUses(client)
        await uses.tell(project, Use(ids=(A,), at=now()))
        assert [one.use.ids for one in await self._read(uses, project, 0, 1)] == [(A,)]

    async def test_a_catalog_counts_each_use_once_over_restarts(self, client: Client, tmp_path: Path) -> None:
        """Stopped and started between uses, and once more with its file lost: the stream has it all."""
        log, uses = JetStreamLog(client), StreamUses(client)
        position = await log.append(record("a", project="restarts"), 0)

        async def counted(folder: Path, wanted: int) -> int:
            store = CatalogStore(folder, WHOLE)
            worker = CatalogWorker(WHOLE, "a", store, log, uses)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(worker.run, lambda: None)
                with anyio.fail_after(10):
                    while store.position < position or row(store, A, "restarts").uses < wanted:
                        await anyio.sleep(0.02)
                await anyio.sleep(0.1)  # whatever came twice would be here by now
                found = row(store, A, "restarts").uses
                tasks.cancel_scope.cancel()
            return found

        for number in range(1, 4):
            await uses.tell("restarts", Use(ids=(A,), at=now()))
            assert await counted(tmp_path / "kept", number) == number
        assert await counted(tmp_path / "anew", 3) == 3

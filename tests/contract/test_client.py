"""The client, asynchronous and blocking, on a real NATS server with a small service behind it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import orjson
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import client as client_module
from contracts import sync, wire
from contracts.client import MemoryClient
from contracts.errors import ErrorCode, Exhausted, InvalidRequest, MemlaneError, NotFound, Unavailable
from contracts.sync import SyncMemoryClient
from infra.nats_bus import connect
from infra.nats_server import NatsServer
from infra.settings import Nats

ID = "a" * 26
REPLIES: dict[str, Any] = {
    "encode": {"id": ID, "position": 1},
    "forget": {"id": ID, "position": 2, "forgotten": True},
    "feedback": {"id": ID, "counted": 3},
    "recall": {
        "answer_kind": "None", "members": [], "lanes": {}, "degraded": False, "reranked": False, "rerank": "off", "took_ms": 1
    },
    "txn.begin": {"txn_id": "t", "expires_at": "2030-01-01T00:00:00Z"},
    "txn.commit": {"txn_id": "t", "operations_applied": 1, "position": 3},
    "txn.abort": {"txn_id": "t", "operations_discarded": 1},
}  # fmt: skip


class Service:
    """Answers every verb; the first answers are those in `errors`. `asked` holds each request as it came."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[MemlaneError] = []
        self.silent: set[str] = set()
        self.heard = anyio.Event()

    async def answer(self, message: Msg) -> None:
        verb, request = message.subject.split(".", 3)[3], orjson.loads(message.data)
        self.asked.append((verb, request))
        self.heard.set()
        if verb in self.silent:
            return
        if self.errors:
            await message.respond(wire.encode_error(self.errors.pop(0)))
        elif verb == "list":
            await message.respond(orjson.dumps(page(request.get("cursor"), request["limit"])))
        else:
            await message.respond(orjson.dumps(REPLIES[verb]))


def page(cursor: str | None, limit: int) -> dict[str, Any]:
    """Of five memories."""
    start = int(cursor or 0)
    rows = [
        {"id": ID, "text": str(number), "kind": "Episodic", "position": 1, "version": 1, "created_at": "2030-01-01T00:00:00Z"}
        for number in range(5)
    ]  # fmt: skip
    end = start + limit
    return {"memories": rows[start:end]} | ({"cursor": str(end)} if end < 5 else {})


@pytest.fixture
async def service(server: NatsServer) -> AsyncIterator[Service]:
    link, service = await connect(Nats(url=server.url), "service"), Service()
    await link.subscribe("memlane.v1.>", cb=service.answer)
    await link.flush()
    yield service
    await link.close()


def away(times: int) -> list[MemlaneError]:
    return [Unavailable(ErrorCode.UNAVAILABLE, "away") for _ in range(times)]


async def test_a_client_makes_one_connection_however_many_calls_come_at_once(
    server: NatsServer, service: Service
) -> None:
    before = await connect(Nats(url=server.url), "before")
    memory = MemoryClient(server.url, project="p")
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(memory.recall, "x")
    after = await connect(Nats(url=server.url), "after")
    assert before.client_id is not None
    assert (await memory.connection()).client_id == before.client_id + 1
    assert after.client_id == before.client_id + 2  # the server numbers them as they come
    for link in (memory, before, after):
        await link.close()


async def test_a_retryable_error_is_retried_and_others_are_not(server: NatsServer, service: Service) -> None:
    async with MemoryClient(server.url, project="p") as memory:
        service.errors = away(2)
        assert (await memory.encode("x")).id == ID
        assert len(service.asked) == 3
        service.errors = away(3)
        with pytest.raises(Unavailable):
            await memory.encode("x")
        assert len(service.asked) == 6
        service.errors = [NotFound(ErrorCode.MEMORY_NOT_FOUND, "no")]
        with pytest.raises(NotFound):
            await memory.forget(ID)
        assert len(service.asked) == 7
        service.errors = [Exhausted(ErrorCode.QUOTA_EXCEEDED, "spent", retry_after_ms=3_600_000)]
        with pytest.raises(Exhausted):
            await memory.recall("x")
        assert len(service.asked) == 8


async def test_without_retries_the_first_error_is_the_last(server: NatsServer, service: Service) -> None:
    async with MemoryClient(server.url, project="p", retries=0) as memory:
        service.errors = away(1)
        with pytest.raises(Unavailable):
            await memory.recall("x")
    assert len(service.asked) == 1
    with pytest.raises(InvalidRequest, match="retries"):
        MemoryClient(server.url, retries=-1)


async def test_the_tries_of_one_call_are_one_request(server: NatsServer, service: Service) -> None:
    async with MemoryClient(server.url, project="p") as memory:
        service.errors = away(1)
        await memory.encode("x", allow_duplicates=True)
        service.errors = away(1)
        await memory.feedback(ID, useful=True)
        service.errors = away(1)
        with pytest.raises(Unavailable):  # its operation would stand twice in the transaction
            await memory.encode("x", txn_id="t")
    first, second, useful, again, alone = [request for _, request in service.asked]
    assert first["request_id"]
    assert first == second
    assert useful["request_id"]
    assert useful == again
    assert alone["txn_id"] == "t"


async def test_retries_keep_to_the_deadline_of_the_request(server: NatsServer, service: Service) -> None:
    async with MemoryClient(server.url, project="p", retries=100) as memory:
        service.errors = away(100)
        with pytest.raises(Unavailable), anyio.fail_after(10):
            await memory.recall("x", deadline_ms=500)
    left = [request["deadline_ms"] for _, request in service.asked]
    assert 1 < len(left) < 8
    assert left == sorted(left, reverse=True)
    assert left[0] == 500
    assert left[1] <= 450  # the shortest pause there is has passed


async def test_pages_are_one_stream(server: NatsServer, service: Service) -> None:
    async with MemoryClient(server.url, project="p") as memory:
        assert [row.text async for row in memory.memories(limit=2, order="oldest")] == list("01234")
    assert [request.get("cursor") for _, request in service.asked] == [None, "2", "4"]
    assert {request["order"] for _, request in service.asked} == {"oldest"}


async def test_a_session_is_carried_and_a_call_may_leave_it(server: NatsServer, service: Service) -> None:
    async with MemoryClient(server.url, project="p") as memory, memory.session("s1") as session:
        await session.encode("x", tags=["a"])
        await session.recall("x")
        await session.recall("x", session=None)
        service.errors = [InvalidRequest(ErrorCode.OUT_OF_RANGE, "as good as an answer")]
        with pytest.raises(InvalidRequest):
            await session.query("x", k=3)
    assert [request for _, request in service.asked] == [
        {"text": "x", "session": "s1", "tags": ["a"]},
        {"cue": "x", "session": "s1"},
        {"cue": "x"},
        {"query": "x", "session_id": "s1", "k": 3},
    ]


class TestRestart:
    """The server dies under the client, and comes back at the same address."""

    @pytest.fixture
    def mortal(self, tmp_path: Path) -> Iterator[NatsServer]:
        server = NatsServer(tmp_path)
        server.start()
        yield server
        server.stop()

    async def serve(self, server: NatsServer) -> tuple[Client, Service]:
        link, service = await connect(Nats(url=server.url), "service"), Service()
        await link.subscribe("memlane.v1.>", cb=service.answer)
        await link.flush()
        return link, service

    async def test_what_waits_is_told_at_once_and_the_client_goes_on(self, mortal: NatsServer) -> None:
        link, service = await self.serve(mortal)
        service.silent = {"recall"}
        async with MemoryClient(mortal.url, project="p", timeout_s=60, retries=0) as memory:

            async def kill_once_asked() -> None:
                await service.heard.wait()
                await anyio.to_thread.run_sync(mortal.stop)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill_once_asked)
                with pytest.raises(Unavailable, match="broke before the answer"), anyio.fail_after(20):
                    await memory.recall("x")
            first = await memory.connection()
            await anyio.to_thread.run_sync(mortal.start)
            with anyio.fail_after(20):
                while True:
                    try:
                        assert (await memory.encode("x")).id == ID
                        break
                    except Unavailable:  # our service is not back yet
                        await anyio.sleep(0.05)
            assert await memory.connection() is first
        await link.close()

    async def test_a_call_outlives_a_restart(self, mortal: NatsServer) -> None:
        link, service = await self.serve(mortal)
        service.silent = {"encode"}
        async with MemoryClient(mortal.url, project="p", timeout_s=60, retries=20) as memory:

            async def restart_once_asked() -> None:
                await service.heard.wait()
                await anyio.to_thread.run_sync(mortal.stop)
                service.silent = set()
                await anyio.to_thread.run_sync(mortal.start)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(restart_once_asked)
                with anyio.fail_after(30):
                    assert (await memory.encode("x")).id == ID
        assert [verb for verb, _ in service.asked] == ["encode", "encode"]
        await link.close()


class TestBlocking:
    """Each test blocks, so it runs in a worker thread, beside the loop on which the service answers."""

    async def run(self, test: Callable[[], None]) -> None:
        with anyio.fail_after(30):
            await anyio.to_thread.run_sync(test)

    async def test_verbs_transactions_sessions_and_pages(self, server: NatsServer, service: Service) -> None:
        def use() -> None:
            with SyncMemoryClient(server.url, project="p") as memory:
                assert memory.encode("x").id == ID
                assert memory.recall("x").answer_kind == "None"
                with memory.transaction() as txn:
                    txn.forget(ID)
                assert txn.committed is not None
                assert txn.committed.operations_applied == 1
                with pytest.raises(ZeroDivisionError), memory.transaction():
                    raise ZeroDivisionError
                with memory.session("s1") as session:
                    session.encode("y")
                assert [row.text for row in memory.memories(limit=2)] == list("01234")
                assert next(memory.memories(limit=2)).text == "0"  # and leaves off
                with pytest.raises(InvalidRequest):
                    memory.encode("x", no_such_field=1)

        await self.run(use)
        verbs = [verb for verb, _ in service.asked]
        assert verbs[:7] == ["encode", "recall", "txn.begin", "forget", "txn.commit", "txn.begin", "txn.abort"]
        assert ("encode", {"text": "y", "session": "s1"}) in service.asked

    async def test_threads_share_one_client(self, server: NatsServer, service: Service) -> None:
        def use() -> None:
            with SyncMemoryClient(server.url, project="p") as memory, ThreadPoolExecutor(8) as threads:
                replies = list(threads.map(memory.encode, map(str, range(50))))
            assert len(replies) == 50

        await self.run(use)
        assert sorted(int(request["text"]) for _, request in service.asked) == list(range(50))

    async def test_it_closes_and_leaves_no_thread(self, server: NatsServer, service: Service) -> None:
        def use() -> None:
            before = set(threading.enumerate())
            memory = SyncMemoryClient(server.url, project="p")
            with pytest.raises(RuntimeError, match="not open"):
                memory.encode("x")
            for _ in range(2):  # what was closed opens again
                memory.open().encode("x")
                assert set(threading.enumerate()) - before
                memory.close()
                memory.close()
                assert set(threading.enumerate()) == before
            with pytest.raises(RuntimeError, match="not open"):
                memory.recall("x")
            with pytest.raises(Unavailable, match="is memlane up"):
                SyncMemoryClient("nats://127.0.0.1:1").open()
            assert set(threading.enumerate()) == before

        await self.run(use)


@pytest.mark.parametrize("name", ["MemoryClient", "Transaction", "Session"])
def test_the_blocking_face_has_every_verb_with_its_signature(name: str) -> None:
    asynchronous = getattr(client_module, name)
    blocking = getattr(sync, f"Sync{name}")
    own_to_it = {"connection", "call", "close"} if name == "MemoryClient" else set()  # close blocks there too
    verbs = {key for key, value in vars(asynchronous).items() if not key.startswith("_") and inspect.isroutine(value)}
    assert verbs - own_to_it <= set(vars(blocking))
    for verb in verbs - own_to_it - {"transaction", "session", "memories"}:
        assert inspect.signature(getattr(blocking, verb)) == inspect.signature(getattr(asynchronous, verb))

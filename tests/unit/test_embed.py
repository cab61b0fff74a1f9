"""The embed worker: what waits is embedded together, cues first."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import numpy as np
import pytest
from anyio.abc import TaskGroup

from contracts import subjects, wire
from contracts.errors import ErrorCode, Exhausted
from contracts.memory import Vector, derive_id, unpack_vector
from contracts.ports import Call
from contracts.work import EmbedReply, EmbedRequest
from workers import embed
from workers.embed import EmbedWorker


class FakeEmbedder:
    """Unit vectors by digest. With the gate shut, a call waits for it."""

    model, dimension = "fake", 4

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()

    def embed(self, texts: list[str]) -> Vector:
        self.calls.append(list(texts))
        assert self.gate.wait(10)
        if "bad" in texts:
            raise RuntimeError("the model failed")
        rows = np.array([list(derive_id(text).encode())[:4] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
async def worker(embedder: FakeEmbedder) -> AsyncIterator[EmbedWorker]:
    """A running worker with batches of 4 and room for 2 cues."""
    worker = EmbedWorker(embedder, batch=4, cache=2)
    ready = anyio.Event()
    running = asyncio.create_task(worker.run(ready.set))
    with anyio.fail_after(5):
        await ready.wait()
    embedder.calls.clear()
    yield worker
    embedder.gate.set()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def ask(worker: EmbedWorker, *texts: str, purpose: str = "document", remaining_ms: float = 5000.0) -> EmbedReply:
    (endpoint,) = worker.endpoints()
    request = EmbedRequest(texts=texts, purpose=purpose, remaining_ms=remaining_ms)
    with anyio.fail_after(5):
        return wire.decode_reply(
            EmbedReply, await endpoint.handle(Call(endpoint.subject, wire.encode(request), time.monotonic()))
        )


async def until_called(embedder: FakeEmbedder) -> None:
    with anyio.fail_after(5):
        while not embedder.calls:
            await anyio.sleep(0.001)


async def soon(tasks: TaskGroup, worker: EmbedWorker, *texts: str, purpose: str = "document") -> None:
    tasks.start_soon(lambda: ask(worker, *texts, purpose=purpose))
    await anyio.sleep(0.005)


async def test_unit_vectors_in_the_order_asked(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    texts = [f"text {number}" for number in range(10)]
    reply = await ask(worker, *texts)
    assert (reply.model, reply.dimension, len(reply.vectors)) == ("fake", 4, 10)
    for text, packed in zip(texts, reply.vectors, strict=True):
        np.testing.assert_array_equal(unpack_vector(packed), embedder.embed([text])[0])
    assert [len(call) for call in embedder.calls[:3]] == [4, 4, 2]


async def test_no_texts(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    assert (await ask(worker)).vectors == ()
    assert embedder.calls == []


async def test_what_waits_goes_together(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    embedder.gate.clear()
    async with anyio.create_task_group() as tasks:
        await soon(tasks, worker, "first")
        await until_called(embedder)
        for text in "abcde":
            await soon(tasks, worker, text)
        assert worker.stats()["waiting"] == 5  # the first is under way
        embedder.gate.set()
    assert embedder.calls == [["first"], ["a", "b", "c", "d"], ["e"]]
    assert worker.stats() == {"model": "fake", "embedded": 6, "batches": 3, "waiting": 0}


async def test_a_cue_goes_before_documents(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    embedder.gate.clear()
    async with anyio.create_task_group() as tasks:
        await soon(tasks, worker, *"123456789")
        await until_called(embedder)
        await soon(tasks, worker, "x")
        await soon(tasks, worker, "cue", purpose="cue")
        embedder.gate.set()
    assert embedder.calls == [["1", "2", "3", "4"], ["cue"], ["5", "6", "7", "8"], ["9", "x"]]


async def test_who_waits_no_more_is_dropped(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    embedder.gate.clear()
    errors: list[Exhausted] = []

    async def late() -> None:
        with pytest.raises(Exhausted) as caught:
            await ask(worker, "late", remaining_ms=1.0)
        errors.append(caught.value)

    async with anyio.create_task_group() as tasks:
        await soon(tasks, worker, "first")
        await until_called(embedder)
        tasks.start_soon(late)
        await soon(tasks, worker, "other")
        await anyio.sleep(0.02)
        embedder.gate.set()
    assert [error.code for error in errors] == [ErrorCode.DEADLINE_EXCEEDED]
    assert embedder.calls == [["first"], ["other"]]


async def test_overload(worker: EmbedWorker, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "MOST_WAITING", 3)
    embedder.gate.clear()
    async with anyio.create_task_group() as tasks:
        await soon(tasks, worker, "first", "second")
        await until_called(embedder)
        with pytest.raises(Exhausted) as caught:
            await ask(worker, "a", "b", "c", "d")
        assert caught.value.code is ErrorCode.OVERLOADED
        await soon(tasks, worker, "cue", purpose="cue")
        embedder.gate.set()
    assert ["cue"] in embedder.calls
    assert len((await ask(worker, "a")).vectors) == 1


async def test_a_failure_reaches_the_caller_and_ends_nothing(worker: EmbedWorker) -> None:
    with pytest.raises(RuntimeError, match="the model failed"):
        await ask(worker, "bad")
    with pytest.raises(RuntimeError, match="the model failed"):
        await ask(worker, "a", "b", "bad", "c", "d", "e")
    assert len((await ask(worker, "good")).vectors) == 1
    assert worker.stats()["waiting"] == 0


async def test_cues_are_remembered_the_latest_used(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    first = await ask(worker, "a", purpose="cue")
    assert (await ask(worker, "a", purpose="cue")).vectors == first.vectors
    await ask(worker, "b", purpose="cue")
    await ask(worker, "a", purpose="cue")  # now b is the older
    await ask(worker, "c", purpose="cue")
    assert embedder.calls == [["a"], ["b"], ["c"]]
    await ask(worker, "a", purpose="cue")
    await ask(worker, "b", purpose="cue")
    assert embedder.calls[3:] == [["b"]]


async def test_documents_are_not_remembered(worker: EmbedWorker, embedder: FakeEmbedder) -> None:
    await ask(worker, "a")
    await ask(worker, "a")
    assert embedder.calls == [["a"], ["a"]]


async def test_ready_after_the_model_is_warm(embedder: FakeEmbedder) -> None:
    worker = EmbedWorker(embedder, batch=4, cache=0)
    ready = anyio.Event()
    embedder.gate.clear()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run, ready.set)
        await until_called(embedder)
        assert not ready.is_set()
        embedder.gate.set()
        with anyio.fail_after(5):
            await ready.wait()
        first = await ask(worker, "a", purpose="cue")
        assert (await ask(worker, "a", purpose="cue")).vectors == first.vectors
        assert embedder.calls[1:] == [["a"], ["a"]]  # a cache of 0 keeps nothing
        tasks.cancel_scope.cancel()


def test_endpoint() -> None:
    (endpoint,) = EmbedWorker(FakeEmbedder(), 1, 1).endpoints()
    assert (endpoint.subject, endpoint.queue) == (subjects.EMBED, "embed")

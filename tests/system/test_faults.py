"""Whatever dies, what was acknowledged is found afterwards, by every lane."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from contracts.client import MemoryClient
from contracts.encode import EncodeReply
from contracts.errors import MemlaneError
from contracts.recall import RecallReply
from tests.stack import Stack

LANES = ("semantic", "lexical", "graph")
WRITES = 150
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A service of our own to hurt."""
    with Stack(tmp_path_factory.mktemp("fragile")) as stack:
        yield stack


@pytest.fixture
async def client(fragile: Stack, request: pytest.FixtureRequest) -> AsyncIterator[MemoryClient]:
    name = "".join(char if char.isalnum() else "-" for char in request.node.name)
    async with MemoryClient(fragile.url, project=name[:64], timeout_s=3) as client:
        yield client


def text_of(number: int) -> str:
    return f"Parcel PRC-{number + 7000} is at dock {number % 9}"


async def insist_on_encode(client: MemoryClient, text: str) -> EncodeReply:
    """As a careful caller does: the same request id until it is acknowledged."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await client.encode(text, request_id=text)
        except MemlaneError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


async def insist_on_recall(client: MemoryClient, cue: str) -> RecallReply:
    """Recall of all that was written, from all lanes, as soon as they are back."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            reply = await client.recall(cue, consistency="ReadAfterWrite", deadline_ms=2800, trace=True)
            if not reply.degraded or time.monotonic() > deadline:
                return reply
        except MemlaneError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)


async def write_all(client: MemoryClient, done: list[EncodeReply]) -> dict[str, str]:
    """Encode WRITES memories, sixteen at a time; the text of each id. `done` grows meanwhile."""
    gate = asyncio.Semaphore(16)
    acked: dict[str, str] = {}

    async def one(number: int) -> None:
        async with gate:
            reply = await insist_on_encode(client, text_of(number))
            acked[reply.id] = text_of(number)
            done.append(reply)

    await asyncio.gather(*(one(number) for number in range(WRITES)))
    return acked


async def everything_is_there(client: MemoryClient, acked: dict[str, str]) -> None:
    """Each acknowledged memory is in the answer to its own text, in the hits of every lane, and in the listing once."""
    assert len(acked) == WRITES
    gate = asyncio.Semaphore(6)
    missing: list[str] = []

    async def one(memory_id: str, text: str) -> None:
        async with gate:
            reply = await insist_on_recall(client, text)
        assert reply.trace is not None
        missing.extend(
            f"{text!r} not found by {lane} ({reply.lanes[lane].status})"
            for lane in LANES
            if not any(memory_id in hit.sources for hit in reply.trace.lanes[lane])
        )
        if memory_id not in {member.id for member in reply.members}:
            missing.append(f"{text!r} not in the answer")

    await asyncio.gather(*(one(*pair) for pair in acked.items()))
    assert not missing, f"{len(missing)} missing: {missing[:5]}"
    listed: list[str] = []
    page = await client.list(limit=100)
    listed += [row.id for row in page.memories]
    while page.cursor:
        page = await client.list(limit=100, cursor=page.cursor)
        listed += [row.id for row in page.memories]
    assert sorted(listed) == sorted(acked)


async def some_are_written(done: list[EncodeReply], count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(done) < count:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("role", ["encode", "embed", "semantic", "lexical", "graph", "catalog", "orchestrator"])
async def test_a_killed_worker_loses_nothing(fragile: Stack, client: MemoryClient, role: str) -> None:
    done: list[EncodeReply] = []
    writing = asyncio.create_task(write_all(client, done))
    await some_are_written(done, WRITES // 4)
    killed = fragile.kill(role)
    assert len(killed) == 1
    acked = await writing
    await everything_is_there(client, acked)
    assert set(fragile.worker_pids(role)).isdisjoint(killed)


async def test_a_killed_nats_server_loses_nothing(fragile: Stack, client: MemoryClient) -> None:
    done: list[EncodeReply] = []
    writing = asyncio.create_task(write_all(client, done))
    await some_are_written(done, WRITES // 4)
    os.kill(fragile.nats_pid(), signal.SIGKILL)
    acked = await writing
    await everything_is_there(client, acked)


async def test_a_lane_that_hangs_degrades_the_answer_and_no_more(fragile: Stack, client: MemoryClient) -> None:
    written = await insist_on_encode(client, "Parcel PRC-9999 was handed to Benedikt Aalto")
    assert [member.id for member in (await insist_on_recall(client, "PRC-9999")).members] == [written.id]

    fragile.kill("graph", signal.SIGSTOP)
    try:
        started = time.monotonic()
        reply = await client.recall("PRC-9999", deadline_ms=800)
        took_s = time.monotonic() - started
    finally:
        fragile.kill("graph", signal.SIGCONT)
    assert took_s < 1.2  # the deadline, and room for a busy machine
    assert reply.degraded
    assert {lane: str(outcome.status) for lane, outcome in reply.lanes.items()} == {
        "semantic": "ok",
        "lexical": "ok",
        "graph": "timeout",
    }
    assert [member.id for member in reply.members] == [written.id]

    again = await insist_on_recall(client, "PRC-9999")
    assert not again.degraded
    assert "graph" in again.members[0].provenance

"""Replicas come and go under load, shards become more and fewer, and no recall notices."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from contracts.client import MemoryClient
from contracts.recall import RecallReply
from infra.discovery import Process, discover
from tests.stack import Stack

PATIENCE_S = 90.0
ROLES = ("lexical", "semantic", "orchestrator")


def memlane(stack: Stack, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infra.cli", *command, "--nats", stack.url, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def answering(memory: MemoryClient, role: str, number: int) -> list[Process]:
    """The processes of a role, as soon as there are so many."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = [one for one in await discover(await memory.connection()) if one.role == role]
        if len(found) == number or time.monotonic() > deadline:
            return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("scale")) as stack:
        yield stack


class Load:
    """Two callers that recall one after another until the block ends; what they were answered."""

    def __init__(self, memory: MemoryClient) -> None:
        self.memory, self.replies = memory, list[RecallReply | Exception]()
        self._done = asyncio.Event()
        self._callers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Load:
        self._callers = [asyncio.create_task(self._call()) for _ in range(2)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._done.set()
        await asyncio.gather(*self._callers)

    async def _call(self) -> None:
        while not self._done.is_set():
            try:
                self.replies.append(await self.memory.recall(f"PRC-{len(self.replies) % 20}", deadline_ms=10_000))
            except Exception as error:
                self.replies.append(error)
            await asyncio.sleep(0.02)

    def check(self) -> None:
        """Everybody was answered, by all lanes."""
        assert len(self.replies) > 50
        assert [one for one in self.replies if not isinstance(one, RecallReply)] == []
        assert [one.lanes for one in self.replies if isinstance(one, RecallReply) and one.degraded] == []


async def test_replicas_come_and_go_under_load(stack: Stack) -> None:
    async with MemoryClient(stack.url, project="team") as memory:
        for number in range(20):
            await memory.encode(f"Parcel PRC-{number} is at dock {number % 3}")
        await memory.recall("PRC-1", consistency="ReadAfterWrite", deadline_ms=10_000)
        async with Load(memory) as load:
            for role in ROLES:
                grown = await asyncio.to_thread(memlane, stack, "scale", role, "2")
                assert grown.returncode == 0, grown.stderr
                assert len(json.loads(grown.stdout)["started"]) == 1
                replicas = await answering(memory, role, 2)
                assert {one.facts["replica"] for one in replicas} == {"a", "a2"}
            for role in ROLES:
                shrunk = await asyncio.to_thread(memlane, stack, "scale", role, "1")
                assert len(json.loads(shrunk.stdout)["stopped"]) == 1
                assert [one.facts["replica"] for one in await answering(memory, role, 1)] == ["a"]
        load.check()
        status = json.loads((await asyncio.to_thread(memlane, stack, "status")).stdout)
        assert {one["role"]: one["lag"] for one in status if one["role"] in ("lexical", "catalog")} == {
            "lexical": 0,
            "catalog": 0,
        }
        refused = await asyncio.to_thread(memlane, stack, "scale", "semantic", "0")
        assert refused.returncode == 1


def indexes(stack: Stack) -> set[str]:
    """The shards whose indexes are in the data folder."""
    return {part for folder in stack.data.glob("*-*of*-*") for part in folder.name.split("-") if "of" in part}


async def uses(memory: MemoryClient, memory_id: str) -> int:
    row = (await memory.inspect(memory_id)).memory
    assert row is not None
    return row.uses


def picture(reply: RecallReply) -> list[object]:
    members = [(one.id, round(one.score, 4), sorted(one.provenance)) for one in reply.members]
    return [reply.answer_kind, members]


async def test_shards_become_more_and_fewer_under_load(stack: Stack) -> None:
    """The same answers before, after, and after the way back; what was forgotten and what was used is known to all."""
    async with MemoryClient(stack.url, project="shards") as memory:
        stored = [await memory.encode(f"Parcel PRC-{number} is at dock {number % 3}") for number in range(20)]
        await memory.forget(stored[7].id)
        await memory.recall("PRC-1", consistency="ReadAfterWrite", deadline_ms=10_000)
        await memory.feedback(stored[3].id, useful=True)
        while not await uses(memory, stored[3].id):
            await asyncio.sleep(0.05)
        cues = ("PRC-3", "PRC-7", "what is at dock 2?")
        before = [picture(await memory.recall(cue, deadline_ms=10_000)) for cue in cues]
        for shards, names in ((2, {"0of2", "1of2"}), (1, {"0of1"})):
            async with Load(memory) as load:
                changed = await asyncio.to_thread(memlane, stack, "reshard", str(shards))
                assert changed.returncode == 0, changed.stderr
                assert json.loads(changed.stdout)["stage"] == "done"
            load.check()
            assert indexes(stack) == names
            lanes = [one for one in await discover(await memory.connection()) if one.role == "lexical"]
            assert {str(one.shard) for one in lanes} == names
            assert [picture(await memory.recall(cue, deadline_ms=10_000)) for cue in cues] == before
            assert await uses(memory, stored[3].id) >= 3
        again = await asyncio.to_thread(memlane, stack, "reshard", "1")
        assert json.loads(again.stdout)["stage"] == "done"
        refused = await asyncio.to_thread(memlane, stack, "reshard", "3")
        assert "power of two" in refused.stdout

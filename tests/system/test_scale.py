"""Replicas come and go under load, and no recall notices."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

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


async def test_replicas_come_and_go_under_load(tmp_path: Path) -> None:
    with Stack(tmp_path) as stack:
        async with MemoryClient(stack.url, project="team") as memory:
            for number in range(20):
                await memory.encode(f"Parcel PRC-{number} is at dock {number % 3}")
            await memory.recall("PRC-1", consistency="ReadAfterWrite", deadline_ms=10_000)
            replies: list[RecallReply | Exception] = []
            done = asyncio.Event()

            async def load() -> None:
                while not done.is_set():
                    try:
                        replies.append(await memory.recall(f"PRC-{len(replies) % 20}", deadline_ms=10_000))
                    except Exception as error:
                        replies.append(error)
                    await asyncio.sleep(0.02)

            loads = [asyncio.create_task(load()) for _ in range(2)]
            try:
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
            finally:
                done.set()
                await asyncio.gather(*loads)
            assert len(replies) > 50
            assert [one for one in replies if not isinstance(one, RecallReply)] == []
            assert [one.lanes for one in replies if isinstance(one, RecallReply) and one.degraded] == []
            status = json.loads((await asyncio.to_thread(memlane, stack, "status")).stdout)
            assert {one["role"]: one["lag"] for one in status if one["role"] in ("lexical", "catalog")} == {
                "lexical": 0,
                "catalog": 0,
            }
            refused = await asyncio.to_thread(memlane, stack, "scale", "semantic", "0")
            assert refused.returncode == 1

"""`memlane http` as a process, before a running service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from contracts.client import MemoryClient
from infra.child import end
from tests.stack import Stack


@pytest.fixture(scope="module")
def door(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address. In the end it is told to stop, and does."""
    log = tmp_path_factory.mktemp("http") / "out"
    process = start(log, stack.url)
    try:
        yield address(process, log)
        process.send_signal(signal.SIGTERM)
        process.wait(15)
    finally:
        end(process)


def start(log: Path, url: str, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "infra.cli", "http", "--port", "0", "--nats", url, *more]
    with log.open("wb") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ))


def address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 30
    while "ready http://127.0.0.1:" not in log.read_text("utf-8"):
        assert process.poll() is None, log.read_text("utf-8")
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return log.read_text("utf-8").partition("ready ")[2].split()[0]


@pytest.fixture
async def web(door: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=door, timeout=30) as web:
        yield web


async def test_add_recall_and_forget(web: httpx2.AsyncClient, stack: Stack) -> None:
    team = {"X-Project-ID": "http-team"}
    add = {
        "content": "Customer 8821 reported login failures after the MFA reset",
        "source": "support_ticket",
        "tags": ["incident"],
        "metadata": {"ticket": 8821},
        "importance": 0.6,
        "ttl_minutes": 60,
    }
    written = await web.post("/memory/add", json=add, headers=team)
    assert written.status_code == 200
    cue = {"cue": "login failures after MFA reset", "consistency": "ReadAfterWrite", "deadline_ms": 10_000}
    reply = await web.post("/recall", json=cue, headers=team)
    assert [member["id"] for member in reply.json()["members"]] == [written.json()["id"]]
    assert reply.json()["members"][0]["metadata"] == {"ticket": 8821}
    assert "x-memlane-silent" not in reply.headers
    async with MemoryClient(stack.url, project="http-team") as memory:
        [row] = (await memory.list()).memories
        assert (row.source, row.tags, row.importance) == ("support_ticket", ("incident",), 0.6)

    elsewhere = await web.post("/recall", json=cue, headers={"X-Project-ID": "http-other"})
    assert (elsewhere.status_code, elsewhere.json()["error"]["code"]) == (404, "UNKNOWN_PROJECT")

    gone = await web.post("/memory/forget", json={"memory_id": written.json()["id"]}, headers=team)
    assert gone.json()["forgotten"]
    reply = await web.post("/recall", json=cue, headers=team)
    assert (reply.status_code, reply.json()["answer_kind"]) == (200, "None")


async def test_without_a_project_it_is_the_default_one(web: httpx2.AsyncClient, stack: Stack) -> None:
    written = await web.post("/memory/add", json={"text": "The default seal is in the safe"})
    async with MemoryClient(stack.url, project="default") as memory:
        assert (await memory.inspect(written.json()["id"])).found


async def test_errors_are_those_of_the_bus(web: httpx2.AsyncClient) -> None:
    for path, body, status, code in (
        ("/memory/add", {"text": " "}, 400, "TEXT_EMPTY"),
        ("/memory/add", {"text": "a", "importance": 2}, 400, "OUT_OF_RANGE"),
        ("/memory/add", {"text": "a", "colour": 2}, 400, "UNKNOWN_FIELD"),
        ("/memory/forget", {"id": "a" * 26}, 404, "MEMORY_NOT_FOUND"),
        ("/recall", {"cue": "x" * 2_000_000}, 413, "PAYLOAD_TOO_LARGE"),
    ):
        reply = await web.post(path, json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


async def test_health_and_openapi(web: httpx2.AsyncClient) -> None:
    health = await web.get("/health")
    assert health.status_code == 200
    assert health.json()["status"] == "ok"
    assert health.json()["roles"]["orchestrator"] == 1
    assert (await web.get("/openapi.json")).json()["openapi"] == "3.1.0"


def test_a_taken_port_and_an_absent_server_are_told(door: str, stack: Stack, tmp_path: Path) -> None:
    taken = door.rpartition(":")[2]
    for url, more, says in (
        (stack.url, ("--port", taken), "cannot listen"),
        ("nats://127.0.0.1:1", (), "cannot reach NATS"),
    ):
        process = start(tmp_path / "out", url, *more)
        try:
            assert process.wait(30) == 1
            assert says in (tmp_path / "out").read_text("utf-8")
        finally:
            end(process)

"""Out of one project, into another, and out again: the same to the byte."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.client import MemoryClient
from tests.stack import Stack


def memlane(stack: Stack, project: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infra.cli", *command, "--project", project, "--nats", stack.url, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


async def filled(memory: MemoryClient) -> None:
    """A little of everything that an export carries, and of what it does not."""
    await memory.encode("Ana lives in Rome", kind="Semantic", statements=[
        {"subject": "Ana", "predicate": "lives_in", "object": "Rome", "kind": "Attribute"}])  # fmt: skip
    old = await memory.encode(
        "The gate opens at eight", tags=["gate", "hours"], source="wiki", metadata={"b": 1, "a": [2]}
    )
    await memory.encode("The gate opens at nine", supersedes=[old.id], importance=0.9, session="s-1",
                        occurred_at="2026-03-01T10:00:00+01:00")  # fmt: skip
    cause = await memory.encode("The pump failed", ttl_s=86_400 * 90)
    await memory.encode("The cellar was wet", edges=[{"kind": "SUPPORTS", "target": cause.id, "weight": 0.5}],
                        relations=[{"from": "cellar", "type": "PART_OF", "to": "house"}])  # fmt: skip
    for number in range(2):
        await memory.encode("Said twice", allow_duplicates=True, request_id=f"twice-{number}")
    gone = await memory.encode("Never mind")
    last = await memory.forget(gone.id)
    await memory.recall("gate", consistency="ReadAfterWrite", position=last.position, deadline_ms=10_000)
    while len((await memory.list()).memories) != 7:
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
async def test_round_trip(stack: Stack, memory: MemoryClient, tmp_path: Path, form: str) -> None:
    await filled(memory)
    out, back, elsewhere = tmp_path / "out", tmp_path / "back", f"{memory.project}-{form}"
    exported = await asyncio.to_thread(memlane, stack, memory.project, "export", "--format", form, "--out", str(out))
    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stderr)["memories"] == 7
    imported = await asyncio.to_thread(memlane, stack, elsewhere, "import", "--format", form, str(out))
    assert imported.returncode == 0, imported.stdout + imported.stderr
    async with MemoryClient(stack.url, project=elsewhere) as other:
        while len((await other.list()).memories) != 7:
            await asyncio.sleep(0.05)
        answer = await other.recall("when does the gate open?", consistency="ReadAfterWrite", deadline_ms=10_000)
        assert "The gate opens at eight" not in [member.text for member in answer.members]
    again = await asyncio.to_thread(memlane, stack, elsewhere, "export", "--format", form, "--out", str(back))
    assert again.returncode == 0, again.stderr
    files = {
        folder: {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (out, back)
    }
    assert (files[out], out.is_file() and out.read_bytes()) == (files[back], back.is_file() and back.read_bytes())
    repeated = await asyncio.to_thread(memlane, stack, elsewhere, "import", "--format", form, str(out))
    assert repeated.returncode == 0, repeated.stdout
    async with MemoryClient(stack.url, project=elsewhere) as other:
        assert len((await other.list()).memories) == 7


async def test_nothing_is_stored_where_something_is_malformed(
    stack: Stack, memory: MemoryClient, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "good"}\n{"text": ""}\n', "utf-8")
    refused = await asyncio.to_thread(memlane, stack, memory.project, "import", str(path))
    assert refused.returncode == 1
    assert "line 2" in refused.stdout
    assert "nothing was stored" in refused.stdout
    rest = await asyncio.to_thread(memlane, stack, memory.project, "import", "--skip-bad", str(path))
    assert rest.returncode == 1  # for the one that is bad
    while not (await memory.list()).memories:
        await asyncio.sleep(0.05)

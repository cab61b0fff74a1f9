"""Backup of a running service, and its restore into an empty one: positions, stories, schemas and uses are the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import orjson
import pytest

from contracts.client import MemoryClient
from contracts.errors import MemlaneError
from tests.stack import Stack

SCHEMA = {"predicates": [{"name": "works_at", "kind": "Attribute"}]}


def memlane(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infra.cli", *words], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a service that still runs, and is written to after it."""
    folder = tmp_path_factory.mktemp("backup")
    with Stack(folder / "first") as stack:
        said = folder / "said.json"
        said.write_bytes(orjson.dumps(anyio.run(tell, stack.url)))
        made = memlane("backup", "create", str(folder / "kept"), "--nats", stack.url, "--json")
        assert made.returncode == 0, made.stderr
        anyio.run(tell_more, stack.url)
        checked = memlane("backup", "check", str(folder / "kept"), "--json")
        assert checked.stdout == made.stdout
        again = memlane("backup", "create", str(folder / "kept"), "--nats", stack.url, "--json")
        assert "is not empty" in again.stdout
        assert again.returncode == 1
        refused = memlane("backup", "restore", str(folder / "kept"), "--nats", stack.url, "--json")
        assert "processes of memlane run" in refused.stdout
        assert refused.returncode == 1
    return folder


async def tell(url: str) -> dict[str, object]:
    async with MemoryClient(url, project="kept") as memory:
        await memory.declare_schema(SCHEMA)
        first = await memory.encode("Ana works at Acme", request_id="one")
        second = await memory.encode("Ben keeps bees behind the town hall")
        gone = await memory.encode("Cleo drinks tea")
        await memory.forget(gone.id)
        await memory.recall("bees", consistency="ReadAfterWrite", deadline_ms=10_000)  # the catalog knows it
        await memory.feedback(second.id, useful=True)
        return {"first": first.id, "second": second.id, "gone": gone.id, "position": second.position}


async def tell_more(url: str) -> None:
    async with MemoryClient(url, project="kept") as memory:
        await memory.encode("Dora joined after the backup")


async def test_what_was_told_is_there_and_what_came_later_is_not(backup: Path, tmp_path: Path) -> None:
    said = orjson.loads((backup / "said.json").read_bytes())
    restored = memlane("backup", "restore", str(backup / "kept"), "--data", str(tmp_path / "second"), "--json")
    assert restored.returncode == 0, restored.stderr + restored.stdout
    with Stack(tmp_path / "second") as stack:
        async with MemoryClient(stack.url, project="kept") as memory:
            answer = await memory.recall("Where does Ana work?", consistency="ReadAfterWrite", deadline_ms=10_000)
            assert [member.id for member in answer.members][:1] == [said["first"]]
            listed = await memory.list()
            assert {one.id for one in listed.memories} == {said["first"], said["second"]}
            again = await memory.encode("Ana works at Acme", request_id="one")
            assert (again.id, again.deduplicated) == (said["first"], True)
            story = await memory.inspect(said["second"])
            assert story.story[0].position == said["position"]
            later = await memory.encode("Emil came after the restore")
            assert later.position > said["position"] + 2  # positions go on where they were
            assert (await memory.restore(said["gone"])).id == said["gone"]


@pytest.mark.parametrize("harm", ["cut", "swapped", "no manifest", "no file"])
def test_damage_is_told_before_anything_is_written(backup: Path, tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(backup / "kept", folder)
    log = folder / "MEMLANE_LOG.tar.s2"
    if harm == "cut":
        log.write_bytes(log.read_bytes()[:-10])
    elif harm == "swapped":
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 0xFF
        log.write_bytes(bytes(data))
    elif harm == "no manifest":
        (folder / "backup.json").unlink()
    else:
        log.unlink()
    said = memlane("backup", "restore", str(folder), "--data", str(tmp_path / "second"), "--json")
    assert said.returncode == 1
    assert "damaged" in said.stdout or "no backup" in said.stdout


def test_a_data_folder_in_use_is_left_alone(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    said = memlane("backup", "restore", str(backup / "kept"), "--data", str(tmp_path), "--json")
    assert said.returncode == 1
    assert "not empty" in said.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_errors_are_typed(tmp_path: Path) -> None:
    from infra.backup import read

    with pytest.raises(MemlaneError, match="no backup"):
        read(tmp_path)

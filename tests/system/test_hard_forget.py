"""A hard forget erases: the files of every part are searched after it."""

from __future__ import annotations

import base64
from pathlib import Path

import orjson
import pytest

from contracts import subjects
from contracts.client import MemoryClient
from tests.stack import Stack
from tests.system.test_main_job import fresh

SECRET = "zanzibarquux"


def holding(folder: Path, patterns: dict[str, bytes]) -> set[str]:
    """Which patterns are in which files."""
    return {
        f"{name} in {path.relative_to(folder)}"
        for path in folder.rglob("*")
        if path.is_file()
        for name, pattern in patterns.items()
        if pattern in path.read_bytes()
    }


@pytest.mark.parametrize("engine", ["whoosh", "tantivy"])
async def test_no_file_holds_the_text_or_the_vector(tmp_path: Path, engine: str) -> None:
    patterns = {"text": SECRET.encode()}
    with Stack(tmp_path, env={"MEMLANE_LEXICAL__ENGINE": engine}) as stack:
        async with MemoryClient(stack.url, project="p") as memory:
            for number in range(12):
                await memory.encode(f"An ordinary note about garden {number}")
            said = {"subject": "Door", "predicate": "opens_to", "object": f"the word {SECRET}", "kind": "Attribute"}
            gone = await memory.encode(f"The door opens to {SECRET}", statements=[said], request_id="r", entities=[])
            log = (await memory.connection()).jetstream()
            record = orjson.loads((await log.get_msg(subjects.LOG_STREAM, seq=gone.position)).data or b"")
            for name, vector in (("vector", record["vector"]), ("statement", record["statement_vectors"][0])):
                patterns[name] = base64.b64decode(vector)[:48]
                patterns[f"{name} as text"] = vector[:48].encode()
            assert (await fresh(memory, f"what opens to {SECRET}")).members[0].id == gone.id
            await memory.forget(gone.id, mode="hard")
            assert (await fresh(memory, f"what opens to {SECRET}")).answer_kind == "None"
            assert (await memory.inspect(gone.id)).story[-1].change == "forgotten (hard)"
            assert (await fresh(memory, "garden 3")).members
    # The embedded graph server keeps dead keys in its index until it compacts: the names of entities, no text.
    left = {found for found in holding(tmp_path, patterns) if ".umtidx" not in found}
    assert left == set()

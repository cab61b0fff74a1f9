"""Read-after-write under lag: whatever lane is held back, an answer is fresh or there is none."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, MemlaneError
from contracts.recall import RecallReply
from tests.stack import Stack

PEOPLE = ("Zora", "Milo", "Ines")
PARTS = ("semantic", "lexical", "graph", "catalog")
STEPS = 36


async def test_no_answer_is_ever_stale(tmp_path: Path) -> None:
    """Encodes, corrections, forgets and recalls in any order, while one part or another is stopped at random."""
    chance = random.Random(1)
    homes: dict[str, tuple[str, str] | None] = dict.fromkeys(PEOPLE)  # person → (memory id, its text)
    held: str | None = None
    fresh = refused = 0
    with Stack(tmp_path, {"MEMLANE_LOG__SHARDS": "2"}) as stack:
        async with MemoryClient(stack.url, project="p", timeout_s=20) as memory:
            await memory.encode("The museum roof leaks over the east wing")
            await memory.recall("museum", consistency="ReadAfterWrite", deadline_ms=20_000)
            for step in range(STEPS):
                if chance.random() < 0.3:
                    if held:
                        stack.kill(held, signal.SIGCONT)
                    held = chance.choice(PARTS) if held is None else None
                    if held:
                        stack.kill(held, signal.SIGSTOP)
                person = chance.choice(PEOPLE)
                known = homes[person]
                if known and chance.random() < 0.2:
                    await memory.forget(known[0])
                    homes[person] = None
                elif chance.random() < 0.7:
                    homes[person] = await move(memory, person, f"Harbour {step}")
                reply = await ask(memory, person)
                if isinstance(reply, MemlaneError):
                    assert held, f"step {step}: nothing was held back, and yet {reply}"
                    assert reply.code in (ErrorCode.CONSISTENCY_TIMEOUT, ErrorCode.UNAVAILABLE)
                    refused += 1
                    continue
                expected = homes[person]
                lives = [member.text for member in reply.members if member.text.startswith(person)]
                assert lives == ([expected[1]] if expected else []), f"step {step}"
                fresh += 1
    assert fresh > STEPS / 4
    assert refused > 2


async def ask(memory: MemoryClient, person: str) -> RecallReply | MemlaneError:
    try:
        return await memory.recall(f"Where does {person} live?", consistency="ReadAfterWrite", deadline_ms=800)
    except MemlaneError as error:
        return error


async def move(memory: MemoryClient, person: str, home: str) -> tuple[str, str]:
    claim = {"subject": person, "predicate": "lives_in", "object": home, "kind": "Attribute"}
    text = f"{person} lives in {home}"
    return (await memory.encode(text, statements=[claim])).id, text

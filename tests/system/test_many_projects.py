"""Two hundred projects with the same names in them: no verb of one shows anything of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from contracts.client import MemoryClient
from contracts.errors import NotFound
from tests.stack import Stack

COUNT, AT_ONCE = 200, 16


def text(number: int) -> str:
    return f"Ana Duval of Globex keeps the key of vault VX-{number:04d} in Lisbon"


async def test_two_hundred_projects_do_not_see_each_other(stack: Stack) -> None:
    written: dict[int, str] = {}
    async with MemoryClient(stack.url, project="many-0") as one:

        def client(number: int) -> MemoryClient:
            memory = MemoryClient(stack.url, project=f"many-{number}")
            memory._link = one._link  # two hundred projects, not two hundred links
            return memory

        async def encode(memory: MemoryClient, number: int) -> None:
            statement = {"subject": "Ana Duval", "predicate": "works_at", "object": "Globex", "kind": "Attribute"}
            written[number] = (await memory.encode(text(number), statements=[statement])).id

        async def read(memory: MemoryClient, number: int) -> None:
            mine, neighbour = written[number], (number + 1) % COUNT
            cue = f"vault VX-{neighbour:04d} Ana Duval Globex"  # what the neighbour has, word by word
            reply = await memory.recall(cue, consistency="ReadAfterWrite", deadline_ms=20_000)
            assert {member.id for member in reply.members} <= {mine}, number
            assert all(member.superseded_by is None for member in reply.members)
            if number % 8 == 1:
                reply = await memory.recall(text(number), consistency="ReadAfterWrite", deadline_ms=20_000)
                assert [member.id for member in reply.members] == [mine], number
            assert [row.id for row in (await memory.list()).memories] == [mine]
            assert (await memory.inspect(mine)).found
            assert not (await memory.inspect(written[neighbour])).found
            page = await memory.graph_fetch()
            said = page.model_dump_json()
            assert f"VX-{number:04d}" in said
            assert said.count("VX-") == said.count(f"VX-{number:04d}")
            with pytest.raises(NotFound):
                await memory.forget(written[neighbour])

        async def forget(memory: MemoryClient, number: int) -> None:
            if number % 2 == 0:
                assert (await memory.forget(written[number])).forgotten

        async def recheck(memory: MemoryClient, number: int) -> None:
            reply = await memory.recall(text(number), consistency="ReadAfterWrite", deadline_ms=20_000)
            assert [member.id for member in reply.members] == ([] if number % 2 == 0 else [written[number]])

        async def everywhere(step: Callable[[MemoryClient, int], Awaitable[None]], numbers: range) -> None:
            gate = asyncio.Semaphore(AT_ONCE)

            async def run(number: int) -> None:
                async with gate:
                    await step(client(number), number)

            await asyncio.gather(*(run(number) for number in numbers))

        for step in (encode, read, forget):
            await everywhere(step, range(COUNT))
        await everywhere(recheck, range(0, COUNT, 25))
        assert len(set(written.values())) == COUNT

"""Topics and summaries on the real stack: they follow what is written, forgotten and replaced, and survive a kill."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import anyio
import pytest

from contracts.catalog import Row
from contracts.client import MemoryClient
from contracts.errors import NotFound, Unavailable
from contracts.memory import EdgeKind, MemoryKind
from contracts.topics import TopicEntry
from infra.child import end, spawn
from infra.discovery import discover
from tests.stack import Stack
from tests.system.test_hard_forget import holding
from tests.system.test_main_job import fresh, until

SECRET = "zanzibarquux"
LOGIN = (
    "Customers cannot log in since the MFA reset",
    "The login page refuses customers after the MFA reset",
    "After the MFA reset the customers' login fails again",
)
MORE = "Login of customers is refused since they reset MFA"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def tended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    env = {"MEMLANE_UPKEEP__EVERY_S": "0.2", "MEMLANE_LOG__SHARDS": "2"}
    with Stack(tmp_path_factory.mktemp("tended"), env) as stack:
        yield stack


@pytest.fixture
async def mine(tended: Stack) -> AsyncIterator[MemoryClient]:
    async with MemoryClient(tended.url, project=f"tended-{next(_numbers)}", timeout_s=3) as memory:
        yield memory


async def learn(memory: MemoryClient, texts: Sequence[str] = LOGIN, **fields: Any) -> list[str]:
    return [(await memory.encode(text, **fields)).id for text in texts]


async def topics(memory: MemoryClient) -> tuple[TopicEntry, ...]:
    return (await memory.topics()).topics


async def until_members(memory: MemoryClient, *ids: str) -> TopicEntry:
    """The one topic, once these are its members and its summary is of them."""
    found: list[TopicEntry] = []

    async def there() -> bool:
        found[:] = await topics(memory)
        return [set(one.members) for one in found] == [set(ids)] and bool(found[0].summary) and await of_them()

    async def of_them() -> bool:
        row = await summary_row(memory, found[0].summary or "")
        return row is not None and {edge.target for edge in row.edges} == set(ids)

    await until(there)
    return found[0]


async def summary_row(memory: MemoryClient, memory_id: str) -> Row | None:
    row = (await memory.inspect(memory_id)).memory
    return row if row is not None and row.tombstone is None else None


async def gone(memory: MemoryClient, memory_id: str) -> None:
    async def is_gone() -> bool:
        return await summary_row(memory, memory_id) is None

    await until(is_gone)


async def test_a_summary_is_made_of_its_topic_and_of_nothing_else(mine: MemoryClient) -> None:
    ids = await learn(mine)
    await mine.encode("The bakery on the corner opens at six")
    topic = await until_members(mine, *ids)
    row = await summary_row(mine, topic.summary or "")
    assert row is not None
    assert (row.kind, row.text.partition(":")[0], topic.size) == (MemoryKind.CONSOLIDATED, topic.label, 3)
    assert {edge.kind for edge in row.edges} == {EdgeKind.DERIVED_FROM}
    assert any(text in row.text for text in LOGIN)
    assert len(row.text) <= 600
    assert (row.entities, row.statements) == ((), ())
    await anyio.sleep(1)  # rounds later there is still one, written once, and no member of anything
    assert (await topics(mine))[0].size == 3
    assert len((await mine.inspect(row.id)).story) == 1


async def test_callers_see_summaries_only_where_they_ask_and_do_not_pay_for_them(mine: MemoryClient) -> None:
    ids = await learn(mine)
    topic = await until_members(mine, *ids)
    cue = "why can customers not log in after the MFA reset"
    assert {member.id for member in (await fresh(mine, cue)).members} <= set(ids)
    asked = await fresh(mine, cue, kinds=["Consolidated"])
    assert [member.id for member in asked.members] == [topic.summary]
    assert {row.id for row in (await mine.list()).memories} == set(ids)
    assert {row.id for row in (await mine.list(kinds=["Consolidated"])).memories} == {topic.summary}
    reasons = await mine.reason({"text": LOGIN[0]}, consistency="ReadAfterWrite")
    assert topic.summary not in {one.id for one in reasons.basis}
    assert reasons.supporting == ()

    async def counted() -> bool:
        return (await mine.usage(days=1)).days[0].encodes == 3

    await until(counted)


async def test_it_follows_the_topic(mine: MemoryClient) -> None:
    ids = await learn(mine)
    first = await until_members(mine, *ids)
    [new] = await learn(mine, [MORE])
    assert (await until_members(mine, *ids, new)).summary == first.summary  # grown by a third: written anew in place
    await mine.forget(ids[0])
    await until_members(mine, *ids[1:], new)
    await mine.forget(ids[1])
    await gone(mine, first.summary or "")
    assert await topics(mine) == ()
    await mine.restore(ids[1])
    await until_members(mine, *ids[1:], new)


async def test_what_was_replaced_or_has_expired_is_in_no_topic(mine: MemoryClient) -> None:
    ids = await learn(mine)
    status = {"subject": "MFA", "predicate": "status", "object": "refused", "kind": "Attribute"}
    old = await mine.encode(MORE, statements=[status])
    brief = await mine.encode("The MFA reset made the login of customers fail", ttl_s=4)
    await until_members(mine, *ids, old.id, brief.id)
    await mine.encode("The bakery opened at six", statements=[status | {"object": "fine"}])
    await until_members(mine, *ids)
    named = await mine.encode("Pottery classes begin in spring", supersedes=[ids[0]])
    await until(lambda: empty(mine))
    assert (await mine.inspect(named.id)).found


async def empty(memory: MemoryClient) -> bool:
    return await topics(memory) == ()


async def test_what_is_pending_is_in_no_topic(mine: MemoryClient) -> None:
    ids = await learn(mine, LOGIN[:2])
    async with mine.transaction() as txn:
        pending = await txn.encode(LOGIN[2])
        await anyio.sleep(0.6)
        assert await topics(mine) == ()
    await until_members(mine, *ids, pending.id)


async def test_hard_forgotten_words_are_nowhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("erased")
    # So long that only the hard forget itself can have woken it.
    with Stack(folder, {"MEMLANE_UPKEEP__EVERY_S": "3"}) as stack:
        async with MemoryClient(stack.url, project="p") as memory:
            ids = await learn(memory, [*LOGIN, MORE])
            secret = (await memory.encode(f"Customers cannot log in since the MFA reset of {SECRET}")).id
            topic = await until_members(memory, *ids, secret)
            row = await summary_row(memory, topic.summary or "")
            assert row is not None
            assert SECRET in row.text
            await memory.forget(secret, mode="hard")
            await until_members(memory, *ids)
            await fresh(memory, "login")  # every lane has applied it
    left = {found for found in holding(folder, {"text": SECRET.encode()}) if ".umtidx" not in found}
    assert left == set()


async def test_killed_it_comes_back_the_same(tended: Stack, mine: MemoryClient) -> None:
    ids = await learn(mine)
    before = await until_members(mine, *ids)
    tended.kill("upkeep")

    async def back() -> bool:
        try:
            return await topics(mine) == (before,)
        except Unavailable:  # a call that went to the dead one
            return False

    await until(back)
    await anyio.sleep(1)
    assert len((await mine.inspect(before.summary or "")).story) == 1


async def test_started_twice_one_keeps_house_and_both_answer(tended: Stack, mine: MemoryClient) -> None:
    ids = await learn(mine)
    topic = await until_members(mine, *ids)
    env = {"MEMLANE_REPLICA": "b", "MEMLANE_NATS__URL": tended.url, "MEMLANE_LOG__SHARDS": "2"}
    command = [sys.executable, "-m", "workers", "upkeep"]
    second = spawn(command, tended.data / "second.log", env | {"MEMLANE_UPKEEP__EVERY_S": "0.2"})
    try:

        async def acting() -> list[bool]:
            found = await discover(await mine.connection())
            return sorted(one.facts["acting"] for one in found if one.role == "upkeep")

        async def both() -> bool:
            return len(await acting()) == 2

        await until(both)
        await mine.encode(MORE)

        async def grown() -> bool:
            return (await topics(mine))[0].size == 4

        await until(grown)
        await anyio.sleep(1.5)
        assert await acting() == [False, True]
        changes = [entry.change for entry in (await mine.inspect(topic.summary or "")).story]
        assert changes in (["encoded again"], ["forgotten (hard)", "encoded again"])
        for _ in range(8):  # whichever answers
            assert (await topics(mine))[0].size == 4
    finally:
        end(second)


async def test_without_it_a_query_has_no_topics(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Stack(tmp_path_factory.mktemp("without"), {"MEMLANE_UPKEEP__ENABLED": "false"}) as stack:
        async with MemoryClient(stack.url, project="p") as memory:
            await learn(memory)
            reply = await memory.query(
                "why can customers not log in after the reset", consistency="ReadAfterWrite", deadline_ms=10_000
            )
            assert [one.topic for one in reply.memories] == [None] * 3
            assert not reply.degraded


async def test_a_project_that_was_never_written_to_is_told(tended: Stack) -> None:
    async with MemoryClient(tended.url, project="never-written-to") as nobody:
        with pytest.raises(NotFound):
            await nobody.topics()

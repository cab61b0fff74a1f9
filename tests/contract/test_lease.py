"""A lease on a real server: one holder at a time, taken over when it is not prolonged."""

from __future__ import annotations

import anyio
from nats.aio.client import Client

from contracts import subjects
from infra.nats_lease import KvLease


async def test_one_holds_it_and_may_prolong_it(client: Client) -> None:
    lease, other = KvLease(client), KvLease(client)
    assert [await lease.hold("x", "a"), await lease.hold("x", "a")] == [True, True]
    assert [await other.hold("x", "b"), await other.hold("y", "b")] == [False, True]
    assert await lease.hold("x", "a")


async def test_of_many_at_once_one_gets_it(client: Client) -> None:
    got: list[str] = []

    async def take(holder: str) -> None:
        if await KvLease(client).hold("race", holder):
            got.append(holder)

    async with anyio.create_task_group() as tasks:
        for number in range(16):
            tasks.start_soon(take, str(number))
    assert len(got) == 1


async def test_what_is_not_prolonged_is_free_again(client: Client) -> None:
    js = client.jetstream()
    assert await KvLease(client).hold("z", "a")
    await (await js.key_value(subjects.LEASES_BUCKET)).purge("z")  # as the bucket does by itself after a minute
    assert await KvLease(client).hold("z", "b")


async def test_without_the_bucket_nobody_has_it(client: Client) -> None:
    await client.jetstream().delete_key_value(subjects.LEASES_BUCKET)
    assert not await KvLease(client).hold("x", "a")

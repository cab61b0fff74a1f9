"""Forgetting and taking it back, on a real log."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from nats.aio.client import Client

from contracts import subjects, wire
from contracts.base import now
from contracts.catalog import OverdueReply
from contracts.encode import GRACE_S, ForgetRequest, RestoreRequest
from contracts.errors import ErrorCode
from contracts.memory import Statement, Tombstone, derive_id
from contracts.shards import Shard
from tests.contract.test_transactions import Case, refused
from tests.unit.test_gather import FakeBus
from workers.encode.reclaim import Reclaimer


@pytest.fixture
async def case(client: Client) -> Case:
    return Case(client)


async def forget(case: Case, text: str, **fields: object) -> None:
    await case.writer.forget(case.project, ForgetRequest(id=derive_id(case.project, text), **fields))  # type: ignore[arg-type]


async def restore(case: Case, text: str) -> bool:
    return (await case.writer.restore(case.project, RestoreRequest(id=derive_id(case.project, text)))).restored


class TestRestore:
    async def test_all_of_it_comes_back(self, case: Case) -> None:
        said = Statement(subject="Ana", predicate="owns", object="a boat")
        await case.writer.store(case.record("a", statements=(said,), tags=("x",)))
        before = await case.log.last(case.project, derive_id(case.project, "a"))
        await forget(case, "a")
        assert [await restore(case, "a"), await restore(case, "a")] == [True, False]
        after = await case.log.last(case.project, derive_id(case.project, "a"))
        assert before
        assert after
        changed = {"version", "changed_at"}
        assert after[1].model_dump(exclude=changed) == before[1].model_dump(exclude=changed)
        assert after[1].version == 3

    async def test_of_nothing(self, case: Case) -> None:
        await refused(ErrorCode.MEMORY_NOT_FOUND, restore(case, "a"))

    async def test_of_what_is_erased(self, case: Case) -> None:
        await case.writer.store(case.record("a"))
        await forget(case, "a", mode="hard")
        await refused(ErrorCode.GRACE_OVER, restore(case, "a"))

    async def test_after_the_grace(self, case: Case) -> None:
        at = now() - timedelta(seconds=GRACE_S + 1)
        await case.writer.store(case.record("a", tombstone=Tombstone(at=at)))
        await refused(ErrorCode.GRACE_OVER, restore(case, "a"))


async def test_reclaim_erases_what_the_catalog_names(case: Case) -> None:
    await case.writer.store(case.record("a"))
    await forget(case, "a")
    bus = FakeBus()
    overdue = OverdueReply(overdue=((case.project, derive_id(case.project, "a")),))
    bus.set(subjects.catalog(Shard(1, 2), "overdue"), wire.encode(overdue))  # the catalog of shard 0 is away
    reclaimer = Reclaimer(bus, case.writer, 2, 0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reclaimer.run)
        with anyio.fail_after(5):
            while await case.state("a") != "hard":
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert reclaimer.reclaimed >= 1
    assert len(await case.log.history(case.project, derive_id(case.project, "a"))) == 1

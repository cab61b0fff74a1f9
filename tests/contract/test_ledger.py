"""The usage ledger on a real NATS server: exact under races, whoever asks, and a new page each day."""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime, timedelta

import anyio
import pytest
from nats.aio.client import Client

from contracts import subjects
from contracts.errors import ErrorCode, Exhausted, InvalidRequest, Unavailable
from contracts.usage import Admission, Kind, UsageRequest
from infra import nats_ledger
from infra.metering import QuotaMeter
from infra.nats_bus import connect
from infra.nats_ledger import KvLedger
from infra.nats_server import NatsServer
from infra.settings import Limits, Nats, ProjectQuota, Quota
from orchestrator.usage import UsageService

_numbers = itertools.count(1)
ENCODE, RECALL, QUERY, RERANK = Kind.ENCODE, Kind.RECALL, Kind.QUERY, Kind.RERANK


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = datetime(2026, 5, 31, 23, 59, 58, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def project() -> str:
    return f"Some-project_{next(_numbers)}"


async def at_once(ledgers: list[KvLedger], project: str, calls: int, limit: int) -> list[Admission]:
    """Calls of one unit each, all at the same time, spread over the ledgers."""
    admissions: list[Admission] = []

    async def call(number: int) -> None:
        admissions.append(await ledgers[number % len(ledgers)].admit(project, {ENCODE: 1}, {ENCODE: limit}))

    async with anyio.create_task_group() as tasks:
        for number in range(calls):
            tasks.start_soon(call, number)
    return admissions


def granted(admissions: list[Admission]) -> int:
    return sum(admission.refused is None for admission in admissions)


async def test_of_two_racing_calls_at_the_limit_exactly_one_is_admitted(client: Client, project: str) -> None:
    async with KvLedger(client) as one, KvLedger(client) as other:
        for limit in range(1, 40):
            admissions = await at_once([one, other], project, 2, limit)
            assert granted(admissions) == 1
            day = admissions[0].day
            assert (await other.read(project, day))[ENCODE] == limit


async def test_two_ledgers_share_a_limit(server: NatsServer, client: Client, project: str) -> None:
    """As of two processes: each has a link of its own."""
    link = await connect(Nats(url=server.url), "other")
    try:
        async with KvLedger(client) as one, KvLedger(link) as other:
            admissions = await at_once([one, other], project, 100, 30)
            assert granted(admissions) == 30
            assert {admission.refused for admission in admissions} == {None, ENCODE}
            assert await one.read(project, admissions[0].day) == {ENCODE: 30}
    finally:
        await link.close()


async def test_many_ledgers_all_get_through(client: Client, project: str) -> None:
    async with AsyncExitStack() as stack:
        ledgers = [await stack.enter_async_context(KvLedger(client)) for _ in range(8)]
        admissions = await at_once(ledgers, project, 400, 10_000)
        assert granted(admissions) == 400
        assert await ledgers[0].read(project, admissions[0].day) == {ENCODE: 400}


async def test_a_crowd_costs_a_few_writes(client: Client, project: str) -> None:
    async with KvLedger(client) as ledger:
        before = (await client.jetstream().stream_info(f"KV_{subjects.LEDGER_BUCKET}")).state.last_seq
        admissions = await at_once([ledger], project, 200, 10_000)
        after = (await client.jetstream().stream_info(f"KV_{subjects.LEDGER_BUCKET}")).state.last_seq
    assert granted(admissions) == 200
    assert 1 <= after - before <= 5


async def test_a_failed_call_is_given_back(client: Client, project: str) -> None:
    async with KvLedger(client) as one, KvLedger(client) as other:
        [first] = await at_once([one], project, 1, 1)
        assert granted([first]) == 1
        [refused] = await at_once([other], project, 1, 1)
        assert refused.refused is ENCODE
        other.give_back(project, refused)  # nothing was counted, so nothing comes back
        one.give_back(project, first)
        await settled(one, project, first.day, {ENCODE: 0})
        assert granted(await at_once([other], project, 2, 1)) == 1


async def test_a_charge_is_counted_whole_or_not_at_all(client: Client, project: str) -> None:
    async with KvLedger(client) as ledger:
        both, limits = {QUERY: 1, RERANK: 1}, {QUERY: 9, RERANK: 2}
        for _ in range(2):
            assert (await ledger.admit(project, both, limits)).refused is None
        refused = await ledger.admit(project, both, limits)
        assert refused.refused is RERANK
        assert (await ledger.admit(project, {QUERY: 1}, limits)).refused is None
        assert await ledger.read(project, refused.day) == {QUERY: 3, RERANK: 2}


async def test_a_limit_of_nought_admits_nothing(client: Client, project: str) -> None:
    async with KvLedger(client) as ledger:
        assert granted(await at_once([ledger], project, 3, 0)) == 0


async def test_without_a_limit_nothing_is_waited_for_and_all_is_written(client: Client, project: str) -> None:
    async with KvLedger(client) as one:
        day = (await one.admit(project, {RECALL: 1}, {ENCODE: 5})).day
        for _ in range(99):
            await one.admit(project, {RECALL: 1}, {ENCODE: 5})
        failed = await one.admit(project, {RECALL: 1}, {})
        one.give_back(project, failed)
        one.count(project, day, {Kind.QUERY_LOW: 2})
        assert await one.read(project, day) == {}
        await settled(one, project, day, {RECALL: 100, Kind.QUERY_LOW: 2})
        await one.admit(project, {RECALL: 1}, {})
    async with KvLedger(client) as other:  # what was left was written at the end
        assert (await other.read(project, day))[RECALL] == 101


async def test_two_flush_at_once_and_neither_undoes_the_other(client: Client, project: str) -> None:
    async with KvLedger(client) as one, KvLedger(client) as other:
        for _ in range(50):
            day = (await one.admit(project, {RECALL: 1}, {})).day
            await other.admit(project, {ENCODE: 1}, {})
        await settled(one, project, day, {RECALL: 50, ENCODE: 50})


async def test_a_new_day_is_a_new_page(client: Client, project: str) -> None:
    clock = Clock()
    async with KvLedger(client, clock) as ledger:
        spent = await at_once([ledger], project, 3, 2)
        assert granted(spent) == 2
        clock.at += timedelta(seconds=5)
        fresh = await at_once([ledger], project, 3, 2)
        assert granted(fresh) == 2
        assert (spent[0].day, fresh[0].day) == (date(2026, 5, 31), date(2026, 6, 1))
        ledger.give_back(project, next(one for one in spent if one.refused is None))
        await settled(ledger, project, date(2026, 5, 31), {ENCODE: 1})
        assert await ledger.read(project, date(2026, 6, 1)) == {ENCODE: 2}


async def test_projects_are_counted_apart(client: Client, project: str) -> None:
    async with KvLedger(client) as ledger:
        await at_once([ledger], project, 1, 5)
        [other] = await at_once([ledger], project + "x", 1, 5)
        assert await ledger.read(project, other.day) == {ENCODE: 1}


async def test_a_lost_answer_is_not_counted_twice(
    client: Client, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with KvLedger(client) as ledger:
        publish, lost = ledger._js.publish, []

        async def once_lost(*args: object, **kwargs: object) -> object:
            ack = await publish(*args, **kwargs)  # type: ignore[arg-type]
            if not lost:
                lost.append(ack)
                raise TimeoutError
            return ack

        monkeypatch.setattr(ledger._js, "publish", once_lost)
        [admission] = await at_once([ledger], project, 1, 5)
        assert lost
        assert await ledger.read(project, admission.day) == {ENCODE: 1}
        assert granted(await at_once([ledger], project, 9, 5)) == 4


async def test_a_store_that_is_away_is_told(
    tmp_path_factory: pytest.TempPathFactory, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_ledger, "CLOSE_S", 0.2)
    server = NatsServer(tmp_path_factory.mktemp("gone"))
    server.start()
    client = await connect(Nats(url=server.url), "test")
    try:
        async with KvLedger(client) as ledger:  # no bucket was made here
            with pytest.raises(Unavailable) as caught:
                await ledger.admit(project, {ENCODE: 1}, {ENCODE: 1})
            assert caught.value.code is ErrorCode.UNAVAILABLE
            with pytest.raises(Unavailable):
                await ledger.read(project, date(2026, 5, 31))
            assert (await ledger.admit(project, {ENCODE: 1}, {})).refused is None
    finally:
        await client.close()
        server.stop()


async def test_strict_refuses_until_midnight_and_silent_only_says_so(client: Client, project: str) -> None:
    clock = Clock()
    quota = Quota(
        mode="strict",
        limits=Limits(encode=1),
        projects={project + "-quiet": ProjectQuota(mode="silent"), project + "-free": ProjectQuota(encode="unlimited")},
    )
    async with KvLedger(client, clock) as ledger:
        meter = QuotaMeter(ledger, quota, clock)
        await meter.admit(project, {ENCODE: 1})
        with pytest.raises(Exhausted) as caught:
            await meter.admit(project, {ENCODE: 1})
        assert caught.value.code is ErrorCode.QUOTA_EXCEEDED
        assert caught.value.details == {"kind": "encode", "limit": 1, "retry_after_ms": 2000}
        await meter.admit(project + "-quiet", {ENCODE: 1})
        assert (await meter.admit(project + "-quiet", {ENCODE: 1})).refused is ENCODE
        for _ in range(3):
            assert (await meter.admit(project + "-free", {ENCODE: 1})).refused is None
        for name in ("a.b", "", "_"):
            with pytest.raises(InvalidRequest):
                await meter.admit(name, {ENCODE: 1})


async def test_usage_shows_days_limits_and_what_is_left(client: Client, project: str) -> None:
    clock = Clock()
    quota = Quota(mode="silent", limits=Limits(encode=5, query=9))
    async with KvLedger(client, clock) as ledger:
        meter, service = QuotaMeter(ledger, quota, clock), UsageService(ledger, quota.of, clock)
        for _ in range(3):
            await meter.admit(project, {ENCODE: 1})
        clock.at += timedelta(seconds=5)
        admission = await meter.admit(project, {QUERY: 1, RERANK: 1})
        meter.count(project, admission.day, {Kind.QUERY_HIGH: 1})
        await settled(ledger, project, admission.day, {QUERY: 1, RERANK: 1, Kind.QUERY_HIGH: 1})

        reply = await service.usage(project, UsageRequest(days=3))
        assert [str(day.day) for day in reply.days] == ["2026-06-01", "2026-05-31", "2026-05-30"]
        assert [day.encodes for day in reply.days] == [0, 3, 0]
        today = reply.days[0]
        assert (today.queries, today.queries_by_tier.high, today.reranks) == (1, 1, 1)
        assert (reply.mode, reply.limits, reply.left) == (
            "silent",
            {"encode": 5, "query": 9},
            {"encode": 5, "query": 8},
        )
        assert reply.resets_at == datetime(2026, 6, 2, tzinfo=UTC)

        old = await service.usage(project, UsageRequest(day=date(2026, 5, 31)))
        assert [day.encodes for day in old.days] == [3]
        assert old.left == {"encode": 5, "query": 8}
        assert len((await service.usage(project, UsageRequest(day=date(1, 1, 2), days=92))).days) == 2
        off = await UsageService(ledger, Quota(limits=Limits(encode=5)).of, clock).usage(project, UsageRequest())
        assert (off.mode, off.limits, off.left) == ("off", {}, {})


async def settled(ledger: KvLedger, project: str, day: date, counts: dict[Kind, int]) -> None:
    with anyio.fail_after(5):
        while await ledger.read(project, day) != counts:
            await anyio.sleep(0.02)

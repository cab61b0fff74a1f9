"""The wrapper around a metered verb, tried on one whose cost is known in part only from its reply."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date

import pytest

from contracts.errors import ErrorCode, Exhausted, Internal, InvalidRequest
from contracts.ports import Call, Endpoint
from contracts.usage import Admission, Charge, Kind, Tariff
from infra.metering import QuotaMeter, answer
from infra.settings import Limits, Quota, QuotaMode

DAY = date(2026, 5, 31)


class PlainLedger:
    """`contracts.stores.Ledger` for one project and day."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()

    async def admit(self, project: str, charge: Charge, limits: Charge) -> Admission:
        for kind, number in charge.items():
            if kind in limits and self.counts[kind] + number > limits[kind]:
                return Admission(DAY, charge, kind)
        self.count(project, DAY, charge)
        return Admission(DAY, charge)

    def give_back(self, project: str, admission: Admission) -> None:
        self.count(project, admission.day, {kind: -number for kind, number in admission.charge.items()})

    def count(self, project: str, day: date, charge: Charge) -> None:
        assert (project, day) == ("p", DAY)
        self.counts.update(charge)

    async def read(self, project: str, day: date) -> dict[Kind, int]:
        return dict(self.counts)


def charge(data: bytes) -> Charge:
    return {Kind.QUERY: 1, **({Kind.RERANK: 1} if json.loads(data).get("rerank") else {})}


def silent(project: str, data: bytes) -> bytes:
    if b"bad" in data:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "bad")
    return f"silence for {project}".encode()


def correct(data: bytes, reply: bytes) -> Charge:
    tier = {Kind(f"query_{reply.decode()}"): 1}
    return {**tier, Kind.RERANK: -1} if json.loads(data).get("rerank") == "in vain" else tier


async def query(call: Call) -> bytes:
    if b"fail" in call.data:
        raise Internal(ErrorCode.INTERNAL, "failed")
    return b"high" if b"synthesis" in call.data else b"low"


QUERY = Endpoint("query", "memlane.v1.*.query", "orchestrator", query, Tariff(charge, silent, correct))


def meter(mode: QuotaMode, **limits: int) -> tuple[QuotaMeter, PlainLedger]:
    ledger = PlainLedger()
    return QuotaMeter(ledger, Quota(mode=mode, limits=Limits(**limits))), ledger


def call(data: bytes, project: str = "p") -> Call:
    return Call(f"memlane.v1.{project}.query", data, 0.0)


async def test_what_only_the_reply_tells_is_counted_after_it() -> None:
    gauge, ledger = meter("off")
    assert await answer(QUERY, call(b"{}"), gauge) == (b"low", {})
    assert await answer(QUERY, call(b'{"q": "synthesis", "rerank": true}'), gauge) == (b"high", {})
    await answer(QUERY, call(b'{"rerank": "in vain"}'), gauge)
    assert +ledger.counts == {Kind.QUERY: 3, Kind.QUERY_LOW: 2, Kind.QUERY_HIGH: 1, Kind.RERANK: 1}


async def test_a_call_that_fails_is_not_counted() -> None:
    gauge, ledger = meter("strict", query=1)
    for _ in range(3):
        with pytest.raises(Internal):
            await answer(QUERY, call(b'{"fail": 1, "rerank": true}'), gauge)
    assert not +ledger.counts
    await answer(QUERY, call(b"{}"), gauge)


async def test_strict_is_an_error_that_says_until_when() -> None:
    gauge, ledger = meter("strict", query=5, rerank=0)
    with pytest.raises(Exhausted) as caught:
        await answer(QUERY, call(b'{"rerank": true}'), gauge)
    assert caught.value.code is ErrorCode.QUOTA_EXCEEDED
    assert (caught.value.details["kind"], caught.value.details["limit"]) == ("rerank", 0)
    assert caught.value.details["retry_after_ms"] >= 1
    assert not +ledger.counts
    assert (await answer(QUERY, call(b"{}"), gauge))[0] == b"low"


async def test_silent_answers_without_the_handler_and_counts_nothing() -> None:
    gauge, ledger = meter("silent", query=0)
    assert await answer(QUERY, call(b'{"fail": 1}'), gauge) == (b"silence for p", {"X-Memlane-Silent": "1"})
    with pytest.raises(InvalidRequest):
        await answer(QUERY, call(b'{"bad": 1}'), gauge)
    assert not +ledger.counts


async def test_a_bad_project_is_told_before_anything_is_counted() -> None:
    gauge, ledger = meter("off")
    for project in ("", "-a", "a$"):
        with pytest.raises(InvalidRequest) as caught:
            await answer(QUERY, call(b"{}", project), gauge)
        assert caught.value.code is ErrorCode.INVALID_PROJECT
    assert not ledger.counts


async def test_without_a_tariff_or_a_meter_it_is_just_the_handler() -> None:
    gauge, ledger = meter("strict", query=0)
    free = Endpoint("query", "memlane.v1.*.query", "orchestrator", query)
    assert await answer(free, call(b"{}"), gauge) == (b"low", {})
    assert await answer(QUERY, call(b"{}"), None) == (b"low", {})
    assert not ledger.counts

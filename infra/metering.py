"""Counting the calls of a verb, and holding them to the project's quota: a wrapper around any endpoint's handler."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

from contracts import subjects, wire
from contracts.addressing import SILENT_HEADER
from contracts.base import now
from contracts.errors import ErrorCode, Exhausted
from contracts.ports import Call, Endpoint
from contracts.stores import Ledger, Meter
from contracts.usage import Admission, Charge
from infra.settings import Quota

SILENT = {SILENT_HEADER: "1"}


class QuotaMeter:
    """`contracts.stores.Meter` over a ledger and the settings' limits."""

    def __init__(self, ledger: Ledger, quota: Quota, clock: Callable[[], datetime] = now) -> None:
        self._ledger, self._quota, self._clock = ledger, quota, clock

    async def admit(self, project: str, charge: Charge) -> Admission:
        wire.check_project(project)
        mode, limits = self._quota.of(project)
        admission = await self._ledger.admit(project, charge, limits)
        refused = admission.refused
        if refused is not None and mode == "strict":
            raise Exhausted(
                ErrorCode.QUOTA_EXCEEDED,
                f"the day's quota of {limits[refused]} {refused} calls is spent",
                kind=str(refused),
                limit=limits[refused],
                retry_after_ms=max(int((day_end(admission.day) - self._clock()).total_seconds() * 1000), 1),
            )
        return admission

    def give_back(self, project: str, admission: Admission) -> None:
        self._ledger.give_back(project, admission)

    def count(self, project: str, day: date, charge: Charge) -> None:
        self._ledger.count(project, day, charge)


async def answer(endpoint: Endpoint, call: Call, meter: Meter | None) -> tuple[bytes, dict[str, str]]:
    """The reply of an endpoint and its headers. Where it has a tariff, the call is admitted first, and given back when
    it raises; one that is refused in silent mode is answered by the tariff, and the handler is never called."""
    tariff = endpoint.tariff
    if tariff is None or meter is None:
        return await endpoint.handle(call), {}
    project = subjects.project_of(call.subject)
    wire.check_project(project)
    admission = await meter.admit(project, tariff.charge(call.data))
    if admission.refused is not None:
        return tariff.silent(project, call.data), SILENT
    try:
        reply = await endpoint.handle(call)
    except Exception:
        meter.give_back(project, admission)
        raise
    if tariff.correct is not None:
        meter.count(project, admission.day, tariff.correct(call.data, reply))
    return reply, {}


def day_end(day: date) -> datetime:
    """The midnight, in UTC, that ends a day."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)

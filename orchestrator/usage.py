"""The verb usage: what a project used on each day, the limits that hold, and what is left of them today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta

import anyio

from contracts.base import now
from contracts.stores import Ledger
from contracts.usage import DayUsage, Kind, QueriesByTier, QuotaMode, UsageReply, UsageRequest


class UsageService:
    def __init__(
        self,
        ledger: Ledger,
        quota: Callable[[str], tuple[QuotaMode, Mapping[Kind, int]]],
        clock: Callable[[], datetime] = now,
    ) -> None:
        """`quota` gives a project's mode and limits."""
        self._ledger, self._quota, self._clock = ledger, quota, clock

    async def usage(self, project: str, request: UsageRequest) -> UsageReply:
        """A project that nobody has used has used nothing: that is no error. Raises Unavailable."""
        today = self._clock().date()
        end = request.day or today
        first = max(end.toordinal() - request.days + 1, 1)  # the calendar begins with day 1
        wanted = [date.fromordinal(number) for number in range(end.toordinal(), first - 1, -1)]
        counts: dict[date, dict[Kind, int]] = {}

        async def read(day: date) -> None:
            counts[day] = await self._ledger.read(project, day)

        mode, limits = self._quota(project)
        async with anyio.create_task_group() as tasks:
            for day in {*wanted, today} if limits else wanted:
                tasks.start_soon(read, day)
        return UsageReply(
            mode=mode,
            days=tuple(_day(day, counts[day]) for day in wanted),
            limits={str(kind): limit for kind, limit in limits.items()},
            left={str(kind): max(limit - counts[today].get(kind, 0), 0) for kind, limit in limits.items()},
            resets_at=datetime.combine(today + timedelta(days=1), time(), UTC),
        )


def _day(day: date, counts: Mapping[Kind, int]) -> DayUsage:
    tiers = (Kind.QUERY_LOW, Kind.QUERY_MEDIUM, Kind.QUERY_HIGH)
    low, medium, high = (counts.get(tier, 0) for tier in tiers)
    return DayUsage(
        day=day,
        encodes=counts.get(Kind.ENCODE, 0),
        recalls=counts.get(Kind.RECALL, 0),
        queries=counts.get(Kind.QUERY, 0),
        queries_by_tier=QueriesByTier(low=low, medium=medium, high=high),
        reranks=counts.get(Kind.RERANK, 0),
    )

"""A query's filters: what they refuse, and which give way where they leave fewer than k memories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.base import MemoryId
from contracts.catalog import Row
from contracts.memory import MemoryKind
from contracts.query import Predicate, QueryFilters, StorageTier

#: The order in which filters give way. Where a memory is stored matters least to what it says; sources and tags are the
#: caller's own words for the topic; time goes last, as what is too old is most likely wrong. `since` is the very last:
#: "nothing older" is most often meant as such.
GIVES_WAY: tuple[Predicate, ...] = ("tier", "include_summaries", "tags", "sources", "until", "since")

#: 30 days without use, and 180 more (source: the lifecycle that the second seed's product documents).
WARM_AFTER, COLD_AFTER = timedelta(days=30), timedelta(days=210)


@dataclass(frozen=True, slots=True)
class Narrowed:
    """`failed` has the memories that may be shown, best first, and the filters that each does not pass: those that pass
    all stand first. `relaxed` names the filters that gave way."""

    failed: Mapping[MemoryId, tuple[Predicate, ...]]
    relaxed: tuple[Predicate, ...] = ()


def storage_tier(row: Row, at: datetime) -> StorageTier:
    """By how long a memory has lain idle, since it was written or last used: hot for `WARM_AFTER`, warm until
    `COLD_AFTER`, then cold. Reckoned when read, so there is nothing to move and one use makes it hot again."""
    idle = at - max(row.created_at, row.last_used or row.created_at)
    return "hot" if idle < WARM_AFTER else "warm" if idle < COLD_AFTER else "cold"


def refusing(row: Row, filters: QueryFilters, at: datetime) -> tuple[Predicate, ...]:
    """The filters that a memory does not pass, in the order in which they give way. Summaries are refused unless they
    were asked for."""
    passes: dict[Predicate, bool] = {
        "tier": filters.tier is None or storage_tier(row, at) == filters.tier,
        "include_summaries": filters.include_summaries or row.kind is not MemoryKind.CONSOLIDATED,
        "tags": not filters.tags or not set(filters.tags).isdisjoint(row.tags),
        "sources": not filters.sources or row.source in filters.sources,
        "until": filters.until is None or row.event_time <= filters.until,
        "since": filters.since is None or row.event_time >= filters.since,
    }
    return tuple(name for name in GIVES_WAY if not passes[name])


def narrow(ranked: Sequence[Row], filters: QueryFilters, k: int, strict: bool, at: datetime) -> Narrowed:
    """Keep what passes; where that is fewer than `k` and not `strict`, let filters give way one after the other until
    there are enough.

    Only filters that the caller gave are relaxed, and only those are named without which the answer would be shorter.
    Memories that a relaxed filter lets in come behind those that pass: the fewer filters had to give way the earlier.
    """
    failed = {row.id: refusing(row, filters, at) for row in ranked}
    passed = {memory_id: names for memory_id, names in failed.items() if not names}
    if strict or len(passed) >= k:
        return Narrowed(passed)
    ways = [name for name in GIVES_WAY if name in filters.given]
    kept = dict(passed)
    for number in range(1, len(ways) + 1):
        open_ways = set(ways[:number])
        let_in = {one: names for one, names in failed.items() if names and open_ways.issuperset(names)}
        kept |= {one: names for one, names in let_in.items() if one not in kept}
        if len(kept) >= k:
            break
    shown = dict(list(kept.items())[:k])
    return Narrowed(shown, _named(shown.values()))


def _named(failures: Collection[tuple[Predicate, ...]]) -> tuple[Predicate, ...]:
    needed = {name for names in failures for name in names}
    return tuple(name for name in GIVES_WAY if name in needed)

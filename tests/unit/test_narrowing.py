"""Filters, and the order in which they give way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import wire
from contracts.catalog import Row
from contracts.memory import MemoryKind, Tombstone, derive_id
from contracts.query import QueryFilters
from orchestrator.narrowing import GIVES_WAY, narrow, refusing, storage_tier

AT = datetime(2026, 4, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def row(name: str, age: int = 0, **fields: Any) -> Row:
    return Row(**{
        "id": derive_id(name), "text": name, "kind": MemoryKind.EPISODIC, "position": 1, "version": 1,
        "created_at": AT - age * DAY,
    } | fields)  # fmt: skip


def filters(**fields: Any) -> QueryFilters:
    return wire.validate(QueryFilters, fields)


SLACK = row("slack", source="slack", tags=("incident", "auth"))
TICKET = row("ticket", 10, source="ticket", tags=("billing",))
SUMMARY = row("summary", kind=MemoryKind.CONSOLIDATED, source="slack", tags=("incident",))
BARE = row("bare", 400)
ALL = [BARE, SUMMARY, TICKET, SLACK]


def test_within_a_filter_one_match_is_enough_and_filters_are_all_to_be_passed() -> None:
    assert refusing(SLACK, filters(sources=["slack", "mail"], tags=["x", "auth"]), AT) == ()
    assert refusing(SLACK, filters(sources=["mail"], tags=["auth"]), AT) == ("sources",)
    assert refusing(TICKET, filters(sources=["slack"], tags=["auth"]), AT) == ("tags", "sources")
    assert refusing(BARE, filters(sources=["slack"], tags=["auth"]), AT) == ("tags", "sources")


def test_bounds_are_inclusive_and_of_event_time() -> None:
    told_late = row("late", occurred_at=AT - 100 * DAY)
    assert refusing(row("x"), filters(since=AT.isoformat(), until=AT.isoformat()), AT) == ()
    assert refusing(told_late, filters(since=(AT - DAY).isoformat()), AT) == ("since",)
    assert refusing(told_late, filters(until=(AT - 101 * DAY).isoformat()), AT) == ("until",)


def test_tiers_and_summaries() -> None:
    assert refusing(SLACK, filters(tier="hot"), AT) == ()
    assert refusing(SLACK, filters(tier="cold"), AT) == ("tier",)
    assert refusing(SUMMARY, filters(), AT) == ("include_summaries",)
    assert refusing(SUMMARY, filters(include_summaries=True), AT) == ()


@pytest.mark.parametrize(
    ("fields", "stands"),
    [
        ({}, True),
        ({"tombstone": Tombstone(at=AT)}, False),
        ({"superseded_by": derive_id("z")}, False),
        ({"expires_at": AT}, False),
        ({"expires_at": AT + DAY}, True),
    ],
)
def test_standing(fields: dict[str, Any], stands: bool) -> None:
    assert row("a", **fields).stands(AT) is stands


def test_enough_is_left_alone() -> None:
    narrowed = narrow(ALL, filters(sources=["slack", "ticket"]), 2, False, AT)
    assert (list(narrowed.failed), narrowed.relaxed) == ([TICKET.id, SLACK.id], ())


def test_what_passes_comes_first_however_low_it_ranks() -> None:
    narrowed = narrow(ALL, filters(tags=["auth"]), 2, False, AT)
    assert list(narrowed.failed) == [SLACK.id, BARE.id]
    assert narrowed.failed[BARE.id] == narrowed.relaxed == ("tags",)


def test_the_order_of_giving_way() -> None:
    """Each memory fails one filter more: they come in by the number that must give way, and it is no more than needed."""
    old, older = AT - 20 * DAY, AT - 30 * DAY
    asked = filters(tier="cold", tags=["t"], sources=["s"], since=old.isoformat(), until=(AT - DAY).isoformat())
    ladder = [
        row("1", 5, tags=("t",), source="s"),
        row("2", 5, source="s"),
        row("3", 5),
        row("4"),
        row("5", occurred_at=older),
    ]
    for k in range(1, 5):
        narrowed = narrow(list(reversed(ladder)), asked, k, False, AT)
        assert list(narrowed.failed) == [one.id for one in ladder[:k]]
    assert narrow(ladder, asked, 1, False, AT).relaxed == ("tier",)
    assert narrow(ladder, asked, 2, False, AT).relaxed == ("tier", "tags")
    assert narrow(ladder, asked, 3, False, AT).relaxed == ("tier", "tags", "sources")
    assert narrow(ladder, asked, 4, False, AT).relaxed == ("tier", "tags", "sources", "until")
    assert narrow(ladder, asked, 5, False, AT).relaxed == ("tier", "tags", "sources", "until", "since")


def test_only_what_let_somebody_in_is_named() -> None:
    narrowed = narrow(
        [SLACK, TICKET], filters(tier="hot", sources=["slack"], since=(AT - 50 * DAY).isoformat()), 5, False, AT
    )
    assert narrowed.relaxed == ("sources",)


def test_strict_never_relaxes() -> None:
    narrowed = narrow(ALL, filters(tags=["auth"]), 4, True, AT)
    assert (list(narrowed.failed), narrowed.relaxed) == ([SLACK.id], ())


def test_what_the_caller_did_not_ask_for_is_not_relaxed() -> None:
    assert SUMMARY.id not in narrow(ALL, filters(), 4, False, AT).failed
    assert SUMMARY.id not in narrow(ALL, filters(tags=["none"]), 4, False, AT).failed
    assert SUMMARY.id in narrow(ALL, filters(include_summaries=False), 4, False, AT).failed


rows = st.lists(
    st.builds(
        row,
        st.uuids().map(str),
        st.integers(0, 60),
        source=st.sampled_from([None, "a", "b"]),
        tags=st.sampled_from([(), ("x",), ("x", "y")]),
        kind=st.sampled_from([MemoryKind.EPISODIC, MemoryKind.CONSOLIDATED]),
    ),
    max_size=12,
)
asked = st.builds(
    lambda given: filters(**given),
    st.fixed_dictionaries(
        {},
        optional={
            "sources": st.just(["a"]),
            "tags": st.just(["y"]),
            "since": st.just((AT - 30 * DAY).isoformat()),
            "until": st.just((AT - 5 * DAY).isoformat()),
            "tier": st.sampled_from(["hot", "cold"]),
            "include_summaries": st.booleans(),
        },
    ),
)


@given(rows, asked, st.integers(1, 8), st.booleans())
def test_always(ranked: list[Row], wanted: QueryFilters, k: int, strict: bool) -> None:
    narrowed = narrow(ranked, wanted, k, strict, AT)
    passing = [one.id for one in ranked if not refusing(one, wanted, AT)]
    shown = list(narrowed.failed)
    assert shown[: len(passing)] == passing
    assert set(narrowed.relaxed) <= set(wanted.given)
    assert list(narrowed.relaxed) == [name for name in GIVES_WAY if name in narrowed.relaxed]
    if strict or len(passing) >= k:
        assert (shown, narrowed.relaxed) == (passing, ())
    elif len(shown) < k:  # all that the given filters refuse was let in
        assert set(shown) == {one.id for one in ranked if set(refusing(one, wanted, AT)) <= set(wanted.given)}


@pytest.mark.parametrize(
    ("age", "used", "tier"),
    [(0, None, "hot"), (29, None, "hot"), (30, None, "warm"), (209, None, "warm"), (210, None, "cold"), (400, 1, "hot"),
     (400, 60, "warm"), (400, 300, "cold")],
)  # fmt: skip
def test_storage_tiers_go_by_idle_time(age: int, used: int | None, tier: str) -> None:
    held = row("x", age, last_used=None if used is None else AT - used * DAY)
    assert storage_tier(held, AT) == tier

"""Which tier a query takes."""

from __future__ import annotations

from typing import Any

import pytest

from contracts import wire
from contracts.lanes import Lane
from contracts.query import ComputationTier, QueryRequest
from orchestrator.tiers import TIERS, choose, tokens


def tier_of(query: str, session: ComputationTier | None = None, **fields: Any) -> str:
    return choose(wire.validate(QueryRequest, {"query": query, **fields}), session).tier.name


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("MFA login issues", 3), ("why, though?", 2), ("", 0), ("... !!", 0), ("don't re-run job-17 v1.2.3", 4),
        ("登录失败", 4), ("MFA 登录", 3), ("ランチ", 3), ("a_b", 1), ("x" * 5000, 1),
    ],
)  # fmt: skip
def test_tokens(text: str, count: int) -> None:
    assert tokens(text) == count


def test_five_tokens_are_low_and_six_are_not() -> None:
    assert tier_of("one two three four five") == "low"
    assert tier_of("one two three four five six") == "medium"


@pytest.mark.parametrize(
    "filters",
    [
        {"sources": ["slack"]}, {"tags": ["a"]}, {"since": "2026-04-01T00:00:00Z"}, {"until": "2026-04-01T00:00:00Z"},
        {"tier": "hot"}, {"include_summaries": True}, {"include_summaries": False},
    ],
)  # fmt: skip
def test_any_filter_makes_a_short_query_medium(filters: dict[str, Any]) -> None:
    assert tier_of("MFA login", filters=filters) == "medium"


def test_no_filters_are_no_filters() -> None:
    assert tier_of("MFA login", filters={}) == "low"


@pytest.mark.parametrize(
    ("query", "fields", "tier"),
    [
        ("Please summarize what we know about the billing outage", {}, "high"),
        ("should we move the billing team to the new office", {}, "high"),
        ("word " * 30, {}, "high"),
        ("word " * 29, {}, "medium"),
        ("MFA login", {"traversal_depth": 2}, "medium"),
        ("MFA login", {"traversal_depth": 3}, "high"),
        ("MFA login", {"traversal_depth": 0}, "low"),
        ("summarize incidents", {}, "low"),
    ],
)
def test_what_else_decides(query: str, fields: dict[str, Any], tier: str) -> None:
    assert tier_of(query, **fields) == tier


@pytest.mark.parametrize("forced", ["low", "medium", "high"])
@pytest.mark.parametrize("session", [None, "low", "high"])
def test_a_forced_tier_is_taken(forced: str, session: ComputationTier | None) -> None:
    for query in ("short", "Please summarize what we know about the billing outage"):
        assert tier_of(query, session, computation_tier=forced, filters={"tags": ["a"]}) == forced


def test_a_session_never_demotes_and_may_rise() -> None:
    assert tier_of("and why?", "high") == "high"
    assert tier_of("and why?", "medium") == "medium"
    assert tier_of("one two three four five six seven", "low") == "medium"


def test_lanes_and_depths() -> None:
    assert TIERS["low"].lanes == (Lane.SEMANTIC,)
    assert [tier.depth for tier in TIERS.values()] == [0, 2, 3]
    assert [choose(QueryRequest(query="q", computation_tier=t, traversal_depth=1), None).depth for t in TIERS] == [
        0,
        1,
        1,
    ]

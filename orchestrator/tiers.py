"""Computation tiers: rules over a query's form decide how much is spent on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from contracts.lanes import Lane
from contracts.query import ComputationTier, QueryRequest

#: A query of fewer tokens, without filters, is low; one of at least `MANY_TOKENS` is high.
FEW_TOKENS, MANY_TOKENS = 6, 30


@dataclass(frozen=True, slots=True)
class Tier:
    """`topics` asks upkeep what is about the same, `spread` sets near-duplicates apart (the cross-cluster rerank);
    `expand` follows summaries to their parents, `cold` looks at memories that nobody has used for long."""

    name: ComputationTier
    lanes: tuple[Lane, ...]
    depth: int
    topics: bool
    spread: bool
    expand: bool
    cold: bool


TIERS: Mapping[ComputationTier, Tier] = {
    "low": Tier("low", (Lane.SEMANTIC,), 0, False, False, False, False),
    "medium": Tier("medium", tuple(Lane), 2, True, False, False, False),
    "high": Tier("high", tuple(Lane), 3, True, True, True, True),
}
ORDER: tuple[ComputationTier, ...] = ("low", "medium", "high")

#: A run of letters and digits, with marks inside a word (state-of-the-art, don't, 3.14); one character of a script that
#: writes no spaces.
_TOKEN = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]|(?:(?![぀-ヿ㐀-䶿一-鿿가-힯])[^\W_])+(?:['’.\-_/](?:[^\W_])+)*")
_SYNTHESIS = re.compile(
    r"\b(summari[sz]e|summary of|overview of|synthesi[sz]e|compare|contrast|trade-?offs?|pros and cons|"
    r"implications?|recommend(ation)?s?|should we|decide|decision between|root cause|what have we learned)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A tier, the hops that are walked, and why this tier."""

    tier: Tier
    depth: int
    reason: str


def tokens(text: str) -> int:
    """How many words a text has; scripts without spaces count by character."""
    return sum(1 for _ in _TOKEN.finditer(text))


def choose(request: QueryRequest, session: ComputationTier | None) -> Choice:
    """A forced tier; else what the query's form asks for, and no less than the session has had.

    low: fewer than 6 tokens, no filter and no depth asked for. high, of the others: words that ask for a synthesis or
    a decision, depth 3, or at least 30 tokens. medium: all else. In low nothing is walked, whatever depth is asked for.
    """
    name, reason = _name(request, session)
    tier = TIERS[name]
    asked = tier.depth if request.traversal_depth is None else request.traversal_depth
    return Choice(tier, asked if Lane.GRAPH in tier.lanes else 0, reason)


def higher(one: ComputationTier, other: ComputationTier | None) -> ComputationTier:
    return one if other is None or ORDER.index(one) >= ORDER.index(other) else other


def _name(request: QueryRequest, session: ComputationTier | None) -> tuple[ComputationTier, str]:
    if request.computation_tier:
        return request.computation_tier, "forced"
    routed, reason = _routed(request)
    kept = higher(routed, session)
    return (routed, reason) if kept == routed else (kept, "kept from the session")


def _routed(request: QueryRequest) -> tuple[ComputationTier, str]:
    count, filtered, depth = tokens(request.query), bool(request.filters.given), request.traversal_depth
    length = f"{count} token{'s' * (count != 1)}"
    if count < FEW_TOKENS and not filtered and not depth:
        return "low", f"{length}, no filters"
    if asks := _SYNTHESIS.search(request.query):
        return "high", f"asks for a synthesis: {asks.group().lower()}"
    if depth == TIERS["high"].depth:
        return "high", f"depth {depth} asked for"
    if count >= MANY_TOKENS:
        return "high", length
    if filtered:
        return "medium", "filters"
    return "medium", f"depth {depth} asked for" if depth and count < FEW_TOKENS else length

"""The soft recency boost: a tie-breaker for cues that speak of time, and nothing for those that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from contracts.base import MemoryId
from contracts.catalog import Row
from orchestrator.fusion import RRF_K, Candidate, order

HALF_LIFE_DAYS = 90.0
#: Share of one RRF unit, the most that a memory of this very moment gains.
TEMPORAL_WEIGHT = 0.5
_DAY_S = 86400.0


def boost_recent(
    candidates: Sequence[Candidate], rows: Mapping[MemoryId, Row], reference: datetime, weight: float = TEMPORAL_WEIGHT
) -> list[Candidate]:
    """Add ``weight / (k + 1) · 0.5^(age / 90 d)`` by event time; an event in the future has age 0."""
    boosted = []
    for candidate in candidates:
        age_days = max(0.0, (reference - rows[candidate.id].event_time).total_seconds() / _DAY_S)
        gain = weight / (RRF_K + 1) * 0.5 ** (age_days / HALF_LIFE_DAYS)
        boosted.append(replace(candidate, score=candidate.score + gain))
    return sorted(boosted, key=order)

"""Ranking measures over ids, each in [0, 1]. `relevant` maps an id to its gain, 1 where judgements are binary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def recall_at(ranked: Sequence[str], relevant: Mapping[str, float], k: int) -> float:
    """The fraction of the relevant ones among the first k."""
    return len(relevant.keys() & set(ranked[:k])) / len(relevant)


def all_at(ranked: Sequence[str], relevant: Mapping[str, float], k: int) -> float:
    """1 when all relevant ones are among the first k."""
    return float(relevant.keys() <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], relevant: Mapping[str, float]) -> float:
    """1 / rank of the first relevant one; 0 where there is none."""
    return next((1 / rank for rank, one in enumerate(ranked, 1) if one in relevant), 0.0)


def ndcg_at(ranked: Sequence[str], relevant: Mapping[str, float], k: int) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002), with the gain as it stands, as BEIR has
    it."""
    gained = sum(relevant.get(one, 0.0) / math.log2(rank + 1) for rank, one in enumerate(ranked[:k], 1))
    best = sorted(relevant.values(), reverse=True)[:k]
    return gained / sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, 1))

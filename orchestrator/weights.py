"""How much each signal counts: the defaults, a caller's numbers laid over them, and the sum brought to 1."""

from __future__ import annotations

import math
from collections.abc import Mapping

from contracts.errors import ErrorCode, InvalidRequest
from contracts.query import Scores

DEFAULT = Scores(semantic=0.40, recency=0.15, importance=0.10, quality=0.10, decay=0.05, usage=0.10, graph=0.10)
SIGNALS: tuple[str, ...] = tuple(Scores.model_fields)


def weights_of(overrides: Mapping[str, float]) -> Scores:
    """The weights of a request, summing to 1. A signal that the caller leaves out keeps its default before that.

    Raises InvalidRequest (BAD_WEIGHTS) for a name that is no signal, for a number below 0, NaN or infinite, and where
    no signal is left with any weight; `details` hold the names concerned and those that there are.
    """
    if unknown := sorted(set(overrides) - set(SIGNALS)):
        raise _bad(f"no signal {', '.join(map(repr, unknown))}", unknown)
    if odd := sorted(name for name, value in overrides.items() if not (math.isfinite(value) and value >= 0.0)):
        raise _bad(f"the weight of {', '.join(odd)} must be a number of at least 0", odd)
    merged = DEFAULT.model_dump() | dict(overrides)
    largest = max(merged.values())
    if largest <= 0.0:
        raise _bad("at least one weight must be above 0", list(SIGNALS))
    shares = {name: value / largest for name, value in merged.items()}  # first, or the sum of huge ones is infinite
    total = math.fsum(shares.values())
    return Scores(**{name: round(share / total, 9) for name, share in shares.items()})


def _bad(message: str, names: list[str]) -> InvalidRequest:
    return InvalidRequest(ErrorCode.BAD_WEIGHTS, message, field="weights", names=names, signals=list(SIGNALS))


def blend(scores: Scores, weights: Scores) -> float:
    """``Σ weight · score``, in [0, 1]."""
    return min(1.0, math.fsum(getattr(weights, name) * getattr(scores, name) for name in SIGNALS))

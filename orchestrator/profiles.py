"""Model profiles: the thresholds of membership, calibrated for one embedding model and never set by hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """Relevance is ``cosine_share · cosine + (1 - cosine_share) · coverage``, both in [0, 1], or ``cosine -
    alone_discount`` where that is more (a paraphrase shares no word), or the cross-encoder's calibrated score where it
    ran. Each way of telling it has a floor and a band of its own; `context_…` hold where neighbours in a session count.
    """

    cosine_share: float
    alone_discount: float
    abs_floor: float
    rel_band: float
    context_floor: float
    context_band: float
    rerank_floor: float
    rerank_band: float


PROFILES: dict[str, Profile] = {
    # all-MiniLM-L6-v2. Calibrated 2026-11-30 by benches/calibrate_membership on locomo-dev, every fourth question, by
    # halves. Alone: evidence among the members 0.66 / 0.65 at 4.9 / 8.0 members, None on foreign questions 0.88 / 0.93.
    # In context, all questions: evidence 0.77 / 0.72 at 7.7 / 11.1 members, None 0.96 / 0.98, 0.70 / 0.79 with names
    # swapped.
    "minilm": Profile(
        cosine_share=0.5,
        alone_discount=0.25,
        abs_floor=0.35,
        rel_band=0.70,
        context_floor=0.41,
        context_band=0.55,
        rerank_floor=0.30,
        rerank_band=0.50,
    ),
}

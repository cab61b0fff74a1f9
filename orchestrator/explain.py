"""Why a memory is in the answer, in sentences that follow from its scores and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from contracts.query import Predicate, Scores
from orchestrator.scoring import Scored
from orchestrator.weights import SIGNALS

#: A signal is spoken of from here on. Recency: the last half-life. Decay is spoken of below its mark: it is then that
#: it tells anything.
LEAST = Scores(semantic=0.3, recency=0.5, importance=0.7, quality=0.6, decay=0.5, usage=0.01, graph=0.01)


def explain(one: Scored, weights: Scores, at: datetime, relaxed: Sequence[Predicate] = ()) -> tuple[str, ...]:
    """The topic that the query speaks of; sentences in the order of what each signal adds to the score, where it has
    any weight; then the session's boost, what fades, and filters that gave way."""
    scores = one.scores
    order = sorted(SIGNALS, key=lambda name: -getattr(weights, name) * getattr(scores, name))
    said = [_sentence(name, one, at) for name in order if name != "decay" and _counts(name, scores, weights)]
    if one.matched and one.topic:
        said.insert(0, f"matched topic '{one.topic.label}'")
    if one.boost > 0:
        said.append(f"scored well earlier in this session (+{one.boost:.2f})")
    if weights.decay > 0 and scores.decay < LEAST.decay:
        said.append(f"fading: unused for {span(at - max(one.row.created_at, one.row.last_used or one.row.created_at))}")
    if relaxed:
        said.append(f"does not pass the filter {', '.join(relaxed)}")
    return tuple(said)


def span(time: timedelta) -> str:
    """A length of time in its largest fitting unit: 40 s, 35 min, 12h, 9d."""
    seconds = max(0, int(time.total_seconds()))
    for limit, size, unit in ((60, 1, " s"), (3600, 60, " min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def _counts(name: str, scores: Scores, weights: Scores) -> bool:
    return bool(getattr(weights, name) > 0 and getattr(scores, name) >= getattr(LEAST, name))


def _sentence(name: str, one: Scored, at: datetime) -> str:
    scores, row = one.scores, one.row
    if name == "semantic":
        return f"close in meaning ({scores.semantic:.2f})"
    if name == "recency":
        return f"recent ({span(at - row.event_time)})" if row.event_time <= at else "yet to happen"
    if name == "importance":
        return f"marked as important ({scores.importance:.2f})"
    if name == "quality":
        return f"says much ({scores.quality:.2f})"
    if name == "usage":
        return f"used {row.uses_14d} time{'s' * (row.uses_14d != 1)} in the last 14 days"
    if one.anchor:
        return "nearest in meaning: the walk in the graph begins here"
    hops = round(1 / scores.graph - 1)
    near = "matched" if hops == 0 else f"{hops} hop{'s' * (hops != 1)} away"
    return f"{near} by '{one.through}'" if one.through else f"{near} in the graph"

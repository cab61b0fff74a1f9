"""The seven signals of a query: pure functions, each in [0, 1], each comparable from one query to the next.

No signal is stretched over the batch of candidates (min-max): the score of a memory must not depend on which others
happened to be found, and a batch of one has no spread.
"""

from __future__ import annotations

import math
from datetime import datetime

from contracts.catalog import Row
from contracts.query import Scores

RECENCY_HALF_LIFE_DAYS = 30.0
#: Days in which the retention of a memory that was never used falls to 1/e; its half-life is 20.8 days.
STABILITY_DAYS = 30.0
#: Uses within 14 days at which the usage signal has come to 63 %.
USES_SCALE = 5.0
#: What sharing a topic with an anchor is worth: as much as being two hops away. A name that two memories share is
#: specific, and one hop; a topic may have a hundred members, which must not drown those that share the name.
SAME_CLUSTER = 1 / 3
_DAY_S = 86400.0


def semantic(cosine: float) -> float:
    """``max(0, cos)``: the cosine of query and memory embedding, an opposite direction counting as unrelated. Of a
    memory with statements the nearest of them counts. Source: the semantic lane."""
    return _unit(cosine)


def recency(happened: datetime, at: datetime) -> float:
    """``0.5 ^ (age / 30 d)`` by event time; what is yet to happen has age 0. Half-life 30 days. Source: the caller's
    `occurred_at`, or the time of writing."""
    return float(0.5 ** (_days(happened, at) / RECENCY_HALF_LIFE_DAYS))


def importance(given: float) -> float:
    """The caller's number, 0.5 where none was given. Does not age."""
    return _unit(given)


def quality(measured: float) -> float:
    """The encode pipeline's `quality`: information, specificity, length and repetition of the text. Does not age."""
    return _unit(measured)


def decay(written: datetime, last_used: datetime | None, uses: int, at: datetime) -> float:
    """Retention: ``exp(-idle / S)`` with ``S = 30 d · (1 + ln(1 + uses))``. 1 when just written or just used, falling
    while the memory goes unused, slower the more often it was used: half-life 20.8 days without any use, 35 after one,
    71 after ten. `idle` counts from the last use, or from the writing. Source: the catalog's table of uses."""
    idle = _days(max(written, last_used) if last_used else written, at)
    return math.exp(-idle / (STABILITY_DAYS * (1.0 + math.log1p(max(0, uses)))))


def usage(uses_14d: int) -> float:
    """``1 - exp(-n / 5)`` with n the uses of the last 14 days: replies that held the memory, and feedback. Saturates:
    0.18 after one, 0.63 after five, 0.95 after fifteen. Source: the catalog's table of uses."""
    return 1.0 - math.exp(-max(0, uses_14d) / USES_SCALE)


def graph(hops: int | None, depth: int, same_cluster: bool = False) -> float:
    """``1 / (1 + hops)`` to the nearest anchor, 0 beyond `depth` hops; a third where only a topic is shared with one.
    Anchors are what the query names and the nearest memory by meaning. Source: the graph lane, and upkeep's topics."""
    near = 1.0 / (1 + hops) if hops is not None and 0 <= hops <= depth else 0.0
    return max(near, SAME_CLUSTER if same_cluster and depth > 0 else 0.0)


def scores_of(
    row: Row, cosine: float, hops: int | None, depth: int, at: datetime, same_cluster: bool = False
) -> Scores:
    """All seven of one memory, from its catalog row and what the lanes and upkeep say of it."""
    return Scores(
        semantic=semantic(cosine),
        recency=recency(row.event_time, at),
        importance=importance(row.importance),
        quality=quality(row.quality),
        decay=decay(row.created_at, row.last_used, row.uses, at),
        usage=usage(row.uses_14d),
        graph=graph(hops, depth, same_cluster),
    )


def hops_of(evidence: float) -> int | None:
    """The graph lane's evidence ``1 / (hops + 1)``, turned back into hops; None where there is none."""
    return round(1.0 / evidence - 1.0) if evidence > 0.0 else None


def _days(since: datetime, at: datetime) -> float:
    return max(0.0, (at - since).total_seconds() / _DAY_S)


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))

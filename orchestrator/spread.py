"""The cross-cluster rerank of tier high: an answer that covers several topics instead of one topic several times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from contracts.base import MemoryId
from contracts.catalog import Row

#: How much likeness to what is chosen already costs, beside relevance (maximal marginal relevance, Carbonell and
#: Goldstein 1998): the nearest memory always stays first.
PENALTY = 0.2
#: The least likeness of two memories of one group.
SAME_GROUP = 0.5
#: Less than this is a few words in common by chance, and no likeness at all.
LEAST_LIKE = 0.3
#: Only the head of the order is spread; the loop is quadratic.
HEAD = 50

_WORD = re.compile(r"\w{3,}")


def spread(
    ids: Sequence[MemoryId],
    relevance: Callable[[MemoryId], float],
    rows: Mapping[MemoryId, Row],
    group: Callable[[Row], str | None],
) -> list[MemoryId]:
    """Reorder the first `HEAD`: next comes always the one with the most ``relevance - 0.2 · likeness`` to its likest
    among those chosen. Likeness is the share of words in common where that is at least 0.3, and at least 0.5 within a
    group. Pure; ties keep the order given. Those without a row keep their relevance."""
    head, tail = list(ids[:HEAD]), list(ids[HEAD:])
    words = {one: frozenset(_WORD.findall(rows[one].text.casefold())) for one in head if one in rows}
    groups = {one: group(rows[one]) for one in head if one in rows}
    likest = dict.fromkeys(head, 0.0)
    chosen: list[MemoryId] = []
    while head:
        best = max(head, key=lambda one: relevance(one) - PENALTY * likest[one])  # the first of equals
        head.remove(best)
        chosen.append(best)
        for one in head:
            if one in words and best in words:
                same = groups[one] is not None and groups[one] == groups[best]
                alike = max(_jaccard(words[one], words[best]), SAME_GROUP if same else 0.0)
                likest[one] = max(likest[one], alike)
    return chosen + tail


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    share = len(one & other) / union if union else 0.0
    return share if share >= LEAST_LIKE else 0.0

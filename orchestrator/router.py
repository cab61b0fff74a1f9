"""The router: rules over the cue's surface choose how much each lane counts. All lanes are always asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from contracts.lanes import Lane
from contracts.recall import RecallRequest


class QueryClass(StrEnum):
    ENTITY_ANCHORED = "entity-anchored"  # names somebody or something: lifts the graph lane
    EXACT_TERM = "exact-term"  # holds an id or a rare form: lifts the lexical lane
    LIST = "list"  # asks for all of something: a wide pool
    PARAPHRASE = "paraphrase"  # a question in ordinary words: lifts the semantic lane
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Route:
    """What the rules decided, and why. `temporal` and `list_intent` are independent of the class."""

    query_class: QueryClass
    reason: str
    weights: Mapping[Lane, float]
    top_n: int
    temporal: bool
    list_intent: bool


def _weights(semantic: float, lexical: float, graph: float) -> Mapping[Lane, float]:
    return {Lane.SEMANTIC: semantic, Lane.LEXICAL: lexical, Lane.GRAPH: graph}


#: Weights and pool size per lane of each class (source: the read pipeline's router, Brain at June 2026; default
#: weights as in the seed).
TABLE: Mapping[QueryClass, tuple[Mapping[Lane, float], int]] = {
    QueryClass.ENTITY_ANCHORED: (_weights(1.0, 0.7, 2.0), 100),
    QueryClass.EXACT_TERM: (_weights(1.0, 2.0, 0.7), 100),
    QueryClass.LIST: (_weights(1.5, 1.0, 0.5), 400),
    QueryClass.PARAPHRASE: (_weights(1.5, 1.0, 0.5), 200),
    QueryClass.DEFAULT: (_weights(1.0, 1.0, 1.2), 100),
}

_EXACT_ID = re.compile(r"\b[A-Z][A-Z0-9]*-\d+\b|\b\w+@\w+\.\w+|https?://|(?<!\w)/[\w.-]+/[\w./-]+|\bv?\d+\.\d+\.\d+")
_ALL_CAPS = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
_QUOTED = re.compile(r"[\"“][^\"”]{2,}[\"”]")
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]*[a-z][\w'’-]*")
_NOT_NAMES = frozenset(
    "I I'm I'd I'll I've Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June"
    " July August September October November December".split()
)
_TEMPORAL = re.compile(
    r"\b(yesterday|today|tonight|tomorrow|recent(ly)?|latest|lately|now|current(ly)?|"
    r"(last|this|next|past)\s+(\d+\s+)?(night|week|weekend|month|quarter|year|summer|winter|spring|autumn|fall|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|days?|weeks|months|years)|"
    r"\d+\s+(days?|weeks?|months?|years?)\s+ago|\d{4}-\d{2}-\d{2})\b",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(list|every|enumerate|how\s+(many|much)|all\s+(of|the)|name\s+(all|every|the)|which\s+of|"
    r"what\s+(are|were)|what\s+(kinds?|types?|sorts?)\s+of)\b",
    re.IGNORECASE,
)


def route(request: RecallRequest) -> Route:
    """Classify a request. Pure: the same request always takes the same route.

    Entity-anchored goes before exact-term, that before list and paraphrase. Type and subject filters steer too.
    """
    query_class, reason = _classify(request)
    weights, top_n = TABLE[query_class]
    instants = (request.since, request.until, request.as_of, request.believed_at)
    list_intent = bool(_LIST.search(request.cue))
    return Route(
        query_class=query_class,
        reason=reason,
        weights=weights,
        top_n=max(top_n, TABLE[QueryClass.LIST][1] if list_intent else 0),
        temporal=bool(_TEMPORAL.search(request.cue)) or any(instants),
        list_intent=list_intent,
    )


def names_in(cue: str) -> list[str]:
    """Capitalised words that do not merely begin a sentence, in order."""
    return [name for name in _NAME.findall(cue) if name not in _NOT_NAMES]


def _classify(request: RecallRequest) -> tuple[QueryClass, str]:
    cue = request.cue.strip()
    if request.subject:
        return QueryClass.ENTITY_ANCHORED, "a subject was given"
    exact = _EXACT_ID.search(cue) or _QUOTED.search(cue)
    names = [name for name in names_in(cue) if not exact or name not in exact.group()]
    if names:
        return QueryClass.ENTITY_ANCHORED, f"names {names[0]}"
    if request.types:
        return QueryClass.ENTITY_ANCHORED, "a type filter was given"
    if exact:
        return QueryClass.EXACT_TERM, f"holds {exact.group()}"
    if capitals := _ALL_CAPS.search(cue):
        return QueryClass.EXACT_TERM, f"holds {capitals.group()}"
    if _LIST.search(cue):
        return QueryClass.LIST, "asks for a list"
    words = cue.split()
    if cue.endswith("?") or len(words) > 4:
        return QueryClass.PARAPHRASE, "a question in ordinary words" if cue.endswith("?") else "a long cue"
    return QueryClass.DEFAULT, "no feature stands out"

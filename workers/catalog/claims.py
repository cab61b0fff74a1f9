"""What a project currently claims about the names in a cue: statements and relations whose subject (or object) the cue
names and whose predicate it asks for. This is what grounds an answer: a lookup, not a similarity."""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from contracts.base import MemoryId
from contracts.catalog import Claim
from contracts.names import normalise, spans
from workers.analysis import stem, tokens
from workers.catalog.supersession import REPLACES
from workers.stopwords import STOP_WORDS

#: A longer cue names no more than this many things.
MOST_SPANS = 500
MOST_CLAIMS = 200
#: From a named thing to what the matched claims say of it, and on: "who leads the team that Diego works in".
HOPS = 2

#: A claim stands at an instant when it held by then, has not ended, and no newer value of its slot has replaced it.
_STANDING = f"""
SELECT s.memory, s.number, s.subject, s.predicate, s.object, s.since, s.confidence, s.single AND EXISTS (
    SELECT 1 FROM statement AS n WHERE {REPLACES} AND n.since <= :at AND n.created <= :written) AS replaced
FROM statement AS s
WHERE s.project = :project AND s.live AND s.END IN (SELECT value FROM json_each(:names))
  AND s.predicate IN (SELECT value FROM json_each(:predicates))
  AND s.since <= :at AND (s.until IS NULL OR s.until > :at) AND s.created <= :written
ORDER BY replaced, s.since DESC, s.created DESC, s.position DESC, s.memory, s.number LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A name at one end of some claims, and their predicate."""

    end: str
    name: str
    predicate: str


@dataclass(frozen=True, slots=True)
class When:
    """The instant of the world that is asked about, and of the memory that is asked (epoch ms)."""

    at: int
    written: int


def claims_asked(
    db: sqlite3.Connection, project: str, cue: str, subject: str | None, when: When
) -> tuple[list[Claim], set[MemoryId]]:
    """The claims that answer a cue, newest first, those of the first hop before the others; and
    the memories that answer it with nothing but values that newer ones replaced."""
    names = _names(db, project, cue, subject)
    asked = _content(cue)
    found: dict[tuple[str, int], Claim] = {}
    stale: set[MemoryId] = set()
    for _ in range(HOPS):
        slots, used = _asked_slots(_slots(db, project, names), asked)
        standing, replaced = _standing(db, project, slots, when)
        fresh = [claim for claim in standing if (claim.memory, claim.number) not in found]
        stale |= replaced
        found.update(((claim.memory, claim.number), claim) for claim in fresh)
        asked = asked - used - {one for slot in slots for one in _content(slot.name)}
        names = {end for claim in fresh for end in (claim.subject, claim.object)} - names
        if not names or not asked:
            break
    claims = _supported(list(found.values()))[:MOST_CLAIMS]
    return claims, stale - {claim.memory for claim in claims}


def _supported(claims: Sequence[Claim]) -> list[Claim]:
    """Claims with the confidence of all memories that assert the same; each memory counts once."""
    doubts: dict[tuple[str, str, str], dict[MemoryId, float]] = defaultdict(dict)
    for claim in claims:
        held = doubts[claim.triple]
        held[claim.memory] = min(held.get(claim.memory, 1.0), 1.0 - claim.confidence)
    return [
        claim.model_copy(
            update={
                "confidence": round(1.0 - math.prod(doubts[claim.triple].values()), 6),
                "evidence": len(doubts[claim.triple]),
            }
        )
        for claim in claims
    ]


def _names(db: sqlite3.Connection, project: str, cue: str, subject: str | None) -> set[str]:
    """What the cue may name, aliases under their canonical name too."""
    names = {*spans(cue)[:MOST_SPANS], *([normalise(subject)] if subject else [])}
    query = "SELECT DISTINCT canonical FROM name WHERE project = ? AND name IN (SELECT value FROM json_each(?))"
    return names | {normalise(canonical) for (canonical,) in db.execute(query, (project, _json(names)))}


def _slots(db: sqlite3.Connection, project: str, names: Iterable[str]) -> set[_Slot]:
    slots = set()
    for end in ("subject", "object"):
        query = (
            f"SELECT DISTINCT {end}, predicate FROM statement"
            f" WHERE project = ? AND {end} IN (SELECT value FROM json_each(?))"
        )
        slots |= {_Slot(end, name, predicate) for name, predicate in db.execute(query, (project, _json(names)))}
    return slots


def _asked_slots(slots: Iterable[_Slot], asked: set[str]) -> tuple[list[_Slot], set[str]]:
    """The slots whose predicate the cue asks for, in words other than those of the name itself; and those words."""
    kept, used = [], set()
    for slot in slots:
        words = _content(slot.predicate)
        shared = words & (asked - _content(slot.name))
        if words and len(shared) * 2 >= len(words):
            kept.append(slot)
            used |= shared
    return kept, used


def _standing(
    db: sqlite3.Connection, project: str, slots: Sequence[_Slot], when: When
) -> tuple[list[Claim], set[MemoryId]]:
    """The standing claims in the slots, and the memories of those that were replaced."""
    claims: list[Claim] = []
    replaced: set[MemoryId] = set()
    for end in ("subject", "object"):
        wanted = {(slot.name, slot.predicate) for slot in slots if slot.end == end}
        names, predicates = ({pair[part] for pair in wanted} for part in (0, 1))
        values = {"names": _json(names), "predicates": _json(predicates), "most": MOST_CLAIMS}
        values |= {"project": project, "at": when.at, "written": when.written}
        for memory, number, subject, predicate, value, since, confidence, gone in db.execute(
            _STANDING.replace("END", end), values
        ):
            if ((subject if end == "subject" else value), predicate) not in wanted:
                continue
            if gone:
                replaced.add(memory)
            else:
                claims.append(
                    Claim(
                        memory=memory,
                        number=number,
                        subject=subject,
                        predicate=predicate,
                        object=value,
                        since=since,
                        confidence=confidence,
                    )
                )
    return claims, replaced


def _content(text: str) -> set[str]:
    """Stems of the words that carry meaning."""
    return {one for token in tokens(text) for one in token.stems} - _EMPTY


#: "Own" is a predicate more often than a filler.
_EMPTY = frozenset(stem(word) for word in STOP_WORDS - {"own"})


def _json(names: Iterable[str]) -> str:
    return orjson.dumps(sorted(names)).decode()

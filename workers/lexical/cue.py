"""What a cue asks for, as weighted terms of the two fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from workers.analysis import Token, tokens
from workers.stopwords import STOP_WORDS

_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134f]")

Field = Literal["exact", "stem"]

#: A cue is cut to this many different units, so that a pasted page is still a cheap cue.
MAX_UNITS = 256

ID_WEIGHT = 2.0
WHOLE_WEIGHT = 0.3
JOINED_WEIGHT = 0.5
LOOSE_WEIGHT = 0.2


class Term(NamedTuple):
    field: Field
    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One token of a cue. An item contains it when it has `whole` (ids and marks), or `joined`, or all `parts`."""

    text: str
    whole: Term | None
    parts: tuple[Term, ...]
    joined: Term | None
    loose: tuple[Term, ...]
    sure: bool  #: an exact id: containing it whole settles the matter
    marked: bool  #: an id or a rare way to write; only the whole form counts as containing it
    stop: bool

    def weighted(self) -> Iterator[tuple[Term, float]]:
        share = 1.0 / len(self.parts) if self.marked else 1.0
        yield from ((part, share) for part in self.parts)
        if self.whole:
            yield self.whole, ID_WEIGHT if self.marked else WHOLE_WEIGHT
        if self.joined:
            yield self.joined, JOINED_WEIGHT
        yield from ((term, LOOSE_WEIGHT) for term in self.loose)


@dataclass(frozen=True, slots=True)
class Cue:
    """The content of a cue. Stop words are dropped unless there is nothing else; without any word it is empty."""

    units: tuple[Unit, ...]

    @property
    def terms(self) -> dict[Term, float]:
        """The weighted terms that score; a term that is there twice counts with its larger weight."""
        weights: dict[Term, float] = {}
        for unit in self.units:
            for term, weight in unit.weighted():
                weights[term] = max(weight, weights.get(term, 0.0))
        return weights

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(unit.text for unit in self.units if unit.sure)


def read_cue(text: str) -> Cue:
    """The cue of any text. Nothing in it is syntax."""
    units = dict.fromkeys(_unit(token) for token in tokens(text))
    content = [unit for unit in units if not unit.stop] or list(units)
    return Cue(tuple(content[:MAX_UNITS]))


def _unit(token: Token) -> Unit:
    return Unit(
        text=token.whole or "".join(token.loose),
        whole=Term("exact", token.whole) if token.whole else None,
        parts=tuple(dict.fromkeys(Term("stem", part) for part in token.stems)),
        joined=Term("stem", token.joined) if token.joined else None,
        loose=tuple(dict.fromkeys(Term("stem", char) for char in token.loose if _IDEOGRAPH.match(char))),
        sure=token.form == "id",
        marked=token.form in ("id", "mark"),
        stop=token.whole in STOP_WORDS,
    )

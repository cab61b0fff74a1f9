"""How much of a cue an item contains, and when that alone settles that it belongs."""

from __future__ import annotations

import math
from collections.abc import Callable, Set

from workers.lexical.cue import Cue, Term, Unit

#: A term is rare up to this share of a project's documents, but never above RARE_MOST, and always up to RARE_LEAST.
RARE_SHARE = 0.01
RARE_LEAST = 3
RARE_MOST = 50


def idf(df: int, count: int) -> float:
    """Above 0 for every df in 0..count; largest for a term that no document has."""
    return math.log1p((count - min(df, count) + 0.5) / (df + 0.5))


class Judge:
    """Judges items of one project against one cue, by that project's document frequencies."""

    def __init__(self, cue: Cue, df: Callable[[Term], int], count: int) -> None:
        self._units = cue.units
        self._count = count
        self.df = {term: df(term) for term in cue.terms}
        self._weights = [self._weigh(unit) for unit in cue.units]
        self._total = sum(sum(weights) for weights in self._weights)
        self._rare = [self._is_rare(unit) for unit in cue.units]

    def idf(self, term: Term) -> float:
        return idf(self.df[term], self._count)

    def judge(self, exact: Set[str], stem: Set[str]) -> tuple[float, bool]:
        """The idf-weighted share of the cue that an item with these tokens contains, and whether it is confirmed.

        Confirmed is an item that contains an exact id whole, or everything the cue asks for when some of it is rare.
        """
        held, whole, sure = 0.0, True, False
        for unit, weights in zip(self._units, self._weights, strict=True):
            found = _held(unit, weights, exact, stem)
            full = found == weights
            held += sum(found)
            whole = whole and full
            sure = sure or (full and unit.sure)
        confirmed = sure or (whole and any(self._rare))
        return min(1.0, held / self._total) if self._total else 0.0, confirmed

    def _weigh(self, unit: Unit) -> list[float]:
        """The idf of each part and, for an id, of its whole form, which then weighs as much as the parts together."""
        share = 1.0 / len(unit.parts) if unit.marked else 1.0
        weights = [self.idf(part) * share for part in unit.parts]
        return [*weights, self.idf(unit.whole)] if unit.marked and unit.whole else weights

    def _is_rare(self, unit: Unit) -> bool:
        if unit.stop:
            return False
        if unit.marked and unit.whole:
            df = self.df[unit.whole]
        else:
            df = max(min(self.df[part] for part in unit.parts), self.df[unit.joined] if unit.joined else 0)
        limit = max(RARE_LEAST, min(self._count * RARE_SHARE, RARE_MOST))
        return 0 < df <= limit and (df * 2 <= self._count or self._count <= RARE_LEAST)


def _held(unit: Unit, weights: list[float], exact: Set[str], stem: Set[str]) -> list[float]:
    """The weights of what is contained, 0 for the rest."""
    if unit.joined and not unit.marked and unit.joined.text in stem:
        return weights
    held = [weight if part.text in stem else 0.0 for part, weight in zip(unit.parts, weights, strict=False)]
    if unit.marked and unit.whole:
        held.append(weights[-1] if unit.whole.text in exact else 0.0)
    return held

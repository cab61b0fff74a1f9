"""How much of a cue an item contains, and when that alone settles that it belongs."""

from __future__ import annotations

from collections.abc import Set

from workers.lexical.cue import Cue, Unit
from workers.lexical.statistics import Statistics

#: A term is rare up to this share of a project's documents, but never above RARE_MOST, and always up to RARE_LEAST.
RARE_SHARE = 0.01
RARE_LEAST = 3
RARE_MOST = 50


class Judge:
    """Judges items of one project against one cue, by that project's statistics on the cue's terms."""

    def __init__(self, cue: Cue, statistics: Statistics) -> None:
        self._units = cue.units
        self._statistics = statistics
        self._weights = [self._weigh(unit) for unit in cue.units]
        self._total = sum(sum(weights) for weights in self._weights)
        self._rare = [self._is_rare(unit) for unit in cue.units]

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
        weights = [self._statistics.idf(part) * share for part in unit.parts]
        return [*weights, self._statistics.idf(unit.whole)] if unit.marked and unit.whole else weights

    def _is_rare(self, unit: Unit) -> bool:
        if unit.stop:
            return False
        have, count = self._statistics.df, self._statistics.count
        if unit.marked and unit.whole:
            df = have[unit.whole]
        else:
            df = max(min(have[part] for part in unit.parts), have[unit.joined] if unit.joined else 0)
        limit = max(RARE_LEAST, min(count * RARE_SHARE, RARE_MOST))
        return 0 < df <= limit and (df * 2 <= count or count <= RARE_LEAST)


def _held(unit: Unit, weights: list[float], exact: Set[str], stem: Set[str]) -> list[float]:
    """The weights of what is contained, 0 for the rest."""
    if unit.joined and not unit.marked and unit.joined.text in stem:
        return weights
    held = [weight if part.text in stem else 0.0 for part, weight in zip(unit.parts, weights, strict=False)]
    if unit.marked and unit.whole:
        held.append(weights[-1] if unit.whole.text in exact else 0.0)
    return held

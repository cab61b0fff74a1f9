"""What BM25 needs to know of a collection: how many documents, how long, and how many have each term."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contracts.lanes import TermStatistics
from workers.lexical.cue import Field, Term

#: BM25 for short turns: little to gain from repetition or from length.
BM25_K1 = 0.9
BM25_B = 0.4


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of one project: the documents of a shard, or of all shards together. Removed documents do not count, else scores
    would depend on when an engine merges, and with it on the number of shards."""

    count: int = 0
    lengths: Mapping[Field, int] = field(default_factory=dict)
    df: Mapping[Term, int] = field(default_factory=dict)

    def idf(self, term: Term) -> float:
        """Above 0 for every df in 0..count; largest for a term that no document has."""
        df = min(self.df.get(term, 0), self.count)
        return math.log1p((self.count - df + 0.5) / (df + 0.5))

    def average(self, name: Field) -> float:
        """Tokens of a field a document; 1 where there are none, as it is divided by."""
        return self.lengths.get(name, 0) / max(1, self.count) or 1.0

    def pack(self, terms: Sequence[Term]) -> TermStatistics:
        return TermStatistics(
            count=self.count,
            lengths=(self.lengths.get("exact", 0), self.lengths.get("stem", 0)),
            terms=tuple(f"{term.field}:{term.text}" for term in terms),
            df=tuple(self.df.get(term, 0) for term in terms),
        )


def unpack(packed: TermStatistics, terms: Sequence[Term]) -> Statistics:
    """Raises ValueError for statistics of other terms: they were made by another release's analysis."""
    known = dict(zip(packed.terms, packed.df, strict=True))
    names = {term: f"{term.field}:{term.text}" for term in terms}
    if missing := [name for name in names.values() if name not in known]:
        raise ValueError(f"no statistics of {missing[0]!r}")
    exact, stem = packed.lengths
    df = {term: known[name] for term, name in names.items()}
    return Statistics(packed.count, {"exact": exact, "stem": stem}, df)


def saturation(count: float, length: float, average: float) -> float:
    """What `count` occurrences in a field of `length` tokens are worth: 1 for one in a field of average length."""
    return count * (BM25_K1 + 1) / (count + BM25_K1 * (1 - BM25_B + BM25_B * (length / average)))

"""BM25 over the postings of a Whoosh reader, a term at a time in arrays.

Whoosh's own scorers call Python several times for each posting, which costs 100 ms on 10 000 memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from whoosh.matching import FilterMatcher

from workers.lexical.cue import Field, Term
from workers.lexical.statistics import BM25_B, BM25_K1, Statistics

_FIELDS: tuple[Field, ...] = ("exact", "stem")
#: Terms of a segment whose postings are kept.
MOST_READ = 128
_Floats = NDArray[np.float64]


class Segment:
    """What scoring needs of one segment; `lengths` never change, `deleted` belong to one reader."""

    def __init__(self, reader: Any, offset: int, lengths: dict[Field, _Floats] | None) -> None:
        self.reader, self.offset = reader, offset
        self.name = str(reader.segment().segment_id())
        self.size = int(reader.doc_count_all())
        self.lengths = lengths or {field: self._lengths(field) for field in _FIELDS}
        self.deleted = np.fromiter(reader.segment().deleted_docs(), dtype=np.int64)
        self._read: dict[Term, tuple[NDArray[np.int64], _Floats]] = {}

    def _lengths(self, field: str) -> _Floats:
        length = self.reader.doc_field_length
        lengths = np.fromiter((length(number, field) for number in range(self.size)), np.float64, self.size)
        return np.nan_to_num(lengths)  # a segment in which no document has a token of the field knows no lengths

    def length(self, field: Field) -> int:
        """How many tokens the documents that are not deleted have in a field."""
        return int(self.lengths[field].sum() - self.lengths[field][self.deleted].sum())

    def df(self, term: Term) -> int:
        """How many documents have a term, without deleted ones."""
        if not len(self.deleted):
            return int(self.reader.doc_frequency(term.field, term.text))
        numbers, _ = self.postings(term)
        return len(numbers) - int(np.isin(numbers, self.deleted).sum())

    def postings(self, term: Term) -> tuple[NDArray[np.int64], _Floats]:
        """The documents that have a term, deleted ones too, and how often. A cue's terms are read once to count them
        and once to score."""
        if term not in self._read:
            while len(self._read) >= MOST_READ:
                self._read.pop(next(iter(self._read)))
            self._read[term] = self._postings(term)
        return self._read[term]

    def _postings(self, term: Term) -> tuple[NDArray[np.int64], _Floats]:
        numbers: list[int] = []
        counts: list[float] = []
        if (term.field, term.text) in self.reader:
            matcher = self.reader.postings(term.field, term.text)
            while isinstance(matcher, FilterMatcher):
                matcher = matcher.child
            while matcher.is_active():
                numbers.append(matcher.id())
                counts.append(matcher.weight())
                matcher.next()
        return np.array(numbers, dtype=np.int64), np.array(counts, dtype=np.float64)


class Scores:
    """One state of an index, ready to score."""

    def __init__(self, searcher: Any, before: Scores | None = None) -> None:
        self.reader = searcher.reader()
        known = {segment.name: segment.lengths for segment in before.segments} if before else {}
        self.segments: list[Segment] = [
            Segment(reader, offset, known.get(str(reader.segment().segment_id())))
            for reader, offset in self.reader.leaf_readers()
            if reader.doc_count_all()
        ]
        self._count = int(self.reader.doc_count())
        self._lengths: dict[Field, int] = {
            field: sum(segment.length(field) for segment in self.segments) for field in _FIELDS
        }

    def statistics(self, terms: Iterable[Term]) -> Statistics:
        df = {term: sum(segment.df(term) for segment in self.segments) for term in terms}
        return Statistics(self._count, self._lengths, df)

    def best(self, terms: dict[Term, float], most: int, statistics: Statistics) -> list[tuple[float, int]]:
        """The scores and numbers of up to `most` documents, best first, ties by number."""
        weights = {term: weight * statistics.idf(term) for term, weight in terms.items()}
        found = [hit for segment in self.segments for hit in self._segment(segment, weights, most, statistics)]
        return sorted(found, key=lambda hit: (-hit[0], hit[1]))[:most]

    def _segment(
        self, segment: Segment, weights: dict[Term, float], most: int, statistics: Statistics
    ) -> Iterator[tuple[float, int]]:
        totals = np.zeros(segment.size)
        for term, weight in weights.items():
            numbers, counts = segment.postings(term)
            relative = segment.lengths[term.field][numbers] / statistics.average(term.field)
            norms = BM25_K1 * (1 - BM25_B + BM25_B * relative)
            totals[numbers] += weight * counts * (BM25_K1 + 1) / (counts + norms)
        totals[segment.deleted] = 0.0
        numbers = np.flatnonzero(totals)
        order = np.lexsort((numbers, -totals[numbers]))[:most]
        yield from ((float(totals[number]), segment.offset + int(number)) for number in numbers[order])

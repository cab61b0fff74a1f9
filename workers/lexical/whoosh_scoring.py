"""BM25 over the postings of a Whoosh reader, a term at a time in arrays.

Whoosh's own scorers call Python several times for each posting, which costs 100 ms on 10 000 memories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from whoosh.matching import FilterMatcher

from workers.lexical.cue import Term
from workers.lexical.engine import BM25_B, BM25_K1

_FIELDS = ("exact", "stem")
_Floats = NDArray[np.float64]


class Segment:
    """What scoring needs of one segment; `lengths` never change, `deleted` belong to one reader."""

    def __init__(self, reader: Any, offset: int, lengths: dict[str, _Floats] | None) -> None:
        self.reader, self.offset = reader, offset
        self.name = str(reader.segment().segment_id())
        self.size = int(reader.doc_count_all())
        self.lengths = lengths or {field: self._lengths(field) for field in _FIELDS}
        self.deleted = np.fromiter(reader.segment().deleted_docs(), dtype=np.int64)

    def _lengths(self, field: str) -> _Floats:
        length = self.reader.doc_field_length
        return np.fromiter((length(number, field) for number in range(self.size)), np.float64, self.size)

    def postings(self, term: Term) -> tuple[NDArray[np.int64], _Floats]:
        """The documents that have a term, deleted ones too, and how often."""
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
        self.count = int(self.reader.doc_count_all())
        self._average = {field: self.reader.field_length(field) / max(1, self.count) for field in _FIELDS}

    def best(self, terms: dict[Term, float], most: int) -> list[tuple[float, int]]:
        """The scores and numbers of up to `most` documents, best first, ties by number."""
        idf = {term: weight * self._idf(term) for term, weight in terms.items()}
        found = [hit for segment in self.segments for hit in self._segment(segment, idf, most)]
        return sorted(found, key=lambda hit: (-hit[0], hit[1]))[:most]

    def df(self, term: Term) -> int:
        return int(self.reader.doc_frequency(term.field, term.text))

    def _idf(self, term: Term) -> float:
        df = self.df(term)
        return math.log1p((self.count - df + 0.5) / (df + 0.5))

    def _segment(self, segment: Segment, idf: dict[Term, float], most: int) -> Iterator[tuple[float, int]]:
        totals = np.zeros(segment.size)
        for term, weight in idf.items():
            numbers, counts = segment.postings(term)
            relative = segment.lengths[term.field][numbers] / (self._average[term.field] or 1.0)
            norms = BM25_K1 * (1 - BM25_B + BM25_B * relative)
            totals[numbers] += weight * counts * (BM25_K1 + 1) / (counts + norms)
        totals[segment.deleted] = 0.0
        numbers = np.flatnonzero(totals)
        order = np.lexsort((numbers, -totals[numbers]))[:most]
        yield from ((float(totals[number]), segment.offset + int(number)) for number in numbers[order])

"""The default engine: Whoosh, pure Python."""

from __future__ import annotations

import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from whoosh import fields, query
from whoosh.filedb.filestore import FileStorage
from whoosh.index import exists_in
from whoosh.reading import SegmentReader

from contracts.base import MemoryId
from workers.lexical.cue import Term
from workers.lexical.engine import TIES, Document, Found, ranked
from workers.lexical.statistics import Statistics
from workers.lexical.whoosh_scoring import Scores

#: So many segments of like size, that is of one power of _TIER, are merged: a document is rewritten a few times in all.
_SEGMENTS = 5
_TIER = 6
_STORED = ("item", "memory", "kind", "label", "digest", "exact", "stem")


Merge = Callable[[Any, list[Any]], list[Any]]


class WhooshEngine:
    """An `Engine` over Whoosh. Reads take turns: Whoosh's readers share the place they read from.

    Documents and queries are built from tokens directly, so nothing in a cue is ever parsed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir(parents=True, exist_ok=True)
        storage = FileStorage(str(path))
        self._index = storage.open_index() if exists_in(str(path)) else storage.create_index(_schema())
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._searcher = self._index.searcher()
        self._scores = Scores(self._searcher)

    def write(self, forget: Iterable[MemoryId], add: Sequence[Document]) -> None:
        self._commit(list(forget), add, _merge)

    def purge(self) -> None:
        self._commit([], [], _merge_deleted)

    def _commit(self, forget: list[MemoryId], add: Sequence[Document], merge: Merge) -> None:
        with self._writing:
            before = set(os.listdir(self._path))
            writer = self._index.writer()
            try:
                if forget:
                    writer.delete_by_query(query.Or([query.Term("memory", memory) for memory in forget]))
                for document in add:
                    writer.add_document(**_row(document))
                writer.commit(mergetype=merge)
            except BaseException:
                if not writer.is_closed:
                    writer.cancel()
                raise
            _sync(self._path, before)
            self._renew()

    def search(self, terms: dict[Term, float], top_n: int, statistics: Statistics) -> list[Found]:
        with self._reading:
            hits = self._scores.best(terms, top_n + TIES, statistics)
            cut = hits[top_n - 1][0] if len(hits) >= top_n else 0.0
            found = [Found(score, self._stored(number)) for score, number in hits if score >= cut]
        return ranked(found, top_n)

    def of(self, memories: Iterable[MemoryId]) -> list[Document]:
        with self._reading:
            reader = self._searcher.reader()
            found: list[Document] = []
            for memory in memories:
                if ("memory", memory) in reader:
                    found.extend(self._stored(number) for number in reader.postings("memory", memory).all_ids())
            return found

    def statistics(self, terms: Iterable[Term]) -> Statistics:
        with self._reading:
            return self._scores.statistics(terms)

    def close(self) -> None:
        with self._writing, self._reading:
            self._searcher.close()
            self._index.close()

    def _renew(self) -> None:
        """Read the newest commit. Whoosh's own refresh keeps segments that a merge has replaced."""
        searcher = self._index.searcher()
        scores = Scores(searcher, self._scores)
        with self._reading:
            stale, self._searcher, self._scores = self._searcher, searcher, scores
            stale.close()

    def _stored(self, number: int) -> Document:
        stored = self._searcher.stored_fields(number)
        return Document(*(stored[name] for name in _STORED))


def _schema() -> Any:
    return fields.Schema(
        item=fields.STORED,
        memory=fields.ID(stored=True),
        kind=fields.STORED,
        label=fields.STORED,
        digest=fields.STORED,
        exact=fields.KEYWORD(stored=True, scorable=True),
        stem=fields.KEYWORD(stored=True, scorable=True),
    )


def _row(document: Document) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(document, name) for name in _STORED}
    for name in ("exact", "stem"):
        # A list is indexed as it is, without analysis.
        row[f"_stored_{name}"], row[name] = row[name], str(row[name]).split()
    return row


def _merge(writer: Any, segments: list[Any]) -> list[Any]:
    """Merge segments of like size when there are too many, and any that is mostly deleted documents."""
    tiers = Counter(_tier(segment) for segment in segments)
    merged = [
        segment
        for segment in segments
        if tiers[_tier(segment)] >= _SEGMENTS or segment.deleted_count() * 2 > segment.doc_count_all()
    ]
    return _rewrite(writer, segments, merged)


def _merge_deleted(writer: Any, segments: list[Any]) -> list[Any]:
    """Rewrite every segment that still holds a deleted document."""
    return _rewrite(writer, segments, [segment for segment in segments if segment.deleted_count()])


def _rewrite(writer: Any, segments: list[Any], merged: list[Any]) -> list[Any]:
    for segment in merged:
        reader = SegmentReader(writer.storage, writer.schema, segment)
        writer.add_reader(reader)
        reader.close()
    return [segment for segment in segments if segment not in merged]


def _tier(segment: Any) -> int:
    return int(math.log(segment.doc_count_all() + 1, _TIER))


def _sync(path: Path, before: set[str]) -> None:
    """Make the files of a commit survive a power cut, as Whoosh itself does not."""
    for name in set(os.listdir(path)) - before:
        if not name.endswith("LOCK"):
            _fsync(path / name)
    _fsync(path)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

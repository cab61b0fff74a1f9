"""The engine for large projects: tantivy, an optional dependency."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contracts.base import MemoryId
from workers.lexical.cue import Field, Term
from workers.lexical.engine import TIES, Document, Found, ranked
from workers.lexical.statistics import Statistics, saturation

#: The least that tantivy takes for one indexing thread.
_HEAP_BYTES = 15_000_000
_STORED = ("item", "memory", "kind", "label", "digest", "exact", "stem")
#: The fast field that holds how many tokens a field has.
_LENGTH: dict[Field, str] = {"exact": "exact_length", "stem": "stem_length"}
#: So many times what is asked for is scored anew: the library's order is not ours.
MORE = 2


class TantivyEngine:
    """An `Engine` over tantivy. The library finds the candidates by its own BM25, whose constants are fixed and whose
    statistics are the index's; they are scored anew from their stored tokens.

    Raises RuntimeError when tantivy is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._tantivy = require()
        self._schema = self._make_schema()
        path.mkdir(parents=True, exist_ok=True)
        self._index = self._tantivy.Index(self._schema, path=str(path))
        words = self._tantivy.TextAnalyzerBuilder(self._tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("words", words)
        self._index.config_reader("manual")
        self._writing = threading.Lock()
        self._writer: Any = None
        self._lengths: dict[Field, int] = {}
        self._searcher = self._reload()

    def write(self, forget: Iterable[MemoryId], add: Sequence[Document]) -> None:
        with self._writing:
            self._commit(forget, add, afresh=False)

    def purge(self) -> None:
        """The library merges segments when it likes, so all documents are written anew and the old files dropped."""
        with self._writing:
            searcher = self._searcher
            query = self._tantivy.Query.all_query()
            hits = searcher.search(query, limit=max(searcher.num_docs, 1), count=False).hits
            documents = [_document(searcher.doc(address)) for _, address in hits]
            del searcher
            self._commit([], documents, afresh=True)
            self._writer.garbage_collect_files()

    def _commit(self, forget: Iterable[MemoryId], add: Sequence[Document], afresh: bool) -> None:
        if self._writer is None:
            self._writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        try:
            if afresh:
                self._writer.delete_all_documents()
            for memory in forget:
                self._writer.delete_documents_by_term("memory", memory)
            for document in add:
                fields = {name: getattr(document, name) for name in _STORED}
                lengths = {length: len(fields[name].split()) for name, length in _LENGTH.items()}
                self._writer.add_document(self._tantivy.Document(**fields, **lengths))
            self._writer.commit()
        except BaseException:
            self._writer.rollback()
            raise
        self._searcher = self._reload()

    def search(self, terms: dict[Term, float], top_n: int, statistics: Statistics) -> list[Found]:
        searcher = self._searcher
        hits = searcher.search(self._any_of(terms), limit=MORE * top_n + TIES, count=False).hits
        documents = [_document(searcher.doc(address)) for _, address in hits]
        weights = {term: weight * statistics.idf(term) for term, weight in terms.items()}
        return ranked([Found(_score(document, weights, statistics), document) for document in documents], top_n)

    def of(self, memories: Iterable[MemoryId]) -> list[Document]:
        searcher = self._searcher
        wanted = list(memories)
        if not wanted or not searcher.num_docs:
            return []
        query = self._tantivy.Query.term_set_query(self._schema, "memory", wanted)
        hits = searcher.search(query, limit=searcher.num_docs, count=False).hits
        return [_document(searcher.doc(address)) for _, address in hits]

    def statistics(self, terms: Iterable[Term]) -> Statistics:
        searcher = self._searcher
        df = {term: self._df(searcher, term) for term in terms}
        return Statistics(int(searcher.num_docs), self._lengths, df)

    def _df(self, searcher: Any, term: Term) -> int:
        """The searcher's own `doc_freq` counts removed documents until they are merged away."""
        query = self._tantivy.Query.term_query(self._schema, term.field, term.text, "basic")
        return int(searcher.search(query, limit=1, count=True).count)

    def close(self) -> None:
        with self._writing:
            if self._writer is not None:
                self._writer.wait_merging_threads()
                self._writer = None

    def _make_schema(self) -> Any:
        builder = self._tantivy.SchemaBuilder()
        for name in ("item", "memory", "kind", "label", "digest"):
            builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
        for name, length in _LENGTH.items():
            builder.add_text_field(name, stored=True, tokenizer_name="words", index_option="freq")
            builder.add_integer_field(length, fast=True)
        return builder.build()

    def _any_of(self, terms: dict[Term, float]) -> Any:
        query = self._tantivy.Query
        return query.boolean_query(
            [
                (
                    self._tantivy.Occur.Should,
                    query.boost_query(query.term_query(self._schema, term.field, term.text, "freq"), weight),
                )
                for term, weight in terms.items()
            ]
        )

    def _reload(self) -> Any:
        self._index.reload()
        searcher = self._index.searcher()
        sums = {name: {"sum": {"field": length}} for name, length in _LENGTH.items()}
        found = searcher.aggregate(self._tantivy.Query.all_query(), sums) if searcher.num_docs else {}
        self._lengths = {name: int(found[name]["value"]) if found else 0 for name in _LENGTH}
        return searcher


def require() -> Any:
    """The tantivy module. Raises RuntimeError when it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise RuntimeError(
            "the lexical engine 'tantivy' needs the extra 'scale': pip install memlane[scale]"
        ) from error
    return tantivy


def _document(stored: Any) -> Document:
    return Document(*(stored.get_first(name) for name in _STORED))


def _score(document: Document, weights: dict[Term, float], statistics: Statistics) -> float:
    tokens: dict[Field, list[str]] = {"exact": document.exact.split(), "stem": document.stem.split()}
    score = 0.0
    for term, weight in weights.items():
        if count := tokens[term.field].count(term.text):
            score += weight * saturation(count, len(tokens[term.field]), statistics.average(term.field))
    return score

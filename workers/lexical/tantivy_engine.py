"""The engine for large projects: tantivy, an optional dependency."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contracts.base import MemoryId
from workers.lexical.cue import Term
from workers.lexical.engine import TIES, Document, Found, ranked

#: The least that tantivy takes for one indexing thread.
_HEAP_BYTES = 15_000_000
_STORED = ("item", "memory", "kind", "label", "digest", "exact", "stem")


class TantivyEngine:
    """An `Engine` over tantivy. Its BM25 is fixed at k1 = 1.2 and b = 0.75.

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
                self._writer.add_document(self._tantivy.Document(**fields))
            self._writer.commit()
        except BaseException:
            self._writer.rollback()
            raise
        self._searcher = self._reload()

    def search(self, terms: dict[Term, float], top_n: int) -> list[Found]:
        searcher = self._searcher
        query = self._any_of(terms)
        hits = searcher.search(query, limit=top_n + TIES, count=False).hits
        cut = hits[top_n - 1][0] if len(hits) >= top_n else 0.0
        kept = [(score, address) for score, address in hits if score >= cut]
        return ranked([Found(float(score), _document(searcher.doc(address))) for score, address in kept], top_n)

    def of(self, memories: Iterable[MemoryId]) -> list[Document]:
        searcher = self._searcher
        wanted = list(memories)
        if not wanted or not searcher.num_docs:
            return []
        query = self._tantivy.Query.term_set_query(self._schema, "memory", wanted)
        hits = searcher.search(query, limit=searcher.num_docs, count=False).hits
        return [_document(searcher.doc(address)) for _, address in hits]

    def df(self, term: Term) -> int:
        return int(self._searcher.doc_freq(term.field, term.text))

    def count(self) -> int:
        return int(self._searcher.num_docs)

    def close(self) -> None:
        with self._writing:
            if self._writer is not None:
                self._writer.wait_merging_threads()
                self._writer = None

    def _make_schema(self) -> Any:
        builder = self._tantivy.SchemaBuilder()
        for name in ("item", "memory", "kind", "label", "digest"):
            builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
        for name in ("exact", "stem"):
            builder.add_text_field(name, stored=True, tokenizer_name="words", index_option="freq")
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
        return self._index.searcher()


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

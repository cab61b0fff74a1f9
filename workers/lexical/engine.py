"""The port of the full-text engines: one index per project, of memories and their statements."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from contracts.base import MemoryId
from contracts.memory import MemoryRecord
from workers.analysis import analyse
from workers.lexical.cue import Term
from workers.lexical.statistics import Statistics

EngineName = Literal["whoosh", "tantivy"]

#: So many equal scores across the cut are fetched, for the item id to decide among them and not the place in the index.
TIES = 256


@dataclass(frozen=True, slots=True)
class Document:
    """What an index stores of one item. `exact` and `stem` are its tokens, joined by spaces; `digest` tells whether
    anything that is indexed of its memory has changed."""

    item: str
    memory: MemoryId
    kind: Literal["memory", "statement"]
    label: str
    digest: str
    exact: str
    stem: str


class Found(NamedTuple):
    score: float
    document: Document


class Engine(Protocol):
    """The index of one project, in one directory, with one writer. Any number of threads may read meanwhile: they see
    the state before or after a write, and do not wait for it. Opening raises when the directory is not readable.

    A lock that a killed writer held is gone with its process.
    """

    def write(self, forget: Iterable[MemoryId], add: Sequence[Document]) -> None:
        """Remove all documents of the memories `forget`, then add `add`, in one commit that survives a kill."""
        ...

    def purge(self) -> None:
        """Leave no byte of a removed document in the files. Rewrites what it must, up to the whole project."""
        ...

    def search(self, terms: dict[Term, float], top_n: int, statistics: Statistics) -> list[Found]:
        """The best documents by the weighted terms' BM25 under these statistics, best first, ties by item id. The same
        document has the same score under the same statistics, whatever else the index holds."""
        ...

    def of(self, memories: Iterable[MemoryId]) -> list[Document]:
        """Every document of these memories."""
        ...

    def statistics(self, terms: Iterable[Term]) -> Statistics:
        """The index's own, on these terms."""
        ...

    def close(self) -> None: ...


def digest(record: MemoryRecord) -> str:
    """The same for records of a memory that differ in nothing that is indexed."""
    sentences = (record.text, *(statement.sentence for statement in record.statements))
    hashed = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        hashed.update(len(sentence).to_bytes(4, "big") + sentence.encode("utf-8"))
    return hashed.hexdigest()


def documents(record: MemoryRecord) -> Iterator[Document]:
    """A memory's documents: its text, and each of its statements."""
    mark = digest(record)
    fields = analyse(record.text)
    yield Document(record.id, record.id, "memory", "", mark, " ".join(fields.exact), " ".join(fields.stem))
    for number, statement in enumerate(record.statements):
        sentence = statement.sentence
        fields = analyse(sentence)
        item = f"{record.id}#s{number}"
        yield Document(item, record.id, "statement", sentence, mark, " ".join(fields.exact), " ".join(fields.stem))


def ranked(found: Sequence[Found], top_n: int) -> list[Found]:
    return sorted(found, key=lambda hit: (-hit.score, hit.document.item))[:top_n]

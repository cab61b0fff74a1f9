"""The lexical lane's index: it follows the log, and answers by the words, names and ids of a cue."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio.to_thread
import structlog

from contracts.base import MemoryId, Position, Project
from contracts.lanes import LaneQuery, LaneReply, ScoreQuery, ScoreReply, TermsQuery, TermsReply, TermStatistics
from contracts.memory import MemoryRecord
from contracts.ports import Entry
from workers.analysis import analyse
from workers.lexical.cue import Cue, Term, read_cue
from workers.lexical.engine import Document, Engine, EngineName, Found, digest, documents
from workers.lexical.evidence import Judge
from workers.lexical.position import PositionFile
from workers.lexical.shelf import Shelf
from workers.lexical.statistics import Statistics, unpack

#: Only the terms of a cue that tell most are searched for; its evidence still counts every term.
MOST_TERMS = 48

#: Faults of the machine rather than of the files: rebuilding would not help.
_NOT_CORRUPT = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EROFS, errno.ENOMEM)

_log = structlog.get_logger(__name__)


class LexicalIndex:
    """A `LaneIndex` over one full-text index per project, so that term statistics are the project's own.

    One process may write to a directory at a time. A directory that is corrupt, or made by another format or engine,
    is emptied with a warning and starts again at position 0. Raises RuntimeError when the engine is not installed.
    """

    def __init__(self, path: Path, engine: EngineName = "whoosh") -> None:
        self._path = path
        self._make = _maker(engine)
        path.mkdir(parents=True, exist_ok=True)
        self._file = PositionFile(path / "position.json", engine)
        self._applying = threading.Lock()
        self._shelf, self._position = self._open()

    @property
    def position(self) -> Position:
        return self._position

    async def apply(self, entries: Sequence[Entry]) -> None:
        if entries:
            await anyio.to_thread.run_sync(self._apply, entries)

    async def search(self, query: LaneQuery) -> LaneReply:
        return await anyio.to_thread.run_sync(self._search, query)

    async def score(self, query: ScoreQuery) -> ScoreReply:
        return await anyio.to_thread.run_sync(self._score, query)

    async def terms(self, query: TermsQuery) -> TermsReply:
        return await anyio.to_thread.run_sync(self._terms, query)

    async def close(self) -> None:
        await anyio.to_thread.run_sync(self._shelf.close)

    def _open(self) -> tuple[Shelf, Position]:
        position = self._file.read()
        try:
            shelf = Shelf(self._path / "projects", self._make)
            if position is None and any((self._path / "projects").iterdir()):
                raise ValueError("made by another format or engine, or its position is lost")
            shelf.check()
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _NOT_CORRUPT:
                raise
            _log.warning("lexical_index_rebuilt", path=str(self._path), reason=repr(error))
            shutil.rmtree(self._path)
            self._path.mkdir(parents=True)
            return Shelf(self._path / "projects", self._make), 0
        return shelf, position or 0

    def _apply(self, entries: Sequence[Entry]) -> None:
        newest: dict[Project, dict[MemoryId, MemoryRecord]] = {}
        for _, record in entries:
            newest.setdefault(record.project, {})[record.id] = record
        with self._applying:
            for project, records in newest.items():
                with self._shelf.lease(project) as engine:
                    _write(engine, records.values())
            position = max(self._position, *(position for position, _ in entries))
            self._file.write(position)
            self._position = position

    def _search(self, query: LaneQuery) -> LaneReply:
        cue = read_cue(query.cue)
        with self._shelf.existing(query.project) as engine:
            if engine is None or not cue.units or query.top_n < 1:
                return LaneReply(position=self._position)
            statistics = _statistics(engine, cue, query.statistics)
            terms = _telling(cue.terms, statistics)
            found = engine.search(terms, query.top_n, statistics) if terms else []
            judge = Judge(cue, statistics)
        return _reply(found, judge, self._position, [unit.text for unit in cue.units])

    def _terms(self, query: TermsQuery) -> TermsReply:
        cue = read_cue(query.cue)
        with self._shelf.existing(query.project) as engine:
            statistics = _statistics(engine, cue, None)
        return TermsReply(position=self._position, statistics=statistics.pack(list(cue.terms)))

    def _score(self, query: ScoreQuery) -> ScoreReply:
        cue = read_cue(query.cue)
        with self._shelf.existing(query.project) as engine:
            held = engine.of(dict.fromkeys(query.ids)) if engine and cue.units else []
            judge = Judge(cue, _statistics(engine, cue, query.statistics))
        best = dict.fromkeys(query.ids, (0.0, False))
        for document in held:
            share, confirmed = _judged(judge, document)
            known = best[document.memory]
            best[document.memory] = (max(share, known[0]), confirmed or known[1])
        verdicts = [best[memory] for memory in query.ids]
        for text in query.texts:
            found = analyse(text)
            verdicts.append(judge.judge(frozenset(found.exact), frozenset(found.stem)))
        return ScoreReply(
            evidence=tuple(share for share, _ in verdicts), confirmed=tuple(confirmed for _, confirmed in verdicts)
        )


def _maker(engine: EngineName) -> Callable[[Path], Engine]:
    if engine == "tantivy":
        from workers.lexical.tantivy_engine import TantivyEngine, require

        require()
        return TantivyEngine
    from workers.lexical.whoosh_engine import WhooshEngine

    return WhooshEngine


def _statistics(engine: Engine | None, cue: Cue, given: TermStatistics | None) -> Statistics:
    """Those of all shards where they are given, else the engine's own."""
    terms = list(cue.terms)
    if given is not None:
        return unpack(given, terms)
    return engine.statistics(terms) if engine else Statistics(df=dict.fromkeys(terms, 0))


def _write(engine: Engine, records: Iterable[MemoryRecord]) -> None:
    """Bring an engine to the state of some memories, without a commit where nothing that is indexed has changed."""
    changed = {record.id: record for record in records}
    erased = any(record.tombstone and record.tombstone.mode == "hard" for record in changed.values())
    held = {document.memory: document.digest for document in engine.of(changed)}
    for memory, record in list(changed.items()):
        if held.get(memory) == (digest(record) if record.live else None):
            del changed[memory]
    added = [document for record in changed.values() if record.live for document in documents(record)]
    if changed:
        engine.write([memory for memory in changed if memory in held], added)
    if erased:
        engine.purge()


def _telling(terms: dict[Term, float], statistics: Statistics) -> dict[Term, float]:
    """The terms that the project knows, those that tell most first."""
    known = [(term, weight) for term, weight in terms.items() if statistics.df[term]]
    return dict(sorted(known, key=lambda pair: (-pair[1] * statistics.idf(pair[0]), pair[0]))[:MOST_TERMS])


def _judged(judge: Judge, document: Document) -> tuple[float, bool]:
    return judge.judge(frozenset(document.exact.split(" ")), frozenset(document.stem.split(" ")))


def _reply(found: Sequence[Found], judge: Judge, position: Position, terms: list[str]) -> LaneReply:
    verdicts = [_judged(judge, hit.document) for hit in found]
    return LaneReply(
        position=position,
        items=tuple(hit.document.item for hit in found),
        kinds=tuple(hit.document.kind for hit in found),
        labels=tuple(hit.document.label for hit in found),
        scores=tuple(hit.score for hit in found),
        sources=tuple((hit.document.memory,) for hit in found),
        evidence=tuple(share for share, _ in verdicts),
        confirmed=tuple(confirmed for _, confirmed in verdicts),
        notes={"terms": tuple(terms)},
    )

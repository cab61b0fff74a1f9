"""The engines of all projects under one directory, of which only the lately used are open."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contracts.base import Project
from workers.lexical.engine import Engine

#: Open engines cost file handles and, in tantivy, an indexing buffer each.
MOST_OPEN = 64


@dataclass(slots=True)
class _Held:
    engine: Engine
    users: int = 0


class Shelf:
    """Lends one engine per project, safe for threads. Engines in use stay open whatever their number."""

    def __init__(self, path: Path, make: Callable[[Path], Engine], most_open: int = MOST_OPEN) -> None:
        self._path, self._make, self._most_open = path, make, most_open
        self._open: OrderedDict[Project, _Held] = OrderedDict()
        self._lock = threading.Lock()
        path.mkdir(parents=True, exist_ok=True)

    def check(self) -> None:
        """Open every project's index once. Raises what an unreadable one raises."""
        for folder in sorted(self._path.iterdir()):
            self._make(folder).close()

    @contextmanager
    def existing(self, project: Project) -> Iterator[Engine | None]:
        """The project's engine, or None when nothing was ever written to it."""
        if not self._folder(project).exists():
            yield None
            return
        with self.lease(project) as engine:
            yield engine

    @contextmanager
    def lease(self, project: Project) -> Iterator[Engine]:
        """The project's engine, made when it is new; it stays open until the block ends."""
        with self._lock:
            if project not in self._open:
                self._open[project] = _Held(self._make(self._folder(project)))
            held = self._open[project]
            held.users += 1
            self._open.move_to_end(project)
        try:
            yield held.engine
        finally:
            with self._lock:
                held.users -= 1
                self._close_idle()

    def close(self) -> None:
        with self._lock:
            for held in self._open.values():
                held.engine.close()
            self._open.clear()

    def _close_idle(self) -> None:
        idle = [project for project, held in self._open.items() if not held.users]
        for project in idle[: max(0, len(self._open) - self._most_open)]:
            self._open.pop(project).engine.close()

    def _folder(self, project: Project) -> Path:
        """Unlike the name alone, different for projects that differ in case only, on every file system."""
        return self._path / f"{project.lower()}-{hashlib.sha256(project.encode()).hexdigest()[:8]}"

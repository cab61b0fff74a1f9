"""The file that says how much of the log an index on disk has applied."""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from contracts.base import Position

#: Raise this whenever analysis or the stored fields change: an index of another format is rebuilt from the log.
FORMAT = 2


class PositionFile:
    """Written last, and whole or not at all: it never claims more than the index beside it holds."""

    def __init__(self, path: Path, engine: str) -> None:
        self._path = path
        self._made_by = {"format": FORMAT, "engine": engine}

    def read(self) -> Position | None:
        """The stored position; None when there is none, or the index was made by another format or engine."""
        try:
            stored = orjson.loads(self._path.read_bytes())
            position = stored.pop("position")
        except (FileNotFoundError, orjson.JSONDecodeError, AttributeError, KeyError):
            return None
        return position if stored == self._made_by and isinstance(position, int) and position >= 0 else None

    def write(self, position: Position) -> None:
        """Store a position so that it survives a kill and a power cut."""
        beside = self._path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(orjson.dumps({**self._made_by, "position": position}))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

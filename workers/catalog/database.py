"""The catalog's SQLite file: opened, or made anew where it cannot be used."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import structlog

logger = structlog.get_logger()

_SCHEMA = (Path(__file__).parent / "schema.sql").read_text("utf-8")
#: Of the tables and of how records are put into them. Files of another format are built anew from the log.
_FORMAT = 7


def open_database(file: Path) -> sqlite3.Connection:
    """Open, or start afresh when the file is damaged or of another format: the log has it all."""
    try:
        return _connect(file)
    except sqlite3.OperationalError:
        raise  # locked, full or forbidden: the file is sound
    except sqlite3.DatabaseError as error:
        logger.warning("catalog file ignored", action="catalog_ignored", error=str(error))
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)
        return _connect(file)


def _connect(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # a kill loses nothing; after a power cut the log fills in the rest
        db.execute("PRAGMA secure_delete = ON")  # a hard forget must not leave the text in free pages
        _check_format(db)
        db.executescript(_SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _check_format(db: sqlite3.Connection) -> None:
    """Raises DatabaseError for a file of another format."""
    [(version,)] = db.execute("PRAGMA user_version")
    [(tables,)] = db.execute("SELECT count(*) FROM sqlite_master")
    if tables and version != _FORMAT:
        raise sqlite3.DatabaseError(f"format {version}, not {_FORMAT}")
    db.execute(f"PRAGMA user_version = {_FORMAT}")

"""Where an export goes: a file of JSON lines, standard output, or a folder of Markdown. Nothing is written over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from contracts.errors import Conflict, ErrorCode, InvalidRequest
from infra.moving.inward import HEADER, VERSION
from infra.moving.markdown import to_markdown
from infra.moving.portable import to_line

Write = Callable[[dict[str, Any]], None]


@contextmanager
def json_lines(out: Path | None) -> Iterator[Write]:
    """A file that is there only once all is in it; None: standard output. Raises Conflict, InvalidRequest."""
    if out is None:
        yield _lines(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if out.exists():
        raise Conflict(ErrorCode.INVALID_REQUEST, f"{out} is there already", field="out")
    partial = out.with_name(f"{out.name}.partial")
    try:
        with partial.open("wb") as file:
            yield _lines(file)
        partial.rename(out)
    except OSError as error:
        raise _unwritable(out, error) from None
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def markdown(out: Path | None) -> Iterator[Write]:
    """A new folder, with one of its own for each month. Raises Conflict, InvalidRequest."""
    if out is None:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "name a folder for the Markdown files with --out", field="out")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Conflict(ErrorCode.INVALID_REQUEST, f"{out} is there already, and not an empty folder", field="out")

    def write(fields: dict[str, Any]) -> None:
        at = str(fields["created_at"])
        file = out / at[:7] / f"{at[8:10]}-{fields['ref']}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(to_markdown(fields))

    try:
        out.mkdir(parents=True, exist_ok=True)
        yield write
    except OSError as error:
        raise _unwritable(out, error) from None


FORMATS = {"jsonl": json_lines, "markdown": markdown}


def _lines(file: BinaryIO) -> Write:
    file.write(to_line({HEADER: VERSION}))

    def write(fields: dict[str, Any]) -> None:
        file.write(to_line(fields))

    return write


def _unwritable(out: Path, error: OSError) -> InvalidRequest:
    return InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot write {out}: {error.strerror}", field="out")

"""Readers of files to ingest: JSON lines, Markdown, plain text and LoCoMo conversations, as encode requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from contracts import wire
from contracts.base import MAX_NAME_CHARS
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest, MemlaneError

MAX_LINE_BYTES = 4 * 1024 * 1024  #: a longer line of JSON could never be sent, so it is not held in memory either
MAX_PARAGRAPH_CHARS = 2000
MAX_SOURCE_CHARS = 64

_BOM = b"\xef\xbb\xbf"
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*")
_SESSION = re.compile(r"session_(\d{1,6})")


class Format(StrEnum):
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    TEXT = "text"
    LOCOMO = "locomo"


class Item(NamedTuple):
    """What to encode; a `project` of None is the caller's own."""

    project: str | None
    request: EncodeRequest


#: Where in the file (its line, or for LoCoMo its turn, from 1), and what stands there.
Numbered = tuple[int, Item | MemlaneError]

_SUFFIXES = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
    ".json": Format.LOCOMO,
}


def read(path: Path, form: str | None = None) -> Iterator[Item]:
    """Every request of a file, lazily and in order. Raises InvalidRequest, at once for a file that is missing, empty
    or of no known format, and at the first bad line, with its number in `details.line`."""
    return _strict(read_each(path, form))


def read_each(path: Path, form: str | None = None) -> Iterator[Numbered]:
    """As `read`, but a bad line comes as its error, and the reading goes on. A file that as a whole cannot be read
    (see `read`) still raises."""
    chosen = detect(path, form)
    try:
        empty = path.stat().st_size == 0
    except OSError as error:
        raise _bad(path, f"cannot read {path}: {(error.strerror or 'unknown error').lower()}") from None
    if path.is_dir():
        raise _bad(path, f"{path} is a directory, not a file")
    if empty:
        raise _bad(path, f"{path} is empty", ErrorCode.TEXT_EMPTY)
    return _not_empty(path, _READERS[chosen](path))


def detect(path: Path, form: str | None = None) -> Format:
    """The format that `form` names, or that the file's suffix means. Raises InvalidRequest when neither is known."""
    names = ", ".join(Format)
    if form is not None:
        if form not in set(Format):
            raise InvalidRequest(
                ErrorCode.INVALID_REQUEST, f"unknown format {form!r}, use one of {names}", field="format"
            )
        return Format(form)
    found = _SUFFIXES.get(path.suffix.lower())
    if found is None:
        raise _bad(path, f"cannot tell the format of {path.name!r} by its suffix, name one of {names}")
    return found


def _strict(items: Iterator[Numbered]) -> Iterator[Item]:
    for _, item in items:
        if isinstance(item, MemlaneError):
            raise item
        yield item


def _not_empty(path: Path, items: Iterator[Numbered]) -> Iterator[Numbered]:
    number = 0
    for number, item in items:
        yield number, item
    if not number:
        raise _bad(path, f"{path} holds no text", ErrorCode.TEXT_EMPTY)


def _bad(path: Path, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> InvalidRequest:
    return InvalidRequest(code, message, path=str(path))


def _attempt(unit: str, number: int, make: Callable[..., Item], *args: Any) -> Numbered:
    """What `make` makes, or its error with the place added to the details."""
    try:
        return number, make(*args)
    except MemlaneError as error:
        details = {**error.details, unit: number}
        return number, type(error)(error.code, f"{unit} {number}: {error.message}", **details)


def _item(project: str | None, fields: dict[str, Any]) -> Item:
    request = wire.validate(EncodeRequest, fields)
    wire.check_text(request.text, "text")
    return Item(project, request)


def _jsonl(path: Path) -> Iterator[Numbered]:
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), start=1):
            if line.strip():
                yield _attempt("line", number, _json_line, line)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines without a byte order mark. A line over the limit comes cut, one byte too long, and its rest is skipped."""
    first = True
    while line := file.readline(MAX_LINE_BYTES + 1):
        rest = line
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES + 1)
        yield line.removeprefix(_BOM) if first else line
        first = False


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The value of each line that is not blank, with its number; in place of one that is no JSON, its error. Raises
    InvalidRequest for a file that cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise _bad(path, f"cannot read {path}: {(error.strerror or 'unknown error').lower()}") from None
    with file:
        for number, line in enumerate(_lines(file), start=1):
            if line.strip():
                try:
                    yield number, _json_value(line)
                except InvalidRequest as error:
                    yield number, error


def _json_value(line: bytes) -> Any:
    if len(line) > MAX_LINE_BYTES:
        raise InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, f"over {MAX_LINE_BYTES} bytes", limit=MAX_LINE_BYTES)
    return wire.parse(line)


def _json_line(line: bytes) -> Item:
    value = _json_value(line)
    if not isinstance(value, dict):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "must be a JSON object", got=type(value).__name__)
    project = value.pop("project", None)
    if project is not None:
        wire.check_project(project if isinstance(project, str) else "")
    return _item(project, value)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text: bad byte at {error.start}"
        raise _bad(path, message, ErrorCode.INVALID_ENCODING) from None


def _source(path: Path) -> str:
    return path.name.encode("utf-8", "replace").decode("utf-8")[:MAX_SOURCE_CHARS]


def _plain(path: Path) -> Iterator[Numbered]:
    return _paragraphs(path, _blocks(_text(path), marked=False))


def _markdown(path: Path) -> Iterator[Numbered]:
    return _paragraphs(path, _blocks(_text(path), marked=True))


class _Block(NamedTuple):
    line: int
    text: str
    heading: tuple[str, ...] = ()
    code: bool = False


def _paragraphs(path: Path, blocks: Iterator[_Block]) -> Iterator[Numbered]:
    source = _source(path)
    for block in blocks:
        metadata = {"heading": list(block.heading)} if block.heading else {}
        for piece in [block.text] if block.code else split(block.text):
            fields = {"text": piece, "source": source, "metadata": metadata}
            yield _attempt("line", block.line, _item, None, fields)


def _blocks(text: str, marked: bool) -> Iterator[_Block]:
    """Paragraphs and, where Markdown is meant, whole fenced code blocks, each under its path of headings."""
    heading: list[tuple[int, str]] = []
    held: list[str] = []
    start, fence = 1, ""

    def flush(code: bool = False) -> Iterator[_Block]:
        body = "\n".join(held).strip("\n")
        held.clear()
        if body.strip():
            yield _Block(start, body if code else body.strip(), tuple(title for _, title in heading), code)

    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        opened = _FENCE.match(line) if marked else None
        if fence:
            held.append(line)
            if opened and opened[1].startswith(fence) and line.strip() == opened[1]:
                yield from flush(code=True)
                fence = ""
        elif opened:
            yield from flush()
            held.append(line)
            start, fence = number, opened[1]
        elif marked and (title := _HEADING.match(line)):
            yield from flush()
            heading = [(level, name) for level, name in heading if level < len(title[1])]
            heading.append((len(title[1]), title[2][:MAX_NAME_CHARS]))
        elif not line.strip() or (marked and _RULE.match(line)):
            yield from flush()
        else:
            start = start if held else number
            held.append(line)
    yield from flush(code=bool(fence))


def split(text: str, limit: int = MAX_PARAGRAPH_CHARS) -> list[str]:
    """A text in pieces of at most `limit` characters: cut at sentence ends, else between words, else anywhere."""
    pieces: list[str] = []
    for part in _SENTENCE_END.split(text) if len(text) > limit else [text]:
        if pieces and len(pieces[-1]) + 1 + len(part) <= limit:
            pieces[-1] += f" {part}"
            continue
        rest = part
        while len(rest) > limit:
            cut = rest.rfind(" ", 1, limit + 1)
            cut = limit if cut < 1 else cut
            pieces.append(rest[:cut])
            rest = rest[cut:].lstrip()
        if rest:
            pieces.append(rest)
    return pieces


def _locomo(path: Path) -> Iterator[Numbered]:
    try:
        samples = wire.parse(path.read_bytes().removeprefix(_BOM))
    except InvalidRequest as error:
        raise _bad(path, f"{path} is {error.message}", ErrorCode.INVALID_ENCODING) from None
    samples = samples if isinstance(samples, list) else [samples]
    for sample in samples:
        if not isinstance(sample, dict) or not isinstance(sample.get("conversation"), dict):
            raise _bad(path, f"{path} is not LoCoMo: expected a list of objects with a conversation")
    return _turns(samples)


def _turns(samples: list[dict[str, Any]]) -> Iterator[Numbered]:
    number = 0
    for order, sample in enumerate(samples, start=1):
        sample_id = str(sample.get("sample_id") or f"sample-{order}")
        talk = sample["conversation"]
        sessions = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)))
        for session in sessions:
            turns = talk[f"session_{session}"]
            began = _session_date(talk.get(f"session_{session}_date_time"))
            for index, turn in enumerate(turns if isinstance(turns, list) else []):
                number += 1
                at = began + timedelta(seconds=index) if began else None
                yield _attempt("turn", number, _turn, sample_id, session, turn, at)


def _turn(sample_id: str, session: int, turn: Any, at: datetime | None) -> Item:
    speaker, said, dia_id = (turn.get(key) if isinstance(turn, dict) else None for key in ("speaker", "text", "dia_id"))
    if not (isinstance(speaker, str) and isinstance(said, str) and isinstance(dia_id, str)):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "a turn needs speaker, text and dia_id as strings")
    caption = turn.get("blip_caption")
    image = f" [image: {caption}]" if caption else ""
    wire.check_text(said + image, "text")
    fields = {
        "text": f"{speaker}: {said}{image}",
        "request_id": f"{sample_id}:{dia_id}",
        "session": f"session_{session}",
        "occurred_at": at,
        "source": "locomo",
        "metadata": {"dia_id": dia_id},
        "entities": [{"name": speaker, "type": "Person"}],
    }
    return _item(project_name(sample_id), fields)


def project_name(name: str) -> str:
    """A valid project name made of any text: what a project may not contain becomes a dash."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:64] or "locomo"


def _session_date(value: Any) -> datetime | None:
    try:
        return datetime.strptime(str(value).strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


_READERS: dict[Format, Callable[[Path], Iterator[Numbered]]] = {
    Format.JSONL: _jsonl,
    Format.MARKDOWN: _markdown,
    Format.TEXT: _plain,
    Format.LOCOMO: _locomo,
}

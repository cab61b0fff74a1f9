"""Into a project: what a file or folder holds, as requests. All is read and checked before any is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts import wire
from contracts.base import MemoryId
from contracts.errors import ErrorCode, InvalidRequest, MemlaneError
from contracts.identity import memory_id
from infra.moving import conversations
from infra.moving.conversations import Found
from infra.moving.markdown import from_markdown, has_fields
from infra.moving.portable import references, to_request
from infra.readers import Item, json_lines, read_each

#: Where an export says which form its lines have.
HEADER = "memlane_export"
VERSION = 1
_ANY_ID = "a" * 26


def jsonl(path: Path) -> Iterator[Found]:
    """A memory a line. The header of an export is optional, so a file may be written by hand."""
    for number, value in json_lines(path):
        place = f"{path}: line {number}"
        if isinstance(value, dict) and HEADER in value:
            if value[HEADER] != VERSION:
                message = f"{place}: an export of version {value[HEADER]!r}, and this Memlane reads {VERSION}"
                raise InvalidRequest(ErrorCode.INVALID_REQUEST, message, path=str(path), line=number)
            continue
        yield Found(place, value)


def markdown(path: Path) -> Iterator[Found]:
    """A folder of files, or one: those of an export are a memory each, of all others the paragraphs are."""
    files = sorted(file for file in path.rglob("*.md") if file.is_file()) if path.is_dir() else [path]
    if not files:
        raise InvalidRequest(ErrorCode.TEXT_EMPTY, f"{path} holds no .md file", path=str(path))
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            message = f"cannot read {file}: {(error.strerror or 'unknown error').lower()}"
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, message, path=str(file)) from None
        if not has_fields(data):
            yield from _paragraphs(file)
            continue
        try:
            yield Found(str(file), from_markdown(data))
        except MemlaneError as error:
            yield Found(str(file), error)


FORMATS: dict[str, Callable[[Path], Iterator[Found]]] = {
    "jsonl": jsonl,
    "markdown": markdown,
    "mem0": conversations.mem0,
    "chatgpt": conversations.chatgpt,
    "claude": conversations.claude,
}


@dataclass
class Checked:
    """What there is to be stored, and what is wrong with the rest."""

    good: int = 0
    bad: list[tuple[str, MemlaneError]] = field(default_factory=list)
    ids: dict[str, MemoryId] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.good + len(self.bad)


class Inward:
    """What is at `path`, for one project. It is read anew by each method, and never held as a whole."""

    def __init__(self, path: Path, form: str, project: str) -> None:
        """Raises InvalidRequest for a form that is not known, and for a path that is not there."""
        if form not in FORMATS:
            known = ", ".join(FORMATS)
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"no format {form!r}, use one of {known}", field="format")
        if not path.exists():
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot read {path}: there is nothing", path=str(path))
        wire.check_project(project)
        self._path, self._read, self._project = path, FORMATS[form], project

    def check(self) -> Checked:
        """Read all of it. Raises InvalidRequest when it cannot be read at all; a bad part is listed."""
        checked, named = Checked(), set[str]()
        for _, fields in self._found():
            if isinstance(fields, dict):
                named |= references(fields)
        for place, fields in self._found() if named else ():
            if isinstance(fields, dict) and fields.get("ref") in named:
                self._identify(checked, place, fields)
        for place, item in self.items(checked):
            if isinstance(item, MemlaneError):
                checked.bad.append((place, item))
            else:
                checked.good += 1
        if not checked.total:
            raise InvalidRequest(ErrorCode.TEXT_EMPTY, f"{self._path} holds no memory", path=str(self._path))
        return checked

    def items(self, checked: Checked) -> Iterator[tuple[str, Item | MemlaneError]]:
        """Each memory or error, with its place."""

        def resolve(ref: str) -> MemoryId:
            if ref not in checked.ids:
                message = f"{ref!r} is the ref of no memory here"
                raise InvalidRequest(ErrorCode.MEMORY_NOT_FOUND, message, field="ref")
            return checked.ids[ref]

        for place, fields in self._found():
            if isinstance(fields, MemlaneError):
                yield place, _placed(fields, place)
                continue
            try:
                yield place, Item(None, to_request(fields, resolve))
            except MemlaneError as error:
                yield place, _placed(error, place)

    def _found(self) -> Iterator[Found]:
        for place, what in self._read(self._path):
            if isinstance(what, dict | MemlaneError):
                yield Found(place, what)
            else:
                yield Found(place, InvalidRequest(ErrorCode.INVALID_REQUEST, "must be a JSON object"))

    def _identify(self, checked: Checked, place: str, fields: dict[str, Any]) -> None:
        """Reckon the id that a memory will have: those that name it may be stored before it is."""
        ref = fields["ref"]
        if ref in checked.ids:
            message = f"{ref!r} is the ref of two memories"
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{place}: {message}", field="ref")
        try:
            checked.ids[ref] = memory_id(self._project, to_request(fields, lambda _: _ANY_ID))
        except MemlaneError:  # listed with the others that are bad; what names it is then bad too
            return


def _paragraphs(file: Path) -> Iterator[Found]:
    try:
        for number, item in read_each(file, "markdown"):
            place = f"{file}: line {number}"
            what = item if isinstance(item, MemlaneError) else item.request.model_dump(mode="json", exclude_unset=True)
            yield Found(place, what)
    except InvalidRequest as error:  # an empty note, among others that are not
        if error.code is not ErrorCode.TEXT_EMPTY:
            raise


def _placed(error: MemlaneError, place: str) -> MemlaneError:
    """The same error, saying where."""
    placed = type(error)(error.code, f"{place}: {error.message}")
    placed.details = error.details
    return placed

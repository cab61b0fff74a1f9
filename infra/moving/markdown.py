"""A memory as a Markdown file that people read: its fields as front matter, its text below.

Each line between the two rules is a field and its value as JSON, which YAML readers take as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from contracts.errors import ErrorCode, InvalidRequest
from infra.moving.portable import canonical

_RULE = b"---\n"


def to_markdown(fields: Mapping[str, Any]) -> bytes:
    """The text stands as it is, followed by one line break of ours."""
    head = b"".join(b"%s: %s\n" % (name.encode(), canonical(fields[name])) for name in fields if name != "text")
    return _RULE + head + _RULE + str(fields["text"]).encode() + b"\n"


def has_fields(data: bytes) -> bool:
    """Whether it is such a file, and not just any Markdown."""
    return data.startswith(_RULE + b"ref: ")


def from_markdown(data: bytes) -> dict[str, Any]:
    """Its fields. Raises InvalidRequest that names the line."""
    fields: dict[str, Any] = {}
    at = len(_RULE)
    number = 1
    while True:
        number += 1
        end = data.find(b"\n", at)
        if end < 0:
            raise _bad(number, "the front matter has no end: a line of ---")
        line, at = data[at:end], end + 1
        if line == b"---":
            break
        name, colon, value = line.partition(b":")
        if not colon:
            raise _bad(number, "expected a field, a colon and a value")
        try:
            fields[name.decode("utf-8")] = orjson.loads(value)
        except (orjson.JSONDecodeError, UnicodeDecodeError):
            raise _bad(number, f"the value of {name.decode('utf-8', 'replace')} is not JSON") from None
    try:
        return fields | {"text": data[at:].removesuffix(b"\n").decode("utf-8")}
    except UnicodeDecodeError:
        raise _bad(number + 1, "the text is not UTF-8", ErrorCode.INVALID_ENCODING) from None


def _bad(line: int, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> InvalidRequest:
    return InvalidRequest(code, f"line {line}: {message}", line=line)

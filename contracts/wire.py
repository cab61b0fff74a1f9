"""Bytes to messages and back. Bad bytes end here, as a typed error that names the field."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from contracts.base import MAX_NAME_CHARS, MAX_TEXT_BYTES, PROJECT_PATTERN
from contracts.errors import ErrorCode, ErrorReply, Garbled, InvalidRequest, MemlaneError, from_reply, to_reply

M = TypeVar("M", bound=BaseModel)

_RANGE_ERRORS = {"greater_than_equal", "less_than_equal", "greater_than", "less_than", "finite_number"}


def encode(message: BaseModel) -> bytes:
    """A message as UTF-8 JSON, absent optional values left out, aliases as on the wire."""
    return orjson.dumps(message.model_dump(mode="json", by_alias=True, exclude_none=True))


def encode_request(request: BaseModel) -> bytes:
    """As `encode`, and what the caller left out stays left out: a statement's kind that nobody set is the schema's to
    decide, not ours."""
    return orjson.dumps(request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True))


def encode_error(error: BaseException) -> bytes:
    return encode(to_reply(error))


def parse(data: bytes) -> Any:
    """JSON of any shape. Raises InvalidRequest: INVALID_ENCODING for bytes that are not UTF-8 JSON."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(ErrorCode.INVALID_ENCODING, f"not UTF-8 JSON: {error}") from None


def decode(kind: type[M], data: bytes) -> M:
    """A message from a caller's bytes. Raises InvalidRequest with the first offending field in `details.field`."""
    value = parse(data)
    if not isinstance(value, dict):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "the request must be a JSON object", got=type(value).__name__)
    return validate(kind, value)


def validate(kind: type[M], value: dict[str, Any]) -> M:
    """As `decode`, from an object that is parsed already."""
    try:
        message = kind.model_validate(value)
    except ValidationError as error:
        raise _explain(error) from None
    return message


def decode_reply(kind: type[M], data: bytes) -> M:
    """A message of another process of ours. Raises the MemlaneError it carries, or Garbled for garbage."""
    value = _loads(data)
    if isinstance(value, dict) and set(value) == {"error"}:
        raise from_reply(_fit(ErrorReply, value).error)
    return _fit(kind, value)


def decode_stored(kind: type[M], data: bytes | None) -> M:
    """What we wrote into a stream or bucket. Raises Garbled when somebody else did."""
    return _fit(kind, _loads(data or b""))


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Garbled(f"not UTF-8 JSON: {error}") from None


def _fit(kind: type[M], value: Any) -> M:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise Garbled(f"unreadable {kind.__name__}: {problem['type']}", field=field[:MAX_NAME_CHARS]) from None


def check_text(text: str, field: str, limit: int = MAX_TEXT_BYTES) -> None:
    """Raises TEXT_EMPTY or TEXT_TOO_LARGE. Blank counts as empty: no lane could ever find it."""
    if not text.strip():
        raise InvalidRequest(ErrorCode.TEXT_EMPTY, f"{field} is empty", field=field)
    size = len(text.encode("utf-8"))
    if size > limit:
        raise InvalidRequest(
            ErrorCode.TEXT_TOO_LARGE, f"{field} is {size} bytes, at most {limit}", field=field, size=size, limit=limit
        )


def check_project(project: str) -> None:
    """Raises INVALID_PROJECT. Subjects are made of it, so nothing but letters, digits, - and _ may pass."""
    if not re.fullmatch(PROJECT_PATTERN.strip("^$"), project):
        raise InvalidRequest(
            ErrorCode.INVALID_PROJECT, "project must be 1 to 64 letters, digits, - or _", field="project"
        )


def _explain(error: ValidationError) -> MemlaneError:
    first = error.errors(include_url=False, include_context=True)[0]
    field = ".".join(str(part) for part in first["loc"])
    kind = first["type"]
    code = ErrorCode.INVALID_REQUEST
    if kind == "extra_forbidden":
        return InvalidRequest(ErrorCode.UNKNOWN_FIELD, f"unknown field {field!r}", field=field)
    if kind in _RANGE_ERRORS:
        code = ErrorCode.OUT_OF_RANGE
    bounds = {key: value for key, value in (first.get("ctx") or {}).items() if isinstance(value, int | float | str)}
    message = first["msg"].removeprefix("Value error, ")
    return InvalidRequest(code, f"{field}: {message}", field=field, **bounds)

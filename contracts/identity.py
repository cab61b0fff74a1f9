"""What makes two encode requests the same memory."""

from __future__ import annotations

import secrets

import orjson

from contracts.base import MemoryId
from contracts.encode import EncodeRequest
from contracts.memory import derive_id


def memory_id(project: str, request: EncodeRequest) -> MemoryId:
    """The same content is the same memory; with `allow_duplicates`, the same request id is, or nothing."""
    if request.allow_duplicates:
        return derive_id(project, "request", request.request_id or secrets.token_hex(16))
    content = request.model_dump(
        mode="json", include={"text", "session", "occurred_at", "source", "metadata"}, exclude_none=True
    )
    return derive_id(project, "content", orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode())

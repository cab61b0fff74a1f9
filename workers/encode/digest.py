"""What makes two encode requests the same: the memory id and the request digest."""

from __future__ import annotations

import hashlib
import secrets

import orjson

from contracts.base import MemoryId
from contracts.encode import EncodeRequest
from contracts.memory import derive_id


def request_digest(request: EncodeRequest) -> str:
    """SHA-256 of everything but the request id and the transaction: a repeated id with another digest is a conflict."""
    fields = request.model_dump(mode="json", by_alias=True, exclude={"request_id", "txn_id"}, exclude_defaults=True)
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()


def memory_id(project: str, request: EncodeRequest) -> MemoryId:
    """The same content is the same memory; with `allow_duplicates`, the same request id is, or nothing."""
    if request.allow_duplicates:
        return derive_id(project, "request", request.request_id or secrets.token_hex(16))
    content = request.model_dump(
        mode="json", include={"text", "session", "occurred_at", "source", "metadata"}, exclude_none=True
    )
    return derive_id(project, "content", orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode())

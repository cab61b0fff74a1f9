"""What makes two requests under one request id the same."""

from __future__ import annotations

import hashlib

import orjson

from contracts.encode import EncodeRequest


def request_digest(request: EncodeRequest) -> str:
    """SHA-256 of everything but the request id and the transaction: a repeated id with another digest is a conflict."""
    fields = request.model_dump(mode="json", by_alias=True, exclude={"request_id", "txn_id"}, exclude_defaults=True)
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()

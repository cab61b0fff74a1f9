"""A memory as it moves between projects: a JSON object that names no project, so that what is the same looks the same.

Its fields are those of an encode request. In place of ids, which belong to a project, stand references: `ref` is the
memory's own, edges and `supersedes` name those of others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from contracts import wire
from contracts.base import MAX_ENTITIES, MemoryId
from contracts.catalog import Row
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest
from contracts.identity import memory_id
from contracts.memory import derive_id

MAX_REF_CHARS = 128
#: Fields of a row that an encode request has under the same name; those that are as they would be anyhow are left out.
_SAME = (
    "text", "kind", "occurred_at", "created_at", "session", "source", "tags", "importance", "salience", "confidence",
    "metadata", "entities", "statements", "relations",
)  # fmt: skip
_USUAL = {name: field.default for name, field in EncodeRequest.model_fields.items() if not field.is_required()}


def to_portable(project: str, row: Row, refs: Mapping[MemoryId, str]) -> dict[str, Any]:
    """A row's fields; `refs` has the references of those memories that it may name. Others are not named."""
    given = row.model_dump(mode="json", by_alias=True, include=set(_SAME), exclude_none=True)
    fields: dict[str, Any] = {"ref": ref_of(project, row)}
    fields |= {name: given[name] for name in _SAME if name in given and not _is_usual(row, name)}
    if row.expires_at is not None:
        fields["ttl_s"] = max(round((row.expires_at - row.created_at).total_seconds()), 1)
    if len(row.entities) > MAX_ENTITIES:  # found in the text beyond those that a caller may give
        fields["entities"] = fields["entities"][:MAX_ENTITIES]
    edges = [
        {"kind": edge.kind, "target": refs[edge.target], "weight": edge.weight}
        for edge in row.edges
        if edge.target in refs
    ]
    supersedes = [refs[target] for target in row.supersedes if target in refs]
    fields |= ({"edges": edges} if edges else {}) | ({"supersedes": supersedes} if supersedes else {})
    if _is_copy(project, row):
        fields["allow_duplicates"] = True
    return fields | {"extract": False}  # what was found then stands here, and another project would find something else


def ref_of(project: str, row: Row) -> str:
    """Of the content; of one of several memories of the same content, of its time too."""
    content = memory_id("", _content(row))
    return derive_id("copy", content, row.created_at.isoformat()) if _is_copy(project, row) else content


def to_line(fields: Mapping[str, Any]) -> bytes:
    """One line of JSON, with what it ends in."""
    return b"{%s}\n" % b",".join(b"%s:%s" % (canonical(name), canonical(fields[name])) for name in fields)


def canonical(value: Any) -> bytes:
    """As JSON, always the same: the order of an object's keys says nothing, so they are sorted."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def references(fields: Mapping[str, Any]) -> set[str]:
    """The memories that these fields name."""
    edges = fields.get("edges", ())
    targets = [edge.get("target") for edge in edges if isinstance(edge, dict)] if isinstance(edges, list) else []
    others = fields.get("supersedes", ())
    return {ref for ref in (*targets, *(others if isinstance(others, list) else ())) if isinstance(ref, str)}


def to_request(fields: Mapping[str, Any], resolve: Callable[[str], MemoryId]) -> EncodeRequest:
    """The request that stores such a memory; `resolve` gives the id of a reference, or raises InvalidRequest.

    Its request id follows from its fields, so that it is stored once, however often it is moved in.
    """
    ref = fields.get("ref")
    if ref is not None and not (isinstance(ref, str) and 0 < len(ref) <= MAX_REF_CHARS):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"ref: must be 1 to {MAX_REF_CHARS} characters", field="ref")
    if "txn_id" in fields:
        raise InvalidRequest(ErrorCode.UNKNOWN_FIELD, "unknown field 'txn_id'", field="txn_id")
    given = {"request_id": request_id(fields)} | {name: value for name, value in fields.items() if name != "ref"}
    if isinstance(edges := given.get("edges"), list):
        given["edges"] = [_resolved(edge, resolve) for edge in edges]
    if isinstance(others := given.get("supersedes"), list):
        given["supersedes"] = [resolve(other) if isinstance(other, str) else other for other in others]
    request = wire.validate(EncodeRequest, given)
    wire.check_text(request.text, "text")
    return request


def request_id(fields: Mapping[str, Any]) -> str:
    """Of a copy it is its reference: its id follows from it, and is needed before those that it names have theirs."""
    if fields.get("allow_duplicates") and isinstance(fields.get("ref"), str):
        return f"move-{fields['ref']}"[:MAX_REF_CHARS]
    return f"move-{hashlib.sha256(orjson.dumps(dict(fields), option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"


def _resolved(edge: Any, resolve: Callable[[str], MemoryId]) -> Any:
    if not isinstance(edge, dict) or not isinstance(edge.get("target"), str):
        return edge
    return edge | {"target": resolve(edge["target"])}


def _content(row: Row) -> EncodeRequest:
    fields = {name: getattr(row, name) for name in ("text", "session", "occurred_at", "source", "metadata")}
    return EncodeRequest.model_construct(**fields)


def _is_copy(project: str, row: Row) -> bool:
    return memory_id(project, _content(row)) != row.id


def _is_usual(row: Row, name: str) -> bool:
    return name in _USUAL and name != "created_at" and getattr(row, name) == _USUAL[name]

"""The other names under which HTTP callers know some fields, and what they become on the bus.

| verb   | theirs         | ours                                                      |
|--------|----------------|-----------------------------------------------------------|
| encode | `content`      | `text`                                                    |
| encode | `ttl_minutes`  | `ttl_s`, times 60                                         |
| encode | `deduplicate`  | `allow_duplicates`, the other way round                   |
| encode | `event_type`   | `metadata.event_type`, where the metadata has none itself |
| forget | `memory_id`    | `id`                                                      |

A field whose value is null was left out: clients in many languages write all they have. Everything else passes as it
is, and the verb refuses what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contracts.errors import ErrorCode, InvalidRequest

#: Far beyond what encode takes; what is larger is not even a number on the bus.
MOST_MINUTES = 1e12


def encode(value: dict[str, Any]) -> dict[str, Any]:
    """Raises InvalidRequest for a field that is given under both names, or is of another type."""
    request = _present(value)
    _rename(request, "content", "text")
    if "ttl_minutes" in request:
        minutes = request.pop("ttl_minutes")
        if isinstance(minutes, bool) or not isinstance(minutes, int | float):
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, "ttl_minutes: a number of minutes", field="ttl_minutes")
        if not abs(minutes) < MOST_MINUTES:
            raise InvalidRequest(ErrorCode.OUT_OF_RANGE, "ttl_minutes is out of range", field="ttl_minutes")
        _give(request, "ttl_minutes", "ttl_s", round(minutes * 60))
    if "deduplicate" in request:
        deduplicate = request.pop("deduplicate")
        if not isinstance(deduplicate, bool):
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, "deduplicate: true or false", field="deduplicate")
        _give(request, "deduplicate", "allow_duplicates", not deduplicate)
    if "event_type" in request and isinstance(request.get("metadata", {}), dict):
        event_type = request.pop("event_type")
        request["metadata"] = {"event_type": event_type} | request.get("metadata", {})
    return request


def forget(value: dict[str, Any]) -> dict[str, Any]:
    """Raises InvalidRequest for an id that is given under both names."""
    request = _present(value)
    _rename(request, "memory_id", "id")
    return request


def _present(value: dict[str, Any]) -> dict[str, Any]:
    return {name: given for name, given in value.items() if given is not None}


def _rename(request: dict[str, Any], theirs: str, ours: str) -> None:
    if theirs in request:
        _give(request, theirs, ours, request.pop(theirs))


def _give(request: dict[str, Any], theirs: str, ours: str, value: Any) -> None:
    if ours in request:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{theirs} and {ours} are the same: give one", field=theirs)
    request[ours] = value


OF_VERB: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"encode": encode, "forget": forget}
#: What the names above are, as JSON Schema properties.
PROPERTIES: dict[str, dict[str, Any]] = {
    "encode": {
        "content": {"type": "string", "description": "the same as text"},
        "ttl_minutes": {"type": "number", "description": "the same as ttl_s, in minutes"},
        "deduplicate": {"type": "boolean", "description": "the opposite of allow_duplicates"},
        "event_type": {"type": "string", "description": "kept in metadata"},
    },
    "forget": {"memory_id": {"type": "string", "description": "the same as id"}},
}

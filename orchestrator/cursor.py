"""Cursors of listings: the place in creation order where a page ended, bound to what was asked."""

from __future__ import annotations

import base64
import hashlib

import orjson
from pydantic import BaseModel

from contracts.catalog import Row
from contracts.errors import ErrorCode, InvalidRequest
from orchestrator.catalog import place_of

#: No memory is created later: the year 10000.
MOST_MS = 253_402_300_800_000
Place = tuple[int, str]  #: created in ms, id


def binding_of(request: BaseModel) -> str:
    """What a cursor is bound to: everything of its request but the page size and the cursor itself."""
    fields = request.model_dump(mode="json", exclude={"cursor", "limit"}) | {"request": type(request).__name__}
    return hashlib.sha256(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def seal(row: Row, binding: str) -> str:
    """The cursor of a page whose last row this is."""
    return base64.urlsafe_b64encode(orjson.dumps([binding, *place_of(row)])).decode()


def unseal(cursor: str, binding: str) -> Place:
    """Where the page before ended. Raises InvalidRequest (STALE_CURSOR)."""
    try:
        bound, created, memory_id = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
        place = (int(created), str(memory_id))
        if not 0 <= place[0] < MOST_MS:
            raise ValueError("no time")
    except (ValueError, TypeError):
        raise InvalidRequest(ErrorCode.STALE_CURSOR, "not a cursor of this service", field="cursor") from None
    if bound != binding:
        raise InvalidRequest(ErrorCode.STALE_CURSOR, "the cursor belongs to other filters", field="cursor")
    return place

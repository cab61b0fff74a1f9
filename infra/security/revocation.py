"""Telling a running server that an account's claims have changed."""

from __future__ import annotations

import nats
import nats.errors
import orjson

from contracts.access import AT_ONCE, Access
from contracts.errors import ErrorCode, Unavailable

TIMEOUT_S = 4.0
SUBJECT = "$SYS.REQ.CLAIMS.UPDATE"


async def tell(url: str, access: Access, token: str) -> None:
    """Returns once the server goes by the new claims. Raises Unavailable, also when it refuses them."""
    try:
        client = await nats.connect(url, **AT_ONCE, **access.options())
        try:
            answer = orjson.loads((await client.request(SUBJECT, token.encode(), timeout=TIMEOUT_S)).data)
        finally:
            await client.close()
    except (TimeoutError, OSError, nats.errors.Error) as error:
        raise Unavailable(ErrorCode.UNAVAILABLE, f"cannot tell NATS at {url}", reason=str(error)) from None
    if "error" in answer:
        raise Unavailable(ErrorCode.UNAVAILABLE, "the server refused the claims", reason=str(answer["error"]))

"""One connection to NATS for one client: made at once or not at all, and from then on kept."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio
import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import BaseModel

from contracts import wire
from contracts.access import AT_ONCE, Access
from contracts.base import MESSAGE_OVERHEAD
from contracts.errors import Denied, ErrorCode, InvalidRequest, MemlaneError, Unavailable
from contracts.retries import pause_s, repeatable, shortened
from contracts.waiting import Waiting

R = TypeVar("R")

#: Once there is a connection it is made again for ever; at first a wrong address is told at once instead.
_FOR_EVER: dict[str, Any] = {"allow_reconnect": True, "max_reconnect_attempts": -1, "reconnect_time_wait": 0.2}


class Link:
    """Requests and their answers, as bytes. `timeout_s` bounds one call with all its tries."""

    def __init__(
        self,
        url: str,
        access: Access,
        timeout_s: float,
        retries: int,
        headers: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        if retries < 0:
            raise InvalidRequest(ErrorCode.OUT_OF_RANGE, "retries must be at least 0", field="retries", ge=0)
        self._url, self._access, self._timeout_s, self._retries = url, access, timeout_s, retries
        self._headers = headers
        self._waiting = Waiting()
        self._connecting = anyio.Lock()
        self._client: Client | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def connection(self) -> Client:
        """The connection, made anew when it was closed for good. Raises Denied when the credential is refused, and
        Unavailable when NATS cannot be reached."""
        async with self._connecting:  # calls that come at once share one
            if self._client is None or self._client.is_closed:
                self._client = await self._connect()
            return self._client

    async def request(self, subject: str, request: BaseModel, verb: str, read: Callable[[Msg], R]) -> R:
        """What `read` makes of the answer, asked for again where that is safe and may help.

        Raises what `read` raises, Denied, PAYLOAD_TOO_LARGE, and Unavailable when nobody answered.
        """

        async def once(message: BaseModel, left_s: float) -> R:
            client, data = await self._outgoing(message)
            headers = dict(self._headers()) if self._headers else None
            try:
                with self._waiting.on(subject):
                    answer = await client.request(subject, data, timeout=left_s, headers=headers)
            except nats.errors.NoRespondersError:
                raise Unavailable(ErrorCode.UNAVAILABLE, f"nobody serves {verb}: is memlane up?", verb=verb) from None
            except (TimeoutError, nats.errors.Error) as error:
                kind = type(error).__name__
                raise Unavailable(ErrorCode.UNAVAILABLE, f"no answer to {verb} ({kind})", verb=verb) from None
            return read(answer)

        return await self._repeat(request, once)

    async def store(self, subject: str, request: BaseModel) -> None:
        """Put a message into the stream that takes this subject; returns once it has it. Raises as `request`."""

        async def once(message: BaseModel, left_s: float) -> None:
            client, data = await self._outgoing(message)
            try:
                with self._waiting.on(subject):
                    await client.jetstream().publish(subject, data, timeout=left_s)
            except (TimeoutError, nats.errors.Error) as error:
                raise Unavailable(ErrorCode.UNAVAILABLE, "the ingest queue did not answer", reason=str(error)) from None

        await self._repeat(request, once)

    async def _repeat(self, request: BaseModel, attempt: Callable[[BaseModel, float], Awaitable[R]]) -> R:
        """What an attempt gives, given the request and the seconds left for it. Further ones begin within the request's
        own deadline, where it has one, and ask for no more than is left of it."""
        again = repeatable(request) if self._retries else None
        first, started = again or request, time.monotonic()
        wanted_s = min(self._timeout_s, getattr(request, "deadline_ms", math.inf) / 1000)
        failed = 0
        while True:
            passed = time.monotonic() - started
            try:
                message = shortened(first, wanted_s - passed) if failed else first
                return await attempt(message, self._timeout_s - passed)
            except MemlaneError as error:
                failed += 1
                wait = None if again is None or failed > self._retries else pause_s(failed, error, random.random)
                if wait is None or time.monotonic() + wait >= started + wanted_s:
                    raise
            await anyio.sleep(wait)

    async def _outgoing(self, request: BaseModel) -> tuple[Client, bytes]:
        client, data = await self.connection(), wire.encode_request(request)
        limit = client.max_payload - MESSAGE_OVERHEAD
        if len(data) > limit:
            raise InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, f"the request is {len(data)} bytes", limit=limit)
        return client, data

    async def _connect(self) -> Client:
        options = {"error_cb": self._waiting.hear, "disconnected_cb": self._waiting.lost, **self._access.options()}
        try:
            client = await nats.connect(self._url, **AT_ONCE, **options)
        except (TimeoutError, nats.errors.Error, OSError) as error:
            if "authorization violation" in str(error).lower():
                raise Denied(ErrorCode.NOT_PERMITTED, f"NATS at {self._url} refuses the credential") from None
            raise Unavailable(
                ErrorCode.UNAVAILABLE, f"cannot reach NATS at {self._url}: is memlane up?", reason=str(error)
            ) from None
        client.options.update(_FOR_EVER)
        return client

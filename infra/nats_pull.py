"""A pull consumer that hands messages on as they arrive.

The library's `fetch` waits for a whole batch or its time-out, and a fetch in flight across a server restart is lost
without a sign (nats.py issue 504). Here one request stays open with a heartbeat; silence means: ask again.
"""

from __future__ import annotations

from typing import Any

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

EXPIRES_S = 5.0
HEARTBEAT_S = 0.5
SILENCE_S = 1.25


class ConsumerGone(Exception):
    """The consumer was deleted or lost; make it again."""


class PullConsumer:
    """Messages of one existing pull consumer. Never holds more than two batches that nobody took."""

    def __init__(self, client: Client, stream: str, consumer: str, batch: int) -> None:
        self._client, self._batch = client, batch
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = client.new_inbox()
        self._open = 0  # messages the server may still send on the present request
        send, receive = anyio.create_memory_object_stream[Msg](batch * 2 + 64)
        self._send: MemoryObjectSendStream[Msg] = send
        self._receive: MemoryObjectReceiveStream[Msg] = receive
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        async def hand_over(message: Msg) -> None:
            await self._send.send(message)

        self._subscription = await self._client.subscribe(self._inbox, cb=hand_over)

    async def stop(self) -> None:
        if self._subscription and not self._client.is_closed:
            await self._subscription.unsubscribe()
        self._send.close()
        self._receive.close()

    async def next(self, most: int, wait_s: float) -> list[Msg]:
        """Up to `most` messages: as soon as there is one, all that have arrived. Empty after `wait_s` without any.

        Raises ConsumerGone.
        """
        messages: list[Msg] = []
        with anyio.move_on_after(wait_s):
            while not messages:
                await self._ask()
                first = await self._take(min(SILENCE_S, wait_s))
                if first is not None:
                    messages.append(first)
        while len(messages) < most:
            try:
                message = self._receive.receive_nowait()
            except anyio.WouldBlock:
                break
            if self._is_message(message):
                messages.append(message)
        return messages

    async def _ask(self) -> None:
        if self._open > 0:
            return
        request: dict[str, Any] = {
            "batch": self._batch,
            "expires": int(EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        self._open = self._batch
        await self._client.publish(self._subject, orjson.dumps(request), reply=self._inbox)

    async def _take(self, wait_s: float) -> Msg | None:
        message = None
        with anyio.move_on_after(wait_s) as scope:
            message = await self._receive.receive()
        if message is None:
            if scope.cancelled_caught and wait_s >= SILENCE_S:
                self._open = 0  # not even a heartbeat: the request is lost
            return None
        return message if self._is_message(message) else None

    def _is_message(self, message: Msg) -> bool:
        status = (message.headers or {}).get("Status") if not message.data else None
        if status is None:
            self._open -= 1
            return True
        if status == "100":
            return False
        self._open = 0
        description = (message.headers or {}).get("Description", "").lower()
        if status == "409" and ("deleted" in description or "not found" in description):
            raise ConsumerGone(description)
        if status == "503":
            raise ConsumerGone("no responders")
        return False

"""The stream of uses over JetStream: one message a reply."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import Error as JetStreamError

from contracts import subjects, wire
from contracts.base import Position
from contracts.errors import ErrorCode, Garbled, Unavailable
from contracts.query import Use
from contracts.stores import Told, UseBatch
from infra.nats_follow import follow_stream

logger = structlog.get_logger()

TIMEOUT_S = 5.0


class StreamUses:
    """`contracts.stores.Uses` over the stream MEMLANE_USAGE."""

    def __init__(self, client: Client) -> None:
        self._client, self._js = client, client.jetstream(timeout=TIMEOUT_S)

    async def tell(self, project: str, use: Use, once: str | None = None) -> bool:
        # a request id may hold what no header can; the stream knows message ids, not projects
        mark = hashlib.sha256(f"{project}\n{once}".encode()).hexdigest()
        headers = {"Nats-Msg-Id": mark} if once is not None else None
        try:
            ack = await self._js.publish(
                subjects.used(project), wire.encode(use), stream=subjects.USAGE_STREAM, headers=headers
            )
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise Unavailable(
                ErrorCode.UNAVAILABLE, "the stream of uses did not acknowledge", reason=str(error)
            ) from None
        return not ack.duplicate

    async def follow(self, durable: str, after: Position) -> AsyncIterator[UseBatch]:
        async for messages, _ in follow_stream(
            self._client, subjects.USAGE_STREAM, subjects.USAGE_SUBJECTS, durable, after
        ):
            if messages:
                yield UseBatch(_told(messages), messages[-1].ack)


def _told(messages: list[Msg]) -> list[Told]:
    told = []
    for message in messages:
        position = message.metadata.sequence.stream
        try:
            use = wire.decode_stored(Use, message.data)
        except Garbled as error:
            logger.error("unreadable use skipped", action="skip_use", position=position, error=error.message)
            continue
        told.append(Told(position, subjects.project_of(message.subject), use))
    return told

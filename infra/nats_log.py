"""The log over JetStream: append with an expectation, read back, follow without gaps, erase."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError

from contracts import subjects, wire
from contracts.base import MemoryId, Position
from contracts.errors import ErrorCode, Garbled, Unavailable
from contracts.memory import MemoryRecord
from contracts.ports import Batch, Entry, WrongPosition
from contracts.shards import WHOLE, Shard
from infra.nats_append import WRONG_LAST_SEQUENCE, append, expecting
from infra.nats_bus import NatsBus
from infra.nats_follow import follow_stream

logger = structlog.get_logger()

ACK_TIMEOUT_S = 5.0


class JetStreamLog:
    """`contracts.ports.Log` over the stream MEMLANE_LOG."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream(timeout=ACK_TIMEOUT_S)
        self._bus = NatsBus(client)

    async def append(self, record: MemoryRecord, expected: Position) -> Position:
        subject, data, headers = self._message(record, expected)
        return await append(self._js, subjects.LOG_STREAM, "the log", subject, data, headers)

    async def append_all(self, records: Sequence[tuple[MemoryRecord, Position]]) -> Position:
        """One atomic batch: the server holds the messages back until the last one, and checks them all then."""
        batch = uuid.uuid4().hex
        messages = [self._message(record, expected) for record, expected in records]
        try:
            for number, (subject, data, headers) in enumerate(messages, 1):
                headers |= {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
                if number < len(messages):
                    await self._client.publish(subject, data, headers=headers)
            reply = await self._client.request(
                subject, data, timeout=ACK_TIMEOUT_S, headers=headers | {"Nats-Batch-Commit": "1"}
            )
        except (TimeoutError, nats.errors.Error) as error:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the log did not acknowledge", reason=str(error)) from None
        answer = orjson.loads(reply.data)
        if refusal := answer.get("error"):
            if refusal.get("err_code") == WRONG_LAST_SEQUENCE:
                raise WrongPosition
            raise Unavailable(ErrorCode.UNAVAILABLE, "the log refused the batch", reason=refusal.get("description"))
        return int(answer["seq"])

    async def last(self, project: str, memory_id: MemoryId) -> Entry | None:
        message = await self._get(subject=subjects.log(project, memory_id))
        return None if message is None else (message.seq or 0, _record(message.data or b""))

    async def history(self, project: str, memory_id: MemoryId) -> list[Entry]:
        entries: list[Entry] = []
        after = 0
        while True:
            message = await self._get(subject=subjects.log(project, memory_id), seq=after + 1, next=True)
            if message is None or not message.seq:
                return entries
            after = message.seq
            entries.append((after, _record(message.data or b"")))

    async def end(self, project: str, shard: Shard = WHOLE) -> Position:
        message = await self._get(subject=subjects.logs(project, shard))
        return 0 if message is None else message.seq or 0

    async def erase(self, project: str, memory_id: MemoryId, before: Position) -> None:
        for position, _ in await self.history(project, memory_id):
            if position < before:  # message by message: this form overwrites the bytes on disk, a purge does not
                await self._js.delete_msg(subjects.LOG_STREAM, position)

    async def follow(self, durable: str, shard: Shard, after: Position) -> AsyncIterator[Batch]:
        subject = subjects.logs("*", shard)
        async for messages, pending in follow_stream(self._client, subjects.LOG_STREAM, subject, durable, after):
            yield _batch(messages, pending)

    async def _get(self, **query: Any) -> api.RawStreamMsg | None:
        """One message, read from the stream's leader: a replica may be behind, and a reader of its own write not."""
        try:
            return await self._js.get_msg(subjects.LOG_STREAM, **query)
        except NotFoundError:
            return None
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the log did not answer", reason=str(error)) from None

    def _message(self, record: MemoryRecord, expected: Position) -> tuple[str, bytes, dict[str, str]]:
        """Subject, body and headers of a record. Raises InvalidRequest (PAYLOAD_TOO_LARGE)."""
        data = wire.encode(record)
        headers = expecting(self._bus, data, expected)
        return subjects.log(record.project, record.id), data, headers


def _record(data: bytes) -> MemoryRecord:
    return wire.decode_stored(MemoryRecord, data)


def _batch(messages: list[Msg], pending: int) -> Batch:
    entries: list[Entry] = []
    for message in messages:
        try:
            entries.append((message.metadata.sequence.stream, _record(message.data)))
        except Garbled as error:
            logger.error(
                "unreadable record skipped",
                action="skip_record",
                subject=message.subject,
                position=message.metadata.sequence.stream,
                error=error.message,
                field=error.details.get("field"),
            )

    async def ack() -> None:
        if messages:
            await messages[-1].ack()

    return Batch(entries, ack, pending, messages[-1].metadata.sequence.stream if messages else 0)

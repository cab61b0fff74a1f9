"""The log over JetStream: append with an expectation, read back, follow without gaps, erase."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError
from nats.js.errors import Error as JetStreamError
from pydantic import ValidationError

from contracts import subjects, wire
from contracts.base import MemoryId, Position
from contracts.errors import ErrorCode, InvalidRequest, Unavailable
from contracts.memory import MemoryRecord, shard_of
from contracts.ports import Batch, Entry, PayloadTooLarge, WrongPosition
from infra.nats_bus import NatsBus
from infra.nats_pull import ConsumerGone, PullConsumer
from infra.settings import Log as LogSettings

logger = structlog.get_logger()

WRONG_LAST_SEQUENCE = 10071
BATCH = 256
ACK_TIMEOUT_S = 5.0
IDLE_S = 1.0


class _Gap(Exception):
    """The consumer's count jumped: something was lost on the way."""


class JetStreamLog:
    """`contracts.ports.Log` over the stream MEMLANE_LOG."""

    def __init__(self, client: Client, settings: LogSettings) -> None:
        self._client, self._settings = client, settings
        self._js = client.jetstream(timeout=ACK_TIMEOUT_S)
        self._bus = NatsBus(client)

    async def append(self, record: MemoryRecord, expected: Position) -> Position:
        subject, data, headers = self._message(record, expected)
        try:
            ack = await self._js.publish(subject, data, stream=subjects.LOG_STREAM, headers=headers)
        except APIError as error:
            if error.err_code == WRONG_LAST_SEQUENCE:
                raise WrongPosition from None
            raise Unavailable(ErrorCode.UNAVAILABLE, "the log refused the record", reason=error.description) from None
        except (TimeoutError, nats.errors.Error, NoStreamResponseError) as error:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the log did not acknowledge", reason=str(error)) from None
        return ack.seq

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
        message = await self._get(subject=self._subject(project, memory_id))
        return None if message is None else (message.seq or 0, _record(message.data or b""))

    async def history(self, project: str, memory_id: MemoryId) -> list[Entry]:
        entries: list[Entry] = []
        after = 0
        while True:
            message = await self._get(subject=self._subject(project, memory_id), seq=after + 1, next=True)
            if message is None or not message.seq:
                return entries
            after = message.seq
            entries.append((after, _record(message.data or b"")))

    async def end(self, project: str, shard: int | None) -> Position:
        message = await self._get(subject=subjects.log(project, "*" if shard is None else shard, "*"))
        return 0 if message is None else message.seq or 0

    async def erase(self, project: str, memory_id: MemoryId, before: Position) -> None:
        for position, _ in await self.history(project, memory_id):
            if position < before:  # message by message: this form overwrites the bytes on disk, a purge does not
                await self._js.delete_msg(subjects.LOG_STREAM, position)

    async def follow(self, durable: str, shard: int | None, after: Position) -> AsyncIterator[Batch]:
        position = after
        while True:
            try:
                async for batch in self._follow_once(durable, shard, position):
                    yield batch
                    if batch.entries:
                        position = batch.entries[-1][0]
            except (TimeoutError, _Gap, ConsumerGone, JetStreamError, nats.errors.Error) as error:
                logger.warning(
                    "following again",
                    action="follow_again",
                    durable=durable,
                    position=position,
                    kind=type(error).__name__,
                    error=str(error),
                )
                await anyio.sleep(0.25)

    async def _follow_once(self, durable: str, shard: int | None, after: Position) -> AsyncIterator[Batch]:
        pending = await self._make_consumer(durable, shard, after)
        if pending == 0:
            yield Batch((), _nothing)
        pull = PullConsumer(self._client, subjects.LOG_STREAM, durable, BATCH)
        await pull.start()
        delivered = 0
        try:
            while True:
                messages = await pull.next(BATCH, IDLE_S * 5)
                if not messages:
                    continue
                for message in messages:
                    sequence = message.metadata.sequence.consumer
                    if sequence != delivered + 1:
                        raise _Gap(f"delivery {sequence} after {delivered}")
                    delivered = sequence
                yield _batch(messages)
        finally:
            with anyio.CancelScope(shield=True):
                await pull.stop()

    async def _make_consumer(self, durable: str, shard: int | None, after: Position) -> int:
        """Make the durable anew at the index's own position: that, not the server's count, says what is applied."""
        try:
            await self._js.delete_consumer(subjects.LOG_STREAM, durable)
        except NotFoundError:
            pass
        config = api.ConsumerConfig(
            durable_name=durable,
            filter_subject=subjects.log("*", "*" if shard is None else shard, "*"),
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=api.AckPolicy.ALL,
            ack_wait=60,
            max_ack_pending=BATCH * 8,
            inactive_threshold=7 * 86400,
        )
        info = await self._js.add_consumer(subjects.LOG_STREAM, config)
        return info.num_pending or 0

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
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        data = wire.encode(record)
        try:
            self._bus.check_size(data, headers)
        except PayloadTooLarge as error:
            raise InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, f"the memory is too large: {error}") from None
        return subjects.log(record.project, record.shard, record.id), data, headers

    def _subject(self, project: str, memory_id: MemoryId) -> str:
        return subjects.log(project, shard_of(memory_id, self._settings.shards), memory_id)


def _record(data: bytes) -> MemoryRecord:
    return MemoryRecord.model_validate_json(data)


async def _nothing() -> None:
    return None


def _batch(messages: list[Msg]) -> Batch:
    entries: list[Entry] = []
    for message in messages:
        try:
            entries.append((message.metadata.sequence.stream, _record(message.data)))
        except ValidationError as error:
            logger.error(
                "unreadable record skipped",
                action="skip_record",
                subject=message.subject,
                position=message.metadata.sequence.stream,
                problems=error.error_count(),
            )

    async def ack() -> None:
        await messages[-1].ack()

    return Batch(entries, ack, messages[-1].metadata.num_pending)

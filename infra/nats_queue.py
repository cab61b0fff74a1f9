"""The ingest work-queue, its dead letters, and the table of request ids: over JetStream and its key-value store."""

from __future__ import annotations

import asyncio
import hashlib

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyWrongLastSequenceError
from nats.js.kv import KeyValue

from contracts import subjects
from contracts.addressing import NO_PROJECT, addressed
from contracts.errors import ErrorCode, InvalidRequest, Unavailable
from contracts.ports import IngestMessage
from infra.nats_bus import header_text
from infra.nats_pull import ConsumerGone, PullConsumer

BATCH = 128
ACK_WAIT_S = 30.0


class JetStreamIngest:
    """`contracts.ports.IngestQueue` over the work-queue stream MEMLANE_INGEST; all encode workers share one durable."""

    def __init__(self, client: Client, ack_wait_s: float = ACK_WAIT_S, default_project: str = "default") -> None:
        """`default_project` is that of messages that name none."""
        self._client, self._ack_wait_s, self._default_project = client, ack_wait_s, default_project
        self._js = client.jetstream()
        self._pull: PullConsumer | None = None

    async def pull(self, most: int) -> list[IngestMessage]:
        try:
            if self._pull is None:
                await self._bind()
            assert self._pull is not None
            messages = await self._pull.next(most, 1.5)
        except (TimeoutError, ConsumerGone, nats.errors.Error, JetStreamError):
            await self.close()
            await asyncio.sleep(0.25)
            return []
        return [_ingest_message(message, self._default_project) for message in messages]

    async def dead_letter(self, message: IngestMessage, code: str, reason: str) -> None:
        headers = {"Memlane-Error": code, "Memlane-Reason": header_text(reason, 512)}
        await self._js.publish(subjects.dead_letter(message.project), message.data, headers=headers)
        await message.ack()

    async def _bind(self) -> None:
        config = api.ConsumerConfig(
            durable_name=subjects.INGEST_DURABLE,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self._ack_wait_s,
            max_ack_pending=BATCH * 16,
        )
        await self._js.add_consumer(subjects.INGEST_STREAM, config)
        self._pull = PullConsumer(self._client, subjects.INGEST_STREAM, subjects.INGEST_DURABLE, BATCH)
        await self._pull.start()

    async def close(self) -> None:
        if self._pull is not None:
            await self._pull.stop()
            self._pull = None


def _ingest_message(message: Msg, default_project: str) -> IngestMessage:
    try:
        subject = addressed(message.subject, message.headers or {}, default_project)
    except InvalidRequest:
        subject = subjects.ingest(NO_PROJECT)  # no project either, so that it ends in the dead letters as such

    async def ack() -> None:
        await message.ack_sync()

    async def retry(delay_s: float) -> None:
        await message.nak(delay=delay_s)

    async def extend() -> None:
        await message.in_progress()

    return IngestMessage(
        project=subjects.project_of(subject),
        data=message.data,
        deliveries=message.metadata.num_delivered or 1,
        ack=ack,
        retry=retry,
        extend=extend,
    )


class KvRequestIds:
    """`contracts.stores.RequestIds` over a key-value bucket. Keys are hashes: a request id may hold any character."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()
        self._bucket: KeyValue | None = None

    async def claim(self, project: str, request_id: str, digest: str) -> str:
        key = f"{project}.{hashlib.sha256(request_id.encode()).hexdigest()[:40]}"
        try:
            if self._bucket is None:
                self._bucket = await self._js.key_value(subjects.REQUESTS_BUCKET)
            try:
                await self._bucket.create(key, digest.encode())
            except KeyWrongLastSequenceError:
                entry = await self._bucket.get(key)
                return (entry.value or b"").decode("ascii", "replace")
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the request table did not answer", reason=str(error)) from None
        return digest

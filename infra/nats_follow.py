"""Following a stream from a position: in order, without gaps, through restarts of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError

from contracts.base import Position
from infra.nats_pull import ConsumerGone, PullConsumer

logger = structlog.get_logger()

BATCH = 256
IDLE_S = 1.0


class _Gap(Exception):
    """The consumer's count jumped: something was lost on the way."""


async def follow_stream(
    client: Client, stream: str, subject: str, durable: str, after: Position
) -> AsyncIterator[tuple[list[Msg], int]]:
    """Messages of a subject above a position, and how many are behind them, for ever. What was lost under way is asked
    for again. No messages and 0 say, at first, that nothing is pending."""
    position = after
    while True:
        try:
            async for messages, pending in _follow_once(client, stream, subject, durable, position):
                yield messages, pending
                if messages:
                    position = messages[-1].metadata.sequence.stream
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


async def _follow_once(
    client: Client, stream: str, subject: str, durable: str, after: Position
) -> AsyncIterator[tuple[list[Msg], int]]:
    if await _make_consumer(client, stream, subject, durable, after) == 0:
        yield [], 0
    pull = PullConsumer(client, stream, durable, BATCH)
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
            yield messages, messages[-1].metadata.num_pending
    finally:
        with anyio.CancelScope(shield=True):
            await pull.stop()


async def _make_consumer(client: Client, stream: str, subject: str, durable: str, after: Position) -> int:
    """Make the durable anew at the index's own position: that, not the server's count, says what is applied."""
    js = client.jetstream(timeout=5)
    try:
        await js.delete_consumer(stream, durable)
    except NotFoundError:
        pass
    config = api.ConsumerConfig(
        durable_name=durable,
        filter_subject=subject,
        deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=api.AckPolicy.ALL,
        ack_wait=60,
        max_ack_pending=BATCH * 8,
        inactive_threshold=7 * 86400,
    )
    info = await js.add_consumer(stream, config)
    return info.num_pending or 0

"""What open transactions have pending, over a stream with one subject a transaction."""

from __future__ import annotations

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError

from contracts import subjects, wire
from contracts.base import Position
from contracts.errors import ErrorCode, Unavailable
from contracts.txn import Step
from infra.nats_append import append, expecting
from infra.nats_bus import NatsBus

TIMEOUT_S = 5.0
#: Status of the message that ends a batch of a direct get.
END_OF_BATCH = "204"
BATCH = 256


class StreamTransactions:
    """`contracts.stores.Transactions` over the stream MEMLANE_TXN."""

    def __init__(self, client: Client) -> None:
        self._client, self._bus = client, NatsBus(client)
        self._js = client.jetstream(timeout=TIMEOUT_S)

    async def last(self, project: str, txn_id: str) -> tuple[Position, Step] | None:
        try:
            message = await self._js.get_msg(subjects.TXN_STREAM, subject=subjects.txn(project, txn_id))
        except NotFoundError:
            return None
        except (TimeoutError, NatsError, JetStreamError) as error:
            raise _away(error) from None
        return message.seq or 0, wire.decode_stored(Step, message.data)

    async def append(self, project: str, txn_id: str, step: Step, expected: Position) -> Position:
        data = wire.encode(step)
        headers = expecting(self._bus, data, expected)
        subject = subjects.txn(project, txn_id)
        return await append(self._js, subjects.TXN_STREAM, "the transactions' stream", subject, data, headers)

    async def steps(self, project: str, txn_id: str) -> list[Step]:
        """Read in batches of one request each, from the last one back to none."""
        steps: list[Step] = []
        after = 0
        try:
            while True:
                messages, more = await self._batch(subjects.txn(project, txn_id), after + 1)
                steps += [wire.decode_stored(Step, message.data) for message in messages]
                if not more:
                    return steps
                after = int((messages[-1].headers or {})["Nats-Sequence"])
        except (TimeoutError, NatsError) as error:
            raise _away(error) from None

    async def clear(self, project: str, txn_id: str) -> None:
        await self._js.purge_stream(subjects.TXN_STREAM, subject=subjects.txn(project, txn_id), keep=1)

    async def _batch(self, subject: str, start: Position) -> tuple[list[Msg], bool]:
        """Up to BATCH messages of a subject, and whether there are more behind them."""
        inbox = self._client.new_inbox()
        replies = await self._client.subscribe(inbox)
        messages: list[Msg] = []
        try:
            query = orjson.dumps({"batch": BATCH, "seq": start, "next_by_subj": subject})
            await self._client.publish(f"$JS.API.DIRECT.GET.{subjects.TXN_STREAM}", query, reply=inbox)
            while True:
                message = await replies.next_msg(TIMEOUT_S)
                headers = message.headers or {}
                status = headers.get("Status")
                if status is None:
                    messages.append(message)
                elif status == END_OF_BATCH:
                    return messages, int(headers.get("Nats-Num-Pending", 0)) > 0
                elif status == "404":
                    return messages, False
                else:
                    raise NatsError(f"status {status} {headers.get('Description', '')}")
        finally:
            await replies.unsubscribe()


def _away(error: BaseException) -> Unavailable:
    return Unavailable(ErrorCode.UNAVAILABLE, "the transactions' stream did not answer", reason=str(error))

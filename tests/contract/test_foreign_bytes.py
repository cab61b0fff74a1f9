"""What somebody else wrote into our streams and buckets: an error of ours to who asks for it, skipped where we follow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nats.aio.client import Client

from contracts import subjects
from contracts.base import now
from contracts.errors import Garbled, MemlaneError
from contracts.memory import MemoryRecord, derive_id
from contracts.query import SessionState
from contracts.shards import WHOLE
from infra.nats_ledger import KvLedger
from infra.nats_log import JetStreamLog
from infra.nats_queue import JetStreamIngest, KvRequestIds
from infra.nats_schemas import KvSchemas
from infra.nats_sessions import KvSessions, _key
from infra.nats_txns import StreamTransactions

FOREIGN = [
    b"",
    b"\xff\xfe",
    b"{",
    b"null",
    b"[]",
    b"{}",
    b'{"id": 7}',
    b'{"v": 2}',
    b'{"error": {"code": "OVERLOADED"}}',
]


@pytest.mark.parametrize("data", FOREIGN)
async def test_the_log(client: Client, data: bytes) -> None:
    memory = derive_id("foreign", data.hex())
    await client.jetstream().publish(subjects.log("p", memory), data)
    log = JetStreamLog(client)
    for read in (log.last, log.history):
        with pytest.raises(Garbled):
            await read("p", memory)


async def test_who_follows_the_log_goes_on(client: Client) -> None:
    log, js = JetStreamLog(client), client.jetstream()
    before = await log.end("follow")
    for data in FOREIGN:
        await js.publish(subjects.log("follow", derive_id("before")), data)
    good = MemoryRecord(id=derive_id("good"), project="follow", text="a", created_at=now(), changed_at=now())
    position = await log.append(good, 0)
    async for batch in log.follow("foreign-a", WHOLE, before):
        mine = [record for _, record in batch.entries if record.project == "follow"]
        if batch.last >= position:
            break
    assert mine == [good]


@pytest.mark.parametrize("data", FOREIGN)
async def test_transactions(client: Client, data: bytes) -> None:
    await client.jetstream().publish(subjects.txn("p", f"t{data.hex()}"), data)
    transactions = StreamTransactions(client)
    for read in (transactions.last, transactions.steps):
        with pytest.raises(Garbled):
            await read("p", f"t{data.hex()}")


@pytest.mark.parametrize("data", [one for one in FOREIGN if one not in (b"", b"{}", b'{"id": 7}', b'{"v": 2}')])
async def test_buckets(client: Client, data: bytes) -> None:
    js, tomorrow = client.jetstream(), now() + timedelta(days=1)
    await js.publish(f"$KV.{subjects.LEDGER_BUCKET}.p.{tomorrow.date().isoformat()}", data)
    async with KvLedger(client) as ledger:
        with pytest.raises(Garbled):
            await ledger.read("p", tomorrow.date())
    await js.publish(f"$KV.{subjects.SESSIONS_BUCKET}.{_key('p', 's')}", data)
    if not data.startswith(b'{"'):
        assert await KvSessions(client).read("p", "s") == SessionState()  # a session that is lost is a new one
    await js.publish(f"$KV.{subjects.SCHEMAS_BUCKET}.p", data)
    if not data.startswith(b'{"'):
        with pytest.raises(Garbled):
            await KvSchemas(client).read("p")


async def test_the_table_of_request_ids(client: Client) -> None:
    ids = KvRequestIds(client)
    assert await ids.claim("p", "r", "mine") == "mine"
    [key] = await (await client.jetstream().key_value(subjects.REQUESTS_BUCKET)).keys()
    await client.jetstream().publish(f"$KV.{subjects.REQUESTS_BUCKET}.{key}", b"\xff\xfe")
    assert await ids.claim("p", "r", "mine") != "mine"  # a conflict, which the caller is told


async def test_a_reason_with_lines_stays_one_header(client: Client) -> None:
    js = client.jetstream()
    await js.publish(subjects.ingest("p"), b"x")
    queue = JetStreamIngest(client)
    try:
        [message] = await queue.pull(1)
        await queue.dead_letter(message, "UNKNOWN_FIELD", "unknown field 'a\r\nX-Other: b\r\n\r\nbody'")
    finally:
        await queue.close()
    letter = await js.get_last_msg(subjects.DLQ_STREAM, subjects.dead_letter("p"))
    assert letter.data == b"x"
    assert set(letter.headers or {}) == {"Memlane-Error", "Memlane-Reason"}
    assert (letter.headers or {})["Memlane-Reason"] == "unknown field 'a  X-Other: b    body'"


def test_garbage_is_an_error_of_ours() -> None:
    assert issubclass(Garbled, MemlaneError)
    assert issubclass(Garbled, ValueError)

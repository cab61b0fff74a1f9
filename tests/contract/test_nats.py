"""The bus and the ingest queue on a real NATS server: the faults of the link that clients have met."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import subjects
from contracts.client import MemoryClient
from contracts.errors import ErrorCode, Unavailable
from contracts.memory import MemoryRecord, derive_id
from contracts.ports import IngestMessage, NoReply, NoResponders, PayloadTooLarge
from infra.nats_bus import NatsBus, faults_of
from infra.nats_queue import JetStreamIngest
from infra.nats_server import NatsServer
from workers.encode import worker as worker_module
from workers.encode.pipeline import Draft
from workers.encode.reclaim import Reclaimer
from workers.encode.worker import EncodeWorker

ACK_WAIT_S = 1.0


class TestBus:
    async def test_nobody_listens_is_told_at_once_and_silence_at_the_deadline(self, client: Client) -> None:
        bus = NatsBus(client)
        with pytest.raises(NoResponders), anyio.fail_after(1):
            await bus.request("nobody.there", b"", 30)

        async def silent(_: Msg) -> None:
            return

        await client.subscribe("somebody.silent", cb=silent)
        with pytest.raises(NoReply):
            await bus.request("somebody.silent", b"", 0.05)

    async def test_headers_count_and_the_link_stays(self, client: Client) -> None:
        """A body that fits and headers that take it over the limit: the server would cut the link for good."""
        bus, headers = NatsBus(client), {"Long": "x" * 4096}
        body = b"x" * (client.max_payload - 2048)
        bus.check_size(body[:-2048])
        with pytest.raises(PayloadTooLarge):
            bus.check_size(body, headers)
        assert client.is_connected

    async def test_a_slow_consumer_is_counted(self, client: Client) -> None:
        async def slow(_: Msg) -> None:
            await anyio.sleep(0.2)

        await client.subscribe("burst", cb=slow, pending_msgs_limit=10)
        for _ in range(200):
            await client.publish("burst", b"x")
        await client.flush()
        with anyio.fail_after(5):
            while not faults_of(client).get("SlowConsumerError"):
                await anyio.sleep(0.02)
        assert faults_of(client)["SlowConsumerError"] > 100


async def test_a_client_that_was_closed_for_good_connects_again(server: NatsServer) -> None:
    async with MemoryClient(server.url, project="p", timeout_s=1) as memory:
        first = await memory.connection()
        await first.close()
        with pytest.raises(Unavailable) as caught:  # nobody serves here, which is told over a new link
            await memory.recall("anything")
        assert caught.value.code is ErrorCode.UNAVAILABLE
        assert await memory.connection() is not first


class SlowPipeline:
    """Builds a record in twice the time after which the queue gives a message to another."""

    def __init__(self) -> None:
        self.built: list[str] = []

    async def build(self, drafts: list[Draft], _: float) -> list[MemoryRecord]:
        self.built.extend(draft.request.text for draft in drafts)
        await anyio.sleep(2 * ACK_WAIT_S)
        return [MemoryRecord.model_construct(id=derive_id(draft.request.text)) for draft in drafts]


class NoWriter:
    def __init__(self) -> None:
        self.stored: list[str] = []

    async def store(self, record: MemoryRecord) -> None:
        self.stored.append(record.id)


class TestIngest:
    @pytest.fixture
    async def queue(self, client: Client) -> AsyncIterator[JetStreamIngest]:
        queue = JetStreamIngest(client, ACK_WAIT_S)
        yield queue
        await queue.close()
        js = client.jetstream()
        await js.delete_consumer(subjects.INGEST_STREAM, subjects.INGEST_DURABLE)
        for stream in (subjects.INGEST_STREAM, subjects.DLQ_STREAM):
            await js.purge_stream(stream)

    async def test_slow_work_is_not_given_to_another(
        self, client: Client, queue: JetStreamIngest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(worker_module, "HOLD_EVERY_S", ACK_WAIT_S / 4)
        pipeline, writer = SlowPipeline(), NoWriter()
        worker = EncodeWorker(pipeline, writer, None, queue, Reclaimer(NatsBus(client), writer, 1, 3600))  # type: ignore[arg-type]
        await client.jetstream().publish(subjects.ingest("p"), b'{"text": "slow"}')
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run, lambda: None)
            with anyio.fail_after(20):
                while not writer.stored:
                    await anyio.sleep(0.05)
            await anyio.sleep(1.5 * ACK_WAIT_S)
            tasks.cancel_scope.cancel()
        assert pipeline.built == ["slow"]
        assert writer.stored == [derive_id("slow")]
        info = await client.jetstream().stream_info(subjects.INGEST_STREAM)
        assert info.state.messages == 0

    async def test_unheld_work_is_given_to_another(self, client: Client, queue: JetStreamIngest) -> None:
        """What the test above would see, if nothing were held."""
        await client.jetstream().publish(subjects.ingest("p"), b"{}")
        [first] = await pulled(queue)
        [again] = await pulled(queue)
        assert (first.deliveries, again.deliveries) == (1, 2)

    async def test_a_message_that_takes_its_workers_down_is_buried(
        self, client: Client, queue: JetStreamIngest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(worker_module, "MOST_LOST_DELIVERIES", 1)
        writer = NoWriter()
        worker = EncodeWorker(SlowPipeline(), writer, None, queue, Reclaimer(NatsBus(client), writer, 1, 3600))  # type: ignore[arg-type]
        await client.jetstream().publish(subjects.ingest("p"), b'{"text": "deadly"}')
        await pulled(queue)  # a worker that dies with it in hand
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run, lambda: None)
            with anyio.fail_after(20):
                while not worker.stats()["dead_letters"]:
                    await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
        letter = await client.jetstream().get_last_msg(subjects.DLQ_STREAM, subjects.dead_letter("p"))
        assert (letter.data, (letter.headers or {})["Memlane-Error"]) == (b'{"text": "deadly"}', "INTERNAL")
        assert writer.stored == []


async def pulled(queue: JetStreamIngest) -> list[IngestMessage]:
    with anyio.fail_after(10):
        while not (messages := await queue.pull(8)):
            pass
    return messages

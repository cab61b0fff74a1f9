"""The encode role: verbs encode, forget, link and unlink, and the ingest queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import anyio
import structlog

from contracts import subjects, watch, wire
from contracts.edges import LinkRequest, UnlinkRequest
from contracts.encode import EncodeRequest, ForgetRequest, RestoreRequest
from contracts.errors import ErrorCode, Exhausted, InvalidRequest, MemlaneError
from contracts.memory import MemoryRecord
from contracts.ports import Call, Endpoint, IngestMessage, IngestQueue
from contracts.stores import Meter
from contracts.txn import BeginRequest, EndRequest
from contracts.usage import Admission
from workers.encode.pipeline import Draft, EncodePipeline
from workers.encode.reclaim import Reclaimer
from workers.encode.summaries import Summaries
from workers.encode.tariff import CHARGE, TARIFFS
from workers.encode.transactions import Transactor
from workers.encode.writer import MemoryWriter

logger = structlog.get_logger()

ENCODE_TIMEOUT_S = 10.0
INGEST_TIMEOUT_S = 25.0
INGEST_BATCH = 64
#: Deliveries after which a message that keeps failing is poison.
MOST_DELIVERIES = 5
#: A message that came this often without an end takes its worker down with it, or never comes back in time.
MOST_LOST_DELIVERIES = 20
#: Messages in hand are held this often, well within the queue's ack wait, so that nobody else works on them too.
HOLD_EVERY_S = 8.0
APPENDS_AT_ONCE = 16


class EncodeWorker:
    """Any number of replicas: they share the verb's queue group and the ingest durable."""

    name = "encode"

    def __init__(
        self,
        pipeline: EncodePipeline,
        writer: MemoryWriter,
        transactor: Transactor,
        queue: IngestQueue,
        reclaimer: Reclaimer,
        meter: Meter | None = None,
    ) -> None:
        """Without a `meter`, what comes by the queue is not counted; the verb is the service's to count."""
        self._pipeline, self._writer, self._queue = pipeline, writer, queue
        self._transactor, self._reclaimer, self._meter = transactor, reclaimer, meter
        self._summaries = Summaries(pipeline, writer)
        self._admissions: dict[IngestMessage, Admission] = {}
        self._encoded = self._ingested = self._batches = self._dead = self._bytes = 0
        self._appends = anyio.CapacityLimiter(APPENDS_AT_ONCE)

    def endpoints(self) -> Sequence[Endpoint]:
        handlers = {
            "encode": self._encode,
            "forget": self._forget,
            "restore": self._restore,
            "link": self._link,
            "unlink": self._unlink,
            "txn.begin": self._begin,
            "txn.commit": self._commit,
            "txn.abort": self._abort,
        }
        verbs = [
            Endpoint(subjects.endpoint(verb), subjects.verb("*", verb), "encode", handle, TARIFFS.get(verb))
            for verb, handle in handlers.items()
        ]
        return [*verbs, Endpoint("summarise", subjects.SUMMARISE, "encode", self._summaries.store)]

    def stats(self) -> dict[str, object]:
        return {
            "encoded": self._encoded,
            "ingested": self._ingested,
            "batches": self._batches,
            "text_bytes": self._bytes,
            "dead_letters": self._dead,
            "reclaimed": self._reclaimer.reclaimed,
        }

    async def run(self, ready: Callable[[], None]) -> None:
        ready()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._reclaimer.run)
                while True:
                    messages = await self._queue.pull(INGEST_BATCH)
                    if messages:
                        self._batches += 1
                        await self._ingest(messages)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(2):
                await self._queue.close()

    async def _encode(self, call: Call) -> bytes:
        draft = _draft(subjects.project_of(call.subject), call.data)
        watch.stage("build")
        [record] = await self._pipeline.build([draft], call.arrived + ENCODE_TIMEOUT_S)
        watch.stage("store")
        txn_id = draft.request.txn_id
        reply = await (self._transactor.encode(record, txn_id) if txn_id else self._writer.store(record))
        self._encoded += 1
        self._bytes += len(record.text.encode())
        return wire.encode(reply)

    async def _forget(self, call: Call) -> bytes:
        project = _project(call)
        request = wire.decode(ForgetRequest, call.data)
        if request.txn_id:
            return wire.encode(await self._transactor.forget(project, request, request.txn_id))
        return wire.encode(await self._writer.forget(project, request))

    async def _begin(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._transactor.begin(project, wire.decode(BeginRequest, call.data or b"{}")))

    async def _commit(self, call: Call) -> bytes:
        return wire.encode(await self._transactor.commit(_project(call), wire.decode(EndRequest, call.data)))

    async def _abort(self, call: Call) -> bytes:
        return wire.encode(await self._transactor.abort(_project(call), wire.decode(EndRequest, call.data)))

    async def _restore(self, call: Call) -> bytes:
        return wire.encode(await self._writer.restore(_project(call), wire.decode(RestoreRequest, call.data)))

    async def _link(self, call: Call) -> bytes:
        return wire.encode(await self._writer.link(_project(call), wire.decode(LinkRequest, call.data)))

    async def _unlink(self, call: Call) -> bytes:
        return wire.encode(await self._writer.unlink(_project(call), wire.decode(UnlinkRequest, call.data)))

    async def _ingest(self, messages: Sequence[IngestMessage]) -> None:
        """Encode a batch together. Each message ends acknowledged, given back, or in the dead letters: never lost."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as holding:
                holding.start_soon(_hold, messages)
                await self._ingest_all(messages)
                holding.cancel_scope.cancel()

    async def _ingest_all(self, messages: Sequence[IngestMessage]) -> None:
        async with anyio.create_task_group() as tasks:
            good = []
            for message in messages:
                if message.deliveries > MOST_LOST_DELIVERIES:
                    tasks.start_soon(self._bury, message, ErrorCode.INTERNAL, "delivered too often without an end")
                    continue
                try:
                    draft = _draft(message.project, message.data)
                    if draft.request.txn_id:
                        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "a transaction takes no ingest", field="txn_id")
                    good.append((message, draft))
                except MemlaneError as error:
                    tasks.start_soon(self._bury, message, error.code, error.message)
            if good := await self._admitted(good):
                await self._ingest_drafts(good)

    async def _admitted(self, drafts: list[tuple[IngestMessage, Draft]]) -> list[tuple[IngestMessage, Draft]]:
        """Those within their project's quota. Of the others, strict mode makes dead letters: to wait for tomorrow they
        would take the queue's places from everybody. Silent mode takes them off the queue."""
        meter, admitted = self._meter, []
        if meter is None:
            return drafts

        async def admit(message: IngestMessage, draft: Draft) -> None:
            try:
                admission = await meter.admit(draft.project, CHARGE)
                if admission.refused is None:
                    self._admissions[message] = admission
                    admitted.append((message, draft))
                else:
                    await message.ack()
            except Exhausted as error:
                await self._bury(message, error.code, error.message)
            except Exception as error:
                await self._settle(message, error)

        async with anyio.create_task_group() as tasks:
            for message, draft in drafts:
                tasks.start_soon(admit, message, draft)
        return admitted

    async def _ingest_drafts(self, good: list[tuple[IngestMessage, Draft]]) -> None:
        deadline = time.monotonic() + INGEST_TIMEOUT_S
        try:
            records = await self._pipeline.build([draft for _, draft in good], deadline)
        except Exception as error:
            if len(good) > 1:  # one of them may be the culprit: each on its own
                for pair in good:
                    await self._ingest_drafts([pair])
            else:
                await self._settle(good[0][0], error)
            return
        async with anyio.create_task_group() as tasks:
            for (message, _), record in zip(good, records, strict=True):
                tasks.start_soon(self._store, message, record)

    async def _store(self, message: IngestMessage, record: MemoryRecord) -> None:
        async with self._appends:
            try:
                await self._writer.store(record)
                self._admissions.pop(message, None)  # what is stored is counted, though it be delivered again
                await message.ack()
                self._ingested += 1
                self._bytes += len(record.text.encode())
            except Exception as error:
                await self._settle(message, error)

    async def _settle(self, message: IngestMessage, error: Exception) -> None:
        admission = self._admissions.pop(message, None)
        if admission is not None and self._meter is not None:
            self._meter.give_back(message.project, admission)
        retryable = error.retryable if isinstance(error, MemlaneError) else message.deliveries < MOST_DELIVERIES
        if not retryable:
            code = error.code if isinstance(error, MemlaneError) else ErrorCode.INTERNAL
            await self._bury(message, code, str(error))
            return
        logger.warning("ingest again", action="ingest_again", error=str(error), deliveries=message.deliveries)
        try:
            await message.retry(min(2.0**message.deliveries, 30.0))
        except Exception as failure:  # the link is down: the server gives it back by itself after the ack wait
            logger.warning("could not give back", action="give_back_failed", error=str(failure))

    async def _bury(self, message: IngestMessage, code: ErrorCode, reason: str) -> None:
        self._dead += 1
        logger.warning("dead letter", action="dead_letter", project=message.project, code=code, reason=reason)
        await self._queue.dead_letter(message, code, reason)


async def _hold(messages: Sequence[IngestMessage]) -> None:
    """Tell the queue that they are still in hand, until cancelled. Telling it of one that is done does nothing."""
    while True:
        await anyio.sleep(HOLD_EVERY_S)
        for message in messages:
            try:
                await message.extend()
            except Exception as failure:  # the link is down: what is given back meanwhile is encoded again, harmlessly
                logger.warning("could not hold", action="hold_failed", error=str(failure))
                break


def _project(call: Call) -> str:
    project = subjects.project_of(call.subject)
    wire.check_project(project)
    return project


def _draft(project: str, data: bytes) -> Draft:
    wire.check_project(project)
    request = wire.decode(EncodeRequest, data)
    wire.check_text(request.text, "text")
    return Draft(project, request)

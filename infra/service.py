"""A process that answers: endpoints as a NATS micro service, bounded, each request in a task of its own."""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import nats.errors
import nats.micro
import structlog
from anyio.abc import TaskGroup
from nats.aio.client import Client
from nats.micro.request import Request
from nats.micro.service import Service as MicroService
from nats.micro.service import ServiceConfig

from contracts import wire
from contracts.addressing import addressed
from contracts.errors import ErrorCode, Exhausted, InvalidRequest, MemlaneError
from contracts.ports import Call, Endpoint, PayloadTooLarge, Role
from contracts.stores import Meter
from infra import metering
from infra.discovery import Process, lag, log_end
from infra.metrics_pages import pages
from infra.nats_bus import NatsBus, faults_of, header_text
from infra.observer import Observer
from infra.pulse import Pulse
from infra.settings import Settings
from infra.tracing import traced

logger = structlog.get_logger()

VERSION = "0.1.0"
#: Requests in hand at once in one process; beyond it a caller is told so at once rather than left to time out.
MOST_IN_HAND = 512
#: How long a process that stops goes on with what it has in hand; the supervisor's patience is a little longer.
DRAIN_S = 8.0
#: Whoever reads metrics waits no longer for the end of the log.
LOG_END_S = 1.0


class Service:
    """Serves one role on one client until cancelled or told to stop by SIGTERM or SIGINT."""

    def __init__(
        self,
        client: Client,
        role: Role,
        settings: Settings,
        meter: Meter | None = None,
    ) -> None:
        """Without a `meter` nothing is counted."""
        self._client, self._role, self._bus = client, role, NatsBus(client)
        self._settings, self._meter = settings, meter
        self._in_hand = self._refused = 0
        self._announced = False
        self._pulse, self._observer, self._metrics_at = Pulse(), Observer(), ""
        self._ready, self._stopping = anyio.Event(), anyio.Event()

    async def serve(self) -> None:
        """Run the role; announce its endpoints once it is ready. On a signal: take no more, answer what is in hand
        while the role still runs, then return."""
        async with self._observed(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_on_signal, tasks.cancel_scope)
            tasks.start_soon(self._role.run, self._ready.set)
            await self._ready.wait()
            await self._announce()
            tasks.cancel_scope.cancel()

    async def is_ready(self) -> bool:
        """Whether it may be asked: announced, linked, and not told to stop."""
        return self._announced and self._client.is_connected and not self._stopping.is_set()

    async def measured(self) -> dict[str, object]:
        """What `memlane status` shows of it, and how far it is behind the log, where that says."""
        facts = self._stats() | {"in_hand": self._in_hand}
        me = Process(self._role.name, "", facts, 0, 0)
        end = await log_end(self._client, me.followed, LOG_END_S) if "position" in facts else None
        return facts if end is None else facts | {"lag": lag(me, {me.followed: end})}

    @asynccontextmanager
    async def _observed(self) -> AsyncIterator[None]:
        """Metrics and traces of this process, where the settings and the environment ask for them."""
        settings, name = self._settings, self._role.name
        async with (
            traced(name, settings.shard, settings.replica) as spans,
            pages(settings.metrics, name, self) as (metrics, self._metrics_at),
        ):
            self._observer = Observer([one for one in (metrics, spans) if one is not None])
            yield

    async def _announce(self) -> None:
        config = ServiceConfig(
            name=f"memlane-{self._role.name}", version=VERSION, stats_handler=lambda _: self._stats()
        )
        async with anyio.create_task_group() as tasks:
            service = await nats.micro.add_service(self._client, config)
            try:
                for endpoint in self._role.endpoints():
                    await service.add_endpoint(
                        name=endpoint.name,
                        subject=endpoint.subject,
                        queue_group=endpoint.queue,
                        handler=self._hand_over(endpoint, tasks),
                    )
                await self._client.flush()  # a caller that hears of us must find us subscribed
                logger.info("ready", action="ready", replica=self._settings.replica, **self._role.stats())
                self._announced = True
                await self._stopping.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await self._withdraw(service)

    def _stats(self) -> dict[str, object]:
        faults = faults_of(self._client)
        return {
            "replica": self._settings.replica,
            **self._role.stats(),
            **self._pulse.facts(),
            "refused": self._refused,
            **({"faults": faults} if faults else {}),
            **({"metrics": self._metrics_at} if self._metrics_at else {}),
        }

    async def _withdraw(self, service: MicroService) -> None:
        """No new requests, then those that the server has handed us already, then those in hand."""
        with anyio.move_on_after(DRAIN_S):
            if self._client.is_connected:
                # the library's own stop unsubscribes without draining, and what is under way to us would be lost
                subscriptions = [endpoint._subscription for endpoint in service._endpoints]
                for subscription in [*subscriptions, *service._subscriptions.values()]:
                    if subscription is not None:
                        await subscription.drain()
            while self._in_hand:
                await anyio.sleep(0.01)
            if self._client.is_connected:
                await self._client.flush()

    def _hand_over(self, endpoint: Endpoint, tasks: TaskGroup) -> Callable[[Request], Awaitable[None]]:
        async def handler(request: Request) -> None:
            arrived = time.monotonic()
            if self._in_hand >= MOST_IN_HAND:
                self._refused += 1
                busy = Exhausted(ErrorCode.OVERLOADED, "too many requests in hand", in_hand=self._in_hand)
                await self._respond(request, wire.encode_error(busy), busy)
                return
            self._in_hand += 1
            tasks.start_soon(self._answer, endpoint, request, arrived)

        return handler

    async def _answer(self, endpoint: Endpoint, request: Request, arrived: float) -> None:
        try:
            call = Call(request.subject, request.data, arrived, dict(request.headers or {}))
            with anyio.CancelScope(shield=True):
                handling = self._observer.begin(endpoint.name, call)
                data, error, headers = await self._outcome(endpoint, call)
                handling.answered(data, _code_of(error))
                await self._respond(request, data, error, headers)
                self._pulse.beat(time.monotonic() - arrived)
        finally:
            self._in_hand -= 1

    async def _outcome(self, endpoint: Endpoint, call: Call) -> tuple[bytes, BaseException | None, dict[str, str]]:
        """The reply, the error in it, and its headers."""
        try:
            call = replace(call, subject=addressed(call.subject, call.headers, self._settings.default_project))
            data, headers = await metering.answer(endpoint, call, self._meter)
            return data, None, headers
        except MemlaneError as error:
            return wire.encode_error(error), error, {}
        except Exception as error:
            logger.exception("request failed", action="request_failed", endpoint=endpoint.name, subject=call.subject)
            return wire.encode_error(error), error, {}

    async def _respond(
        self, request: Request, data: bytes, error: BaseException | None, headers: dict[str, str] | None = None
    ) -> None:
        try:
            self._bus.check_size(data, headers)
        except PayloadTooLarge as too_large:
            error = InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, f"the reply is too large: {too_large}; ask for less")
            data = wire.encode_error(error)
        try:
            if error is None:
                await request.respond(data, headers or None)
            else:
                await request.respond_error(str(_code_of(error)), header_text(str(error), 256), data)
        except (ValueError, nats.errors.Error):
            return  # a caller that left no reply subject, or a link that is gone: nobody to tell

    async def _stop_on_signal(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                logger.info("stopping", action="stop", signal=number.name, in_hand=self._in_hand)
                if not self._ready.is_set() or self._stopping.is_set():  # nothing to finish, or told twice
                    scope.cancel()
                self._stopping.set()


def _code_of(error: BaseException | None) -> ErrorCode | None:
    if error is None:
        return None
    return error.code if isinstance(error, MemlaneError) else ErrorCode.INTERNAL

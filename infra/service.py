"""A process that answers: endpoints as a NATS micro service, bounded, each request in a task of its own."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable
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
from infra.nats_bus import NatsBus, faults_of, header_text
from infra.pulse import Pulse

logger = structlog.get_logger()

VERSION = "0.1.0"
#: Requests in hand at once in one process; beyond it a caller is told so at once rather than left to time out.
MOST_IN_HAND = 512
#: How long a process that stops goes on with what it has in hand; the supervisor's patience is a little longer.
DRAIN_S = 8.0


class Service:
    """Serves one role on one client until cancelled or told to stop by SIGTERM or SIGINT."""

    def __init__(
        self,
        client: Client,
        role: Role,
        default_project: str = "default",
        meter: Meter | None = None,
        replica: str = "a",
    ) -> None:
        """`default_project` is that of calls that name none; without a `meter` nothing is counted."""
        self._client, self._role, self._bus = client, role, NatsBus(client)
        self._default_project, self._meter = default_project, meter
        self._in_hand = self._refused = 0
        self._replica, self._pulse = replica, Pulse()
        self._ready, self._stopping = anyio.Event(), anyio.Event()

    async def serve(self) -> None:
        """Run the role; announce its endpoints once it is ready. On a signal: take no more, answer what is in hand
        while the role still runs, then return."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_on_signal, tasks.cancel_scope)
            tasks.start_soon(self._role.run, self._ready.set)
            await self._ready.wait()
            await self._announce()
            tasks.cancel_scope.cancel()

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
                logger.info("ready", action="ready", replica=self._replica, **self._role.stats())
                await self._stopping.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await self._withdraw(service)

    def _stats(self) -> dict[str, object]:
        faults = faults_of(self._client)
        return {
            "replica": self._replica,
            **self._role.stats(),
            **self._pulse.facts(),
            "refused": self._refused,
            **({"faults": faults} if faults else {}),
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
                await self._respond(request, *await self._outcome(endpoint, call))
                self._pulse.beat(time.monotonic() - arrived)
        finally:
            self._in_hand -= 1

    async def _outcome(self, endpoint: Endpoint, call: Call) -> tuple[bytes, BaseException | None, dict[str, str]]:
        """The reply, the error in it, and its headers."""
        try:
            call = replace(call, subject=addressed(call.subject, call.headers, self._default_project))
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
                code = error.code if isinstance(error, MemlaneError) else ErrorCode.INTERNAL
                await request.respond_error(str(code), header_text(str(error), 256), data)
        except (ValueError, nats.errors.Error):
            return  # a caller that left no reply subject, or a link that is gone: nobody to tell

    async def _stop_on_signal(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                logger.info("stopping", action="stop", signal=number.name, in_hand=self._in_hand)
                if not self._ready.is_set() or self._stopping.is_set():  # nothing to finish, or told twice
                    scope.cancel()
                self._stopping.set()

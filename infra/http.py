"""The HTTP door, for those who have no NATS client: each route is one verb on the bus, and nothing else.

It holds no state and decides nothing: the request's JSON goes out as it came in (but for the other names that
`infra.http_names` knows), the reply's comes back as it is, and a category of error becomes a status. It asks nobody who
they are; whoever reaches it reaches every project, so it listens on loopback unless told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import nats.errors
import orjson
from nats.aio.client import Client
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from contracts import subjects, wire
from contracts.addressing import NO_PROJECT, PROJECT_HEADER, SILENT_HEADER, TRACE_HEADERS, header
from contracts.errors import ErrorCode, ErrorReply, InvalidRequest, MemlaneError, Unavailable, to_reply
from contracts.ports import PayloadTooLarge
from infra import http_names, http_openapi
from infra.discovery import discover
from infra.nats_bus import NatsBus

MAX_BODY_BYTES = 1024 * 1024
TIMEOUT_S = 15.0
HEALTH_WAIT_S = 0.3
STATUSES = {
    "denied": 403,
    "validation": 400,
    "not_found": 404,
    "conflict": 409,
    "exhausted": 429,
    "internal": 500,
    "unavailable": 503,
}
#: Roles without which no memory is written or read; a lane that is away only degrades.
NEEDED = {"orchestrator", "encode", "embed", "catalog"}

Translate = Callable[[dict[str, Any]], dict[str, Any]]


def application(client: Client) -> Starlette:
    """The ASGI application over one connection."""
    door = Door(client)
    routes = [
        Route(path, door.serve(verb, http_names.OF_VERB.get(verb)), methods=["POST"])
        for path, verb in http_openapi.PATHS
    ]
    routes += [Route("/health", door.health), Route("/openapi.json", _openapi)]
    return Starlette(routes=routes, exception_handlers={HTTPException: _no_route, Exception: _unexpected})


class Door:
    def __init__(self, client: Client) -> None:
        self._client, self._bus = client, NatsBus(client)

    def serve(self, verb: str, translate: Translate | None) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            try:
                project = request.headers.get(PROJECT_HEADER)
                if project is not None:
                    wire.check_project(project)
                value = _object(await _body(request))
                trace = {name: request.headers[name] for name in TRACE_HEADERS if name in request.headers}
                return await self._ask(verb, project or NO_PROJECT, translate(value) if translate else value, trace)
            except MemlaneError as error:
                return _refused(to_reply(error))
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it

        return handle

    async def health(self, _: Request) -> Response:
        """Which roles answer on the bus, within 0.3 s."""
        roles: dict[str, int] = {}
        if self._client.is_connected:
            for process in await discover(self._client, HEALTH_WAIT_S):
                roles[process.role] = roles.get(process.role, 0) + 1
        well = set(roles) >= NEEDED
        status = "down" if not well else "ok" if {"semantic", "lexical", "graph"} <= set(roles) else "degraded"
        return _json(orjson.dumps({"status": status, "roles": roles}), 200 if well else 503)

    async def _ask(self, verb: str, project: str, value: dict[str, Any], trace: dict[str, str]) -> Response:
        try:
            data = orjson.dumps(value)
            self._bus.check_size(data, trace)
        except orjson.JSONEncodeError as error:  # it nests deeper than may be written, though not than may be read
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"the request cannot be passed on: {error}") from None
        except PayloadTooLarge as error:
            raise _too_large(str(error)) from None
        if not self._client.is_connected:  # the library would wait for the link to come back
            raise Unavailable(ErrorCode.UNAVAILABLE, "NATS is away", verb=verb)
        deadline_ms = value.get("deadline_ms")
        more_s = min(max(deadline_ms, 0), 60_000) / 1000 if isinstance(deadline_ms, int | float) else 0.0
        try:
            message = await self._client.request(
                subjects.verb(project, verb), data, timeout=TIMEOUT_S + more_s, headers=trace or None
            )
        except nats.errors.NoRespondersError:
            raise Unavailable(ErrorCode.UNAVAILABLE, f"nobody serves {verb}: is memlane up?", verb=verb) from None
        except (TimeoutError, nats.errors.Error) as error:
            kind = type(error).__name__
            raise Unavailable(ErrorCode.UNAVAILABLE, f"no answer to {verb} ({kind})", verb=verb) from None
        headers = message.headers or {}
        if "Nats-Service-Error-Code" in headers:
            return _refused(ErrorReply.model_validate_json(message.data), message.data)
        silent = header(headers, SILENT_HEADER)
        return _json(message.data, headers={SILENT_HEADER: silent} if silent is not None else {})


async def _body(request: Request) -> bytes:
    """Raises PAYLOAD_TOO_LARGE, after what the caller is sending: one that is cut off never reads the answer."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    size, parts = 0, []
    async for part in request.stream():
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
        elif size > 16 * MAX_BODY_BYTES:
            break
    if size > MAX_BODY_BYTES:
        raise _too_large(f"the body is over {MAX_BODY_BYTES} bytes")
    if kind != "application/json":  # nor may a web page post here unasked: other types need no leave of the browser
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "content-type must be application/json", field="content-type")
    return b"".join(parts)


def _object(body: bytes) -> dict[str, Any]:
    value = wire.parse(body)
    if not isinstance(value, dict):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "the request must be a JSON object", got=type(value).__name__)
    return value


def _too_large(message: str) -> InvalidRequest:
    return InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, message, limit=MAX_BODY_BYTES)


def _refused(reply: ErrorReply, data: bytes | None = None, status: int | None = None) -> Response:
    """An error as it is on the bus, with the status of its category."""
    error = reply.error
    if status is None:
        status = 413 if error.code == ErrorCode.PAYLOAD_TOO_LARGE else STATUSES.get(error.category, 500)
    headers = {}
    if status == 429:
        wait_ms = error.details.get("retry_after_ms", 1000)
        headers["Retry-After"] = str(math.ceil(wait_ms / 1000) if isinstance(wait_ms, int | float) else 1)
    return _json(data or wire.encode(reply), status, headers)


def _json(data: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(data, status, headers, "application/json")


async def _openapi(_: Request) -> Response:
    return _json(http_openapi.text())


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = InvalidRequest(ErrorCode.INVALID_REQUEST, f"{request.method} {request.url.path}: {error.detail}")
    return _refused(to_reply(told), status=error.status_code)


async def _unexpected(_: Request, error: Exception) -> Response:
    return _refused(to_reply(error))

"""`memlane http`: the HTTP door as a process."""

from __future__ import annotations

import socket
from typing import Annotated

import anyio
import typer

from contracts.errors import ErrorCode, InvalidRequest, Unavailable
from infra.cli_common import DEFAULT_URL, Url, link

CONNECT_TIMEOUT_S = 4.0
#: How long requests in hand may take once it is told to stop.
GRACE_S = 10


def http(
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on. There is no login: think before you widen it.")] = (
        "127.0.0.1"
    ),
    nats: Url = DEFAULT_URL,
) -> None:
    """Serve memory over HTTP: POST /memory/add, /memory/query, /memory/forget, /recall; GET /health, /openapi.json.

    Example: memlane http --port 8080
    """
    anyio.run(_serve, host, port, nats)


async def _serve(host: str, port: int, url: str) -> None:
    try:
        import uvicorn

        from infra.http import application
    except ImportError as error:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"{error.name} is not installed: pip install 'memlane[http]'", field="http"
        ) from None
    from infra.nats_bus import connect

    listener = listen(host, port)
    try:
        with anyio.fail_after(CONNECT_TIMEOUT_S):
            client = await connect(link(url), "memlane-http")
    except (TimeoutError, OSError) as error:
        raise Unavailable(
            ErrorCode.UNAVAILABLE, f"cannot reach NATS at {url}: is memlane up?", reason=str(error)
        ) from None
    try:
        shown = f"[{host}]" if ":" in host else host
        print(f"ready http://{shown}:{listener.getsockname()[1]}", flush=True)  # it listens: who calls now is answered
        config = uvicorn.Config(
            application(client),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        await uvicorn.Server(config).serve([listener])
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await client.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket that says it is TCP: asyncio turns off Nagle's delay (40 ms a reply) only where it is told so."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
        return listener
    except (OSError, OverflowError) as error:
        listener.close()
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"cannot listen on {host}:{port}: {error}", field="port"
        ) from None

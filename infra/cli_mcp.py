"""`memlane mcp`: the MCP door as a process."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import typer

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, InvalidRequest
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, ProjectName, Url, access


def mcp(
    project: ProjectName = DEFAULT_PROJECT,
    port: Annotated[int | None, typer.Option(help="Serve streamable HTTP on this port instead of stdio.")] = None,
    nats: Url = DEFAULT_URL,
) -> None:
    """Serve one project's memory to an MCP client: over stdio, or with --port at http://127.0.0.1:PORT/mcp.

    Example: memlane mcp --project team
    """
    try:
        import mcp.server.stdio  # noqa: F401

        from infra.mcp_server import McpDoor
    except ImportError as error:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"{error.name} is not installed: pip install 'memlane[mcp]'", field="mcp"
        ) from None

    async def run() -> None:
        async with MemoryClient(nats, project=project, access=access()) as memory:
            server = McpDoor(memory).server()
            await (_serve_stdio(server) if port is None else _serve_http(server, port))

    anyio.run(run)


async def _serve_stdio(server: Any) -> None:
    """Standard output belongs to the protocol; the process ends when its input does."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def _serve_http(server: Any, port: int) -> None:
    """On loopback only, and only to callers who say so: a web page that was opened must not read the memory."""
    import uvicorn

    from infra.cli_http import listen

    listener = listen("127.0.0.1", port)
    print(f"ready http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(
        server.streamable_http_app(), log_level="warning", access_log=False, timeout_graceful_shutdown=5
    )
    await uvicorn.Server(config).serve([listener])

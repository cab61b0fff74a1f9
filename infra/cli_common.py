"""What every command of the command line shares: common options, one call, one way to show a reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import anyio
import typer
from pydantic import BaseModel

from contracts import wire
from contracts.client import MemoryClient

Url = Annotated[str, typer.Option("--nats", envvar="NATS_URL", help="Where NATS is.")]
ProjectName = Annotated[str, typer.Option("--project", "-p", envvar="MEMLANE_PROJECT", help="Whose memory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the reply as JSON.")]
DEFAULT_URL = "nats://127.0.0.1:4222"
DEFAULT_PROJECT = "default"


def call(url: str, project: str, verb: Callable[[MemoryClient], Awaitable[Any]]) -> Any:
    """One call with a client of its own. Raises what the verb raises."""

    async def run() -> Any:
        async with MemoryClient(url, project=project) as memory:
            return await verb(memory)

    return anyio.run(run)


def show(reply: BaseModel, as_json: bool, readable: Callable[[], None]) -> None:
    if as_json:
        print(wire.encode(reply).decode())
    else:
        readable()

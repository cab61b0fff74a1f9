"""What every command shares: where NATS is, whose memory, and how a reply is shown."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer
from pydantic import BaseModel

from contracts import wire
from contracts.access import Access
from contracts.client import MemoryClient
from contracts.errors import ErrorCode, InvalidRequest
from contracts.usage import Metered
from infra import settings as settings_module
from infra.settings import Nats

Url = Annotated[str, typer.Option("--nats", envvar="NATS_URL", help="Where NATS is.")]
ProjectName = Annotated[str, typer.Option("--project", "-p", envvar="MEMLANE_PROJECT", help="Whose memory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the reply as JSON.")]
InTxn = Annotated[str | None, typer.Option("--txn", help="Inside this transaction.")]
DEFAULT_URL = "nats://127.0.0.1:4222"
DEFAULT_PROJECT = "default"


def call(url: str, project: str, verb: Callable[[MemoryClient], Awaitable[Any]]) -> Any:
    """What a verb of one client answers."""

    async def run() -> Any:
        async with MemoryClient(url, project=project, access=access()) as memory:
            return await verb(memory)

    return anyio.run(run)


def access() -> Access:
    """The credential of this command: the settings' one, and so that of `memlane --creds`."""
    return settings_module.load().nats.access


def link(url: str) -> Nats:
    """How this command reaches a NATS server when it is no client of a project."""
    return settings_module.load().nats.model_copy(update={"url": url})


def given(**fields: Any) -> dict[str, Any]:
    """Those fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def show(reply: BaseModel, as_json: bool, readable: Callable[[], None]) -> None:
    if isinstance(reply, Metered) and reply.silent:  # beside the reply, which looks as if nothing were wrong
        print("the quota is spent, and the service is silent about it: nothing was done", file=sys.stderr)
    if as_json:
        print(wire.encode(reply).decode())
    else:
        readable()


def read_file(path: Path) -> bytes:
    """Raises InvalidRequest."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot read {path}: {error.strerror}", field="file") from None


def write_file(path: Path, data: bytes) -> None:
    """Raises InvalidRequest."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot write {path}: {error.strerror}", field="out") from None

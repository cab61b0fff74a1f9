"""The command `scale`."""

from __future__ import annotations

from typing import Annotated, Any

import nats.errors
import typer

from contracts import subjects, wire
from contracts.client import MemoryClient
from contracts.errors import ErrorCode, Unavailable
from contracts.ops import ScaleReply, ScaleRequest
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, Url, call, show

TIMEOUT_S = 5.0


def scale(
    role: Annotated[str, typer.Argument(help="catalog, semantic, lexical, graph, embed, encode, orchestrator, …")],
    replicas: Annotated[int, typer.Argument(help="How many there shall be, of each shard: 1 to 16.")],
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change how many replicas of a role a running `memlane up` has.

    Example: memlane scale semantic 2
    """
    request = wire.validate(ScaleRequest, {"role": role, "replicas": replicas})
    reply: ScaleReply = call(nats, DEFAULT_PROJECT, lambda memory: _ask(memory, request))
    show(reply, as_json, lambda: print(*_lines(reply), sep="\n"))


async def _ask(memory: MemoryClient, request: ScaleRequest) -> ScaleReply:
    client: Any = await memory.connection()
    try:
        reply = await client.request(subjects.SCALE, wire.encode(request), timeout=TIMEOUT_S)
    except (TimeoutError, nats.errors.Error):
        raise Unavailable(ErrorCode.UNAVAILABLE, "no `memlane up` answers there") from None
    return wire.decode_reply(ScaleReply, reply.data)


def _lines(reply: ScaleReply) -> list[str]:
    done = [*(f"starting {name}" for name in reply.started), *(f"stopping {name}" for name in reply.stopped)]
    return done or [f"{reply.role} has {reply.replicas} already"]

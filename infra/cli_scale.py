"""The commands `scale` and `reshard`: what a running `memlane up` is told."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import anyio
import nats.errors
import typer
from pydantic import BaseModel
from rich.progress import Progress

from contracts import subjects, wire
from contracts.client import MemoryClient
from contracts.errors import ErrorCode, Unavailable
from contracts.ops import ReshardReply, ReshardRequest, ScaleReply, ScaleRequest
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, Url, call, show
from infra.cli_render import console

R = TypeVar("R", bound=BaseModel)

TIMEOUT_S, POLL_S = 5.0, 0.5


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
    reply: ScaleReply = call(nats, DEFAULT_PROJECT, lambda memory: _ask(memory, subjects.SCALE, request, ScaleReply))
    show(reply, as_json, lambda: print(*_lines(reply), sep="\n"))


def reshard(
    shards: Annotated[int, typer.Argument(help="Into how many shards memories shall be divided: 1, 2, 4, … 256.")],
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change the number of shards of a running `memlane up`, without a pause for those who ask it.

    New lanes and catalogs are built from the log beside the old ones, which end once the new ones have caught up.
    Ending this command does not stop that; the same command again shows how far it is.

    Example: memlane reshard 2
    """
    request = wire.validate(ReshardRequest, {"shards": shards})
    reply: ReshardReply = call(nats, DEFAULT_PROJECT, lambda memory: _until_done(memory, request, as_json))
    show(reply, as_json, lambda: print(_outcome(reply)))


async def _until_done(memory: MemoryClient, request: ReshardRequest, quiet: bool) -> ReshardReply:
    with Progress(console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("asking")
        while True:
            reply = await _ask(memory, subjects.RESHARD, request, ReshardReply)
            if reply.stage == "done":
                return reply
            bar.update(task, description=reply.stage, completed=reply.ready, total=reply.wanted or None)
            await anyio.sleep(POLL_S)


async def _ask(memory: MemoryClient, subject: str, request: BaseModel, reply: type[R]) -> R:
    client: Any = await memory.connection()
    try:
        answer = await client.request(subject, wire.encode(request), timeout=TIMEOUT_S)
    except (TimeoutError, nats.errors.Error):
        raise Unavailable(ErrorCode.UNAVAILABLE, "no `memlane up` answers there") from None
    return wire.decode_reply(reply, answer.data)


def _lines(reply: ScaleReply) -> list[str]:
    done = [*(f"starting {name}" for name in reply.started), *(f"stopping {name}" for name in reply.stopped)]
    return done or [f"{reply.role} has {reply.replicas} already"]


def _outcome(reply: ReshardReply) -> str:
    if reply.before == reply.shards:
        return f"there are {reply.shards} shards already"
    return f"{reply.before} → {reply.shards} shards; settings that name another number change it back at the next start"

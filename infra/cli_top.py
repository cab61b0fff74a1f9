"""The command `top`."""

from __future__ import annotations

import signal
import time
from contextlib import nullcontext
from typing import Annotated

import anyio
import nats.errors
import orjson
import typer
from rich.live import Live

from contracts.client import MemoryClient
from infra import cli_render as render
from infra import top as frames
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, Url, access
from infra.discovery import discover, log_ends
from infra.top import Frame

#: How long processes have for an answer; a look costs all of it.
LOOK_S = 0.5


def top(
    every: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Watch every process: position, lag behind the log, requests a second, median, queues. Ctrl-C ends it.

    Piped, it prints one look after the other; with --json, each as one line.

    Example: memlane top --every 1
    """
    anyio.run(_until_interrupted, nats, every, once, as_json)


async def _until_interrupted(url: str, every_s: float, once: bool, as_json: bool) -> None:
    """A cancel scope says so again and again: a single cancellation, as at a KeyboardInterrupt, is lost where it comes
    at the very moment at which an answer does."""
    async with anyio.create_task_group() as tasks:

        async def heed() -> None:
            with anyio.open_signal_receiver(signal.SIGINT) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        tasks.start_soon(heed)
        await _watch(url, every_s, once, as_json)
        tasks.cancel_scope.cancel()


async def _watch(url: str, every_s: float, once: bool, as_json: bool) -> None:
    async with MemoryClient(url, project=DEFAULT_PROJECT, access=access()) as memory:
        live = not (once or as_json) and render.console.is_terminal
        screen = Live(console=render.console, screen=True, auto_refresh=False) if live else None
        before: Frame | None = None
        with screen or nullcontext():
            while True:
                frame = await _look(memory, url)
                if screen:
                    screen.update(frames.render(frame, before), refresh=True)
                elif as_json:
                    print(orjson.dumps(frame.as_dict(before), default=str).decode(), flush=True)
                else:
                    render.console.print(frames.render(frame, before))
                if once:
                    return
                before = frame
                await anyio.sleep(max(0.0, every_s - LOOK_S))


async def _look(memory: MemoryClient, url: str) -> Frame:
    client = await memory.connection()
    if not client.is_connected:  # the library would hold back what is asked, and answer it all at once later
        await anyio.sleep(LOOK_S)
        return Frame(time.monotonic(), url, False, (), {})
    try:
        processes = await discover(client, LOOK_S)
        return Frame(time.monotonic(), url, client.is_connected, processes, await log_ends(client, processes))
    except nats.errors.Error:  # it went while we looked
        return Frame(time.monotonic(), url, False, (), {})

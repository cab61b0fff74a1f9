"""The commands `backup create`, `backup check` and `backup restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
import typer
from rich.table import Table

from contracts.errors import Conflict, ErrorCode
from infra.backup import Manifest, back_up, read
from infra.backup import restore as bring_back
from infra.cli_common import DEFAULT_URL, AsJson, Url, link
from infra.cli_render import console, print_json
from infra.nats_bus import connect
from infra.nats_server import NatsServer
from infra.supervisor import only_one

app = typer.Typer(help="Back up the whole service, and bring it back.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The backup's folder.")]


@app.command()
def create(folder: Folder, nats: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Write a backup of the whole service into a new folder, while it runs: the log, schemas, uses, the ledger, what is
    queued. Indexes are made anew from the log.

    Example: memlane backup create ./monday
    """

    async def run() -> Manifest:
        client = await connect(link(nats), "memlane-backup")
        try:
            return await back_up(client, folder)
        finally:
            await client.close()

    _show(anyio.run(run), as_json)


@app.command()
def check(folder: Folder, as_json: AsJson = False) -> None:
    """Say what a backup holds, once every file of it was read and found whole.

    Example: memlane backup check ./monday
    """
    _show(read(folder), as_json)


@app.command()
def restore(
    folder: Folder,
    data: Annotated[Path | None, typer.Option(help="A new data folder, for a later `memlane up --data`.")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, max=5, help="Of the streams; else as they were.")] = None,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Bring a backup back: into a new data folder, or onto a NATS server on which nothing of Memlane runs. There, lane
    workers must start without old indexes of their own.

    Example: memlane backup restore ./monday --data ./memory2
    """

    async def run(url: str) -> Manifest:
        client = await connect(link(url), "memlane-restore")
        try:
            return await bring_back(client, folder, replicas)
        finally:
            await client.close()

    if data is None:
        _show(anyio.run(run, nats), as_json)
        return
    if data.exists() and any(data.iterdir()):
        raise Conflict(ErrorCode.INVALID_REQUEST, f"{data} is not empty; restore into a new folder", field="data")
    with only_one(data):
        server = NatsServer(data / "nats")
        server.start()
        try:
            _show(anyio.run(run, server.url), as_json)
        finally:
            server.stop()


def _show(manifest: Manifest, as_json: bool) -> None:
    if as_json:
        print_json([{"stream": one.stream, "messages": one.messages, "last": one.last, "bytes": one.bytes}
                    for one in manifest.streams])  # fmt: skip
        return
    table = Table(title=f"backup of {manifest.made:%Y-%m-%d %H:%M:%S} UTC", header_style="bold")
    for column in ("stream", "messages", "last position", "bytes"):
        table.add_column(column, justify="left" if column == "stream" else "right")
    for one in manifest.streams:
        table.add_row(one.stream, f"{one.messages:,}", f"{one.last:,}", f"{one.bytes:,}")
    console.print(table)

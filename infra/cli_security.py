"""The commands that lock the bus: `memlane security init`, `agent`, `revoke`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import anyio
import typer

from contracts.errors import Unavailable
from infra.cli_common import DEFAULT_URL, Url
from infra.security.vault import DEFAULT_AGENT, Vault

app = typer.Typer(help="Lock the bus: keys, certificates, and who may do what.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--dir", help="What `memlane security init` made.")]
AgentName = Annotated[str, typer.Option("--name", help="Tells the agents of a project apart.")]
DEFAULT_FOLDER = Path("security")
DAY_S = 86400


@app.command()
def init(
    out: Annotated[Path, typer.Option(help="The folder to make.")] = DEFAULT_FOLDER,
    project: Annotated[list[str], typer.Option(help="A project whose agent gets a credential; may be repeated.")] = [],  # noqa: B006
    host: Annotated[list[str], typer.Option(help="One more name or address of the server; may be repeated.")] = [],  # noqa: B006
    force: Annotated[bool, typer.Option("--force", help="Replace what is there: all keys become new.")] = False,
) -> None:
    """Make the keys, certificates and credentials of a locked service.

    Example: memlane security init --out security --project team
    """
    vault = Vault.create(out, project, host, force=force)
    print(f"made {vault.folder}; start with: memlane up --security {out}")


@app.command()
def agent(
    project: Annotated[str, typer.Argument(help="Whose memory; a new project is made.")],
    name: AgentName = DEFAULT_AGENT,
    days: Annotated[int | None, typer.Option(min=1, help="How long it is valid; without it, until revoked.")] = None,
    folder: Folder = DEFAULT_FOLDER,
) -> None:
    """Make one more agent's credential and print its file. The running server needs no word of it.

    Example: memlane security agent team --name planner --days 90 --dir security
    """
    print(Vault(folder).add_agent(project, name, None if days is None else int(time.time()) + days * DAY_S))


@app.command()
def revoke(
    project: Annotated[str, typer.Argument(help="Whose memory.")],
    name: AgentName = DEFAULT_AGENT,
    folder: Folder = DEFAULT_FOLDER,
    nats: Url = DEFAULT_URL,
) -> None:
    """Take an agent's credential back, and cut its connections.

    Example: memlane security revoke team --name planner --dir security
    """
    from infra.security.revocation import tell

    vault = Vault(folder)
    token = vault.revoke(project, name)
    try:
        anyio.run(tell, nats, vault.system_access(), token)
    except Unavailable as error:  # the claims are written: a server that starts later reads them
        print(f"revoked from the server's next start on; it did not answer now: {error.message}")
        raise typer.Exit(1) from None
    print(f"revoked {project}/{name}")

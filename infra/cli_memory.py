"""The commands on what is stored: list, inspect, forget, restore."""

from __future__ import annotations

from typing import Annotated

import typer

from infra import cli_render as render
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, InTxn, ProjectName, Url, call, given, show


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_memories)
    for command in (inspect, forget, restore):
        app.command()(command)


def list_memories(
    project: ProjectName = DEFAULT_PROJECT,
    limit: Annotated[int, typer.Option(help="Memories on one page.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Where the page before ended.")] = None,
    session: Annotated[str | None, typer.Option(help="Only memories of this session.")] = None,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="Also forgotten ones.")] = False,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what is stored, newest first.

    Example: memlane list --limit 50
    """
    fields = {"limit": limit, "include_tombstoned": forgotten, **given(cursor=cursor, session=session)}
    reply = call(nats, project, lambda memory: memory.list(**fields))
    show(reply, as_json, lambda: render.listing(reply))


def inspect(
    id: Annotated[str, typer.Argument(help="A memory's id.")],
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show one memory and its write story.

    Example: memlane inspect k3j5x7q2... --json
    """
    reply = call(nats, project, lambda memory: memory.inspect(id))
    show(reply, as_json, lambda: render.story(id, reply))


def forget(
    id: Annotated[str, typer.Argument(help="A memory's id.")],
    project: ProjectName = DEFAULT_PROJECT,
    hard: Annotated[bool, typer.Option("--hard", help="Erase text and vector for good.")] = False,
    txn: InTxn = None,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Forget one memory.

    Example: memlane forget k3j5x7q2...
    """
    reply = call(nats, project, lambda memory: memory.forget(id, mode="hard" if hard else "soft", **given(txn_id=txn)))
    show(reply, as_json, lambda: render.forgotten(reply))


def restore(
    id: Annotated[str, typer.Argument(help="A memory's id.")],
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Take back a soft forget, within 7 days.

    Example: memlane restore k3j5x7q2...
    """
    reply = call(nats, project, lambda memory: memory.restore(id))
    show(reply, as_json, lambda: render.restored(reply))

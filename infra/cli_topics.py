"""`memlane topics`: what a project's memories are about."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from contracts.topics import TopicsReply
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call, show
from infra.cli_render import console


def topics(
    project: ProjectName = DEFAULT_PROJECT,
    limit: Annotated[int, typer.Option(help="How many topics, up to 100.")] = 20,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List a project's topics, the largest first: label, size, and the most central memories.

    Example: memlane topics --project team
    """
    reply = call(nats, project, lambda memory: memory.topics(limit=limit))
    show(reply, as_json, lambda: _render(reply))


def _render(reply: TopicsReply) -> None:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("topic", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("memories", overflow="fold")
    table.add_column("summary", overflow="fold")
    for one in reply.topics:
        table.add_row(escape(one.label), str(one.size), "\n".join(one.members[:3]), one.summary or "")
    console.print(table)
    if reply.total > len(reply.topics):
        console.print(f"[dim]and {reply.total - len(reply.topics)} more[/dim]")

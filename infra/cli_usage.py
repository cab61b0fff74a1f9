"""`memlane usage`: what a project used, and what is left."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from contracts.usage import UsageReply
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call, given, show
from infra.cli_render import console


def usage(
    project: ProjectName = DEFAULT_PROJECT,
    day: Annotated[str | None, typer.Option(help="The last day to show, such as 2026-05-31; none: today, UTC.")] = None,
    days: Annotated[int, typer.Option(help="How many days, up to 92.")] = 7,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show what a project used each day (UTC), its limits, and what is left of them today.

    Example: memlane usage --project team --days 30
    """
    reply: UsageReply = call(nats, project, lambda memory: memory.usage(days=days, **given(day=day)))
    show(reply, as_json, lambda: _render(reply))


def _render(reply: UsageReply) -> None:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("day", no_wrap=True)
    for name in ("encodes", "recalls", "queries", "low", "medium", "high", "reranks"):
        table.add_column(name, justify="right", no_wrap=True)
    for day in reply.days:
        tiers = day.queries_by_tier
        counts = (day.encodes, day.recalls, day.queries, tiers.low, tiers.medium, tiers.high, day.reranks)
        table.add_row(str(day.day), *(str(count) if count else "[dim]0[/dim]" for count in counts))
    console.print(table)
    for kind, limit in sorted(reply.limits.items()):
        console.print(f"{kind}: {reply.left[kind]} of {limit} left until {reply.resets_at:%Y-%m-%d %H:%M} UTC")
    if reply.limits:
        console.print(f"[dim]when it is spent: {reply.mode}[/dim]")

"""The commands `query` and `feedback`, and how a query's answer looks in the terminal."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from contracts import wire
from contracts.query import FeedbackReply, QueryMemory, QueryReply
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call, given, show
from infra.cli_render import console

BAR = 20
_COLOURS = {
    "semantic": "cyan", "recency": "green", "importance": "yellow", "quality": "blue", "decay": "magenta",
    "usage": "red", "graph": "bright_cyan",
}  # fmt: skip


def query(
    text: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int | None, typer.Option("--k", "-k", help="How many memories, 1 to 50.")] = None,
    weights: Annotated[str | None, typer.Option(help="Weights of signals, as a JSON object.")] = None,
    filters: Annotated[str | None, typer.Option(help="Filters, as a JSON object.")] = None,
    tier: Annotated[str | None, typer.Option(help="Force low, medium or high.")] = None,
    depth: Annotated[int | None, typer.Option(help="Hops in the graph, 0 to 3.")] = None,
    session: Annotated[str | None, typer.Option(help="The session that this query belongs to.")] = None,
    rerank: Annotated[bool, typer.Option("--rerank", help="Let the cross-encoder order the first 50.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Never relax a filter.")] = False,
    explain: Annotated[bool, typer.Option("--explain/--no-explain", help="Say why each memory is there.")] = True,
    consistency: Annotated[str, typer.Option(help="Eventual or ReadAfterWrite.")] = "Eventual",
    deadline_ms: Annotated[int, typer.Option(help="The time there is for an answer.")] = 1000,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show the k best memories for a query, with a bar for each of the seven signals.

    Example: memlane query "login trouble after the MFA reset" --weights '{"recency": 0.5}' --project support
    """
    fields: dict[str, Any] = {
        "rerank": rerank,
        "strict_filters": strict,
        "explain": explain,
        "consistency": consistency,
        "deadline_ms": deadline_ms,
        **given(k=k, computation_tier=tier, traversal_depth=depth, session_id=session),
    }
    for name, value in given(weights=weights, filters=filters).items():
        fields[name] = wire.parse(value.encode())
    reply = call(nats, project, lambda memory: memory.query(text, **fields))
    show(reply, as_json, lambda: _answered(reply))


def feedback(
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    useful: Annotated[bool, typer.Option("--useful/--not-useful", help="Was it of use?")] = True,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Say whether a memory was of use: it counts in the signals usage and decay.

    Example: memlane feedback k3j5x7q2... --not-useful
    """
    reply = call(nats, project, lambda memory: memory.feedback(id, useful=useful))
    show(reply, as_json, lambda: _counted(reply))


def bar(value: float, weight: float) -> str:
    """A value in [0, 1] as a bar of blocks, its weight behind it."""
    full = round(max(0.0, min(1.0, value)) * BAR)
    return f"{'█' * full}[dim]{'░' * (BAR - full)}[/dim] {value:.2f} [dim]x {weight:.2f}[/dim]"


def _answered(reply: QueryReply) -> None:
    lanes = "  ".join(
        f"{name} {'[green]ok[/green]' if lane.status == 'ok' else f'[red]{lane.status}[/red]'}"
        for name, lane in reply.lanes.items()
    )
    console.print(
        f"[bold]{reply.computation_tier}[/bold] [dim]({escape(reply.tier_reason)}; depth {reply.traversal_depth}; "
        f"{reply.latency_ms} ms)[/dim]  {lanes}"
    )
    if reply.filter_relaxed:
        console.print(f"[yellow]too few pass the filters: relaxed {', '.join(reply.relaxed)}[/yellow]")
    if reply.rerank != "not asked":
        console.print(f"[dim]rerank: {reply.rerank}[/dim]")
    for number, memory in enumerate(reply.memories, 1):
        _shown(number, memory, reply)
    if not reply.memories:
        console.print("[yellow]nothing[/yellow]")


def _shown(number: int, memory: QueryMemory, reply: QueryReply) -> None:
    console.print(f"\n[bold]{number}. {memory.score:.2f}[/bold] {escape(memory.text)} [dim]{memory.id}[/dim]")
    for name, value in memory.scores:
        weight = getattr(reply.weights, name)
        console.print(f"   [{_COLOURS[name]}]{name:<10}[/] {bar(value, weight)}", highlight=False)
    if memory.explain:
        console.print(f"   [dim]{escape('; '.join(memory.explain))}[/dim]")


def _counted(reply: FeedbackReply) -> None:
    console.print(f"counted {reply.counted:+d}")


def add_to(app: typer.Typer) -> None:
    for command in (query, feedback):
        app.command()(command)

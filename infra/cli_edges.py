"""The commands on edges between memories: link, unlink, plan, reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape

from contracts.base import MEMORY_ID_PATTERN
from contracts.edges import Evidence, LinkReply, PlanReply, PlanStep, ReasonReply
from contracts.memory import EdgeKind
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call, given, show
from infra.cli_render import console

Source = Annotated[str, typer.Argument(help="The id of the memory where the edge begins.")]
Kind = Annotated[EdgeKind, typer.Argument(case_sensitive=False, help="The kind of edge.")]
Target = Annotated[str, typer.Argument(help="The id of the memory where it ends.")]
Session = Annotated[str | None, typer.Option(help="Only memories of this session.")]
Budget = Annotated[int, typer.Option(help="Answer with what was found after this time.")]
Consistency = Annotated[str, typer.Option(help="Eventual or ReadAfterWrite.")]

_STATUS_COLOURS = {"GoalReached": "green", "Complete": "green"}


def link(
    source: Source,
    kind: Kind,
    target: Target,
    weight: Annotated[float, typer.Option(help="0 to 1; for CONTRADICTS -1 to 1.")] = 1.0,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Say that one memory caused, supports, contradicts, ... another.

    Example: memlane link k3j5x7q2... SUPPORTS b4r6z2w7... --weight 0.8
    """
    reply = call(nats, project, lambda memory: memory.link(source, kind, target, weight))
    show(reply, as_json, lambda: _linked(reply, "linked", "was linked so before"))


def unlink(
    source: Source,
    kind: Kind,
    target: Target,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Take an edge back.

    Example: memlane unlink k3j5x7q2... SUPPORTS b4r6z2w7...
    """
    reply = call(nats, project, lambda memory: memory.unlink(source, kind, target))
    show(reply, as_json, lambda: _linked(reply, "unlinked", "was not linked"))


def plan(
    start: Annotated[str, typer.Argument(help="A memory's id, or a text near which to start.")],
    goal: Annotated[str, typer.Argument(help="A memory's id, or a text near which to arrive.")],
    kinds: Annotated[
        list[EdgeKind] | None, typer.Option("--kind", case_sensitive=False, help="Follow this kind; may be repeated.")
    ] = None,
    max_steps: Annotated[int, typer.Option(help="The most edges of a path.")] = 8,
    max_branches: Annotated[int, typer.Option(help="The most memories to go on from at one level.")] = 32,
    max_paths: Annotated[int, typer.Option(help="The most paths shown.")] = 5,
    session: Session = None,
    budget_ms: Budget = 5000,
    consistency: Consistency = "Eventual",
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show how one state led to another: the paths from a start to a goal along edges.

    Example: memlane plan "deploy of the new checkout" "flood of refund requests" --project ops
    """
    fields: dict[str, Any] = {
        "max_steps": max_steps,
        "max_branches": max_branches,
        "max_paths": max_paths,
        "budget_ms": budget_ms,
        "consistency": consistency,
    }
    fields |= given(session=session, edge_kinds=tuple(kinds) if kinds else None)
    reply = call(nats, project, lambda memory: memory.plan(_place(start), _place(goal), **fields))
    show(reply, as_json, lambda: _planned(reply))


def reason(
    claim: Annotated[str, typer.Argument(help="A memory's id, or a claim in words.")],
    depth: Annotated[int, typer.Option(help="The most edges between the claim and its evidence.")] = 3,
    threshold: Annotated[float, typer.Option(help="The least score of evidence.")] = 0.2,
    max_evidence: Annotated[int, typer.Option(help="The most evidence shown of each side.")] = 5,
    session: Session = None,
    budget_ms: Budget = 5000,
    consistency: Consistency = "Eventual",
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Weigh a claim: what memories say for it, and what against it.

    Example: memlane reason "the outage came from the new checkout" --project ops
    """
    fields: dict[str, Any] = {
        "depth": depth,
        "threshold": threshold,
        "max_evidence": max_evidence,
        "budget_ms": budget_ms,
        "consistency": consistency,
    }
    fields |= given(session=session)
    reply = call(nats, project, lambda memory: memory.reason(_place(claim), **fields))
    show(reply, as_json, lambda: _reasoned(reply))


def add_to(app: typer.Typer) -> None:
    for command in (link, unlink, plan, reason):
        app.command()(command)


def _place(given: str) -> dict[str, str]:
    """What has the form of a memory's id is one."""
    return {"id": given} if re.fullmatch(MEMORY_ID_PATTERN.strip("^$"), given) else {"text": given}


def _linked(reply: LinkReply, done: str, was: str) -> None:
    console.print(f"{done} at position {reply.position}" if reply.changed else was)


def _status(status: str, took_ms: float) -> str:
    return f"[bold {_STATUS_COLOURS.get(status, 'yellow')}]{status}[/] [dim]{took_ms:.0f} ms[/dim]"


def _planned(reply: PlanReply) -> None:
    console.print(_status(reply.status, reply.took_ms))
    for path in reply.paths:
        console.print(f"\n[bold]{path.score:.3f}[/bold] [dim]{len(path.steps) - 1} edges[/dim]")
        for step in path.steps:
            console.print(f"  {_transition(step)}{escape(step.text)} [dim]{step.id}[/dim]")


def _transition(step: PlanStep) -> str:
    if step.transition == "Initial":
        return ""
    note = f"{step.weight:.2f}, by session" if step.derived else f"{step.weight:.2f}"
    return f"[cyan]{step.transition}[/cyan] [dim]{note}[/dim] "


def _reasoned(reply: ReasonReply) -> None:
    console.print(f"{_status(reply.status, reply.took_ms)}  confidence [bold]{reply.confidence:+.2f}[/bold]")
    for basis in reply.basis:
        console.print(f"  [dim]near, {basis.similarity:.2f}:[/dim] {escape(basis.text)}")
    _side("for", "green", reply.supporting)
    _side("against", "red", reply.contradicting)


def _side(name: str, colour: str, evidence: Sequence[Evidence]) -> None:
    if evidence:
        console.print(f"[bold {colour}]{name}[/]")
    for one in evidence:
        console.print(f"  [bold]{one.score:.3f}[/bold] {escape(one.text)} [dim]{' · '.join(one.path)}, {one.id}[/dim]")

"""What the command line shows people."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from contracts.catalog import InspectReply, ListReply
from contracts.encode import EncodeReply, ForgetReply, RestoreReply
from contracts.errors import MemlaneError
from contracts.recall import RecallReply, Trace

if TYPE_CHECKING:
    from infra.cli_ingest import Report
    from infra.discovery import Process

#: What is piped is not cut to a terminal's width.
console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)
_COLOURS = {"Single": "green", "Many": "cyan", "None": "yellow"}


def print_json(value: Any) -> None:
    print(orjson.dumps(value, default=str).decode())


def error(problem: MemlaneError) -> None:
    details = ", ".join(f"{key}={value}" for key, value in problem.details.items())
    text = f"[red]{problem.code}[/red] {escape(problem.message)}"
    Console(stderr=True).print(text + (f" [dim]({escape(details)})[/dim]" if details else ""))


def encoded(reply: EncodeReply) -> None:
    note = " [dim](already there)[/dim]" if reply.deduplicated else ""
    pending = not reply.position and not reply.silent
    where = "pending in its transaction" if pending else f"at position {reply.position}"
    console.print(f"{reply.id} {where}{note}")


def restored(reply: RestoreReply) -> None:
    console.print(f"restored at position {reply.position}" if reply.restored else "was not forgotten")


def forgotten(reply: ForgetReply) -> None:
    console.print(f"forgotten at position {reply.position}" if reply.forgotten else "was forgotten before")


def ingested(report: Report) -> None:
    console.print(
        f"[green]{report.stored}[/green] stored, {report.deduplicated} already there, "
        f"[{'red' if report.failed else 'dim'}]{report.failed} bad[/], in {report.took_s:.1f} s "
        f"({report.rate:.0f}/s) into {', '.join(sorted(report.projects)) or 'nothing'}"
    )
    for place, problem in report.problems[:20]:
        console.print(f"  [red]{place}[/red] {escape(problem)}")


def answer(cue: str, reply: RecallReply) -> None:
    colour = _COLOURS[reply.answer_kind]
    lanes = "  ".join(
        f"{name} {'[green]ok[/green]' if lane.status == 'ok' else f'[red]{lane.status}[/red]'} "
        f"[dim]{lane.hits} hits, {lane.took_ms:.0f} ms, at {lane.position}[/dim]"
        for name, lane in reply.lanes.items()
    )
    console.print(f"[bold {colour}]{reply.answer_kind}[/] [dim]{reply.took_ms:.0f} ms[/dim]  {lanes}")
    if reply.degraded:
        console.print("[yellow]degraded: a lane did not answer[/yellow]")
    if reply.members:
        table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim")
        for name in ("score", "memory", "when", "lanes", "why"):
            table.add_column(name, overflow="fold")
        for member in reply.members:
            votes = " ".join(f"{lane[:3]}#{vote.rank}" for lane, vote in member.provenance.items())
            when = (member.occurred_at or member.created_at).strftime("%Y-%m-%d")
            replaced = " [yellow](superseded)[/yellow]" if member.superseded_by else ""
            table.add_row(
                f"{member.score:.2f}", escape(member.text) + replaced, when, votes, escape("; ".join(member.why))
            )
        console.print(table)
    if reply.trace:
        _trace(reply.trace)


def listing(reply: ListReply) -> None:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("id", "created", "kind", "memory"):
        table.add_column(name, overflow="fold")
    for row in reply.memories:
        state = (
            " [red](forgotten)[/red]" if row.tombstone else " [yellow](superseded)[/yellow]" * bool(row.superseded_by)
        )
        table.add_row(row.id, row.created_at.strftime("%Y-%m-%d %H:%M"), str(row.kind), escape(row.text) + state)
    console.print(table)
    if reply.cursor:
        console.print(f"[dim]more: --cursor {reply.cursor}[/dim]")


def story(memory_id: str, reply: InspectReply) -> None:
    if not reply.found or reply.memory is None:
        console.print(f"[yellow]{memory_id} is not in this project[/yellow]")
        return
    row = reply.memory
    console.print(escape(row.text) or "[dim](erased)[/dim]")
    facts = {
        "kind": row.kind, "happened": row.occurred_at, "session": row.session, "source": row.source,
        "tags": ", ".join(row.tags), "metadata": row.metadata or None,
        "entities": ", ".join(f"{entity.name} ({entity.type})" for entity in row.entities),
        "statements": "; ".join(statement.sentence for statement in row.statements),
        "relations": "; ".join(relation.sentence for relation in row.relations),
        "edges": "; ".join(f"{edge.kind} {edge.target} ({edge.weight:g})" for edge in row.edges),
        "superseded by": row.superseded_by,
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            console.print(f"  [dim]{name}[/dim] {escape(str(value))}")
    for entry in reply.story:
        console.print(f"  [dim]position {entry.position}, {entry.at:%Y-%m-%d %H:%M:%S}[/dim] {entry.change}")


#: Facts of a process that have columns of their own.
_COLUMNS = ("shard", "replica", "position", "per_s", "median_ms")


def processes(found: Sequence[Process], lags: Sequence[int | None]) -> None:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("role", *_COLUMNS, "lag", "requests", "errors"):
        table.add_column(name, no_wrap=True, justify="left" if name == "role" else "right")
    table.add_column("facts", no_wrap=True, overflow="ellipsis")
    for process, behind in zip(found, lags, strict=True):
        told = [str(process.facts.get(name, "")) for name in _COLUMNS]
        facts = "  ".join(
            f"{key} {value}" for key, value in process.facts.items() if key not in _COLUMNS and value != 0
        )
        numbers = ("" if behind is None else str(behind), str(process.requests), str(process.errors))
        table.add_row(process.role, *told, *numbers, escape(facts))
    console.print(table)


def _trace(trace: Trace) -> None:
    weights = ", ".join(f"{lane} {weight}" for lane, weight in trace.weights.items())
    console.print(f"\n[bold]route[/bold] {trace.query_class} [dim]({escape(trace.class_reason)}; {weights})[/dim]")
    table = Table(header_style="dim", expand=True)
    for lane in trace.lanes:
        table.add_column(lane, overflow="ellipsis", no_wrap=True, ratio=1)
    columns = [
        [f"{hit.score:.2f} [dim]{hit.kind}[/dim] {escape(hit.label or hit.item)}" for hit in hits[:10]]
        for hits in trace.lanes.values()
    ]
    for number in range(max((len(column) for column in columns), default=0)):
        table.add_row(*(column[number] if number < len(column) else "" for column in columns))
    console.print(table)
    console.print(f"[bold]dropped[/bold] {trace.dropped or 'nothing'}  [bold]counts[/bold] {trace.counts}")
    console.print(f"[bold]band[/bold] {trace.band}  [bold]ms[/bold] {trace.timings_ms}")

"""`memlane schema declare` and `memlane schema show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from contracts import wire
from contracts.schema import DeclareReply, VersionedSchema
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call, read_file, show
from infra.cli_render import console

app = typer.Typer(help="What a project's memories may speak of.", no_args_is_help=True)
_COLOURS = {"matched": "dim", "inserted": "green", "conflict": "red"}


@app.command()
def declare(
    file: Annotated[Path, typer.Argument(help="A JSON file: entity_types, predicates, relation_types.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would become of each item.")] = False,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add to a project's schema: all of the file, or nothing when an item contradicts what is declared (exit code 1).

    Example: memlane schema declare schema.json --dry-run
    """
    schema = wire.parse(read_file(file))
    reply: DeclareReply = call(nats, project, lambda memory: memory.declare_schema(schema, dry_run=dry_run))
    show(reply, as_json, lambda: _report(reply, dry_run))
    if any(item.outcome == "conflict" for item in reply.report):
        raise typer.Exit(1)


@app.command("show")
def show_schema(project: ProjectName = DEFAULT_PROJECT, nats: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show a project's schema. What it prints with --json has, as `schema`, what `declare` takes.

    Example: memlane schema show --project team
    """
    reply: VersionedSchema = call(nats, project, lambda memory: memory.schema())
    show(reply, as_json, lambda: _schema(reply))


def _report(reply: DeclareReply, dry_run: bool) -> None:
    for item in reply.report:
        detail = f" [dim]({escape(item.detail)})[/dim]" if item.detail else ""
        console.print(f"[{_COLOURS[item.outcome]}]{item.outcome:8}[/] {escape(item.item)}{detail}")
    state = "in force" if reply.applied else "not applied, dry run" if dry_run else "not applied"
    console.print(f"version {reply.version}, {state}")


def _schema(reply: VersionedSchema) -> None:
    schema = reply.declared
    console.print(f"version {reply.version}" + ("" if reply.version else " [dim](nothing declared: all goes)[/dim]"))
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("section", "name", "says", "description"):
        table.add_column(name, overflow="fold")
    for entity in schema.entity_types:
        table.add_row("entity type", escape(entity.name), "", escape(entity.description or ""))
    for predicate in schema.predicates:
        says = f"{predicate.kind}, {predicate.current_values}" + ", symmetric" * predicate.symmetric
        table.add_row("predicate", escape(predicate.name), says, escape(predicate.description or ""))
    for relation in schema.relation_types:
        ends = f"{relation.from_type or 'any'} → {relation.to_type or 'any'}, {relation.cardinality}"
        table.add_row("relation type", escape(relation.name), escape(ends) + ", symmetric" * relation.symmetric, "")
    if table.row_count:
        console.print(table)

"""The commands `export` and `import`: memories out of a project, and into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, InvalidRequest, MemlaneError
from infra import cli_render as render
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call
from infra.moving.outward import NEVER, Carried, outward


def add_to(app: typer.Typer) -> None:
    app.command("export")(export)
    app.command("import")(bring_in)


def export(
    form: Annotated[str, typer.Option("--format", help="jsonl or markdown.")] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="A new file, or for markdown a new folder.")] = None,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Write all live memories of a project, oldest first: with their times, statements, edges and what they supersede.
    What stays behind is told on standard error.

    Example: memlane export --project team --out team.jsonl
    """
    from infra.moving.files import FORMATS

    beside = Console(stderr=True, soft_wrap=True)  # the memories may go to standard output
    if form not in FORMATS:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"no format {form!r}", field="format", known=list(FORMATS))
    carried = Carried()

    async def run(memory: MemoryClient) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.completed} memories"))
        with FORMATS[form](out) as write, Progress(*columns, console=beside, transient=True) as bar:
            task = bar.add_task("export", total=None)
            async for fields in outward(memory, carried):
                write(fields)
                bar.advance(task)

    call(nats, project, run)
    left = {reason: count for reason, count in carried.left_out.items() if count}
    if as_json:
        beside.print_json(data={"memories": carried.memories, "left_out": left, "never": NEVER}, indent=None)
        return
    beside.print(f"[green]{carried.memories}[/green] memories")
    for reason, count in left.items():
        beside.print(f"  left out: [yellow]{count}[/yellow] {reason}")
    beside.print(f"  [dim]no part of an export: {', '.join(NEVER)}[/dim]")


def bring_in(
    path: Annotated[Path, typer.Argument(help="A file or folder.")],
    form: Annotated[str, typer.Option("--format", help="jsonl, markdown, mem0, chatgpt or claude.")] = "jsonl",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Store the rest where some of it is malformed.")] = False,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Store what an export holds: one of `memlane export`, or of another service. All of it is checked first, and where
    anything is malformed nothing is stored. What is there already stays, so it may be repeated.

    Example: memlane import conversations.json --format chatgpt --project me
    """
    import anyio

    from infra.cli_ingest import pour
    from infra.moving.inward import Inward

    inward = Inward(path, form, project)
    checked = inward.check()
    if checked.bad and not skip_bad:
        raise _first_of(checked.bad)
    report = anyio.run(pour, inward.items(checked), checked.total, path.name, project, nats, False, not as_json)
    if as_json:
        render.print_json(report.as_dict())
    else:
        render.ingested(report)
    if report.failed:
        raise typer.Exit(1)


def _first_of(bad: list[tuple[str, MemlaneError]]) -> MemlaneError:
    first = bad[0][1]
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    error = type(first)(first.code, f"{first.message}{more}; nothing was stored")
    error.details = first.details
    return error

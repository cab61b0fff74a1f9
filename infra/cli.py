"""The command line: `memlane VERB`. Each verb prints for people, or JSON with --json."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from contracts import wire
from contracts.client import MemoryClient
from contracts.errors import MemlaneError, to_reply
from infra import cli_backup, cli_edges, cli_memory, cli_move, cli_query, cli_schema, cli_security, cli_txn, telemetry
from infra import cli_render as render
from infra import settings as settings_module
from infra.cli_common import (
    DEFAULT_PROJECT,
    DEFAULT_URL,
    AsJson,
    InTxn,
    ProjectName,
    Url,
    access,
    call,
    given,
    show,
    write_file,
)
from infra.cli_eval import evaluate
from infra.cli_graph import graph
from infra.cli_http import http
from infra.cli_mcp import mcp
from infra.cli_scale import reshard, scale
from infra.cli_top import top
from infra.cli_topics import topics
from infra.cli_usage import usage

app = typer.Typer(
    name="memlane",
    help="A memory service for AI agents over NATS.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def locked(
    creds: Annotated[Path | None, typer.Option(help="Credentials file, where the service is locked.")] = None,
    ca: Annotated[Path | None, typer.Option(help="The authority of the server's certificate.")] = None,
) -> None:
    """A memory service for AI agents over NATS."""
    for name, file in (("CREDS", creds), ("TLS_CA", ca)):
        if file is not None:
            os.environ[f"MEMLANE_NATS__{name}"] = str(file.absolute())


@app.command()
def up(
    data: Annotated[Path, typer.Option(help="Folder for all data.")] = Path(".memlane"),
    nats_port: Annotated[int, typer.Option(help="Port of the embedded NATS server; 0: any free one.")] = 4222,
    config: Annotated[Path | None, typer.Option(help="A TOML settings file.")] = None,
    security: Annotated[Path | None, typer.Option(help="Lock it with what `memlane security init` made.")] = None,
) -> None:
    """Run everything on this machine: NATS, the graph store and all workers. Ctrl-C stops it all.

    With NATS_URL or NEO4J_URI set, those servers are used instead of embedded ones.

    Example: memlane up --data ./memory --nats-port 4222
    """
    from infra import supervisor

    if config:
        os.environ["MEMLANE_CONFIG"] = str(config.absolute())
    settings = settings_module.load().model_copy(update={"data": data} | given(security=security))
    telemetry.configure(settings.log_level, "supervisor")
    own_nats = not os.environ.get("NATS_URL")
    with supervisor.only_one(data):
        guard = supervisor.Supervisor(settings, nats_port, own_nats)
        anyio.run(supervisor.run, guard, lambda url: print(f"ready {url}", flush=True))


@app.command()
def status(nats: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show every process that answers: role, shard, replica, position, lag behind the log, requests.

    Example: memlane status
    """
    from infra.discovery import discover, lag, log_ends

    async def run() -> Any:
        async with MemoryClient(nats, project=DEFAULT_PROJECT, access=access()) as client:
            processes = await discover(await client.connection())
            return processes, await log_ends(await client.connection(), processes)

    processes, ends = anyio.run(run)
    lags = [lag(process, ends) for process in processes]
    if as_json:
        fields = [{name: getattr(process, name) for name in process.__slots__} for process in processes]
        render.print_json([one | {"lag": behind} for one, behind in zip(fields, lags, strict=True)])
    else:
        render.processes(processes, lags)


@app.command()
def encode(
    text: Annotated[str, typer.Argument(help="The memory's text, or - for standard input.")],
    project: ProjectName = DEFAULT_PROJECT,
    fields: Annotated[str, typer.Option("--fields", help="More request fields, as a JSON object.")] = "{}",
    txn: InTxn = None,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Store one memory.

    Example: memlane encode "Ana now works at Globex" --fields '{"tags": ["people"]}'
    """
    text = sys.stdin.read() if text == "-" else text
    more = wire.parse(fields.encode()) | given(txn_id=txn)
    reply = call(nats, project, lambda memory: memory.encode(text, **more))
    show(reply, as_json, lambda: render.encoded(reply))


@app.command()
def ingest(
    file: Annotated[Path, typer.Argument(help="JSON lines, Markdown, plain text, or a LoCoMo file.")],
    form: Annotated[str | None, typer.Option("--format", help="jsonl, markdown, text or locomo.")] = None,
    project: ProjectName = DEFAULT_PROJECT,
    queue: Annotated[bool, typer.Option("--queue", help="Only put them on the ingest queue.")] = False,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Store every memory of a file. Bad lines are told and skipped.

    Example: memlane ingest notes.md --project team
    """
    from infra.cli_ingest import ingest_file

    report = anyio.run(ingest_file, file, form, project, nats, queue, not as_json)
    if as_json:
        render.print_json(report.as_dict())
    else:
        render.ingested(report)
    if report.failed:
        raise typer.Exit(1)


@app.command()
def recall(
    cue: Annotated[str, typer.Argument(help="What to remember.")],
    project: ProjectName = DEFAULT_PROJECT,
    max_results: Annotated[int, typer.Option(help="A ceiling on the members listed.")] = 50,
    session: Annotated[str | None, typer.Option(help="Only memories of this session.")] = None,
    since: Annotated[str | None, typer.Option(help="Only events from this instant (RFC 3339 with zone).")] = None,
    until: Annotated[str | None, typer.Option(help="Only events up to this instant.")] = None,
    as_of: Annotated[str | None, typer.Option(help="As things stood at this instant.")] = None,
    believed_at: Annotated[str | None, typer.Option(help="By what had been told at this instant.")] = None,
    subject: Annotated[str | None, typer.Option(help="Whom or what it is about.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Also what newer memories replaced.")] = False,
    consistency: Annotated[str, typer.Option(help="Eventual or ReadAfterWrite.")] = "Eventual",
    deadline_ms: Annotated[int, typer.Option(help="Answer within this time.")] = 1000,
    txn: InTxn = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what every lane and stage saw.")] = False,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Recall what a project knows about a cue: one memory, several, or honestly none.

    Example: memlane recall "who owns the billing service?" --trace
    """
    fields: dict[str, Any] = {
        "max_results": max_results,
        "include_superseded": superseded,
        "consistency": consistency,
        "deadline_ms": deadline_ms,
        "trace": trace,
    }
    fields |= given(
        session=session, since=since, until=until, as_of=as_of, believed_at=believed_at, subject=subject, txn_id=txn
    )
    reply = call(nats, project, lambda memory: memory.recall(cue, **fields))
    show(reply, as_json, lambda: render.answer(cue, reply))


@app.command()
def asyncapi(
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
) -> None:
    """Print the AsyncAPI 3.0 document of the service: every verb, its messages and their JSON Schemas.

    Example: memlane asyncapi --out asyncapi.json
    """
    from infra.asyncapi import text

    if out:
        write_file(out, text())
    else:
        sys.stdout.buffer.write(text())


app.command()(graph)
app.command()(topics)
app.command()(usage)
app.command()(scale)
app.command()(reshard)
app.command()(top)
app.command()(http)
app.command()(mcp)
app.command(name="eval")(evaluate)
cli_memory.add_to(app)
cli_edges.add_to(app)
cli_query.add_to(app)
cli_move.add_to(app)
app.add_typer(cli_backup.app, name="backup")
app.add_typer(cli_schema.app, name="schema")
app.add_typer(cli_txn.app, name="txn")
app.add_typer(cli_security.app, name="security")


def main() -> None:
    """The console script. An error of ours is one line (JSON with --json) and exit code 1."""
    telemetry.hush()
    try:
        app()
    except MemlaneError as error:
        if "--json" in sys.argv:
            print(wire.encode(to_reply(error)).decode())
        else:
            render.error(error)
        sys.exit(1)


if __name__ == "__main__":
    main()

"""`memlane graph`: a project's typed graph, all pages of it, in one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, InvalidRequest
from contracts.graph import GraphFetchReply, union
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, ProjectName, Url, call, write_file
from infra.graph_formats import FORMATS


def graph(
    form: Annotated[str, typer.Option("--format", help="json, graphml or dot.")] = "json",
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
    types: Annotated[list[str] | None, typer.Option("--type", help="Only entities of this type (repeatable).")] = None,
    memories: Annotated[bool, typer.Option("--memories/--no-memories", help="Show memories and their edges.")] = True,
    statements: Annotated[bool, typer.Option("--statements/--no-statements", help="Show statements.")] = True,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="Also forgotten memories.")] = False,
    project: ProjectName = DEFAULT_PROJECT,
    nats: Url = DEFAULT_URL,
) -> None:
    """Export a project as a graph of memories, statements and entities.

    Example: memlane graph --format dot --type Person | dot -Tsvg > people.svg
    """
    write = FORMATS.get(form)
    if write is None:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"no format {form!r}", field="format", known=list(FORMATS))
    fields: dict[str, Any] = {
        "types": types or [],
        "include_memories": memories,
        "include_edges": memories,
        "include_statements": statements,
        "include_tombstoned": forgotten,
    }
    data = write(call(nats, project, lambda memory: _whole(memory, fields)))
    if out:
        write_file(out, data)
    else:
        sys.stdout.buffer.write(data)


async def _whole(memory: MemoryClient, fields: dict[str, Any]) -> GraphFetchReply:
    """All pages. Only the last one tells what a placeholder of the first stands for, so none is written before."""
    pages = [await memory.graph_fetch(**fields, limit=500)]
    while pages[-1].cursor:
        pages.append(await memory.graph_fetch(**fields, limit=500, cursor=pages[-1].cursor))
    return union(pages)

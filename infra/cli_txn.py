"""The commands of a transaction: `memlane txn begin`, then --txn on encode, forget and recall, then commit or abort."""

from __future__ import annotations

from typing import Annotated

import typer

from infra import cli_render as render
from infra.cli_common import DEFAULT_PROJECT, DEFAULT_URL, AsJson, ProjectName, Url, call, show

app = typer.Typer(help="Write several memories at once, or none.", no_args_is_help=True)

TxnId = Annotated[str, typer.Argument(help="What `memlane txn begin` printed.")]


@app.command()
def begin(
    project: ProjectName = DEFAULT_PROJECT,
    timeout_s: Annotated[int, typer.Option(help="Seconds until it expires, at most 300.")] = 30,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Begin a transaction and print its id.

    Example: TXN=$(memlane txn begin)
    """
    reply = call(nats, project, lambda memory: memory.begin(timeout_s=timeout_s))
    show(reply, as_json, lambda: print(reply.txn_id))


@app.command()
def commit(
    txn_id: TxnId, project: ProjectName = DEFAULT_PROJECT, nats: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Write all of it at once. Committing again is harmless.

    Example: memlane txn commit $TXN
    """
    reply = call(nats, project, lambda memory: memory.commit(txn_id))
    show(
        reply,
        as_json,
        lambda: render.console.print(f"committed {reply.operations_applied} operations at position {reply.position}"),
    )


@app.command()
def abort(
    txn_id: TxnId, project: ProjectName = DEFAULT_PROJECT, nats: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Drop all of it.

    Example: memlane txn abort $TXN
    """
    reply = call(nats, project, lambda memory: memory.abort(txn_id))
    show(reply, as_json, lambda: render.console.print(f"dropped {reply.operations_discarded} operations"))

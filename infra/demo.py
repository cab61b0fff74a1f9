"""The demo: the whole stack on this machine, a support desk's memory, ten cues. `sh infra/demo.sh` runs it.

Exits with 1 when a cue does not show what it is there to show.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, Unavailable
from contracts.recall import RecallReply
from infra.child import end
from infra.cli_ingest import ingest_file

SAMPLE = Path(__file__).parent / "sample"
PROJECT = "helpdesk"
console = Console(width=int(os.environ.get("COLUMNS", "0")) or 140)


def main() -> int:
    console.print("starting the embedded stack: NATS, graph store, workers …")
    with tempfile.TemporaryDirectory(prefix="memlane-demo-") as folder, running(Path(folder)) as url:
        return anyio.run(_run, url)


@contextmanager
def running(data: Path, **settings: str) -> Iterator[str]:
    """A whole stack in a folder, as `memlane up` starts it, on a port of its own; gives its NATS url.

    Raises Unavailable when it does not start; its messages have then gone to standard error.
    """
    command = [sys.executable, "-m", "infra.cli", "up", "--data", str(data), "--nats-port", "0"]
    environment = {key: value for key, value in os.environ.items() if key != "NATS_URL"} | settings
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode().strip()
            if not line.startswith("ready "):
                raise Unavailable(ErrorCode.UNAVAILABLE, "the stack did not start; see its messages above")
            yield line.removeprefix("ready ")
        finally:
            end(process, 30)


async def _run(url: str) -> int:
    report = await ingest_file(SAMPLE / "helpdesk.jsonl", None, PROJECT, url, queue=False, progress=True)
    console.print(f"ingested {report.stored} memories in {report.took_s:.1f} s ({report.rate:.0f}/s)\n")
    table = Table(title="ten cues", header_style="bold", show_lines=True)
    for name, ratio in (
        ("cue", 3),
        ("shows", 1),
        ("answer", 1),
        ("the member in point", 5),
        ("found by", 2),
        ("ms", 1),
    ):
        table.add_column(name, ratio=ratio, overflow="fold")
    misses: list[str] = []
    async with MemoryClient(url, project=PROJECT) as memory:
        for cue in orjson.loads((SAMPLE / "cues.json").read_bytes()):
            started = time.monotonic()
            fields = {key: value for key, value in cue.items() if key not in _NOT_FIELDS}
            reply = await memory.recall(
                cue["cue"], consistency="ReadAfterWrite", position=report.last_position, deadline_ms=10_000, **fields
            )
            took_ms = (time.monotonic() - started) * 1000
            misses += [f"{cue['cue']}: {problem}" for problem in _problems(cue, reply)]
            table.add_row(*_row(cue, reply), f"{took_ms:.0f}")
    console.print(table)
    for miss in misses:
        console.print(f"[red]miss[/red] {escape(miss)}")
    if not misses:
        console.print("[green]every cue showed what it is there to show[/green]")
    return 1 if misses else 0


_NOT_FIELDS = {"cue", "shows", "expect", "not_expect"}


def _problems(cue: dict[str, Any], reply: RecallReply) -> list[str]:
    texts = [member.text for member in reply.members]
    if cue["expect"] is None:
        return [] if reply.answer_kind == "None" else [f"expected None, got {texts[:1]}"]
    problems = []
    if not any(cue["expect"] in text for text in texts):
        problems.append(f"no member holds {cue['expect']!r}")
    if cue.get("not_expect") and any(cue["not_expect"] in text for text in texts):
        problems.append(f"a member holds {cue['not_expect']!r}")
    return problems


def _row(cue: dict[str, Any], reply: RecallReply) -> tuple[str, str, str, str, str]:
    count = len(reply.members)
    answer = reply.answer_kind if count <= 1 else f"{reply.answer_kind} ({count})"
    expected = [member for member in reply.members if cue["expect"] and cue["expect"] in member.text]
    shown = (expected or list(reply.members))[:1]
    first = escape(shown[0].text) if shown else "[dim]nothing is remembered about it[/dim]"
    lanes = ", ".join(f"{lane} #{vote.rank}" for lane, vote in shown[0].provenance.items()) if shown else ""
    return escape(cue["cue"]), cue["shows"], answer, first, lanes


if __name__ == "__main__":
    sys.exit(main())

"""The command `eval`: how well a running service answers a public question set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import anyio
import orjson
import typer
from rich.progress import Progress, TaskID

from infra.cli_common import DEFAULT_URL, AsJson, Url, write_file
from infra.cli_render import console, print_json


def evaluate(
    name: Annotated[str, typer.Argument(help="locomo, scifact or hotpotqa.")],
    path: Annotated[Path, typer.Argument(help="Its file or folder; it is read, and stored in projects of its own.")],
    every: Annotated[int, typer.Option(min=1, help="Ask every n-th question only.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Write the numbers to this file, as JSON.")] = None,
    nats: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Store a question set, ask all of its questions, and show how well they were answered.

    Example: memlane eval locomo locomo10.json --every 4
    """
    from infra.evaluation.datasets import load
    from infra.evaluation.report import show

    questions = load(name, path)
    with Progress(console=console, transient=True, disable=as_json) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        summary = anyio.run(_run, nats, questions, every, progress)
    if out:
        write_file(out, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    if as_json:
        print_json(summary)
    else:
        show(summary, console)


async def _run(url: str, questions: Any, every: int, progress: Any) -> dict[str, Any]:
    from infra.evaluation.asking import Asker
    from infra.evaluation.report import summarise

    async with Asker(url, questions, progress).connected() as asker:
        await asker.store()
        asked = await asker.ask(questions.questions[::every])
        # strangers come in pairs, plain and with names swapped
        chosen = [one for number, one in enumerate(questions.strangers) if number // 2 % every == 0]
        return summarise(questions, asked, await asker.ask_strangers(chosen))

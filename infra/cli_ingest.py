"""Ingesting a file: many encodes in flight, a progress bar, and a report that loses no bad line."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from contracts.client import MemoryClient
from contracts.encode import EncodeReply, EncodeRequest
from contracts.errors import MemlaneError
from infra.cli_common import access
from infra.readers import Item, read_each

#: Encodes in flight: enough that the embedder's batches are full.
IN_FLIGHT = 48
#: How long one item is tried again, and the longest pause between two tries: a service that restarts, or that embeds
#: long texts on a busy machine, takes its time.
PATIENCE_S, PAUSE_S = 120.0, 8.0

R = TypeVar("R")


@dataclass
class Report:
    stored: int = 0
    deduplicated: int = 0
    failed: int = 0
    last_position: int = 0
    took_s: float = 0.0
    projects: set[str] = field(default_factory=set)
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return (self.stored + self.deduplicated) / self.took_s if self.took_s else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "stored": self.stored,
            "deduplicated": self.deduplicated,
            "failed": self.failed,
            "last_position": self.last_position,
            "took_s": round(self.took_s, 3),
            "projects": sorted(self.projects),
            "problems": self.problems,
        }


async def ingest_file(file: Path, form: str | None, project: str, url: str, queue: bool, progress: bool) -> Report:
    """Read, encode, report. Raises what the reader raises for a file it cannot read at all, and Unavailable when
    nobody can be reached; a bad line is counted and the rest goes on."""
    items = [(f"item {place}", item) for place, item in read_each(file, form)]
    return await pour(items, len(items), file.name, project, url, queue, progress)


async def pour(
    items: Iterable[tuple[str, Item | MemlaneError]],
    total: int,
    name: str,
    project: str,
    url: str,
    queue: bool,
    progress: bool,
) -> Report:
    """Store items, each with its place, as fast as they are taken, and no faster read. Raises Unavailable when nobody
    can be reached; a bad one is counted and the rest goes on."""
    report = Report()
    started = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, disable=not progress, transient=True) as bar:
        task = bar.add_task(name, total=total, rate="")
        async with AsyncExitStack() as stack:
            clients: dict[str, MemoryClient] = {}
            limiter = anyio.Semaphore(IN_FLIGHT)
            async with anyio.create_task_group() as tasks:
                for place, item in items:
                    if isinstance(item, MemlaneError):
                        _fail(report, place, item)
                        continue
                    whose = item.project or project
                    if whose not in clients:
                        clients[whose] = await stack.enter_async_context(
                            MemoryClient(url, project=whose, access=access())
                        )
                        report.projects.add(whose)
                    await limiter.acquire()

                    async def one(client: MemoryClient, request: EncodeRequest, place: str) -> None:
                        try:
                            await _store(client, request, queue, report)
                        except MemlaneError as error:
                            _fail(report, place, error)
                        finally:
                            limiter.release()
                            report.took_s = time.monotonic() - started
                            bar.update(task, advance=1, rate=f"{report.rate:.0f}/s")

                    tasks.start_soon(one, clients[whose], item.request, place)
    report.took_s = time.monotonic() - started
    return report


async def _store(client: MemoryClient, request: EncodeRequest, queue: bool, report: Report) -> None:
    if queue:
        await client.ingest(request)
        report.stored += 1
        return
    reply = await patiently(lambda: client.call("encode", request, EncodeReply))
    report.deduplicated += reply.deduplicated
    report.stored += not reply.deduplicated
    report.last_position = max(report.last_position, reply.position)


async def patiently(call: Callable[[], Awaitable[R]]) -> R:
    """The call's reply, asked for again where an error says that this may help, for a while. Raises the last one."""
    deadline, pause = time.monotonic() + PATIENCE_S, 1.0
    while True:
        try:
            return await call()
        except MemlaneError as error:
            if not error.retryable or time.monotonic() + pause > deadline:
                raise
        await anyio.sleep(pause)
        pause = min(2 * pause, PAUSE_S)


def _fail(report: Report, place: str, error: MemlaneError) -> None:
    report.failed += 1
    if len(report.problems) < 100:
        report.problems.append((place, str(error)))

"""Two awaitables at once, and the first failure as itself rather than as a group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

A = TypeVar("A")
B = TypeVar("B")


async def both(one: Awaitable[A], other: Awaitable[B]) -> tuple[A, B]:
    """Both results. When one fails the other is cancelled, and the failure is raised."""
    results: dict[int, object] = {}

    async def run(number: int, awaitable: Awaitable[object]) -> None:
        results[number] = await awaitable

    await all_of([partial(run, 0, one), partial(run, 1, other)])
    return results[0], results[1]  # type: ignore[return-value]


async def all_of(jobs: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run every job; raise the first failure as itself, the others cancelled."""
    try:
        async with anyio.create_task_group() as tasks:
            for job in jobs:
                tasks.start_soon(job)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None

"""What a request in hand tells of itself: where it is, and what became of each lane. A service that measures puts a
`Watch` here before it calls a handler; where none is, telling costs a look at a variable."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

from contracts.lanes import Lane
from contracts.recall import LaneOutcome


class Watch(Protocol):
    """Watches one request, in the task that handles it."""

    def stage(self, name: str) -> None:
        """From here on the request is in this stage; the one before, if any, is over."""
        ...

    def lane(self, lane: Lane, outcome: LaneOutcome) -> None:
        """A lane was asked for the request, and this became of it."""
        ...


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watched_by(watch: Watch) -> None:
    """From here on, this task and those it starts are watched."""
    _watch.set(watch)


def stage(name: str) -> None:
    """Tell that a stage begins. Only from the handler's own task: those it starts are within a stage."""
    watch = _watch.get()
    if watch is not None:
        watch.stage(name)


def lanes(outcomes: Mapping[Lane, LaneOutcome]) -> None:
    """Tell what became of the lanes that were asked."""
    watch = _watch.get()
    if watch is not None:
        for lane, outcome in outcomes.items():
            watch.lane(lane, outcome)

"""Who watches the requests of a process: its metrics, its traces, or nobody, which costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contracts.errors import ErrorCode
from contracts.lanes import Lane
from contracts.ports import Call
from contracts.recall import LaneOutcome
from contracts.watch import Watch, watched_by


class Handling(Watch, Protocol):
    """Watches one request from its arrival to its reply."""

    def answered(self, reply: bytes, code: ErrorCode | None) -> None:
        """The reply is made; `code` is that of the error in it."""
        ...


class Watcher(Protocol):
    def begin(self, endpoint: str, call: Call) -> Handling:
        """A request is taken in hand, by the task that calls this."""
        ...


class Observer:
    def __init__(self, watchers: Sequence[Watcher] = ()) -> None:
        self._watchers = watchers

    def begin(self, endpoint: str, call: Call) -> Handling:
        """As a `Watcher`. What the handler tells in this task, each watcher is told."""
        if not self._watchers:
            return _NOBODY
        all_of_them = _Several([watcher.begin(endpoint, call) for watcher in self._watchers])
        watched_by(all_of_them)
        return all_of_them


class _Several:
    def __init__(self, handlings: Sequence[Handling]) -> None:
        self._handlings = handlings

    def stage(self, name: str) -> None:
        for one in self._handlings:
            one.stage(name)

    def lane(self, lane: Lane, outcome: LaneOutcome) -> None:
        for one in self._handlings:
            one.lane(lane, outcome)

    def answered(self, reply: bytes, code: ErrorCode | None) -> None:
        for one in self._handlings:
            one.answered(reply, code)


_NOBODY = _Several(())

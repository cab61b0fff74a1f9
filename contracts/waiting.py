"""Calls that will never be answered. The connection is told, not the call: here the two are brought together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from contracts.errors import Denied, ErrorCode, MemlaneError, Unavailable

_VIOLATION = re.compile(r'permissions violation for (?:publish|subscription) to "([^"]+)"', re.IGNORECASE)


class Waiting:
    """The calls that wait on one connection. Give `hear` every error of it, and call `lost` when it breaks."""

    def __init__(self) -> None:
        self._scopes: dict[anyio.CancelScope, str] = {}
        self._ended: dict[anyio.CancelScope, MemlaneError] = {}

    async def hear(self, error: Exception) -> None:
        found = _VIOLATION.search(str(error))
        if found is None:
            return
        for scope, subject in list(self._scopes.items()):
            if subject.lower() == found[1].lower():  # the library lowers what the server says
                denied = f"the credential does not allow {subject}"
                self._end(scope, Denied(ErrorCode.NOT_PERMITTED, denied, subject=subject))

    async def lost(self) -> None:
        """Answers to what was asked over this connection have nowhere to go any more."""
        for scope in list(self._scopes):
            self._end(scope, Unavailable(ErrorCode.UNAVAILABLE, "the connection to NATS broke before the answer came"))

    @contextmanager
    def on(self, subject: str) -> Iterator[None]:
        """A block that waits for the answer to what it published. Raises Denied as soon as the server refuses the
        subject, and Unavailable as soon as the connection breaks, where otherwise it would wait in vain."""
        with anyio.CancelScope() as scope:
            self._scopes[scope] = subject
            try:
                yield
            finally:
                del self._scopes[scope]
                error = self._ended.pop(scope, None)
        if error is not None and scope.cancelled_caught:  # else the answer was faster
            raise error

    def _end(self, scope: anyio.CancelScope, error: MemlaneError) -> None:
        self._ended[scope] = error
        scope.cancel()

"""Calls that the server refuses. It tells the connection, not the call: here the two are brought together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from contracts.errors import Denied, ErrorCode

_VIOLATION = re.compile(r'permissions violation for (?:publish|subscription) to "([^"]+)"', re.IGNORECASE)


class Denials:
    """Give `hear` every error of a connection."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[anyio.CancelScope]] = {}

    async def hear(self, error: Exception) -> None:
        found = _VIOLATION.search(str(error))
        for scope in self._waiting.get(found[1].lower(), ()) if found else ():
            scope.cancel()

    @contextmanager
    def waiting(self, subject: str) -> Iterator[None]:
        """A block that waits for the answer to what it published. Raises Denied as soon as the server says no, where
        otherwise it would wait in vain."""
        key = subject.lower()  # the library lowers what the server says
        with anyio.CancelScope() as scope:
            self._waiting.setdefault(key, []).append(scope)
            try:
                yield
            finally:
                self._waiting[key].remove(scope)
                if not self._waiting[key]:
                    del self._waiting[key]
        if scope.cancelled_caught:
            raise Denied(ErrorCode.NOT_PERMITTED, f"the credential does not allow {subject}", subject=subject)

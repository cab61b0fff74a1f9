"""The client for programs that have no event loop: the same verbs, with the same signatures, and they block.

The verbs are those of `contracts.client`, run on an event loop of the client's own in a thread of its own. So a client
may be used from any number of threads at once, also from worker threads of a program that has an event loop elsewhere;
on that loop's own thread it would hold the loop up: use `MemoryClient` there.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from contracts.access import Access
from contracts.catalog import Row
from contracts.client import MemoryClient, Session, Transaction
from contracts.retries import DEFAULT_RETRIES
from contracts.txn import DEFAULT_TIMEOUT_S, CommitReply

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class _Face(Generic[T]):
    """Something asynchronous, and the way to the loop that it lives on."""

    def __init__(self, inner: T, portal: BlockingPortal | None) -> None:
        self._inner, self._portal = inner, portal

    @property
    def _loop(self) -> BlockingPortal:
        if self._portal is None:
            raise RuntimeError("the client is not open: use it in a with block, or call open()")
        return self._portal


def _blocking(verb: Callable[Concatenate[T, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[_Face[T], P], R]:
    """The verb as a method that waits for its end, with the signature that it has."""

    @functools.wraps(verb)
    def call(face: _Face[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        reply: R = face._loop.call(functools.partial(verb, face._inner, *args, **kwargs))
        return reply

    return call


class SyncTransaction(_Face[Transaction]):
    """The verbs of a client, inside one transaction. `committed` is there after the block."""

    encode = _blocking(Transaction.encode)
    forget = _blocking(Transaction.forget)
    recall = _blocking(Transaction.recall)

    @property
    def txn_id(self) -> str:
        return self._inner.txn_id

    @property
    def committed(self) -> CommitReply | None:
        return self._inner.committed


class SyncSession(_Face[Session]):
    """The verbs of a client, inside one session."""

    encode = _blocking(Session.encode)
    recall = _blocking(Session.recall)
    query = _blocking(Session.query)

    @property
    def id(self) -> str:
        return self._inner.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class SyncMemoryClient(_Face[MemoryClient]):
    """One project's memory over NATS, as `MemoryClient`, for use without an event loop.

    ::

        with SyncMemoryClient("nats://127.0.0.1:4222", project="support") as memory:
            memory.encode("Diego moved to the billing team")
            answer = memory.recall("where does Diego work?")

    It works only within the `with` block, or between `open` and `close`.
    """

    encode = _blocking(MemoryClient.encode)
    ingest = _blocking(MemoryClient.ingest)
    forget = _blocking(MemoryClient.forget)
    restore = _blocking(MemoryClient.restore)
    recall = _blocking(MemoryClient.recall)
    query = _blocking(MemoryClient.query)
    feedback = _blocking(MemoryClient.feedback)
    begin = _blocking(MemoryClient.begin)
    commit = _blocking(MemoryClient.commit)
    abort = _blocking(MemoryClient.abort)
    list = _blocking(MemoryClient.list)
    inspect = _blocking(MemoryClient.inspect)
    graph_fetch = _blocking(MemoryClient.graph_fetch)
    declare_schema = _blocking(MemoryClient.declare_schema)
    schema = _blocking(MemoryClient.schema)
    usage = _blocking(MemoryClient.usage)
    topics = _blocking(MemoryClient.topics)
    link = _blocking(MemoryClient.link)
    unlink = _blocking(MemoryClient.unlink)
    plan = _blocking(MemoryClient.plan)
    reason = _blocking(MemoryClient.reason)

    def __init__(
        self,
        url: str = "nats://127.0.0.1:4222",
        *,
        project: str | None = None,
        timeout_s: float = 15.0,
        access: Access | None = None,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        memory = MemoryClient(url, project=project, timeout_s=timeout_s, access=access, retries=retries)
        super().__init__(memory, None)
        self._stack = ExitStack()

    def open(self) -> Self:
        """Start the loop and connect. Raises as `MemoryClient` does when it is entered."""
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(name="memlane"))
            stack.enter_context(portal.wrap_async_context_manager(self._inner))
            self._portal, self._stack = portal, stack.pop_all()
        return self

    def close(self) -> None:
        """Close the connection and stop the loop; calls that still wait fail as Unavailable. Closing again does
        nothing, and what is closed may be opened again."""
        self._stack.close()
        self._portal = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def memories(self, **fields: Any) -> Iterator[Row]:
        """As `MemoryClient.memories`."""
        rows = self._inner.memories(**fields)
        while (row := self._loop.call(_next, rows)) is not None:
            yield row

    @contextmanager
    def transaction(self, timeout_s: int = DEFAULT_TIMEOUT_S) -> Iterator[SyncTransaction]:
        """As `MemoryClient.transaction`."""
        with self._loop.wrap_async_context_manager(self._inner.transaction(timeout_s)) as txn:
            yield SyncTransaction(txn, self._loop)

    def session(self, session: str) -> SyncSession:
        """As `MemoryClient.session`."""
        return SyncSession(self._inner.session(session), self._loop)


async def _next(rows: AsyncIterator[Row]) -> Row | None:
    return await anext(rows, None)

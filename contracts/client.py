"""The client agents use: typed requests out, typed replies or errors back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import BaseModel

from contracts import subjects, wire
from contracts.access import Access
from contracts.addressing import NO_PROJECT, SILENT_HEADER, header
from contracts.catalog import InspectReply, InspectRequest, ListReply, ListRequest, Row
from contracts.edges import (
    LinkReply,
    LinkRequest,
    PlanReply,
    PlanRequest,
    ReasonReply,
    ReasonRequest,
    UnlinkRequest,
)
from contracts.encode import EncodeReply, EncodeRequest, ForgetReply, ForgetRequest, RestoreReply, RestoreRequest
from contracts.errors import MemlaneError
from contracts.graph import GraphFetchReply, GraphFetchRequest
from contracts.link import Link
from contracts.memory import EdgeKind
from contracts.query import FeedbackReply, FeedbackRequest, QueryReply, QueryRequest
from contracts.recall import RecallReply, RecallRequest
from contracts.retries import DEFAULT_RETRIES
from contracts.schema import DeclareReply, DeclareRequest, Schema, SchemaRequest, VersionedSchema
from contracts.topics import TopicsReply, TopicsRequest
from contracts.txn import DEFAULT_TIMEOUT_S, AbortReply, BeginReply, BeginRequest, CommitReply, EndRequest
from contracts.usage import Metered, UsageReply, UsageRequest

R = TypeVar("R", bound=BaseModel)


class MemoryClient:
    """One project's memory over NATS.

    ::

        async with MemoryClient("nats://127.0.0.1:4222", project="support") as memory:
            await memory.encode("Diego moved to the billing team")
            answer = await memory.recall("where does Diego work?")

    Every verb raises the error that the service answered (`contracts.errors`), or Unavailable when nobody answered.
    Each takes its request's fields as keyword arguments. Without a project it is the organisation's default one, which
    the service knows. `access` is the credential for a service that is locked; what it does not allow raises Denied.
    Where the quota is spent in silent mode, the reply has `silent` set. `headers` gives what goes with each call, such
    as the `traceparent` of the caller's trace.

    A call that fails with a retryable error is made up to `retries` times again, within `timeout_s` and the request's
    own `deadline_ms`; no retry takes effect twice. The connection is made once, and again whenever it breaks; a call
    that waits meanwhile fails as Unavailable, or is made again. One client serves any number of calls at once.
    """

    def __init__(
        self,
        url: str = "nats://127.0.0.1:4222",
        *,
        project: str | None = None,
        timeout_s: float = 15.0,
        access: Access | None = None,
        headers: Callable[[], Mapping[str, str]] | None = None,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        if project is not None:
            wire.check_project(project)
        self.project = NO_PROJECT if project is None else project
        self._link = Link(url, access or Access(), timeout_s, retries, headers)

    async def __aenter__(self) -> MemoryClient:
        await self.connection()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Calls that still wait fail as Unavailable."""
        await self._link.close()

    async def encode(self, /, text: str, **fields: Any) -> EncodeReply:
        return await self.call("encode", wire.validate(EncodeRequest, {"text": text, **fields}), EncodeReply)

    async def ingest(self, request: EncodeRequest) -> None:
        """Put an encode request on the ingest queue: returns once the queue has stored it, before it is encoded."""
        await self._link.store(subjects.ingest(self.project), request)

    async def forget(self, /, id: str, **fields: Any) -> ForgetReply:
        return await self.call("forget", wire.validate(ForgetRequest, {"id": id, **fields}), ForgetReply)

    async def restore(self, id: str) -> RestoreReply:
        return await self.call("restore", wire.validate(RestoreRequest, {"id": id}), RestoreReply)

    async def recall(self, /, cue: str, **fields: Any) -> RecallReply:
        return await self.call("recall", wire.validate(RecallRequest, {"cue": cue, **fields}), RecallReply)

    async def query(self, /, query: str, **fields: Any) -> QueryReply:
        """The `k` best memories by seven weighted signals."""
        return await self.call("query", wire.validate(QueryRequest, {"query": query, **fields}), QueryReply)

    async def feedback(self, id: str, *, useful: bool, request_id: str | None = None) -> FeedbackReply:
        """Say whether a memory was of use: it counts in the signals usage and decay."""
        given = {"id": id, "useful": useful} | ({"request_id": request_id} if request_id is not None else {})
        return await self.call("feedback", wire.validate(FeedbackRequest, given), FeedbackReply)

    @asynccontextmanager
    async def transaction(self, timeout_s: int = DEFAULT_TIMEOUT_S) -> AsyncIterator[Transaction]:
        """All that is done under it becomes visible at once when the block ends, or, when it raises, never.

        ::

            async with memory.transaction() as txn:
                await txn.forget(old)
                await txn.encode("Diego works at Globex")
        """
        begun = await self.begin(timeout_s=timeout_s)
        txn = Transaction(self, begun.txn_id)
        try:
            yield txn
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(2), suppress(MemlaneError):
                await self.abort(begun.txn_id)  # where this fails too, it expires
            raise
        txn.committed = await self.commit(begun.txn_id)

    def session(self, session: str) -> Session:
        """The verbs of this client, inside one session.

        ::

            async with memory.session("ses-1") as session:
                await session.encode("Customer 8821 cannot log in")
                await session.query("MFA login issues")
        """
        return Session(self, session)

    async def begin(self, /, **fields: Any) -> BeginReply:
        return await self.call("txn.begin", wire.validate(BeginRequest, fields), BeginReply)

    async def commit(self, txn_id: str) -> CommitReply:
        return await self.call("txn.commit", wire.validate(EndRequest, {"txn_id": txn_id}), CommitReply)

    async def abort(self, txn_id: str) -> AbortReply:
        return await self.call("txn.abort", wire.validate(EndRequest, {"txn_id": txn_id}), AbortReply)

    async def list(self, /, **fields: Any) -> ListReply:
        return await self.call("list", wire.validate(ListRequest, fields), ListReply)

    async def memories(self, /, **fields: Any) -> AsyncIterator[Row]:
        """All that `list` would list, page by page; ``limit`` is the size of a page. What is written meanwhile may or
        may not be among it."""
        page = await self.list(**{"limit": 100} | fields)
        while True:
            for row in page.memories:
                yield row
            if page.cursor is None:
                return
            page = await self.list(**{"limit": 100} | fields | {"cursor": page.cursor})

    async def inspect(self, id: str) -> InspectReply:
        return await self.call("inspect", wire.validate(InspectRequest, {"id": id}), InspectReply)

    async def graph_fetch(self, /, **fields: Any) -> GraphFetchReply:
        return await self.call("graph_fetch", wire.validate(GraphFetchRequest, fields), GraphFetchReply)

    async def declare_schema(self, schema: Schema | dict[str, Any], *, dry_run: bool = False) -> DeclareReply:
        """Add to the project's schema; a conflict is not an error, look at `applied` and `report`."""
        request = wire.validate(DeclareRequest, {"schema": schema, "dry_run": dry_run})
        return await self.call("schema.declare", request, DeclareReply)

    async def schema(self) -> VersionedSchema:
        return await self.call("schema.get", SchemaRequest(), VersionedSchema)

    async def usage(self, /, **fields: Any) -> UsageReply:
        """``day`` (a date, none: today) is the last of ``days`` (1 to 92)."""
        return await self.call("usage", wire.validate(UsageRequest, fields), UsageReply)

    async def topics(self, /, **fields: Any) -> TopicsReply:
        """The largest topics, at most ``limit`` of them."""
        return await self.call("topics", wire.validate(TopicsRequest, fields), TopicsReply)

    async def link(self, source: str, kind: EdgeKind | str, target: str, weight: float = 1.0) -> LinkReply:
        fields = {"source": source, "kind": kind, "target": target, "weight": weight}
        return await self.call("link", wire.validate(LinkRequest, fields), LinkReply)

    async def unlink(self, source: str, kind: EdgeKind | str, target: str) -> LinkReply:
        fields = {"source": source, "kind": kind, "target": target}
        return await self.call("unlink", wire.validate(UnlinkRequest, fields), LinkReply)

    async def plan(self, /, start: Mapping[str, str], goal: Mapping[str, str], **fields: Any) -> PlanReply:
        """Each end is ``{"id": ...}`` or ``{"text": ...}``."""
        request = wire.validate(PlanRequest, {"start": dict(start), "goal": dict(goal), **fields})
        return await self.call("plan", request, PlanReply)

    async def reason(self, /, claim: Mapping[str, str], **fields: Any) -> ReasonReply:
        """The claim is ``{"id": ...}`` or ``{"text": ...}``."""
        return await self.call("reason", wire.validate(ReasonRequest, {"claim": dict(claim), **fields}), ReasonReply)

    async def call(self, verb: str, request: BaseModel, reply: type[R]) -> R:
        """Any verb by name."""

        def read(message: Msg) -> R:
            answer = wire.decode_reply(reply, message.data)
            if header(message.headers or {}, SILENT_HEADER) == "1" and issubclass(reply, Metered):
                return answer.model_copy(update={"silent": True})
            return answer

        return await self._link.request(subjects.verb(self.project, verb), request, verb, read)

    async def connection(self) -> Client:
        """The connection, made anew when it was closed for good. Raises Denied when the credential is refused."""
        return await self._link.connection()


class Transaction:
    """The verbs of a client, inside one transaction. `committed` is there after the block."""

    def __init__(self, client: MemoryClient, txn_id: str) -> None:
        self._client, self.txn_id = client, txn_id
        self.committed: CommitReply | None = None

    async def encode(self, /, text: str, **fields: Any) -> EncodeReply:
        return await self._client.encode(text, txn_id=self.txn_id, **fields)

    async def forget(self, /, id: str, **fields: Any) -> ForgetReply:
        return await self._client.forget(id, txn_id=self.txn_id, **fields)

    async def recall(self, /, cue: str, **fields: Any) -> RecallReply:
        return await self._client.recall(cue, txn_id=self.txn_id, **fields)


class Session:
    """The verbs of a client, inside one session: what is encoded belongs to it, a recall looks at nothing else, and in
    a query what scored well in it before is lifted. A field that a call names itself wins: ``session=None`` asks beyond
    the session. It holds nothing open, so the same session may be entered anywhere, any number of times."""

    def __init__(self, client: MemoryClient, session: str) -> None:
        self._client, self.id = client, session

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def encode(self, /, text: str, **fields: Any) -> EncodeReply:
        return await self._client.encode(text, **{"session": self.id} | fields)

    async def recall(self, /, cue: str, **fields: Any) -> RecallReply:
        return await self._client.recall(cue, **{"session": self.id} | fields)

    async def query(self, /, query: str, **fields: Any) -> QueryReply:
        return await self._client.query(query, **{"session_id": self.id} | fields)

"""The client agents use: typed requests out, typed replies or errors back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar

import anyio
import nats
import nats.errors
from nats.aio.client import Client
from pydantic import BaseModel

from contracts import subjects, wire
from contracts.access import AT_ONCE, Access
from contracts.addressing import NO_PROJECT, SILENT_HEADER, header
from contracts.base import MESSAGE_OVERHEAD
from contracts.catalog import InspectReply, InspectRequest, ListReply, ListRequest
from contracts.denials import Denials
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
from contracts.errors import Denied, ErrorCode, InvalidRequest, MemlaneError, Unavailable
from contracts.graph import GraphFetchReply, GraphFetchRequest
from contracts.memory import EdgeKind
from contracts.query import FeedbackReply, FeedbackRequest, QueryReply, QueryRequest
from contracts.recall import RecallReply, RecallRequest
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
    """

    def __init__(
        self,
        url: str = "nats://127.0.0.1:4222",
        *,
        project: str | None = None,
        timeout_s: float = 15.0,
        access: Access | None = None,
        headers: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        if project is not None:
            wire.check_project(project)
        self.project, self._url, self._timeout_s = NO_PROJECT if project is None else project, url, timeout_s
        self._access, self._denials, self._headers = access or Access(), Denials(), headers
        self._client: Client | None = None

    async def __aenter__(self) -> MemoryClient:
        await self.connection()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def encode(self, text: str, **fields: Any) -> EncodeReply:
        return await self.call("encode", wire.validate(EncodeRequest, {"text": text, **fields}), EncodeReply)

    async def ingest(self, request: EncodeRequest) -> None:
        """Put an encode request on the ingest queue: returns once the queue has stored it, before it is encoded."""
        client = await self.connection()
        data = wire.encode_request(request)
        self._check_size(client, data)
        subject = subjects.ingest(self.project)
        try:
            with self._denials.waiting(subject):
                await client.jetstream().publish(subject, data, timeout=self._timeout_s)
        except (TimeoutError, nats.errors.Error) as error:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the ingest queue did not answer", reason=str(error)) from None

    async def forget(self, id: str, **fields: Any) -> ForgetReply:
        return await self.call("forget", wire.validate(ForgetRequest, {"id": id, **fields}), ForgetReply)

    async def restore(self, id: str) -> RestoreReply:
        return await self.call("restore", wire.validate(RestoreRequest, {"id": id}), RestoreReply)

    async def recall(self, cue: str, **fields: Any) -> RecallReply:
        return await self.call("recall", wire.validate(RecallRequest, {"cue": cue, **fields}), RecallReply)

    async def query(self, query: str, **fields: Any) -> QueryReply:
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

    async def begin(self, **fields: Any) -> BeginReply:
        return await self.call("txn.begin", wire.validate(BeginRequest, fields), BeginReply)

    async def commit(self, txn_id: str) -> CommitReply:
        return await self.call("txn.commit", wire.validate(EndRequest, {"txn_id": txn_id}), CommitReply)

    async def abort(self, txn_id: str) -> AbortReply:
        return await self.call("txn.abort", wire.validate(EndRequest, {"txn_id": txn_id}), AbortReply)

    async def list(self, **fields: Any) -> ListReply:
        return await self.call("list", wire.validate(ListRequest, fields), ListReply)

    async def inspect(self, id: str) -> InspectReply:
        return await self.call("inspect", wire.validate(InspectRequest, {"id": id}), InspectReply)

    async def graph_fetch(self, **fields: Any) -> GraphFetchReply:
        return await self.call("graph_fetch", wire.validate(GraphFetchRequest, fields), GraphFetchReply)

    async def declare_schema(self, schema: Schema | dict[str, Any], *, dry_run: bool = False) -> DeclareReply:
        """Add to the project's schema; a conflict is not an error, look at `applied` and `report`."""
        request = wire.validate(DeclareRequest, {"schema": schema, "dry_run": dry_run})
        return await self.call("schema.declare", request, DeclareReply)

    async def schema(self) -> VersionedSchema:
        return await self.call("schema.get", SchemaRequest(), VersionedSchema)

    async def usage(self, **fields: Any) -> UsageReply:
        """``day`` (a date, none: today) is the last of ``days`` (1 to 92)."""
        return await self.call("usage", wire.validate(UsageRequest, fields), UsageReply)

    async def topics(self, **fields: Any) -> TopicsReply:
        """The largest topics, at most ``limit`` of them."""
        return await self.call("topics", wire.validate(TopicsRequest, fields), TopicsReply)

    async def link(self, source: str, kind: EdgeKind | str, target: str, weight: float = 1.0) -> LinkReply:
        fields = {"source": source, "kind": kind, "target": target, "weight": weight}
        return await self.call("link", wire.validate(LinkRequest, fields), LinkReply)

    async def unlink(self, source: str, kind: EdgeKind | str, target: str) -> LinkReply:
        fields = {"source": source, "kind": kind, "target": target}
        return await self.call("unlink", wire.validate(UnlinkRequest, fields), LinkReply)

    async def plan(self, start: Mapping[str, str], goal: Mapping[str, str], **fields: Any) -> PlanReply:
        """Each end is ``{"id": ...}`` or ``{"text": ...}``."""
        request = wire.validate(PlanRequest, {"start": dict(start), "goal": dict(goal), **fields})
        return await self.call("plan", request, PlanReply)

    async def reason(self, claim: Mapping[str, str], **fields: Any) -> ReasonReply:
        """The claim is ``{"id": ...}`` or ``{"text": ...}``."""
        return await self.call("reason", wire.validate(ReasonRequest, {"claim": dict(claim), **fields}), ReasonReply)

    async def call(self, verb: str, request: BaseModel, reply: type[R]) -> R:
        """Any verb by name. A call that was cut off may or may not have been carried out: give writes a request_id,
        and a retry is safe."""
        client = await self.connection()
        data = wire.encode_request(request)
        self._check_size(client, data)
        subject, headers = subjects.verb(self.project, verb), dict(self._headers()) if self._headers else None
        try:
            with self._denials.waiting(subject):
                message = await client.request(subject, data, timeout=self._timeout_s, headers=headers)
        except nats.errors.NoRespondersError:
            raise Unavailable(ErrorCode.UNAVAILABLE, f"nobody serves {verb}: is memlane up?", verb=verb) from None
        except (TimeoutError, nats.errors.Error) as error:
            kind = type(error).__name__
            raise Unavailable(ErrorCode.UNAVAILABLE, f"no answer to {verb} ({kind})", verb=verb) from None
        answer = wire.decode_reply(reply, message.data)
        if header(message.headers or {}, SILENT_HEADER) == "1" and issubclass(reply, Metered):
            return answer.model_copy(update={"silent": True})
        return answer

    async def connection(self) -> Client:
        """The connection, made anew when it was closed for good. Raises Denied when the credential is refused."""
        if self._client is None or self._client.is_closed:
            try:
                self._client = await self._connect()
            except (TimeoutError, nats.errors.Error, OSError) as error:
                if "authorization violation" in str(error).lower():
                    raise Denied(ErrorCode.NOT_PERMITTED, f"NATS at {self._url} refuses the credential") from None
                raise Unavailable(
                    ErrorCode.UNAVAILABLE, f"cannot reach NATS at {self._url}: is memlane up?", reason=str(error)
                ) from None
        return self._client

    async def _connect(self) -> Client:
        """Fail fast at first, so that a wrong address is told at once; once connected, reconnect for ever."""
        options = {"error_cb": self._denials.hear, **self._access.options()}
        probe = await nats.connect(self._url, **AT_ONCE, **options)
        await probe.close()
        return await nats.connect(self._url, max_reconnect_attempts=-1, reconnect_time_wait=0.2, **options)

    def _check_size(self, client: Client, data: bytes) -> None:
        limit = client.max_payload - MESSAGE_OVERHEAD
        if len(data) > limit:
            raise InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, f"the request is {len(data)} bytes", limit=limit)


class Transaction:
    """The verbs of a client, inside one transaction. `committed` is there after the block."""

    def __init__(self, client: MemoryClient, txn_id: str) -> None:
        self._client, self.txn_id = client, txn_id
        self.committed: CommitReply | None = None

    async def encode(self, text: str, **fields: Any) -> EncodeReply:
        return await self._client.encode(text, txn_id=self.txn_id, **fields)

    async def forget(self, id: str, **fields: Any) -> ForgetReply:
        return await self._client.forget(id, txn_id=self.txn_id, **fields)

    async def recall(self, cue: str, **fields: Any) -> RecallReply:
        return await self._client.recall(cue, txn_id=self.txn_id, **fields)

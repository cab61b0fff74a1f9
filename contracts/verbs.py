"""The verbs agents use, in one table: what each takes, what it gives, who serves it.

A verb is a request to ``memlane.v1.<project>.<verb>``. Roles, client and the AsyncAPI document are held against it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from contracts.catalog import InspectReply, InspectRequest, ListReply, ListRequest
from contracts.edges import LinkReply, LinkRequest, PlanReply, PlanRequest, ReasonReply, ReasonRequest, UnlinkRequest
from contracts.encode import EncodeReply, EncodeRequest, ForgetReply, ForgetRequest, RestoreReply, RestoreRequest
from contracts.graph import GraphFetchReply, GraphFetchRequest
from contracts.query import FeedbackReply, FeedbackRequest, QueryReply, QueryRequest
from contracts.recall import RecallReply, RecallRequest
from contracts.schema import DeclareReply, DeclareRequest, SchemaRequest, VersionedSchema
from contracts.topics import TopicsReply, TopicsRequest
from contracts.txn import AbortReply, BeginReply, BeginRequest, CommitReply, EndRequest
from contracts.usage import UsageReply, UsageRequest


@dataclass(frozen=True, slots=True)
class Verb:
    request: type[BaseModel]
    reply: type[BaseModel]
    role: str
    summary: str


VERBS: dict[str, Verb] = {
    "encode": Verb(EncodeRequest, EncodeReply, "encode", "Store one memory; answered after the log has it."),
    "forget": Verb(ForgetRequest, ForgetReply, "encode", "Forget one memory, softly or for good."),
    "recall": Verb(RecallRequest, RecallReply, "orchestrator", "Recall what matters to a cue: one memory, many, none."),
    "restore": Verb(RestoreRequest, RestoreReply, "encode", "Take back a soft forget."),
    "query": Verb(QueryRequest, QueryReply, "orchestrator", "The k best memories by seven weighted signals."),
    "feedback": Verb(FeedbackRequest, FeedbackReply, "orchestrator", "Say whether a memory was of use."),
    "link": Verb(LinkRequest, LinkReply, "encode", "Put an edge from one memory to another."),
    "unlink": Verb(UnlinkRequest, LinkReply, "encode", "Take an edge away."),
    "txn.begin": Verb(BeginRequest, BeginReply, "encode", "Begin a transaction."),
    "txn.commit": Verb(EndRequest, CommitReply, "encode", "Write all of a transaction at once."),
    "txn.abort": Verb(EndRequest, AbortReply, "encode", "Drop all of a transaction."),
    "plan": Verb(PlanRequest, PlanReply, "orchestrator", "Paths from a start to a goal over the memories' edges."),
    "reason": Verb(ReasonRequest, ReasonReply, "orchestrator", "What supports a claim, and what contradicts it."),
    "list": Verb(ListRequest, ListReply, "orchestrator", "Enumerate memories by creation time."),
    "inspect": Verb(InspectRequest, InspectReply, "orchestrator", "One memory and its write story."),
    "graph_fetch": Verb(GraphFetchRequest, GraphFetchReply, "orchestrator", "Export the typed graph, page by page."),
    "schema.declare": Verb(DeclareRequest, DeclareReply, "orchestrator", "Add to the project's schema, or nothing."),
    "schema.get": Verb(SchemaRequest, VersionedSchema, "orchestrator", "The project's schema and its version."),
    "topics": Verb(TopicsRequest, TopicsReply, "upkeep", "The project's topics, the largest first."),
    "usage": Verb(UsageRequest, UsageReply, "orchestrator", "What the project used each day, and its limits."),
}

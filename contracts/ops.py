"""What an operator says to a running stack, on the bus."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contracts.base import LaxMessage, Message

MAX_REPLICAS = 16

#: Roles of which there may be several replicas; those that hold a shard have so many of each shard.
ScalableRole = Literal["catalog", "semantic", "lexical", "graph", "embed", "encode", "orchestrator", "rerank"]


class ScaleRequest(Message):
    """How many replicas of a role there shall be. To stop a role is to stop the stack: one at least."""

    role: ScalableRole
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)]


class ScaleReply(LaxMessage):
    """Processes that were started and told to stop, by name. A new one answers once it has caught up with the log; one
    that stops answers what it has in hand first."""

    role: str
    replicas: int
    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()

"""What an operator says to a running stack, on the bus."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from contracts.base import LaxMessage, Message
from contracts.shards import MOST_SHARDS, check_number_of_shards

MAX_REPLICAS = 16

#: Roles of which there may be several replicas; those that hold a shard have so many of each shard.
ScalableRole = Literal["catalog", "semantic", "lexical", "graph", "embed", "encode", "orchestrator", "rerank"]


class ScaleRequest(Message):
    """How many replicas of a role there shall be. To stop a role is to stop the stack: one at least."""

    role: ScalableRole
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)]


class ReshardRequest(Message):
    """Into how many shards memories shall be divided: a power of two, at most 256. Sent again it tells how far it
    is."""

    shards: Annotated[int, Field(ge=1, le=MOST_SHARDS)]

    @field_validator("shards")
    @classmethod
    def _a_power_of_two(cls, shards: int) -> int:
        return check_number_of_shards(shards)


class ReshardReply(LaxMessage):
    """`ready` of `wanted` processes answer: those of the new shards while building, those that take over from the ones
    that ask them while switching."""

    before: int
    shards: int
    stage: Literal["building", "switching", "done"]
    ready: int = 0
    wanted: int = 0


class ScaleReply(LaxMessage):
    """Processes that were started and told to stop, by name. A new one answers once it has caught up with the log; one
    that stops answers what it has in hand first."""

    role: str
    replicas: int
    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()

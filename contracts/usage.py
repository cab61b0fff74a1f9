"""What a project used: the kinds that are counted, how a verb is charged for them, and the verb usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from contracts.base import Instant, LaxMessage, Message

MAX_DAYS = 92

QuotaMode = Literal["off", "strict", "silent"]


class Kind(StrEnum):
    """What is counted, a unit a call that succeeded. Limits are set on encode, recall, query and rerank; the tier of a
    query is known only once it ran, so the tiers are counted and not limited."""

    ENCODE = "encode"
    RECALL = "recall"
    QUERY = "query"
    QUERY_LOW = "query_low"
    QUERY_MEDIUM = "query_medium"
    QUERY_HIGH = "query_high"
    RERANK = "rerank"  # the cross-encoder, where the caller asked for it


Charge = Mapping[Kind, int]


@dataclass(frozen=True, slots=True)
class Tariff:
    """How the calls of a verb are counted, and what they are answered when the quota is spent in silent mode.

    `charge` is admitted before the call, given its request, and given back when the call fails. `silent` makes the
    reply that looks as if nothing were wrong, given project and request; it raises InvalidRequest as the verb itself
    would. `correct` is added after the call, given request and reply: what only the reply tells (may be negative).
    """

    charge: Callable[[bytes], Charge]
    silent: Callable[[str, bytes], bytes]
    correct: Callable[[bytes, bytes], Charge] | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of a charge on a UTC day. `refused` is the kind whose limit is reached, and then nothing was counted;
    `exact` says that the store has it already."""

    day: date
    charge: Charge
    refused: Kind | None = None
    exact: bool = False


class Metered(LaxMessage):
    """A reply of a verb that a quota may hold. `silent` is not in the body: the client sets it from the reply's header
    X-Memlane-Silent, which says that the quota is spent and nothing was done."""

    silent: Annotated[bool, Field(exclude=True)] = False


class UsageRequest(Message):
    """The counts of `days` UTC days, the last of which is `day` (none: today)."""

    day: date | None = None
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 1


class QueriesByTier(LaxMessage):
    low: int = 0
    medium: int = 0
    high: int = 0


class DayUsage(LaxMessage):
    """Calls that succeeded on one UTC day. `queries` are those of all tiers."""

    day: date
    encodes: int = 0
    recalls: int = 0
    queries: int = 0
    queries_by_tier: QueriesByTier = QueriesByTier()
    reranks: int = 0


class UsageReply(LaxMessage):
    """`days` newest first. `limits` are per kind and day, empty where none is set; `left` is what is left of them
    today, until `resets_at`. Counts of the last second may be missing."""

    mode: QuotaMode
    days: tuple[DayUsage, ...]
    limits: dict[str, int]
    left: dict[str, int]
    resets_at: Instant

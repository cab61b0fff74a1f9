"""Who is there: every process of ours answers NATS micro's discovery subjects."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from contracts import subjects, wire
from contracts.base import LaxMessage
from contracts.errors import Garbled
from contracts.shards import WHOLE, Shard, shard_named

#: Roles that follow the log of all shards, whichever they hold.
FOLLOW_ALL = ("catalog", "upkeep")


@dataclass(frozen=True, slots=True)
class Process:
    """One answering process: its role (without our prefix), its instance id, its own facts and its request counts."""

    role: str
    id: str
    facts: dict[str, Any]
    requests: int
    errors: int

    @property
    def shard(self) -> Shard | None:
        return shard_named(str(self.facts.get("shard", "")))

    @property
    def followed(self) -> Shard:
        """The shard of the log that it follows, if it follows any."""
        return WHOLE if self.role in FOLLOW_ALL else self.shard or WHOLE


async def discover(client: Client, wait_s: float = 0.5) -> list[Process]:
    """Every process that answers within `wait_s`, by role and id. Costs the whole wait: nobody knows how many there
    are."""
    found: list[Process] = []
    inbox = client.new_inbox()

    async def collect(message: Msg) -> None:
        process = _process(message.data) if message.data else None  # an empty one says: nobody listens yet
        if process:
            found.append(process)

    subscription = await client.subscribe(inbox, cb=collect)
    await client.publish("$SRV.STATS", b"", reply=inbox)
    await anyio.sleep(wait_s)
    await subscription.unsubscribe()
    return sorted(found, key=lambda process: (process.role, process.id))


async def log_ends(client: Client, processes: Sequence[Process]) -> dict[Shard, int]:
    """The last position of the log, and of each shard that one of the processes holds."""
    shards = {WHOLE, *(process.shard for process in processes if process.shard)}
    return {shard: await log_end(client, shard) or 0 for shard in shards}


async def log_end(client: Client, shard: Shard, timeout_s: float = 2.0) -> int | None:
    """The last position of a shard of the log, 0 when it has none; None when it does not say."""
    subject = subjects.logs("*", shard)
    try:
        return (await client.jetstream(timeout=timeout_s).get_last_msg(subjects.LOG_STREAM, subject)).seq or 0
    except NotFoundError:
        return 0
    except (TimeoutError, nats.errors.Error):
        return None


def lag(process: Process, ends: Mapping[Shard, int]) -> int | None:
    """How many positions of what it follows a process has not applied; None for one that follows nothing."""
    position = process.facts.get("position")
    return max(0, ends.get(process.followed, 0) - position) if isinstance(position, int) else None


async def await_roles(client: Client, wanted: dict[str, int], timeout_s: float) -> dict[str, int]:
    """Wait until each role has that many processes; returns what is missing when the time is up."""
    deadline, window_s = time.monotonic() + timeout_s, 0.1
    while True:
        present: dict[str, int] = {}
        for process in await discover(client, window_s):
            present[process.role] = present.get(process.role, 0) + 1
        missing = {role: count - present.get(role, 0) for role, count in wanted.items() if present.get(role, 0) < count}
        if not missing or time.monotonic() > deadline:
            return missing
        window_s = min(2 * window_s, 1.0)  # a process that is busy answers late


class _Endpoint(LaxMessage):
    data: dict[str, Any] | None = None
    num_requests: int = 0
    num_errors: int = 0


class _Stats(LaxMessage):
    name: str = ""
    id: str = ""
    endpoints: tuple[_Endpoint, ...] | None = None


def _process(data: bytes) -> Process | None:
    """None for what is not ours, or no answer at all."""
    try:
        stats = wire.decode_stored(_Stats, data)
    except Garbled:
        return None
    if not stats.name.startswith("memlane-"):
        return None
    endpoints = stats.endpoints or ()
    return Process(
        role=stats.name.removeprefix("memlane-"),
        id=stats.id,
        facts=(endpoints[0].data or {}) if endpoints else {},
        requests=sum(endpoint.num_requests for endpoint in endpoints),
        errors=sum(endpoint.num_errors for endpoint in endpoints),
    )

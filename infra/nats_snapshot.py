"""Snapshots of JetStream streams, taken and restored by the server: positions, times and headers stay as they are.

The server's own protocol (nats.io, JetStream API: STREAM.SNAPSHOT and STREAM.RESTORE), which nats-py has no call for.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Any, BinaryIO

import nats.errors
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import BaseModel, ConfigDict

from contracts.errors import ErrorCode, Unavailable

CHUNK_BYTES = 128 * 1024
TIMEOUT_S = 30.0
API = "$JS.API.STREAM"


class Snapshot(BaseModel):
    """What must be known of a snapshot to restore it: the server's own words, and what tells damage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str
    config: dict[str, Any]
    state: dict[str, Any]
    bytes: int
    sha256: str

    @property
    def messages(self) -> int:
        return int(self.state["messages"])

    @property
    def last(self) -> int:
        return int(self.state["last_seq"])


async def save(client: Client, stream: str, file: BinaryIO) -> Snapshot | None:
    """Write the stream as it is now into a file; writers are not held up. None where there is no such stream.

    Raises Unavailable when the server refuses or breaks off.
    """
    inbox = client.new_inbox()
    chunks = await client.subscribe(inbox)
    try:
        told = await _ask(client, f"{API}.SNAPSHOT.{stream}", {
            "deliver_subject": inbox, "no_consumers": True, "chunk_size": CHUNK_BYTES,
        })  # fmt: skip
        if told.get("error", {}).get("code") == 404:
            return None
        _check(told, stream)
        digest, size = hashlib.sha256(), 0
        async for data in _received(chunks.next_msg, stream):
            file.write(data)
            digest.update(data)
            size += len(data)
    finally:
        await chunks.unsubscribe()
    return Snapshot(stream=stream, config=told["config"], state=told["state"], bytes=size, sha256=digest.hexdigest())


async def load(client: Client, snapshot: Snapshot, file: BinaryIO, replicas: int | None = None) -> None:
    """Make the stream anew out of a snapshot, with other replicas where that is said.

    Raises Unavailable when the server refuses: the stream is there already, or it cannot be kept.
    """
    config = snapshot.config | ({"num_replicas": replicas} if replicas else {})
    told = await _ask(client, f"{API}.RESTORE.{snapshot.stream}", {"config": config, "state": snapshot.state})
    _check(told, snapshot.stream)
    while chunk := file.read(CHUNK_BYTES):
        _check(await _request(client, told["deliver_subject"], chunk), snapshot.stream)
    _check(await _request(client, told["deliver_subject"], b""), snapshot.stream)


async def _received(next_msg: Callable[[float], Any], stream: str) -> AsyncIterator[bytes]:
    """The chunks, each acknowledged: the server sends no more than a window ahead. An empty one is the last."""
    while True:
        try:
            message: Msg = await next_msg(TIMEOUT_S)
        except nats.errors.TimeoutError:
            raise Unavailable(ErrorCode.UNAVAILABLE, f"the snapshot of {stream} broke off") from None
        if not message.data:
            status = (message.headers or {}).get("Status", "")
            if status and not status.startswith("2"):
                raise Unavailable(ErrorCode.UNAVAILABLE, f"the snapshot of {stream} broke off", status=status)
            return
        yield message.data
        if message.reply:
            await message.respond(b"")


async def _ask(client: Client, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    return await _request(client, subject, orjson.dumps(body))


async def _request(client: Client, subject: str, data: bytes) -> dict[str, Any]:
    try:
        reply = await client.request(subject, data, timeout=TIMEOUT_S)
    except (TimeoutError, nats.errors.Error) as error:
        raise Unavailable(
            ErrorCode.UNAVAILABLE, "JetStream did not answer", reason=str(error) or type(error).__name__
        ) from None
    found: dict[str, Any] = orjson.loads(reply.data) if reply.data else {}
    return found


def _check(told: dict[str, Any], stream: str) -> None:
    if refusal := told.get("error"):
        raise Unavailable(
            ErrorCode.UNAVAILABLE, f"JetStream refused {stream}", reason=str(refusal.get("description", refusal))
        )

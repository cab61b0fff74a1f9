"""Backup and restore of all that cannot be made again: the log, and what stands beside it. Indexes are not in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import orjson
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from pydantic import BaseModel, ConfigDict, ValidationError

from contracts import subjects
from contracts.base import now
from contracts.errors import Conflict, ErrorCode, InvalidRequest, Unavailable
from infra.discovery import discover
from infra.nats_snapshot import Snapshot, load, save

FORMAT = 1
MANIFEST = "backup.json"
#: In this order, so that what is taken later holds all that the earlier refer to: a queued message that is encoded
#: meanwhile is in both the queue and the log, which is one memory, rather than in neither.
STREAMS = (
    f"KV_{subjects.SCHEMAS_BUCKET}",
    f"KV_{subjects.LEDGER_BUCKET}",
    f"KV_{subjects.REQUESTS_BUCKET}",
    subjects.DLQ_STREAM,
    subjects.INGEST_STREAM,
    subjects.USAGE_STREAM,
    subjects.LOG_STREAM,
)


class Manifest(BaseModel):
    """What a backup holds. Written last: a folder without it is no backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    made: datetime
    streams: tuple[Snapshot, ...]


async def back_up(client: Client, folder: Path) -> Manifest:
    """Snapshot every stream into a new folder, while the service goes on.

    Raises InvalidRequest for a folder that is not empty or cannot be written, Unavailable when a snapshot fails.
    """
    try:
        _make(folder)
        made, snapshots = now(), []
        for stream in STREAMS:
            with _file(folder, stream).open("wb") as file:
                if snapshot := await save(client, stream, file):
                    snapshots.append(snapshot)
        if not any(one.stream == subjects.LOG_STREAM for one in snapshots):
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, "there is no log on this server: nothing to back up")
        manifest = Manifest(format=FORMAT, made=made, streams=tuple(snapshots))
        (folder / MANIFEST).write_bytes(orjson.dumps(manifest.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"cannot write {folder}: {error.strerror}", field="folder"
        ) from None
    return manifest


async def restore(client: Client, folder: Path, replicas: int | None = None) -> Manifest:
    """Make all streams anew on a server that has none of ours, or only empty ones. All of them, or none.

    Positions stay as they were. Raises InvalidRequest for what is no whole backup, Conflict where processes of ours
    run or memories are there already, Unavailable when the server refuses.
    """
    manifest = read(folder)
    if await discover(client):
        raise Conflict(ErrorCode.INVALID_REQUEST, "processes of memlane run on this server; stop them first")
    await _clear(client, STREAMS)
    done: list[str] = []
    try:
        for snapshot in manifest.streams:
            with _file(folder, snapshot.stream).open("rb") as file:
                done.append(snapshot.stream)
                await load(client, snapshot, file, replicas)
    except Unavailable:
        for stream in done:
            await _delete(client, stream)
        raise
    return manifest


def read(folder: Path) -> Manifest:
    """The manifest of a whole, undamaged backup. Raises InvalidRequest for anything else."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        if manifest.format != FORMAT:
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{folder} is a backup of format {manifest.format}")
        for snapshot in manifest.streams:
            with _file(folder, snapshot.stream).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != snapshot.sha256:
                    raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{file.name} is damaged", field="folder")
    except OSError as error:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"{folder} is no backup: {error.filename}: {error.strerror}", field="folder"
        ) from None
    except ValidationError as error:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"{folder / MANIFEST} cannot be read", problems=error.error_count()
        ) from None
    return manifest


async def _clear(client: Client, streams: Sequence[str]) -> None:
    """Delete streams that are empty. Raises Conflict, before any is touched, where one is not."""
    js, there = client.jetstream(), []
    for stream in streams:
        try:
            if (await js.stream_info(stream)).state.messages:
                raise Conflict(ErrorCode.INVALID_REQUEST, f"{stream} holds messages; restore into a server without")
            there.append(stream)
        except NotFoundError:
            continue
    for stream in there:
        await _delete(client, stream)


async def _delete(client: Client, stream: str) -> None:
    try:
        await client.jetstream().delete_stream(stream)
    except NotFoundError:
        pass


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{folder} is not empty", field="folder")


def _file(folder: Path, stream: str) -> Path:
    return folder / f"{stream}.tar.s2"

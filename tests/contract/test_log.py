"""Following a real log, and what in it cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from nats.aio.client import Client

from contracts import subjects
from contracts.base import now
from contracts.memory import MemoryRecord, derive_id
from contracts.ports import Entry
from contracts.shards import WHOLE
from infra.nats_log import JetStreamLog
from workers.lane import Progress, follow


class Index:
    """A projection that only remembers."""

    def __init__(self) -> None:
        self.position = 0
        self.texts: list[str] = []

    async def apply(self, entries: Sequence[Entry]) -> None:
        self.texts += [record.text for _, record in entries]
        self.position = entries[-1][0]


@pytest.mark.parametrize("garbage", [b"", b"{}", b"\xff", b'{"v": 1}'])
async def test_what_cannot_be_read_holds_nobody_up(client: Client, garbage: bytes) -> None:
    """A reader who waits for the position of an unreadable record is let through: it has no effect to wait for."""
    log, at = JetStreamLog(client), now()
    name = f"log-{len(garbage)}"
    good = MemoryRecord(id=derive_id(name), project=name, text=name, created_at=at, changed_at=at)
    await log.append(good, 0)
    ack = await client.jetstream().publish(subjects.log(name, derive_id("bad")), garbage)
    index, progress, ready = Index(), Progress(0), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, log, name, WHOLE, index, progress, ready.set)
        with anyio.fail_after(10):
            await ready.wait()
            assert await progress.reached(ack.seq, anyio.current_time() + 5)
        tasks.cancel_scope.cancel()
    assert name in index.texts
    assert index.position < ack.seq

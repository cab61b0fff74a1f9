"""Whatever a caller sends to a running service, the answer is a reply of the verb or an error with its code, and never
a failure that the service did not foresee."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import nats
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nats.aio.client import Client

from contracts import subjects, wire
from contracts.errors import ErrorCode, MemlaneError
from contracts.verbs import VERBS
from tests import fuzz
from tests.stack import Stack

PROJECT = "fuzzed"
#: Examples come from a fixed seed, so that a run is like the other.
few = settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck])


@pytest.fixture(scope="module")
def before(stack: Stack) -> dict[Path, int]:
    """How long each log was."""
    return {log: log.stat().st_size for log in (*(stack.data / "logs").glob("*.log"), stack.data / "up.err")}


@pytest.fixture(scope="module")
async def link(stack: Stack, before: dict[Path, int]) -> AsyncIterator[Client]:
    """With a memory there, as verbs refuse an unknown project before they look at much else."""
    client = await nats.connect(stack.url)
    try:
        for text in (b"Ana works at Globex", b"Globex is in Valparaiso"):
            await client.request(subjects.verb(PROJECT, "encode"), b'{"text": "%s"}' % text, timeout=20)
        yield client
    finally:
        await client.close()


def hurried(data: bytes) -> bytes:
    """The same request, but not one that waits for a minute."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    if isinstance(value, dict) and isinstance(value.get("deadline_ms"), int) and 1000 < value["deadline_ms"] <= 60_000:
        return json.dumps(value | {"deadline_ms": 1000}).encode()
    return data


async def check(link: Client, verb: str, data: bytes) -> None:
    message = await link.request(subjects.verb(PROJECT, verb), hurried(data), timeout=30)
    try:
        wire.decode_reply(VERBS[verb].reply, message.data)
    except MemlaneError as error:
        code = error.code
    else:
        return
    sent = orjson.loads(message.data)["error"]  # what the client cannot read would be INTERNAL too
    assert sent["code"] in set(ErrorCode) - {"INTERNAL"}, (sent, data)
    assert sent["message"], data
    assert code == sent["code"] == (message.headers or {})["Nats-Service-Error-Code"]


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_answers_everything(link: Client, verb: str) -> None:
    requests: list[bytes] = []

    @few
    @given(fuzz.raw(VERBS[verb].request))
    def collect(data: bytes) -> None:
        requests.append(data)

    collect()
    for data in requests:
        await check(link, verb, data)


async def test_the_ingest_queue_swallows_everything(link: Client, stack: Stack) -> None:
    requests: list[bytes] = []

    @few
    @given(fuzz.raw(VERBS["encode"].request) | st.just(b'{"a\\r\\nX-Other: b": 1}'))
    def collect(data: bytes) -> None:
        requests.append(data)

    collect()
    for data in requests:
        await link.request(subjects.ingest(PROJECT), data, timeout=20)
    js: Any = link.jetstream()
    with anyio.fail_after(60):  # nothing is left that comes again and again
        while (await js.stream_info(subjects.INGEST_STREAM)).state.messages:
            await anyio.sleep(0.02)


async def test_no_process_met_what_it_did_not_foresee(stack: Stack, before: dict[Path, int]) -> None:
    """After all the others in this file: `request failed` is what an unforeseen exception is logged as."""
    for log in (*(stack.data / "logs").glob("*.log"), stack.data / "up.err"):
        said = log.read_bytes()[before.get(log, 0) :]
        for word in (b"request_failed", b"Traceback", b"restart_worker"):
            assert word not in said, log.name

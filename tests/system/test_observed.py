"""Metrics and traces of the real stack, and `memlane top`: what operators see of it."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families

from contracts.client import MemoryClient
from contracts.errors import InvalidRequest
from infra.discovery import Process, discover
from tests.collector import Collector
from tests.stack import Stack

LANES = ("semantic", "lexical", "graph")
TEXT = "Zerlina moved to the Quuxbury office"
CUE = "where is Zerlina?"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Stack]:
    """A stack that is measured and traced."""
    env = {
        "MEMLANE_METRICS__PORT": "0",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with Stack(tmp_path_factory.mktemp("observed"), env) as stack:
        yield stack


@pytest.fixture
def trace_id() -> str:
    return secrets.token_hex(16)


@pytest.fixture
async def traced(observed: Stack, trace_id: str) -> AsyncIterator[MemoryClient]:
    """A client whose calls are part of a trace."""
    headers = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"}
    async with MemoryClient(observed.url, project="seen", timeout_s=30, headers=lambda: headers) as memory:
        yield memory


async def recalled(memory: MemoryClient) -> None:
    reply = await memory.recall(CUE, consistency="ReadAfterWrite", deadline_ms=20_000)
    assert [member.text for member in reply.members] == [TEXT]
    assert not reply.degraded


def children(spans: list[tuple[str, Span]], parent: Span) -> dict[tuple[str, str], Span]:
    """By service and name."""
    return {(service, span.name): span for service, span in spans if span.parent_span_id == parent.span_id}


def attributes(span: Span) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


async def test_one_trace_goes_through_every_lane(observed: Stack, collector: Collector, trace_id: str) -> None:
    async with MemoryClient(observed.url, project="seen", timeout_s=30) as memory:
        await memory.encode(TEXT, request_id="one")
    parent = secrets.token_hex(8)
    headers = {"traceparent": f"00-{trace_id}-{parent}-01", "tracestate": "agent=7"}
    async with MemoryClient(observed.url, project="seen", timeout_s=30, headers=lambda: headers) as memory:
        await recalled(memory)
    handled = {(f"memlane-{lane}", f"{lane}.search") for lane in LANES}
    wanted = {("memlane-orchestrator", "recall"), ("memlane-embed", "embed"), *handled}

    def whole(spans: list[tuple[str, Span]]) -> bool:
        return wanted <= {(service, span.name) for service, span in spans if span.kind == Span.SPAN_KIND_SERVER}

    spans = await asyncio.to_thread(collector.trace, trace_id, whole)
    assert whole(spans), sorted((service, span.name) for service, span in spans)
    [verb] = [span for _, span in spans if span.parent_span_id.hex() == parent]
    assert (verb.name, verb.trace_state) == ("recall", "agent=7")
    told = attributes(verb)
    assert {told[f"memlane.lane.{lane}"] for lane in LANES} == {"ok"}
    assert told["memlane.project"] == "seen"

    stages = children(spans, verb)
    names = [name for _, name in stages]
    assert names == ["gather", "fusion", "look_up", "rerank", "hydrate"]
    asked = children(spans, stages["memlane-orchestrator", "gather"])
    for lane in LANES:
        request = asked["memlane-orchestrator", f"{lane}.search"]
        assert request.kind == Span.SPAN_KIND_CLIENT
        worker = children(spans, request)[f"memlane-{lane}", f"{lane}.search"]
        assert request.start_time_unix_nano <= worker.start_time_unix_nano
        assert worker.end_time_unix_nano <= request.end_time_unix_nano
        assert attributes(worker)["memlane.shard"] == "0of1"


async def test_an_error_shows_by_its_code_and_no_text_is_told(
    traced: MemoryClient, collector: Collector, trace_id: str
) -> None:
    with pytest.raises(InvalidRequest):
        await traced.recall(" ")
    spans = await asyncio.to_thread(collector.trace, trace_id, bool)
    [(_, refused)] = [one for one in spans if one[1].kind == Span.SPAN_KIND_SERVER]
    assert refused.status.code == Status.STATUS_CODE_ERROR
    assert attributes(refused)["error.type"] == "TEXT_EMPTY"
    everything = b"".join(collector.said)
    assert b"memlane.project" in everything
    for word in (b"Zerlina", b"Quuxbury", b"where is"):
        assert word not in everything


def page(process: Process, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{process.facts['metrics']}{path}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


async def test_every_process_shows_its_series(observed: Stack) -> None:
    async with MemoryClient(observed.url, project="seen", timeout_s=30) as memory:
        await memory.encode(TEXT, request_id="one")
        await recalled(memory)
        processes = {one.role: one for one in await discover(await memory.connection())}
    assert {"orchestrator", "embed", "encode", "catalog", "upkeep", *LANES} <= set(processes)
    found: dict[tuple[str, ...], float] = {}
    for role, process in processes.items():
        assert await asyncio.to_thread(page, process, "/healthz") == (200, "ok\n")
        assert await asyncio.to_thread(page, process, "/readyz") == (200, "ok\n")
        status, text = await asyncio.to_thread(page, process, "/metrics")
        assert status == 200
        for family in text_string_to_metric_families(text):
            for one in family.samples:
                assert one.labels.get("role", role) == role
                found[one.name, *(value for key, value in sorted(one.labels.items()) if key != "replica")] = one.value
    assert found["memlane_request_seconds_count", "recall", "ok", "orchestrator"] >= 1
    assert found["memlane_overhead_seconds_count", "recall"] >= 1
    assert found["memlane_encoded_memories_total", "encode", ""] >= 1
    assert found["memlane_embedded_texts_total", "embed", ""] >= 1
    for lane in LANES:
        assert found["memlane_lane_seconds_count", lane, "ok"] >= 1
        assert found["memlane_request_seconds_count", "search", "ok", lane] >= 1
        assert found["memlane_position", lane, "0of1"] >= 1
        assert found["memlane_lag_positions", lane, "0of1"] == 0
        assert found["memlane_searches_refused_total", lane, "0of1"] == 0


async def test_top_shows_them_all(observed: Stack) -> None:
    once = await asyncio.to_thread(memlane_top, observed, "--once")
    assert "nobody answers" not in once
    shown = [line.split()[0] for line in once.splitlines() if line.strip()]
    assert {"orchestrator", "embed", "encode", "catalog", "upkeep", *LANES} <= set(shown)


def memlane_top(stack: Stack, *options: str) -> str:
    command = [sys.executable, "-m", "infra.cli", "top", "--nats", stack.url, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


async def test_top_goes_on_until_it_is_interrupted(observed: Stack) -> None:
    command = [sys.executable, "-m", "infra.cli", "top", "--nats", observed.url, "--every", "0.1", "--json"]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    looks = [json.loads(await asyncio.wait_for(process.stdout.readline(), 60)) for _ in range(2)]
    process.send_signal(signal.SIGINT)
    _, complaints = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, complaints) == (0, b"")
    assert [one["missing"] for one in looks] == [[], []]
    assert [one["written_per_s"] is None for one in looks] == [True, False]

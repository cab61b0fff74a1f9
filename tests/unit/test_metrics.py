"""What is observed of requests, and how it is shown."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from contracts import watch
from contracts.errors import ErrorCode, InvalidRequest
from contracts.lanes import Lane, LaneStatus
from contracts.ports import Call
from contracts.recall import LaneOutcome
from infra.metrics import FACTS, Metrics
from infra.metrics_pages import pages
from infra.observer import Observer
from infra.settings import Metrics as MetricsSettings


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """By name and label values, in the order of the labels' names."""
    return {
        (one.name, tuple(value for _, value in sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def shown(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    return samples(generate_latest(metrics.registry).decode())


def call(arrived: float | None = None) -> Call:
    return Call("memlane.v1.team.recall", b"12345", time.monotonic() if arrived is None else arrived)


async def test_a_request_is_timed_by_stage_lane_and_outcome() -> None:
    metrics = Metrics("orchestrator")
    arrived = time.monotonic() - 2.0  # as if it had taken two seconds

    async def handle() -> None:
        handling = Observer([metrics]).begin("recall", call(arrived))
        watch.stage("gather")
        await asyncio.create_task(gather())
        watch.stage("fusion")
        handling.answered(b"123", None)

    async def gather() -> None:
        watch.lanes(
            {
                Lane.SEMANTIC: LaneOutcome(status=LaneStatus.OK, took_ms=4),
                Lane.GRAPH: LaneOutcome(status=LaneStatus.TIMEOUT, took_ms=700),
            }
        )

    await asyncio.create_task(handle())
    found = shown(metrics)
    assert found["memlane_request_seconds_count", ("recall", "ok", "orchestrator")] == 1
    assert found["memlane_request_seconds_sum", ("recall", "ok", "orchestrator")] >= 2
    assert found["memlane_received_bytes_total", ("recall", "orchestrator")] == 5
    assert found["memlane_sent_bytes_total", ("recall", "orchestrator")] == 3
    for stage in ("gather", "fusion"):
        assert found["memlane_stage_seconds_count", (stage, "recall")] == 1
    assert found["memlane_lane_seconds_count", ("semantic", "ok")] == 1
    assert found["memlane_lane_seconds_sum", ("graph", "timeout")] == pytest.approx(0.7)
    assert 1.3 <= found["memlane_overhead_seconds_sum", ("recall",)] < 2


async def test_an_error_is_an_outcome_and_lanes_that_nobody_asked_are_no_overhead() -> None:
    metrics = Metrics("encode")
    handling = Observer([metrics]).begin("encode", call())
    handling.answered(b"", ErrorCode.TEXT_EMPTY)
    found = shown(metrics)
    assert found["memlane_request_seconds_count", ("encode", "TEXT_EMPTY", "encode")] == 1
    assert not [name for name, _ in found if name.startswith("memlane_overhead")]


async def test_requests_at_once_are_told_apart() -> None:
    metrics = Metrics("orchestrator")

    async def handle(stage: str) -> None:
        handling = Observer([metrics]).begin(stage, call())
        watch.stage(stage)
        await asyncio.sleep(0)
        watch.stage("last")
        handling.answered(b"", None)

    await asyncio.gather(*(asyncio.create_task(handle(name)) for name in ("recall", "query")))
    found = {labels for name, labels in shown(metrics) if name == "memlane_stage_seconds_count"}
    assert found == {("recall", "recall"), ("last", "recall"), ("query", "query"), ("last", "query")}


def test_unwatched_telling_does_nothing() -> None:
    watch.stage("gather")
    watch.lanes({Lane.GRAPH: LaneOutcome(status=LaneStatus.OK)})
    Observer().begin("recall", call()).answered(b"", None)


def test_what_a_process_knows_of_itself() -> None:
    metrics = Metrics("semantic")
    metrics.facts = {
        "shard": 1,
        "replica": "a2",
        "position": 40,
        "lag": 2,
        "overloaded": 3,
        "faults": {"SlowConsumerError": 1},
        "model": "none of a number",
    }
    found = {key: value for key, value in shown(metrics).items() if "semantic" in key[1]}
    me = ("a2", "semantic", "1")
    assert found == {
        ("memlane_position", me): 40,
        ("memlane_lag_positions", me): 2,
        ("memlane_searches_refused_total", me): 3,
        ("memlane_link_faults_total", ("SlowConsumerError", *me)): 1,
    }


def test_names_keep_to_the_conventions() -> None:
    for series in FACTS.values():
        assert series.name.startswith("memlane_")
        assert not series.name.endswith("_total")
    metrics = Metrics("any")
    metrics.facts = dict.fromkeys(FACTS, 1)
    families = list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    ours = [one for one in families if one.name.startswith("memlane_")]
    assert len({one.name for one in ours}) == len(ours) > len(FACTS)
    assert all(one.documentation for one in ours)


class Process:
    ready = False

    async def is_ready(self) -> bool:
        return self.ready

    async def measured(self) -> Mapping[str, object]:
        return {"position": 7, "shard": 0, "replica": "a"}


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_pages() -> None:
    process = Process()
    async with pages(MetricsSettings(port=0), "graph", process) as (metrics, address):
        assert metrics is not None
        assert address.startswith("127.0.0.1:")

        async def page(path: str) -> tuple[int, str]:
            return await asyncio.to_thread(get, f"http://{address}{path}")

        assert await page("/healthz") == (200, "ok\n")
        assert await page("/readyz") == (503, "service unavailable\n")
        process.ready = True
        assert await page("/readyz") == (200, "ok\n")
        assert await page("/") == (404, "not found\n")
        status, text = await page("/metrics")
        assert (status, samples(text)["memlane_position", ("a", "graph", "0")]) == (200, 7)
    with pytest.raises(OSError, match="refused"):
        await page("/healthz")


async def test_without_a_port_there_are_none() -> None:
    async with pages(MetricsSettings(), "graph", Process()) as served:
        assert served == (None, "")


async def test_a_port_that_is_taken_stops_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        async with pages(MetricsSettings(port=other.getsockname()[1]), "graph", Process()) as served:
            assert served == (None, "")


async def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(InvalidRequest, match=r"pip install 'memlane\[metrics\]'"):
        async with pages(MetricsSettings(port=0), "graph", Process()):
            pass


def test_off_loads_nothing() -> None:
    code = (
        "import sys, infra.service\n"
        "print([one for one in sys.modules if one.partition('.')[0] in ('prometheus_client', 'opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"

"""Whether a process traces, and that it ends without a collector."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from contracts.errors import InvalidRequest
from infra.spans import named
from infra.tracing import wanted

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environ", "exporter"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "agents"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None),
        (ENDPOINT, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, None),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, None),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "otlp"),
    ],
)
def test_the_standard_variables_decide(environ: dict[str, str], exporter: str | None) -> None:
    assert wanted(environ) == exporter


@pytest.mark.parametrize(
    ("environ", "field"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
    ],
)
def test_what_cannot_be_had_is_named(environ: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidRequest, match=field) as caught:
        wanted(environ)
    assert caught.value.details["field"] == field


def test_names_of_spans_do_not_grow_with_projects_or_shards() -> None:
    assert named("memlane.v1.team.schema.get") == ("schema.get", {"memlane.project": "team"})
    assert named("memlane.lane.v1.graph.1of4.edges") == ("graph.edges", {"memlane.shard": "1of4"})
    assert named("memlane.catalog.v1.0of1.hydrate") == ("catalog.hydrate", {"memlane.shard": "0of1"})
    assert named("memlane.work.v1.embed") == ("embed", {})


ONE_SPAN = """
import anyio
from contracts.ports import Call
from infra.tracing import traced

async def main() -> None:
    async with traced("embed", 0, "a") as spans:
        spans.begin("embed", Call("memlane.work.v1.embed", b"", 0.0)).answered(b"", None)

anyio.run(main)
"""


def test_a_collector_that_never_answers_holds_no_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as collector:
        environ = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "600",  # seconds: it would wait beyond this test's patience
        }
        subprocess.run([sys.executable, "-c", ONE_SPAN], env=environ, timeout=25, check=True)

"""A collector of traces: takes what OpenTelemetry's exporters post (OTLP over HTTP, protobuf) and keeps it."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PATIENCE_S = 60.0


class Collector:
    """A `with` block. `spans` are (service, span) pairs; `said` is every byte that came."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Span]] = []
        self.said: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        self.said.append(body)
        for group in request.resource_spans:
            facts = {one.key: one.value.string_value for one in group.resource.attributes}
            self.spans += [(facts["service.name"], span) for scope in group.scope_spans for span in scope.spans]

    def trace(self, trace_id: str, whole: Callable[[list[tuple[str, Span]]], bool]) -> list[tuple[str, Span]]:
        """The spans of a trace, as soon as they are `whole`; what there is of them when patience is at an end."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = [(service, span) for service, span in list(self.spans) if span.trace_id.hex() == trace_id]
            if whole(found) or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

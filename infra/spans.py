"""Spans by OpenTelemetry: one for each request taken in hand, for each of its stages, and for each request that it
sends on. They hold names, numbers and codes, never what a memory or a cue says, and so no exception's words either."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from contracts.addressing import TRACE_HEADERS, header
from contracts.errors import ErrorCode
from contracts.lanes import Lane
from contracts.ports import Call
from contracts.recall import LaneOutcome

_PROPAGATOR = TraceContextTextMapPropagator()


def provider(exporter: str, role: str, instance: str) -> TracerProvider:
    """Makes tracers whose spans go out in batches, to the console or where the standard variables say."""
    name = os.environ.get("OTEL_SERVICE_NAME") or f"memlane-{role}"
    resource = Resource.create({"service.name": name, "service.namespace": "memlane", "service.instance.id": instance})
    made = TracerProvider(resource=resource, shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter() if exporter == "otlp" else ConsoleSpanExporter()))
    return made


class Spans:
    """The spans of one process. As an `infra.observer.Watcher` it makes one for each request, in the caller's trace
    where it sent one."""

    def __init__(self, tracer: Tracer, role: str) -> None:
        self._tracer, self._role = tracer, role

    def begin(self, endpoint: str, call: Call) -> Spanned:
        sent = {name: value for name in TRACE_HEADERS if (value := header(call.headers, name))}
        name, attributes = named(call.subject)
        span = self._tracer.start_span(
            name,
            context=_PROPAGATOR.extract(sent),
            kind=SpanKind.SERVER,
            attributes={"memlane.role": self._role, **attributes},
        )
        return Spanned(self._tracer, span)

    @contextmanager
    def asking(self, subject: str) -> Iterator[dict[str, str]]:
        """Around a request to another process; gives the headers that make it part of the trace."""
        name, attributes = named(subject)
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            headers: dict[str, str] = {}
            _PROPAGATOR.inject(headers)
            try:
                yield headers
            except BaseException as error:
                _fail(span, type(error).__name__)
                raise


class Spanned:
    """One request, as `infra.observer.Handling`. The context that it enters is its task's alone, and ends with that."""

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer, self._span = tracer, span
        self._stage: Span | None = None
        context.attach(set_span_in_context(span))

    def stage(self, name: str) -> None:
        self._end_stage()
        self._stage = self._tracer.start_span(name, context=set_span_in_context(self._span))
        context.attach(set_span_in_context(self._stage))

    def lane(self, lane: Lane, outcome: LaneOutcome) -> None:
        self._span.set_attribute(f"memlane.lane.{lane}", str(outcome.status))

    def answered(self, reply: bytes, code: ErrorCode | None) -> None:
        self._end_stage()
        if code is not None:
            _fail(self._span, str(code))
        self._span.set_attribute("memlane.reply_bytes", len(reply))
        self._span.end()

    def _end_stage(self) -> None:
        if self._stage is not None:
            self._stage.end()
            self._stage = None


def named(subject: str) -> tuple[str, dict[str, str]]:
    """What the span of a subject is called, without what differs from request to request, and that as attributes."""
    match subject.split("."):
        case ["memlane", "lane", "v1", lane, shard, op]:
            return f"{lane}.{op}", {"memlane.shard": shard}
        case ["memlane", "catalog", "v1", shard, op]:
            return f"catalog.{op}", {"memlane.shard": shard}
        case ["memlane", "v1", project, *verb]:
            return ".".join(verb), {"memlane.project": project}
        case ["memlane", "work", "v1", work]:
            return work, {}
    return subject, {}


def _fail(span: Span, kind: str) -> None:
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", kind)

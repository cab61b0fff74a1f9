"""Whether this process traces, and the way from the bus to its tracer. Off until the environment says otherwise, and
then nothing of OpenTelemetry is loaded."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from threading import Thread
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio.to_thread import run_sync

from contracts.errors import ErrorCode, InvalidRequest

if TYPE_CHECKING:
    from infra.spans import Spans

logger = structlog.get_logger()

#: How long a process that stops waits for its last spans to go out.
FLUSH_S = 2.0
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_NOT_TRACED: AbstractContextManager[dict[str, str] | None] = nullcontext(None)

_spans: Spans | None = None


def asking(subject: str) -> AbstractContextManager[dict[str, str] | None]:
    """Around a request to another process: gives the headers that carry the trace, none where nothing is traced."""
    return _NOT_TRACED if _spans is None else _spans.asking(subject)


def wanted(environ: Mapping[str, str]) -> str | None:
    """The exporter that the standard variables ask for: otlp or console; none where they ask for nothing.

    Raises InvalidRequest for an exporter or a protocol that we do not have.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    endpoint = any(environ.get(name) for name in _ENDPOINTS)
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() or ("otlp" if endpoint else "none")
    if exporter not in ("otlp", "console", "none"):
        raise _cannot("OTEL_TRACES_EXPORTER", f"OTEL_TRACES_EXPORTER is {exporter!r}: traces go out as otlp or console")
    for name in _PROTOCOLS:
        if exporter == "otlp" and environ.get(name, "http/protobuf") != "http/protobuf":
            raise _cannot(name, f"{name} is {environ[name]!r}: traces go out over http/protobuf")
    return None if exporter == "none" else exporter


@asynccontextmanager
async def traced(role: str, shard: int, replica: str) -> AsyncIterator[Spans | None]:
    """While it lasts, this process traces, where the environment asks for it.

    Raises InvalidRequest when the library is not installed, and what `wanted` raises.
    """
    global _spans  # noqa: PLW0603 - one process, one tracer: as with logs, nobody is handed it
    exporter = wanted(os.environ)
    if exporter is None:
        yield None
        return
    try:
        from infra import spans
    except ImportError as error:
        raise _cannot("tracing", f"{error.name} is not installed: pip install 'memlane[tracing]'") from None
    provider = spans.provider(exporter, role, f"{role}-{shard}-{replica}")
    _spans = spans.Spans(provider.get_tracer("memlane"), role)
    logger.info("tracing", action="tracing", exporter=exporter)
    try:
        yield _spans
    finally:
        _spans = None
        # where nobody takes the spans it would go on for long, and an ordinary thread hold up the end of the process
        flush = Thread(target=provider.shutdown, daemon=True)
        flush.start()
        with anyio.CancelScope(shield=True):
            await run_sync(flush.join, FLUSH_S)


def _cannot(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(ErrorCode.INVALID_REQUEST, message, field=field)

"""What a process shows over HTTP: `/metrics`, and whether it lives (`/healthz`) and may be asked (`/readyz`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import structlog
from anyio.from_thread import BlockingPortal
from anyio.to_thread import run_sync

from contracts.errors import ErrorCode, InvalidRequest
from infra.settings import Metrics as MetricsSettings

if TYPE_CHECKING:
    from infra.metrics import Metrics

logger = structlog.get_logger()
T = TypeVar("T")
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: A process whose event loop takes longer to answer is not well.
PATIENCE_S = 2.0
TEXT = ("Content-Type", "text/plain; charset=utf-8")


class Shown(Protocol):
    """The process that the pages are about. Asked in its event loop."""

    async def is_ready(self) -> bool:
        """Whether it may be asked: it has caught up, is linked, and does not stop."""
        ...

    async def measured(self) -> Mapping[str, object]:
        """What it knows of itself, with `shard`, `replica` and `lag` where it has them."""
        ...


@asynccontextmanager
async def pages(settings: MetricsSettings, role: str, process: Shown) -> AsyncIterator[tuple[Metrics | None, str]]:
    """Served while this lasts; gives what watches the requests, and the address. None where the settings have no port;
    nor where the address is taken: that is logged, as no memory should be away for want of a metric.

    Raises InvalidRequest when the library is not installed.
    """
    if settings.port is None:
        yield None, ""
        return
    try:
        from prometheus_client import make_wsgi_app, start_http_server

        from infra.metrics import Metrics
    except ImportError as error:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"{error.name} is not installed: pip install 'memlane[metrics]'", field="metrics"
        ) from None
    metrics = Metrics(role)
    async with BlockingPortal() as portal:
        try:
            server, _ = start_http_server(settings.port, settings.host, metrics.registry)
        except OSError as error:
            address = f"{settings.host}:{settings.port}"
            logger.error("no metrics", action="metrics_off", error=f"cannot listen on {address}: {error}")
            yield None, ""
            return
        server.set_app(_application(portal, process, metrics, make_wsgi_app(metrics.registry)))
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        try:
            yield metrics, f"{host}:{server.server_port}"
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(server.shutdown)
            server.server_close()


def _application(portal: BlockingPortal, process: Shown, metrics: Metrics, exposition: Wsgi) -> Wsgi:
    """It runs in threads of its own. Each page asks the event loop first: one that does not answer is not well."""

    def asked(question: Callable[[], Awaitable[T]]) -> T:
        return portal.start_task_soon(question).result(PATIENCE_S)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path, status = environ.get("PATH_INFO"), "200 OK"
        try:
            match path:
                case "/metrics":
                    metrics.facts = asked(process.measured)
                    return exposition(environ, start)
                case "/healthz":
                    asked(process.is_ready)
                case "/readyz":
                    status = status if asked(process.is_ready) else "503 Service Unavailable"
                case _:
                    status = "404 Not Found"
        except (TimeoutError, RuntimeError, CancelledError):  # the loop is held up, or has ended
            status = "503 Service Unavailable"
        start(status, [TEXT])
        return [f"{status[4:].lower()}\n".encode()]

    return answer

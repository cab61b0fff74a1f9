"""The bus over nats-py: connect, request, publish. Every fault of the library that a caller can meet is mapped here."""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

import nats
import nats.errors
import structlog
from nats.aio.client import Client

from contracts.base import MESSAGE_OVERHEAD
from contracts.ports import NoReply, NoResponders, PayloadTooLarge
from infra import tracing
from infra.settings import Nats

logger = structlog.get_logger()

_faults: WeakKeyDictionary[Client, Counter[str]] = WeakKeyDictionary()


def faults_of(client: Client) -> dict[str, int]:
    """How many errors a client's link has had since it was made, by kind: `SlowConsumerError` is a lost message."""
    return dict(_faults.get(client, {}))


async def connect(settings: Nats, name: str) -> Client:
    """A client that reconnects for ever. Slow consumers, lost links and what the server does not permit are logged and
    counted (`faults_of`). Raises InvalidRequest for a credential that is none."""
    faults: Counter[str] = Counter()

    async def on_error(error: Exception) -> None:
        faults[type(error).__name__] += 1
        logger.warning("nats error", action="nats_error", kind=type(error).__name__, error=str(error))

    async def on_lost() -> None:
        if not client.is_closed:  # by us, on purpose
            logger.warning("nats connection lost", action="nats_lost")

    async def on_back() -> None:
        logger.info("nats connection back", action="nats_back")

    client = await nats.connect(
        settings.url,
        name=name,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
        connect_timeout=2,
        ping_interval=10,
        pending_size=16 * 1024 * 1024,
        error_cb=on_error,
        disconnected_cb=on_lost,
        reconnected_cb=on_back,
        **settings.access.options(),
    )
    _faults[client] = faults
    return client


def header_text(text: str, most: int) -> str:
    """A text of any origin as the value of a header: in ASCII, and on one line, as a second would be another header."""
    return "".join(char if " " <= char <= "~" else "?" if char > "~" else " " for char in text)[:most]


class NatsBus:
    """`contracts.ports.Bus` over one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        with tracing.asking(subject) as headers:
            return await self._request(subject, data, timeout_s, headers)

    async def _request(self, subject: str, data: bytes, timeout_s: float, headers: dict[str, str] | None) -> bytes:
        self.check_size(data, headers)
        try:
            reply = await self._client.request(subject, data, timeout=max(timeout_s, 0.001), headers=headers)
        except nats.errors.NoRespondersError:
            raise NoResponders(subject) from None
        except (TimeoutError, nats.errors.TimeoutError):
            raise NoReply(subject) from None
        except (
            nats.errors.ConnectionClosedError,
            nats.errors.ConnectionReconnectingError,
            nats.errors.ConnectionDrainingError,
            nats.errors.OutboundBufferLimitError,
        ) as error:
            raise NoReply(f"{subject}: {error}") from None
        return reply.data

    async def publish(self, subject: str, data: bytes) -> None:
        self.check_size(data)
        await self._client.publish(subject, data)

    def check_size(self, data: bytes, headers: dict[str, str] | None = None) -> None:
        """Raises PayloadTooLarge. Counts the header too: the server cuts the link of a client that is over with it,
        which the library does not check (nats.py pull requests 888 and 896)."""
        size = len(data) + sum(len(key) + len(value) + 4 for key, value in (headers or {}).items())
        limit = self._client.max_payload - MESSAGE_OVERHEAD
        if size > limit:
            raise PayloadTooLarge(f"{size} bytes, at most {limit}")

"""Leases in a JetStream key-value bucket whose keys expire: of several processes one acts."""

from __future__ import annotations

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyNotFoundError
from nats.js.kv import KeyValue

from contracts import subjects

logger = structlog.get_logger()

TIMEOUT_S = 2.0


class KvLease:
    """`contracts.stores.Lease`: a key holds its holder's name, by compare-and-set, for `infra.streams.LEASE_S`."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream(timeout=TIMEOUT_S)
        self._bucket: KeyValue | None = None

    async def hold(self, name: str, holder: str) -> bool:
        try:
            bucket = await self._bound()
            try:
                entry = await bucket.get(name)
            except KeyNotFoundError:
                await bucket.create(name, holder.encode())
                return True
            if entry.value != holder.encode():
                return False
            await bucket.update(name, holder.encode(), last=entry.revision)
            return True
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:  # another was faster, or nobody answers
            logger.info("no lease", action="no_lease", name=name, kind=type(error).__name__)
            return False

    async def _bound(self) -> KeyValue:
        if self._bucket is None:
            self._bucket = await self._js.key_value(subjects.LEASES_BUCKET)
        return self._bucket

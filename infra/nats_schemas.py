"""Declared schemas in a JetStream key-value bucket: one key a project, compare-and-set by revision."""

from __future__ import annotations

import nats.errors
from nats.aio.client import Client
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

from contracts import subjects, wire
from contracts.errors import ErrorCode, Unavailable
from contracts.schema import VersionedSchema
from contracts.stores import WrongRevision


class KvSchemas:
    """`contracts.stores.Schemas`. Reads go through the stream's leader, so what a declare stored is seen at once."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()
        self._bucket: KeyValue | None = None

    async def read(self, project: str) -> tuple[VersionedSchema, int]:
        try:
            entry = await (await self._bound()).get(project)
        except KeyNotFoundError:
            return VersionedSchema(), 0
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise _unavailable(error) from None
        return wire.decode_stored(VersionedSchema, entry.value or b"{}"), entry.revision or 0

    async def write(self, project: str, schema: VersionedSchema, revision: int) -> None:
        data = wire.encode(schema)
        try:
            await (await self._bound()).update(project, data, last=revision)
        except KeyWrongLastSequenceError:
            raise WrongRevision(project) from None
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise _unavailable(error) from None

    async def _bound(self) -> KeyValue:
        if self._bucket is None:
            self._bucket = await self._js.key_value(subjects.SCHEMAS_BUCKET)
        return self._bucket


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(ErrorCode.UNAVAILABLE, "the schema store did not answer", reason=str(error))

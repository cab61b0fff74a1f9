"""Query sessions in a JetStream key-value bucket whose keys expire: shared by all orchestrators."""

from __future__ import annotations

import hashlib

import nats.errors
from nats.aio.client import Client
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyNotFoundError
from nats.js.kv import KeyValue

from contracts import subjects, wire
from contracts.errors import ErrorCode, Garbled, Unavailable
from contracts.query import SessionState

TIMEOUT_S = 1.0


class KvSessions:
    """`contracts.stores.Sessions`. Keys are hashes: a session id may hold any character. Reads go through the stream's
    leader, so that an orchestrator sees what another has just written."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream(timeout=TIMEOUT_S)
        self._bucket: KeyValue | None = None

    async def read(self, project: str, session_id: str) -> SessionState:
        try:
            entry = await (await self._bound()).get(_key(project, session_id))
            return wire.decode_stored(SessionState, entry.value or b"{}")
        except (KeyNotFoundError, Garbled):
            return SessionState()
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise _unavailable(error) from None

    async def write(self, project: str, session_id: str, state: SessionState) -> None:
        try:
            await (await self._bound()).put(_key(project, session_id), wire.encode(state))
        except (TimeoutError, nats.errors.Error, JetStreamError) as error:
            raise _unavailable(error) from None

    async def _bound(self) -> KeyValue:
        if self._bucket is None:
            self._bucket = await self._js.key_value(subjects.SESSIONS_BUCKET)
        return self._bucket


def _key(project: str, session_id: str) -> str:
    return f"{project}.{hashlib.sha256(session_id.encode()).hexdigest()[:40]}"


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(ErrorCode.UNAVAILABLE, "the session store did not answer", reason=str(error))

"""A server that is locked keeps what it had, and data is not opened with other keys than its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.base import now
from contracts.errors import Conflict
from contracts.memory import MemoryRecord, derive_id
from infra import streams
from infra.nats_bus import connect
from infra.nats_log import JetStreamLog
from infra.nats_server import NatsServer
from infra.security.vault import Vault
from infra.settings import Log, Nats


def link(server: NatsServer, vault: Vault | None) -> Nats:
    if vault is None:
        return Nats(url=server.url)
    access = vault.access("encode")
    return Nats(url=server.url, creds=access.creds, tls_ca=access.tls_ca)


async def stories(server: NatsServer, vault: Vault | None, write: bool = False) -> int:
    """How many states of a memory the log has."""
    memory_id = derive_id("kept")
    client = await connect(link(server, vault), "test")
    try:
        log = JetStreamLog(client)
        if write:
            await streams.ensure(client, Log())
            await log.append(
                MemoryRecord(id=memory_id, project="p", text="kept", created_at=now(), changed_at=now()), 0
            )
        return len(await log.history("p", memory_id))
    finally:
        await client.close()


async def test_locking_keeps_the_data_and_opening_it_again_is_refused(tmp_path: Path) -> None:
    data, vault = tmp_path / "nats", Vault.create(tmp_path / "keys")
    server = NatsServer(data)
    server.start()
    try:
        assert await stories(server, None, write=True) == 1
    finally:
        server.stop()
    for keys in (vault, Vault.create(vault.folder, force=True)):
        server = NatsServer(data, 0, keys.server_config(), keys.core)
        server.start()
        try:
            assert await stories(server, keys) == 1
        finally:
            server.stop()
    other = Vault.create(tmp_path / "other")
    for server in (NatsServer(data), NatsServer(data, 0, other.server_config(), other.core)):
        with pytest.raises(Conflict, match="other keys"):
            server.start()

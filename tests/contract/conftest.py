"""A real NATS server for each file of tests, and a client on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from nats.aio.client import Client

from infra import streams
from infra.nats_bus import connect
from infra.nats_server import NatsServer
from infra.settings import Log, Nats


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def client(server: NatsServer) -> AsyncIterator[Client]:
    """With all streams and buckets there."""
    client = await connect(Nats(url=server.url), "test")
    await streams.ensure(client, Log())
    yield client
    await client.close()

"""Query sessions in a real key-value bucket: shared, of one project, and forgotten in time."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import anyio
import pytest
from nats.aio.client import Client

from contracts.errors import Unavailable
from contracts.memory import derive_id
from contracts.query import SessionState
from infra import streams
from infra.nats_bus import connect
from infra.nats_server import NatsServer
from infra.nats_sessions import KvSessions
from infra.settings import Log, Nats
from orchestrator.session import SessionMemory
from tests.unit.test_query_page import THREE, Store, World

_numbers = itertools.count(1)
STATE = SessionState(tier="medium", scores={derive_id("a"): 0.5})


@pytest.fixture
async def other(server: NatsServer) -> AsyncIterator[Client]:
    client = await connect(Nats(url=server.url), "other")
    yield client
    await client.close()


@pytest.mark.parametrize("session_id", ["ses_01HMRT…", "a.b *>", "x" * 256, " "])
async def test_what_one_writes_another_reads(client: Client, other: Client, session_id: str) -> None:
    project = f"p{next(_numbers)}"
    assert await KvSessions(client).read(project, session_id) == SessionState()
    await KvSessions(client).write(project, session_id, STATE)
    assert await KvSessions(other).read(project, session_id) == STATE
    assert await KvSessions(other).read(project + "x", session_id) == SessionState()
    assert await KvSessions(other).read(project, session_id + "x") == SessionState()
    await KvSessions(other).write(project, session_id, SessionState(tier="high"))
    assert await KvSessions(client).read(project, session_id) == SessionState(tier="high")


async def test_two_orchestrators_serve_one_session_in_turn(client: Client, other: Client) -> None:
    """Each sees what the other has answered: the boost is that of the other's scores, the tier the highest of both."""
    world, session = World(THREE), f"s{next(_numbers)}"
    services = []
    for link in (client, other):
        world.store = KvSessions(link)  # type: ignore[assignment]
        services.append(world.another())
    last: dict[str, float] = {}
    for number, query in enumerate(("one two three four five six", "and why?", "since when?", "who else?")):
        world.service = services[number % 2]
        answer = await world.query(query, session_id=session)
        assert answer.computation_tier == "medium"
        for memory in answer.memories:
            assert memory.session_boost == pytest.approx(0.05 * last.get(memory.id, 0.0), abs=2e-4)
        last = {memory.id: memory.score - memory.session_boost for memory in answer.memories}


async def test_a_session_is_forgotten_and_its_lifetime_can_be_changed(client: Client) -> None:
    sessions, project = KvSessions(client), f"p{next(_numbers)}"
    await streams.ensure(client, Log(), 1.0)
    await sessions.write(project, "s", STATE)
    assert await sessions.read(project, "s") == STATE
    with anyio.fail_after(10):
        while await sessions.read(project, "s") != SessionState():
            await anyio.sleep(0.1)
    await streams.ensure(client, Log())
    assert (await client.jetstream().stream_info("KV_MEMLANE_SESSIONS")).config.max_age == 1800


async def test_a_store_that_is_away_is_told_and_costs_no_query(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = NatsServer(tmp_path_factory.mktemp("away"))
    server.start()
    client = await connect(Nats(url=server.url), "test")
    sessions = KvSessions(client)
    try:
        with pytest.raises(Unavailable):  # the bucket was never made
            await sessions.read("p", "s")
        world = World(THREE)
        assert await SessionMemory(sessions, world.afterwards).read("p", "s") == SessionState()
    finally:
        await client.close()
        server.stop()


async def test_the_stand_in_of_other_tests_does_the_same() -> None:
    store = Store()
    await store.write("p", "s", STATE)
    assert await store.read("p", "s") == STATE
    assert await store.read("q", "s") == SessionState()

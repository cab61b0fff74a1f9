"""Declared schemas on a real NATS server: what is written is read, and no declare undoes another."""

from __future__ import annotations

import itertools

import anyio
import pytest
from nats.aio.client import Client

from contracts.errors import ErrorCode, Unavailable
from contracts.memory import StatementKind
from contracts.schema import DeclareReply, DeclareRequest, EntityType, Predicate, Schema, VersionedSchema
from contracts.stores import WrongRevision
from infra.nats_bus import connect
from infra.nats_schemas import KvSchemas
from infra.nats_server import NatsServer
from infra.settings import Nats
from orchestrator.schema import SchemaService

_numbers = itertools.count(1)


@pytest.fixture
def project() -> str:
    return f"Some-project_{next(_numbers)}"


def types(*names: str) -> Schema:
    return Schema(entity_types=tuple(EntityType(name=name) for name in names))


async def test_none_was_declared(client: Client, project: str) -> None:
    assert await KvSchemas(client).read(project) == (VersionedSchema(), 0)


async def test_what_was_written_is_read_and_only_there(client: Client, project: str) -> None:
    schemas = KvSchemas(client)
    predicate = Predicate(
        name="works at", kind=StatementKind.CUSTOM, cardinality="one", symmetric=True, description="é"
    )
    stored = VersionedSchema(version=1, schema=Schema(predicates=(predicate,)))
    await schemas.write(project, stored, 0)
    found, revision = await schemas.read(project)
    assert found == stored
    assert revision > 0
    assert await schemas.read(project + "x") == (VersionedSchema(), 0)


async def test_a_write_on_an_old_revision_changes_nothing(client: Client, project: str) -> None:
    schemas = KvSchemas(client)
    first, second, third = (VersionedSchema(version=n, schema=types(f"t{n}")) for n in (1, 2, 3))
    await schemas.write(project, first, 0)
    _, revision = await schemas.read(project)
    await schemas.write(project, second, revision)
    for old in (0, revision):
        with pytest.raises(WrongRevision):
            await schemas.write(project, third, old)
    assert (await schemas.read(project))[0] == second


async def test_declares_at_once_all_land(client: Client, project: str) -> None:
    """Each in a service of its own, as of several orchestrators."""
    replies: list[DeclareReply] = []

    async def declare(name: str) -> None:
        service = SchemaService(KvSchemas(client))
        replies.append(await service.declare(project, DeclareRequest(schema=types(name))))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(declare, f"t{number}")
    assert all(reply.applied for reply in replies)
    assert sorted(reply.version for reply in replies) == list(range(1, 9))
    schema = await SchemaService(KvSchemas(client)).get(project)
    assert schema.version == 8
    assert schema.declared == types(*(f"t{number}" for number in range(8)))


async def test_versions_dry_runs_and_conflicts(client: Client, project: str) -> None:
    service = SchemaService(KvSchemas(client))
    works_at = Schema(predicates=(Predicate(name="works_at", kind=StatementKind.ATTRIBUTE),))
    otherwise = Schema(
        entity_types=(EntityType(name="Person"),), predicates=(Predicate(name="works_at", kind=StatementKind.FACT),)
    )

    async def declare(schema: Schema, dry_run: bool = False) -> tuple[int, bool, set[str]]:
        reply = await service.declare(project, DeclareRequest(schema=schema, dry_run=dry_run))
        return reply.version, reply.applied, {item.outcome for item in reply.report}

    assert await declare(works_at, dry_run=True) == (0, False, {"inserted"})
    assert (await service.get(project)).version == 0
    assert await declare(works_at) == (1, True, {"inserted"})
    assert await declare(works_at) == (1, True, {"matched"})
    assert await declare(otherwise) == (1, False, {"inserted", "conflict"})
    assert (await service.get(project)).declared == works_at
    assert await declare(types("Person")) == (2, True, {"inserted"})


async def test_a_store_that_is_away_is_told(tmp_path_factory: pytest.TempPathFactory, project: str) -> None:
    server = NatsServer(tmp_path_factory.mktemp("gone"))
    server.start()
    client = await connect(Nats(url=server.url), "test")
    try:
        schemas = KvSchemas(client)  # no streams were made here
        with pytest.raises(Unavailable) as caught:
            await schemas.read(project)
        assert caught.value.code is ErrorCode.UNAVAILABLE
    finally:
        await client.close()
        server.stop()

"""The first seed's contract, sentence by sentence, on both sets of engines."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from contracts.client import MemoryClient
from contracts.recall import RecallReply
from infra.graph_server import GraphAddress
from tests.graph_servers import real_neo4j
from tests.stack import Stack

__all__ = ["real_neo4j"]

_numbers = itertools.count(1)


@pytest.fixture(scope="session", params=["whoosh and the embedded graph store", "tantivy and Neo4j"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running service; two shards, so that nothing here holds on one alone."""
    env = {"MEMLANE_LOG__SHARDS": "2", "MEMLANE_UPKEEP__EVERY_S": "1"}
    if "Neo4j" in request.param:
        address: GraphAddress = request.getfixturevalue("real_neo4j")
        env |= {
            "NEO4J_URI": address.uri,
            "NEO4J_USER": address.user,
            "NEO4J_PASSWORD": address.password,
            "MEMLANE_GRAPH__DATABASE": address.database,
            "MEMLANE_LEXICAL__ENGINE": "tantivy",
        }
    with Stack(tmp_path_factory.mktemp("conformance"), env) as stack:
        yield stack


@dataclass
class Mind:
    """A project of its own, and short words for what a test does to it."""

    memory: MemoryClient

    async def learn(self, text: str, *claims: tuple[str, str, str], **fields: Any) -> str:
        """Encode; each claim is a statement (subject, predicate, object) of kind `kind`, Attribute unless given."""
        kind = fields.pop("claim_kind", "Attribute")
        statements = [{"subject": s, "predicate": p, "object": o, "kind": kind} for s, p, o in claims]
        return (await self.memory.encode(text, statements=statements, **fields)).id

    async def recall(self, cue: str, **fields: Any) -> RecallReply:
        """Of all that was written."""
        return await self.memory.recall(
            cue, **{"consistency": "ReadAfterWrite", "deadline_ms": 20_000, "trace": True, **fields}
        )


@pytest.fixture
async def mind(service: Stack) -> AsyncIterator[Mind]:
    async with MemoryClient(service.url, project=f"mind-{next(_numbers)}", timeout_s=30) as memory:
        yield Mind(memory)


def texts(reply: RecallReply) -> list[str]:
    return [member.text for member in reply.members]


NOISE = (
    "The museum roof leaks over the east wing",
    "Bicycle repairs are due every spring",
    "The bakery on the corner opens at six",
    "The violin lessons were moved to Thursday",
    "Our kitchen got new ceramic tiles",
    "The harbour crane failed its safety inspection",
    "Garden soil wants compost in autumn",
    "The library extended its opening hours",
)


async def noise(mind: Mind) -> None:
    for text in NOISE:
        await mind.learn(text)

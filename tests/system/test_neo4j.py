"""The same main job on a real Neo4j and tantivy: the other engines behind the same ports."""

from __future__ import annotations

import pytest

from contracts.client import MemoryClient
from infra.graph_server import GraphAddress
from tests.graph_servers import real_neo4j
from tests.stack import Stack

__all__ = ["real_neo4j"]


async def test_a_recall_through_neo4j_and_tantivy(
    real_neo4j: GraphAddress, tmp_path_factory: pytest.TempPathFactory
) -> None:
    environment = {
        "NEO4J_URI": real_neo4j.uri,
        "NEO4J_USER": real_neo4j.user,
        "NEO4J_PASSWORD": real_neo4j.password,
        "MEMLANE_GRAPH__DATABASE": real_neo4j.database,
        "MEMLANE_LEXICAL__ENGINE": "tantivy",
    }
    with Stack(tmp_path_factory.mktemp("neo4j"), environment) as stack:
        async with MemoryClient(stack.url, project="neo", timeout_s=60) as memory:
            written = await memory.encode(
                "Diego Marín moved to the billing team",
                relations=[{"from": "Diego Marín", "type": "works_at", "to": "billing team"}],
            )
            reply = await memory.recall(
                "who is in the billing team?",
                consistency="ReadAfterWrite",
                position=written.position,
                deadline_ms=60_000,
                trace=True,
            )
    assert [member.id for member in reply.members] == [written.id]
    assert set(reply.members[0].provenance) == {"semantic", "lexical", "graph"}
    assert {lane.status for lane in reply.lanes.values()} == {"ok"}
    assert reply.trace is not None
    assert any(hit.label == "Diego Marín —works_at→ billing team" for hit in reply.trace.lanes["graph"])

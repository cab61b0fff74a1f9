"""Graph servers for tests: started once a session, shared by whoever asks."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from infra.graph_server import DATABASE, EmbeddedGraph, GraphAddress
from infra.real_neo4j import Neo4jUnavailable, RealNeo4j


@pytest.fixture(scope="session")
def embedded_graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphAddress]:
    """The embedded store."""
    graph = EmbeddedGraph(tmp_path_factory.mktemp("graph"))
    try:
        yield graph.start()
    finally:
        graph.stop()


@pytest.fixture(scope="session")
def real_neo4j() -> Iterator[GraphAddress]:
    """A real Neo4j 5: the one NEO4J_URI names, else one of our own.

    Where it cannot run the test is skipped, or fails if MEMLANE_REQUIRE_NEO4J is set to 1.
    """
    if uri := os.environ.get("NEO4J_URI"):
        user, password = os.environ.get("NEO4J_USER", "neo4j"), os.environ.get("NEO4J_PASSWORD", "")
        yield GraphAddress(uri, user, password, os.environ.get("NEO4J_DATABASE", DATABASE))
        return
    server = RealNeo4j()
    try:
        yield _start(server)
    finally:
        server.stop()


def _start(server: RealNeo4j) -> GraphAddress:
    try:
        return server.start()
    except Neo4jUnavailable as missing:
        if os.environ.get("MEMLANE_REQUIRE_NEO4J") == "1":
            raise
        pytest.skip(f"no real Neo4j here: {missing.reason}")

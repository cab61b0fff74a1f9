"""Bad input is answered with a typed error, and harms nobody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, InvalidRequest
from contracts.verbs import VERBS
from tests.stack import Stack


def nested(depth: int) -> list[object]:
    return [nested(depth - 1)] if depth else []


PROJECT = "bad-input"
OVER_LONG = "word " * 60_000
TARGET = "a" * 26

#: What is wrong with any request, whatever its verb.
MALFORMED = [
    pytest.param(b"", "INVALID_ENCODING", id="no bytes"),
    pytest.param(b"\xff\xfe", "INVALID_ENCODING", id="not UTF-8"),
    pytest.param(b'{"text": "caf\xe9", "cue": "caf\xe9"}', "INVALID_ENCODING", id="Latin-1"),
    pytest.param(b'{"text": "cut o', "INVALID_ENCODING", id="cut off"),
    pytest.param(b'["text"]', "INVALID_REQUEST", id="an array"),
    pytest.param(b"null", "INVALID_REQUEST", id="null"),
    pytest.param(b'"text"', "INVALID_REQUEST", id="a string"),
    pytest.param(b"{}", "INVALID_REQUEST", id="nothing in it"),
]

ENCODES = [
    pytest.param({"text": ""}, "TEXT_EMPTY", id="empty"),
    pytest.param({"text": " \n\t "}, "TEXT_EMPTY", id="blank"),
    pytest.param({"text": OVER_LONG}, "TEXT_TOO_LARGE", id="over-long"),
    pytest.param({"text": 7}, "INVALID_REQUEST", id="text a number"),
    pytest.param({"text": None}, "INVALID_REQUEST", id="text null"),
    pytest.param({"text": "a\x00b"}, "INVALID_REQUEST", id="NUL"),
    pytest.param({"text": "a", "txet": "b"}, "UNKNOWN_FIELD", id="unknown field"),
    pytest.param({"text": "a", "entities": [{"name": "A", "colour": "b"}]}, "UNKNOWN_FIELD", id="unknown inner field"),
    pytest.param({"text": "a", "tags": "one"}, "INVALID_REQUEST", id="tags a string"),
    pytest.param({"text": "a", "tags": ["  "]}, "INVALID_REQUEST", id="blank tag"),
    pytest.param({"text": "a", "session": "s" * 300}, "INVALID_REQUEST", id="long session"),
    pytest.param({"text": "a", "kind": "Consolidated"}, "INVALID_REQUEST", id="reserved kind"),
    pytest.param({"text": "a", "occurred_at": "2026-01-01T00:00:00"}, "INVALID_REQUEST", id="naive time"),
    pytest.param({"text": "a", "occurred_at": 1767225600}, "INVALID_REQUEST", id="time a number"),
    pytest.param({"text": "a", "occurred_at": "yesterday"}, "INVALID_REQUEST", id="time in words"),
    pytest.param({"text": "a", "importance": 2}, "OUT_OF_RANGE", id="importance 2"),
    pytest.param({"text": "a", "confidence": -0.1}, "OUT_OF_RANGE", id="confidence below 0"),
    pytest.param({"text": "a", "ttl_s": 0}, "OUT_OF_RANGE", id="ttl 0"),
    pytest.param({"text": "a", "vector": [0.1] * 5}, "BAD_VECTOR_DIMENSION", id="vector of 5"),
    pytest.param({"text": "a", "vector": []}, "BAD_VECTOR_DIMENSION", id="vector of none"),
    pytest.param({"text": "a", "vector": [0.0] * 384}, "INVALID_REQUEST", id="zero vector"),
    pytest.param({"text": "a", "vector": [1e39] * 384}, "INVALID_REQUEST", id="vector beyond float32"),
    pytest.param({"text": "a", "edges": [{"kind": "LIKES", "target": TARGET}]}, "INVALID_REQUEST", id="edge kind"),
    pytest.param({"text": "a", "edges": [{"kind": "CAUSED", "target": "x"}]}, "INVALID_REQUEST", id="edge target"),
    pytest.param({"text": "a", "metadata": {"key": nested(300)}}, "INVALID_REQUEST", id="deep metadata"),
    pytest.param({"text": "a", "metadata": {"key": "v" * 20_000}}, "INVALID_REQUEST", id="much metadata"),
    pytest.param({"text": "a", "request_id": ""}, "INVALID_REQUEST", id="empty request id"),
]

RECALLS = [
    pytest.param({"cue": ""}, "TEXT_EMPTY", id="empty"),
    pytest.param({"cue": " \n "}, "TEXT_EMPTY", id="blank"),
    pytest.param({"cue": OVER_LONG}, "TEXT_TOO_LARGE", id="over-long"),
    pytest.param({"cue": ["a"]}, "INVALID_REQUEST", id="cue an array"),
    pytest.param({"cue": "a\x00b"}, "INVALID_REQUEST", id="NUL"),
    pytest.param({"cue": "a", "top_k": 5}, "UNKNOWN_FIELD", id="unknown field"),
    pytest.param({"cue": "a", "max_results": 0}, "OUT_OF_RANGE", id="max_results 0"),
    pytest.param({"cue": "a", "max_results": 1001}, "OUT_OF_RANGE", id="max_results 1001"),
    pytest.param({"cue": "a", "max_results": "many"}, "INVALID_REQUEST", id="max_results a word"),
    pytest.param({"cue": "a", "deadline_ms": 0}, "OUT_OF_RANGE", id="deadline 0"),
    pytest.param({"cue": "a", "deadline_ms": 10**9}, "OUT_OF_RANGE", id="deadline of days"),
    pytest.param({"cue": "a", "since": "2026-01-01T00:00:00"}, "INVALID_REQUEST", id="naive time"),
    pytest.param({"cue": "a", "as_of": 1767225600}, "INVALID_REQUEST", id="time a number"),
    pytest.param({"cue": "a", "kinds": ["Dream"]}, "INVALID_REQUEST", id="unknown kind"),
    pytest.param({"cue": "a", "min_confidence": 1.5}, "OUT_OF_RANGE", id="min_confidence 1.5"),
    pytest.param({"cue": "a", "consistency": "Strong"}, "INVALID_REQUEST", id="unknown consistency"),
]

GRAPHS = [
    pytest.param({"limit": 0}, "OUT_OF_RANGE", id="limit 0"),
    pytest.param({"limit": 501}, "OUT_OF_RANGE", id="limit 501"),
    pytest.param({"include_memories": False}, "INVALID_REQUEST", id="edges without memories"),
    pytest.param({"types": "Person"}, "INVALID_REQUEST", id="types a string"),
    pytest.param({"layers": 3}, "UNKNOWN_FIELD", id="unknown field"),
    pytest.param({"cursor": "x"}, "STALE_CURSOR", id="no cursor"),
    pytest.param({"cursor": "\u00e9"}, "STALE_CURSOR", id="no cursor at all"),
]

DECLARES = [
    pytest.param({"entity_types": [{"name": " "}]}, "INVALID_REQUEST", id="blank name"),
    pytest.param({"entity_types": [{"name": "a"}, {"name": "A"}]}, "INVALID_REQUEST", id="twice"),
    pytest.param({"entity_types": [{"name": f"t{n}"} for n in range(501)]}, "INVALID_REQUEST", id="too many"),
    pytest.param({"extractors": []}, "UNKNOWN_FIELD", id="unknown section"),
    pytest.param({"predicates": [{"name": "p"}]}, "INVALID_REQUEST", id="no kind"),
    pytest.param(
        {"relation_types": [{"name": "r", "symmetric": True, "cardinality": "one-to-many"}]},
        "INVALID_REQUEST",
        id="symmetric one-to-many",
    ),
]

SYNTAX = [
    "/b testing",
    "a AND",
    "(",
    "*",
    "?",
    "id:1",
    '"unbalanced',
    "[x TO",
    "a^",
    "~",
    "\\",
    "!",
    "MATCH (n) RETURN n",
]


@pytest.fixture(scope="module")
async def link(stack: Stack) -> AsyncIterator[Client]:
    """A plain connection, with one good memory in the project."""
    client = await nats.connect(stack.url)
    try:
        reply = await ask(client, "encode", b'{"text": "The good memory is about Valparaiso"}')
        assert "error" not in reply
        yield client
    finally:
        await client.close()


async def ask(link: Client, verb: str, data: bytes, project: str = PROJECT) -> dict[str, Any]:
    reply = json.loads((await link.request(f"memlane.v1.{project}.{verb}", data, timeout=20)).data)
    assert isinstance(reply, dict)
    return reply


async def refused(link: Client, verb: str, data: bytes, code: str, project: str = PROJECT) -> None:
    """The request meets this error, and the next good ones are served."""
    error = (await ask(link, verb, data, project)).get("error")
    assert error is not None
    assert error["code"] == code, error
    assert error["message"]
    assert not error["retryable"]
    await serves(link)


async def serves(link: Client) -> None:
    written = await ask(link, "encode", b'{"text": "The good memory is about Valparaiso"}')
    assert written["deduplicated"]
    cue = {"cue": "Valparaiso", "consistency": "ReadAfterWrite", "deadline_ms": 10_000}
    reply = await ask(link, "recall", json.dumps(cue).encode())
    assert [member["id"] for member in reply["members"]] == [written["id"]]


@pytest.mark.parametrize("verb", ["encode", "recall", "schema.declare"])
@pytest.mark.parametrize(("data", "code"), MALFORMED)
async def test_malformed(link: Client, verb: str, data: bytes, code: str) -> None:
    await refused(link, verb, data, code)


@pytest.mark.parametrize(("request_", "code"), ENCODES)
async def test_encode_refuses(link: Client, request_: dict[str, Any], code: str) -> None:
    await refused(link, "encode", json.dumps(request_).encode(), code)


@pytest.mark.parametrize(("request_", "code"), GRAPHS)
async def test_graph_fetch_refuses(link: Client, request_: dict[str, Any], code: str) -> None:
    await refused(link, "graph_fetch", json.dumps(request_).encode(), code)


@pytest.mark.parametrize(("schema", "code"), DECLARES)
async def test_declare_refuses(link: Client, schema: dict[str, Any], code: str) -> None:
    await refused(link, "schema.declare", json.dumps({"schema": schema}).encode(), code)
    assert (await ask(link, "schema.get", b""))["version"] == 0


@pytest.mark.parametrize(("request_", "code"), RECALLS)
async def test_recall_refuses(link: Client, request_: dict[str, Any], code: str) -> None:
    await refused(link, "recall", json.dumps(request_).encode(), code)


async def test_an_error_names_the_field(link: Client) -> None:
    reply = await ask(link, "encode", b'{"text": "a", "importance": 2}')
    assert reply["error"]["details"]["field"] == "importance"
    reply = await ask(link, "recall", b'{"cue": "a", "top_k": 5}')
    assert reply["error"]["details"]["field"] == "top_k"


@pytest.mark.parametrize("verb", ["recall", "list", "inspect", "graph_fetch"])
async def test_reading_an_unknown_project(link: Client, verb: str) -> None:
    data = {
        "recall": b'{"cue": "a"}',
        "list": b"{}",
        "graph_fetch": b"{}",
        "inspect": json.dumps({"id": TARGET}).encode(),
    }[verb]
    reply = await ask(link, verb, data, "nobody-was-here")
    if verb == "inspect":
        assert reply["found"] is False
    else:
        assert reply["error"]["code"] == "UNKNOWN_PROJECT"
    await serves(link)


@pytest.mark.parametrize("project", ["bad$name", "-dash", "p" * 65, "naïve"])
@pytest.mark.parametrize("verb", [*VERBS])
async def test_a_project_of_other_characters(link: Client, verb: str, project: str) -> None:
    await refused(link, verb, b'{"text": "a", "cue": "a"}', "INVALID_PROJECT", project)


async def test_the_client_refuses_a_bad_project_by_itself(stack: Stack) -> None:
    for project in ("bad$name", "a.b", "*", ">", ""):
        with pytest.raises(InvalidRequest) as caught:
            MemoryClient(stack.url, project=project)
        assert caught.value.code is ErrorCode.INVALID_PROJECT


async def test_the_client_refuses_what_the_bus_cannot_carry(link: Client, memory: MemoryClient) -> None:
    for call in (memory.encode("x" * 2_000_000), memory.recall("x" * 2_000_000)):
        with pytest.raises(InvalidRequest) as caught:
            await call
        assert caught.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert (await memory.encode("The link still stands")).position > 0
    await serves(link)


@pytest.mark.parametrize("cue", SYNTAX)
async def test_a_cue_is_words_and_never_a_query(link: Client, cue: str) -> None:
    request = {"cue": cue, "consistency": "ReadAfterWrite", "deadline_ms": 10_000}
    reply = await ask(link, "recall", json.dumps(request).encode())
    assert "error" not in reply
    assert not reply["degraded"]
    assert {lane["status"] for lane in reply["lanes"].values()} == {"ok"}

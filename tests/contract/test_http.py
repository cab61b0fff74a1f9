"""The HTTP door over a bare NATS server: what goes out for a request, and what each kind of reply becomes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import wire
from contracts.errors import (
    Conflict,
    ErrorCode,
    Exhausted,
    Internal,
    InvalidRequest,
    MemlaneError,
    NotFound,
    Unavailable,
)
from contracts.verbs import VERBS
from infra import http_names, http_openapi
from infra.http import MAX_BODY_BYTES, application
from tests.unit.test_asyncapi import refs

SEED = {
    "query": "MFA login issues",
    "k": 5,
    "filters": {"sources": ["support_ticket", "slack"], "since": "2026-04-01T00:00:00Z", "tier": "hot"},
    "weights": {"semantic": 0.5, "recency": 0.3, "importance": 0.2},
    "traversal_depth": 2,
    "session_id": "ses_01",
}


@pytest.fixture
async def door(client: Client) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(application(client), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://door") as door:
        yield door


async def answering(client: Client, data: bytes, headers: dict[str, str] | None = None) -> list[Msg]:
    """Answer every verb like this; what was asked is in the list."""
    asked: list[Msg] = []

    async def answer(message: Msg) -> None:
        asked.append(message)
        await client.publish(message.reply, data, headers=headers)

    await client.subscribe("memlane.v1.>", cb=answer)
    await client.flush()
    return asked


def code(reply: httpx2.Response) -> str:
    assert reply.headers["content-type"] == "application/json"
    body = reply.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "category", "message", "details", "retryable"}
    return str(body["error"]["code"])


@pytest.mark.parametrize(
    ("path", "sent", "subject", "received"),
    [
        ("/recall", {"cue": "a"}, "recall", {"cue": "a"}),
        ("/memory/query", SEED, "query", SEED),
        ("/memory/add", {"text": "a", "tags": ["b"]}, "encode", {"text": "a", "tags": ["b"]}),
        (
            "/memory/add",
            {"content": "a", "ttl_minutes": 2, "deduplicate": False, "event_type": "note", "source": None},
            "encode",
            {"text": "a", "ttl_s": 120, "allow_duplicates": True, "metadata": {"event_type": "note"}},
        ),
        ("/memory/forget", {"memory_id": "x"}, "forget", {"id": "x"}),
        ("/memory/forget", {"id": "x", "mode": "hard"}, "forget", {"id": "x", "mode": "hard"}),
    ],
)
async def test_a_route_is_a_verb(
    client: Client, door: httpx2.AsyncClient, path: str, sent: dict[str, Any], subject: str, received: dict[str, Any]
) -> None:
    asked = await answering(client, b'{"as it": "is"}')
    reply = await door.post(path, json=sent)
    assert (reply.status_code, reply.content) == (200, b'{"as it": "is"}')
    reply = await door.post(path, json=sent, headers={"x-project-id": "team"})
    assert reply.status_code == 200
    assert [message.subject for message in asked] == [f"memlane.v1._.{subject}", f"memlane.v1.team.{subject}"]
    assert json.loads(asked[0].data) == received


async def test_the_silent_header_passes_and_is_else_not_there(client: Client, door: httpx2.AsyncClient) -> None:
    await answering(client, b"{}", {"X-Memlane-Silent": "1"})
    assert (await door.post("/recall", json={"cue": "a"})).headers["x-memlane-silent"] == "1"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequest(ErrorCode.TEXT_EMPTY, "no text", field="text"), 400),
        (InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, "much"), 413),
        (NotFound(ErrorCode.MEMORY_NOT_FOUND, "gone"), 404),
        (Conflict(ErrorCode.IDEMPOTENCY_CONFLICT, "other"), 409),
        (Exhausted(ErrorCode.QUOTA_EXCEEDED, "spent", retry_after_ms=61_001), 429),
        (Unavailable(ErrorCode.LANES_LOST, "away"), 503),
        (Internal(ErrorCode.INTERNAL, "ours"), 500),
    ],
)
async def test_a_category_is_a_status(
    client: Client, door: httpx2.AsyncClient, error: MemlaneError, status: int
) -> None:
    data = wire.encode_error(error)
    await answering(client, data, {"Nats-Service-Error": "x", "Nats-Service-Error-Code": str(error.code)})
    reply = await door.post("/recall", json={"cue": "a"})
    assert (reply.status_code, reply.content) == (status, data)
    assert reply.headers.get("retry-after") == ("62" if status == 429 else None)
    assert "x-memlane-silent" not in reply.headers


async def test_what_nobody_serves_is_unavailable(door: httpx2.AsyncClient) -> None:
    for path, _ in http_openapi.PATHS:
        reply = await door.post(path, json={"id": "a"})
        assert (reply.status_code, code(reply)) == (503, "UNAVAILABLE")
    health = await door.get("/health")
    assert (health.status_code, health.json()) == (503, {"status": "down", "roles": {}})


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b'{"cue": "cut o', b"cue=a", b"[1]", b"null", b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}"]
)
async def test_a_body_that_is_no_object_of_json(door: httpx2.AsyncClient, body: bytes) -> None:
    reply = await door.post("/recall", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert code(reply) in ("INVALID_ENCODING", "INVALID_REQUEST")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_another_content_type(door: httpx2.AsyncClient, kind: str) -> None:
    reply = await door.post("/recall", content=b'{"cue": "a"}', headers={"content-type": kind})
    assert (reply.status_code, code(reply)) == (400, "INVALID_REQUEST")


async def test_a_body_over_a_mebibyte(client: Client, door: httpx2.AsyncClient) -> None:
    asked = await answering(client, b"{}")
    for size in (MAX_BODY_BYTES - 100, MAX_BODY_BYTES + 1, 3 * MAX_BODY_BYTES):
        reply = await door.post("/recall", json={"cue": "x" * size})
        assert (reply.status_code, code(reply)) == (413, "PAYLOAD_TOO_LARGE")
    assert asked == []
    assert (await door.post("/recall", json={"cue": "x" * (MAX_BODY_BYTES - 5000)})).status_code == 200


@pytest.mark.parametrize("project", ["a.b", "*", "", "_", "-a", "p" * 65])
async def test_a_bad_project(client: Client, door: httpx2.AsyncClient, project: str) -> None:
    asked = await answering(client, b"{}")
    reply = await door.post("/recall", json={"cue": "a"}, headers={"X-Project-ID": project})
    assert (reply.status_code, code(reply)) == (400, "INVALID_PROJECT")
    assert asked == []


async def test_paths_and_methods_that_are_not_there(door: httpx2.AsyncClient) -> None:
    for method, path, status in (("GET", "/", 404), ("POST", "/memory", 404), ("GET", "/recall", 405)):
        reply = await door.request(method, path)
        assert (reply.status_code, code(reply)) == (status, "INVALID_REQUEST")


@pytest.mark.parametrize(
    "value",
    [
        {"text": "a", "content": "b"},
        {"text": "a", "ttl_s": 1, "ttl_minutes": 1},
        {"text": "a", "ttl_minutes": "1"},
        {"text": "a", "ttl_minutes": True},
        {"text": "a", "deduplicate": 1},
        {"text": "a", "deduplicate": True, "allow_duplicates": True},
    ],
)
def test_two_names_at_once_or_another_type(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        http_names.encode(value)


def test_other_names_become_valid_requests() -> None:
    theirs = {"content": "a", "ttl_minutes": 0.5, "deduplicate": True, "event_type": "e", "metadata": {"k": 1}}
    request = wire.validate(VERBS["encode"].request, http_names.encode(theirs))
    assert request.model_dump(include={"text", "ttl_s", "allow_duplicates", "metadata"}) == {
        "text": "a",
        "ttl_s": 30,
        "allow_duplicates": False,
        "metadata": {"event_type": "e", "k": 1},
    }
    for bad in (
        {"content": "a", "ttl_minutes": 1e999},
        {"content": "a", "ttl_minutes": -1},
        {"content": "a", "metadata": 1, "event_type": "e"},
    ):
        with pytest.raises(InvalidRequest):
            wire.validate(VERBS["encode"].request, http_names.encode(bad))


async def test_the_openapi_document_is_whole(door: httpx2.AsyncClient) -> None:
    document = (await door.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {path for path, _ in http_openapi.PATHS} | {"/health"}
    found = set(refs(document))
    assert {"HttpEncodeRequest", "RecallRequest", "ErrorReply"} <= {ref.rpartition("/")[2] for ref in found}
    for ref in found:
        target = document
        for part in ref.split("/")[1:]:
            target = target[part]
    add = document["components"]["schemas"]["HttpEncodeRequest"]
    assert add["additionalProperties"] is False
    assert {"text", "content", "importance", "ttl_minutes"} <= set(add["properties"])

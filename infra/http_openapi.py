"""The OpenAPI 3.1 document of the HTTP door, made from the table of verbs and the messages' own models."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson
from pydantic.json_schema import models_json_schema

from contracts.addressing import PROJECT_HEADER, SILENT_HEADER
from contracts.base import PROJECT_PATTERN
from contracts.errors import ErrorCode, ErrorReply
from contracts.verbs import VERBS
from infra import http_names
from infra.asyncapi import SCHEMAS, VERSION

#: Which verb stands behind which path.
PATHS = (("/memory/add", "encode"), ("/memory/query", "query"), ("/memory/forget", "forget"), ("/recall", "recall"))
_ERRORS = {
    "400": "the caller must change the request",
    "404": "what the request names is not there",
    "409": "the request contradicts what is stored",
    "413": "the body is over 1 MiB",
    "429": "the quota is spent, or too much at once; Retry-After says when, in seconds",
    "500": "our fault",
    "503": "a part is away or did not answer in time, or nobody serves the verb; try again",
}


@cache
def text() -> bytes:
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def document() -> dict[str, Any]:
    """The whole document, as JSON values; the same for the same code."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Memlane",
            "version": VERSION,
            "description": "A memory service for AI agents. Unknown fields of a request are refused.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8080", "description": "where `memlane http` listens"}],
        "paths": {
            **{path: {"post": _operation(verb)} for path, verb in PATHS},
            "/health": {"get": _health()},
        },
        "components": {"schemas": _schemas()},
    }


def _operation(verb: str) -> dict[str, Any]:
    known = VERBS.get(verb)
    reply = {"$ref": SCHEMAS + known.reply.__name__} if known else {"type": "object"}
    silent = {"description": "1: the quota is spent and nothing was done", "schema": {"const": "1"}}
    return {
        "operationId": verb,
        "summary": known.summary if known else f"The verb {verb}, where somebody serves it.",
        "parameters": [
            {
                "name": PROJECT_HEADER,
                "in": "header",
                "required": False,
                "description": "whose memory; without it, the default project's",
                "schema": {"type": "string", "pattern": PROJECT_PATTERN},
            }
        ],
        "requestBody": {"required": True, "content": _content(_request(verb))},
        "responses": {
            "200": {"description": "done", "headers": {SILENT_HEADER: silent}, "content": _content(reply)},
            **{
                status: {"description": says, "content": _content({"$ref": SCHEMAS + "ErrorReply"})}
                for status, says in _ERRORS.items()
            },
        },
    }


def _request(verb: str) -> dict[str, Any]:
    """A verb's own request, or, where the door knows other names, one that has these too."""
    if verb not in VERBS:
        return {"type": "object"}
    name = VERBS[verb].request.__name__
    return {"$ref": SCHEMAS + (f"Http{name}" if verb in http_names.PROPERTIES else name)}


def _health() -> dict[str, Any]:
    body = {
        "type": "object",
        "required": ["status", "roles"],
        "properties": {
            "status": {"enum": ["ok", "degraded", "down"]},
            "roles": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
    return {
        "operationId": "health",
        "summary": "Which roles answer.",
        "responses": {
            "200": {"description": "memories can be written and read", "content": _content(body)},
            "503": {"description": "they cannot", "content": _content(body)},
        },
    }


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _schemas() -> dict[str, Any]:
    verbs = {verb: VERBS[verb] for _, verb in PATHS if verb in VERBS}
    _, definitions = models_json_schema(
        [(verb.request, "validation") for verb in verbs.values()]
        + [(verb.reply, "serialization") for verb in verbs.values()]
        + [(ErrorReply, "serialization")],
        ref_template=SCHEMAS + "{model}",
    )
    schemas: dict[str, Any] = definitions["$defs"]
    schemas["ErrorBody"]["properties"]["code"]["examples"] = sorted(ErrorCode)
    for verb, more in http_names.PROPERTIES.items():
        name = VERBS[verb].request.__name__
        own = dict(schemas[name])
        own["properties"] = own["properties"] | more
        own.pop("required", None)  # it may be there under its other name
        schemas[f"Http{name}"] = own
    return schemas

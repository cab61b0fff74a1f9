"""The AsyncAPI 3.0 document of the service, made from the table of verbs and the messages' own models.

`memlane asyncapi --out infra/asyncapi.json` writes the copy that is kept with the code; a test holds it up to date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from contracts import subjects
from contracts.addressing import NO_PROJECT, PROJECT_HEADER, SILENT_HEADER
from contracts.base import PROJECT_PATTERN, Message
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, ErrorReply
from contracts.usage import Metered
from contracts.verbs import VERBS, Verb

VERSION = "0.1.0"
SCHEMAS = "#/components/schemas/"
MESSAGES = "#/components/messages/"


def document() -> dict[str, Any]:
    """The whole document, as JSON values; the same for the same code."""
    models: list[type[BaseModel]] = [*dict.fromkeys(_models()), ErrorReply]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Memlane",
            "version": VERSION,
            "description": "A memory service for AI agents over NATS. Every verb is a request; its reply is the verb's "
            "own or an error. Unknown fields of a request are refused.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "nats": {"host": "127.0.0.1:4222", "protocol": "nats", "description": "where `memlane up` listens"}
        },
        "channels": _channels(),
        "operations": _operations(),
        "components": {
            "messages": {model.__name__: _message(model) for model in models},
            "parameters": {
                "project": {
                    "description": f"The tenant: {PROJECT_PATTERN}; or {NO_PROJECT} for that of the header "
                    f"{PROJECT_HEADER}, without which it is the default one"
                }
            },
            "schemas": _schemas(models),
        },
    }


def text() -> bytes:
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _models() -> Iterator[type[BaseModel]]:
    for verb in VERBS.values():
        yield verb.request
        yield verb.reply


def _channels() -> dict[str, Any]:
    channels: dict[str, Any] = {}
    for name, verb in VERBS.items():
        channels[name] = _channel(subjects.verb("{project}", name), verb.summary, verb.request)
        channels[f"{name}.reply"] = {  # where to is the requester's choice: an inbox of its own
            "address": None,
            "messages": _refs(verb.reply, ErrorReply),
        }
    channels["ingest"] = _channel(
        subjects.ingest("{project}"), "Encode requests, fire and forget, into a stream.", EncodeRequest
    )
    return channels


def _channel(address: str, summary: str, message: type[BaseModel]) -> dict[str, Any]:
    return {
        "address": address,
        "summary": summary,
        "parameters": {"project": {"$ref": "#/components/parameters/project"}},
        "messages": _refs(message),
    }


def _operations() -> dict[str, Any]:
    """From the service's side: it receives requests and sends replies."""
    operations: dict[str, Any] = {name: _operation(name, verb) for name, verb in VERBS.items()}
    operations["ingest"] = {
        "action": "receive",
        "summary": "Encoded in batches; what cannot be goes to the dead letters with the reason.",
        "channel": {"$ref": "#/channels/ingest"},
        "messages": [{"$ref": "#/channels/ingest/messages/EncodeRequest"}],
    }
    return operations


def _operation(name: str, verb: Verb) -> dict[str, Any]:
    channel, reply = f"#/channels/{name}", f"#/channels/{name}.reply"
    return {
        "action": "receive",
        "summary": verb.summary,
        "channel": {"$ref": channel},
        "messages": [{"$ref": f"{channel}/messages/{verb.request.__name__}"}],
        "bindings": {"nats": {"queue": verb.role}},
        "reply": {
            "channel": {"$ref": reply},
            "messages": [{"$ref": f"{reply}/messages/{model.__name__}"} for model in (verb.reply, ErrorReply)],
        },
    }


def _refs(*models: type[BaseModel]) -> dict[str, Any]:
    return {model.__name__: {"$ref": MESSAGES + model.__name__} for model in models}


def _message(model: type[BaseModel]) -> dict[str, Any]:
    message: dict[str, Any] = {"name": model.__name__, "payload": {"$ref": SCHEMAS + model.__name__}}
    if issubclass(model, Message):
        message["headers"] = _headers(PROJECT_HEADER, "the project, where the subject has _", pattern=PROJECT_PATTERN)
    if issubclass(model, Metered):
        message["headers"] = _headers(SILENT_HEADER, "the quota is spent and nothing was done", const="1")
    return message


def _headers(name: str, description: str, **schema: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string", "description": description, **schema}}}


def _schemas(models: list[type[BaseModel]]) -> dict[str, Any]:
    """By name. Requests as a caller may write them, replies as we do."""
    requests = {verb.request for verb in VERBS.values()}
    _, definitions = models_json_schema(
        [(model, "validation" if model in requests else "serialization") for model in models],
        ref_template=SCHEMAS + "{model}",
    )
    schemas: dict[str, Any] = definitions["$defs"]
    schemas["ErrorBody"]["properties"]["code"]["examples"] = sorted(ErrorCode)
    return schemas

"""The AsyncAPI document: up to date, whole, and about what is really served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts import subjects
from contracts.client import MemoryClient
from contracts.verbs import VERBS
from infra import asyncapi
from orchestrator.role import OrchestratorRole
from workers.encode import EncodeWorker
from workers.upkeep import UpkeepWorker

KEPT = Path(asyncapi.__file__).with_name("asyncapi.json")
DOCUMENT = asyncapi.document()


def test_the_kept_copy_is_up_to_date() -> None:
    assert KEPT.read_bytes() == asyncapi.text(), "run: memlane asyncapi --out infra/asyncapi.json"


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from refs(part)


def test_every_reference_leads_somewhere() -> None:
    found = set(refs(DOCUMENT))
    assert len(found) > 50
    for ref in found:
        target: Any = DOCUMENT
        root, *path = ref.split("/")
        assert root == "#"
        for part in path:
            assert part in target, ref
            target = target[part]


def test_what_is_served_is_in_the_table_and_the_other_way_round() -> None:
    nothing: Any = None
    roles = [
        OrchestratorRole(*[nothing] * 9),
        EncodeWorker(*[nothing] * 5),
        UpkeepWorker(nothing, nothing, nothing, nothing, "a", 1, 1.0),
    ]
    served = {
        (endpoint.subject, role.name, endpoint.queue)
        for role in roles
        for endpoint in role.endpoints()
        if endpoint.subject not in (subjects.TOPICS, subjects.SUMMARISE)  # between roles
    }
    assert served == {(subjects.verb("*", name), verb.role, verb.role) for name, verb in VERBS.items()}
    for role in roles:
        for endpoint in role.endpoints():
            assert "." not in endpoint.name


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_an_operation_with_its_reply_or_an_error(name: str) -> None:
    verb, operation = VERBS[name], DOCUMENT["operations"][name]
    assert DOCUMENT["channels"][name]["address"] == f"memlane.v1.{{project}}.{name}"
    assert [ref["$ref"].rpartition("/")[2] for ref in operation["messages"]] == [verb.request.__name__]
    replies = [ref["$ref"].rpartition("/")[2] for ref in operation["reply"]["messages"]]
    assert replies == [verb.reply.__name__, "ErrorReply"]
    payload = DOCUMENT["components"]["schemas"][verb.request.__name__]
    assert payload["additionalProperties"] is False
    required = {field.alias or key for key, field in verb.request.model_fields.items() if field.is_required()}
    assert set(payload.get("required", [])) == required
    assert {field.alias or key for key, field in verb.request.model_fields.items()} == set(
        payload.get("properties", {})
    )


def test_the_client_has_a_method_for_every_verb() -> None:
    other = {"schema.declare": "declare_schema", "schema.get": "schema"}
    assert all(callable(getattr(MemoryClient, other.get(name, name.removeprefix("txn.")))) for name in VERBS)

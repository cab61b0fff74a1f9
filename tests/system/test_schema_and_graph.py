"""A declared schema and the graph export, end to end: strict where memories are written, absent where they are read."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from nats.js.errors import NotFoundError

from contracts import subjects
from contracts.client import MemoryClient
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest
from contracts.graph import GraphFetchReply, entity_id, union
from contracts.memory import derive_id
from tests.stack import Stack
from tests.system.test_main_job import fresh, until
from workers.extract import RuleExtractor

SCHEMA = {
    "entity_types": [{"name": "Person"}, {"name": "Company"}],
    "predicates": [{"name": "works_at", "kind": "Attribute"}, {"name": "met", "kind": "Event"}],
    "relation_types": [{"name": "reports_to", "from_type": "Person", "to_type": "Person"}],
}
TEXT = "Zora Quill works at Globex. See TICKET-77 and mail zora@example.org"
#: The bound within which every encode worker has learned of a declare, and some.
LEARNED_S = 0.6


def works_at(who: str, where: str, **fields: Any) -> dict[str, Any]:
    return {"subject": who, "predicate": "works_at", "object": where, **fields}


async def declare(memory: MemoryClient) -> None:
    reply = await memory.declare_schema(SCHEMA)
    assert (reply.applied, reply.version) == (True, 1)
    await asyncio.sleep(LEARNED_S)


async def test_writes_are_strict_and_reads_are_not(memory: MemoryClient) -> None:
    before = await memory.encode(
        "Zora Quill likes juggling", entities=[{"name": "Zora Quill", "type": "Juggler"}],
        statements=[{"subject": "Zora Quill", "predicate": "likes", "object": "juggling"}],
    )  # fmt: skip
    assert (await memory.schema()).version == 0
    await declare(memory)
    assert (await memory.schema()).version == 1

    refused: list[tuple[dict[str, Any], ErrorCode, str]] = [
        ({"entities": [{"name": "R2", "type": "Robot"}]}, ErrorCode.ENTITY_TYPE_NOT_IN_SCHEMA, "Robot"),
        (
            {"statements": [{"subject": "a", "predicate": "likes", "object": "b"}]},
            ErrorCode.PREDICATE_NOT_IN_SCHEMA,
            "likes",
        ),
        ({"statements": [works_at("Ana", "Globex", kind="Fact")]}, ErrorCode.KIND_NOT_IN_SCHEMA, "works_at"),
        ({"relations": [{"from": "Ana", "type": "knows", "to": "Bo"}]}, ErrorCode.RELATION_TYPE_NOT_IN_SCHEMA, "knows"),
    ]
    for fields, code, name in refused:
        with pytest.raises(InvalidRequest) as caught:
            await memory.encode("nothing of this may be stored", **fields)
        assert (caught.value.code, caught.value.details["name"]) == (code, name)

    extracted = await memory.encode(TEXT)
    assert extracted.position > before.position
    for id in (before.id, extracted.id):
        assert (await memory.inspect(id)).found
    reply = await fresh(memory, "what does Zora Quill like?")
    assert before.id in [member.id for member in reply.members]
    assert {row.id for row in (await memory.list()).memories} == {before.id, extracted.id}
    found = {entity.type for entity in RuleExtractor().extract(TEXT, {}).entities}
    assert found - {"Thing", "Person", "Company"}, "the text should hold what the schema does not know"
    types = {entity.type for row in (await memory.list()).memories if row.id == extracted.id for entity in row.entities}
    assert types == {"Thing"}


async def test_the_declared_kind_lets_a_newer_value_supersede(memory: MemoryClient) -> None:
    await declare(memory)
    old = await memory.encode("Ana is with Globex", statements=[works_at("Ana", "Globex")])
    new = await memory.encode("Ana is with Initech now", statements=[works_at("Ana", "Initech")])
    await fresh(memory, "Ana")
    row = (await memory.inspect(old.id)).memory
    assert row is not None
    assert row.superseded_by == new.id
    assert [statement.kind for statement in row.statements] == ["Attribute"]


async def test_the_ingest_queue_is_as_strict(memory: MemoryClient) -> None:
    await declare(memory)
    await memory.ingest(
        EncodeRequest.model_validate({"text": "R2 beeps", "entities": [{"name": "R2", "type": "Robot"}]})
    )
    await memory.ingest(
        EncodeRequest.model_validate({"text": "Ana hums", "entities": [{"name": "Ana", "type": "Person"}]})
    )
    stream = (await memory.connection()).jetstream()

    async def buried() -> bool:
        try:
            message = await stream.get_last_msg(subjects.DLQ_STREAM, subjects.dead_letter(memory.project))
        except NotFoundError:
            return False
        assert (message.headers or {})["Memlane-Error"] == "ENTITY_TYPE_NOT_IN_SCHEMA"
        return True

    async def listed() -> bool:
        try:
            return [row.text for row in (await memory.list()).memories] == ["Ana hums"]
        except Exception:
            return False  # nobody wrote to the project yet

    await until(buried)
    await until(listed)


async def test_two_declares_at_once_both_land(memory: MemoryClient) -> None:
    names = [f"Type {number}" for number in range(4)]
    replies = await asyncio.gather(*(memory.declare_schema({"entity_types": [{"name": name}]}) for name in names))
    assert sorted(reply.version for reply in replies) == [1, 2, 3, 4]
    assert [item.name for item in (await memory.schema()).declared.entity_types] == names


async def pages(memory: MemoryClient, **fields: Any) -> list[GraphFetchReply]:
    found = [await memory.graph_fetch(**fields)]
    while found[-1].cursor:
        found.append(await memory.graph_fetch(**fields, cursor=found[-1].cursor))
    return found


async def write_a_graph(memory: MemoryClient, count: int = 12) -> list[str]:
    """Memories, each of which leads to the one written before."""
    ids: list[str] = []
    for number in range(count):
        reply = await memory.encode(
            f"Note {number}: Ana is with Globex", entities=[{"name": "Ana", "type": "Person"}, {"name": "Globex", "type": "Company"}],
            statements=[works_at("Ana", "Globex", kind="Attribute")],
            relations=[{"from": "Ana", "type": "reports_to", "to": f"Boss {number}"}],
            edges=[{"kind": "FOLLOWED_BY", "target": ids[-1] if ids else derive_id("elsewhere"), "weight": 0.5}],
        )  # fmt: skip
        ids.append(reply.id)
    await fresh(memory, "Ana")
    return ids


async def test_the_graph_comes_in_pages(memory: MemoryClient) -> None:
    ids = await write_a_graph(memory)
    [whole] = await pages(memory)
    parts = await pages(memory, limit=5)
    assert len(parts) == 3
    for part in parts:
        known = {node.id for node in part.nodes}
        assert all({edge.source, edge.target} <= known for edge in part.edges)
    assert union(parts).nodes == whole.nodes
    assert union(parts).edges == whole.edges
    assert {node.id for node in whole.nodes if node.kind == "Memory" and not node.placeholder} == set(ids)
    assert [node.id for node in whole.nodes if node.placeholder] == [derive_id("elsewhere")]
    kinds = {(edge.source, edge.kind, edge.target) for edge in whole.edges}
    assert (entity_id("Ana"), "works_at", entity_id("Globex")) in kinds
    assert (entity_id("Ana"), "reports_to", entity_id("Boss 3")) in kinds
    assert (ids[1], "FOLLOWED_BY", ids[0]) in kinds
    assert {edge.weight for edge in whole.edges if edge.kind == "FOLLOWED_BY"} == {0.5}

    await memory.forget(ids[0])
    await fresh(memory, "Ana")
    [left] = await pages(memory)
    assert next(node for node in left.nodes if node.id == ids[0]).placeholder
    [all_of_it] = await pages(memory, include_tombstoned=True)
    assert next(node for node in all_of_it.nodes if node.id == ids[0]).tombstoned

    cursor = parts[0].cursor
    with pytest.raises(InvalidRequest) as caught:
        await memory.graph_fetch(cursor=cursor, types=["Person"])
    assert caught.value.code is ErrorCode.STALE_CURSOR


def memlane(stack: Stack, project: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "infra.cli", *arguments],
        env=os.environ | {"NATS_URL": stack.url, "MEMLANE_PROJECT": project, "COLUMNS": "200"},
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip


async def test_from_the_command_line(stack: Stack, memory: MemoryClient, tmp_path: Path) -> None:
    await write_a_graph(memory, 3)

    async def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return await asyncio.to_thread(memlane, stack, memory.project, *arguments)

    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    dry = await run("schema", "declare", str(file), "--dry-run")
    assert dry.returncode == 0
    assert b"version 0, not applied, dry run" in dry.stdout
    assert b"version 1, in force" in (await run("schema", "declare", str(file))).stdout
    file.write_text(json.dumps({"predicates": [{"name": "works_at", "kind": "Fact"}]}))
    conflict = await run("schema", "declare", str(file))
    assert conflict.returncode == 1
    assert b"kind is Attribute, not Fact" in conflict.stdout
    shown = json.loads((await run("schema", "show", "--json")).stdout)
    assert shown["version"] == 1
    assert [item["name"] for item in shown["schema"]["predicates"]] == ["met", "works_at"]
    assert b"reports_to" in (await run("schema", "show")).stdout
    assert (await run("schema", "declare", "no-such-file.json", "--json")).returncode == 1

    [whole] = await pages(memory)
    assert json.loads((await run("graph")).stdout) == json.loads(whole.model_dump_json(exclude_none=True))
    out = tmp_path / "graph.xml"
    assert (await run("graph", "--format", "graphml", "--out", str(out))).returncode == 0
    assert len(ElementTree.parse(out).findall(".//{*}node")) == len(whole.nodes)
    dot = (await run("graph", "--format", "dot", "--type", "Person", "--no-memories")).stdout.decode()
    assert dot.startswith("digraph")
    assert "e:ana" in dot
    assert "globex" not in dot.replace("Ana works at Globex", "")
    assert (await run("graph", "--format", "png")).returncode == 1

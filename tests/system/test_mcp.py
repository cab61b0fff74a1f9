"""The MCP door, through the SDK's own client: over stdio as agents start it, and over HTTP."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import mcp_types as types
import orjson
import pytest
from mcp import Client, MCPError, StdioServerParameters

from contracts.encode import EncodeRequest
from infra.child import end
from tests.stack import Stack

TOOLS = {"remember", "recall", "query", "forget", "plan", "reason", "inspect"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("mcp")) as stack:
        yield stack


@asynccontextmanager
async def connected(stack: Stack) -> AsyncIterator[Client]:
    words = ["-m", "infra.cli", "mcp", "--project", "agents", "--nats", stack.url]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=os.getcwd())
    async with Client(server, read_timeout_seconds=60) as client:
        yield client


def said(result: types.CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


async def test_tools_have_the_schemas_of_the_contracts(stack: Stack) -> None:
    async with connected(stack) as agent:
        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert tools.keys() == TOOLS
        assert tools["remember"].input_schema == EncodeRequest.model_json_schema()
        destructive = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
        assert destructive == {"forget"}
        assert "None" in (agent.instructions or "")


async def test_what_was_remembered_is_recalled_at_once(stack: Stack) -> None:
    async with connected(stack) as agent:
        kept = await agent.call_tool("remember", {"text": "Greta keeps the spare key under the third flower pot"})
        assert not kept.is_error
        memory_id = kept.structured_content["id"]
        assert memory_id in said(kept)
        found = await agent.call_tool("recall", {"cue": "where is the spare key?"})
        assert f"[{memory_id}]" in said(found)
        assert "third flower pot" in said(found)
        assert found.structured_content["answer_kind"] == "Single"
        best = await agent.call_tool("query", {"query": "spare key under the flower pot", "k": 1})
        assert f"[{memory_id}]" in said(best)
        nothing = await agent.call_tool("recall", {"cue": "quarterly revenue of the shipping division"})
        assert said(nothing).startswith("None")
        gone = await agent.call_tool("forget", {"id": memory_id})
        assert not gone.is_error
        assert said(await agent.call_tool("recall", {"cue": "where is the spare key?"})).startswith("None")


async def test_plan_and_reason(stack: Stack) -> None:
    async with connected(stack) as agent:
        claim = await agent.call_tool("remember", {"text": "The outage was caused by release 41"})
        target = claim.structured_content["id"]
        edges = [{"kind": kind, "target": target} for kind in ("SUPPORTS", "CAUSED")]
        ground = await agent.call_tool("remember", {"text": "Errors began when release 41 went live", "edges": edges})
        ends = {"start": {"id": ground.structured_content["id"]}, "goal": {"id": claim.structured_content["id"]}}
        path = await agent.call_tool("plan", ends | {"consistency": "ReadAfterWrite"})
        assert path.structured_content["status"] == "GoalReached", said(path)
        why = await agent.call_tool("reason", {"claim": {"id": claim.structured_content["id"]}})
        assert ground.structured_content["id"] in said(why)


async def test_bad_arguments_are_told_to_the_model(stack: Stack) -> None:
    async with connected(stack) as agent:
        for name, arguments, code in [
            ("recall", {"cue": ""}, "TEXT_EMPTY"),
            ("recall", {"query": "x"}, "INVALID_REQUEST"),
            ("forget", {"id": "nobody"}, "INVALID_REQUEST"),
            ("forget", {"id": "a" * 26}, "MEMORY_NOT_FOUND"),
        ]:
            refused = await agent.call_tool(name, arguments)
            assert refused.is_error, name
            assert refused.structured_content["error"]["code"] == code
        with pytest.raises(MCPError, match="no tool"):
            await agent.call_tool("drop_everything", {})


async def test_resources(stack: Stack) -> None:
    async with connected(stack) as agent:
        kept = await agent.call_tool("remember", {"text": "Hugo works at Initech"})
        memory_id = kept.structured_content["id"]
        [template] = (await agent.list_resource_templates()).resource_templates
        [content] = (await agent.read_resource(template.uri_template.replace("{id}", memory_id))).contents
        assert isinstance(content, types.TextResourceContents)
        assert orjson.loads(content.text)["memory"]["text"] == "Hugo works at Initech"
        [graph] = (await agent.list_resources()).resources
        [content] = (await agent.read_resource(graph.uri)).contents
        assert isinstance(content, types.TextResourceContents)
        assert "nodes" in orjson.loads(content.text)
        with pytest.raises(MCPError, match="no resource"):
            await agent.read_resource("memlane://secrets")


@pytest.fixture
def address(stack: Stack) -> Iterator[str]:
    """Of a door over HTTP."""
    words = ["-m", "infra.cli", "mcp", "--project", "web", "--port", "0", "--nats", stack.url]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready = re.fullmatch(rb"ready (http://127\.0\.0\.1:\d+/mcp)\n", process.stdout.readline())
        assert ready
        yield ready[1].decode()
        end(process)


async def test_over_http(address: str) -> None:
    async with Client(address, read_timeout_seconds=60) as client:
        await client.call_tool("remember", {"text": "Ida prefers the window seat"})
        assert "window seat" in said(await client.call_tool("recall", {"cue": "which seat does Ida prefer?"}))


def test_without_a_service_it_says_so() -> None:
    words = ["-m", "infra.cli", "mcp", "--nats", "nats://127.0.0.1:1"]
    told = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=60, input="")
    assert told.returncode == 1
    assert "is memlane up?" in told.stdout + told.stderr

"""The door for the Model Context Protocol: verbs of one project as tools; memories and its graph as resources."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from contracts import wire
from contracts.client import MemoryClient
from contracts.encode import EncodeReply
from contracts.errors import ErrorCode, MemlaneError, to_reply
from contracts.verbs import VERBS
from infra.mcp_text import readable

MEMORY_URI, GRAPH_URI = "memlane://memory/", "memlane://graph"
JSON = "application/json"
INSTRUCTIONS = """Long-term memory. Call `remember` for what will matter later: facts, decisions, preferences, events,
one matter a memory. Call `recall` before you answer from memory: it says None when nothing is known, and then say so
rather than guess. `query` gives the k best by signals that you weigh. All tools take each other's ids."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A verb as a tool. A hint that is wrong would let a client run it unasked."""

    verb: str
    description: str
    reads: bool
    destroys: bool = False


OFFERS: dict[str, Offer] = {
    "remember": Offer("encode", "Store one memory: a sentence or a short passage that will matter later.", reads=False),
    "recall": Offer("recall", "What is known about a cue: one memory, many that belong together, or none.", reads=True),
    "query": Offer("query", "The k best memories by seven weighted signals, with filters and sessions.", reads=True),
    "forget": Offer("forget", "Forget a memory by id; for 7 days it can be restored, unless `hard`.", False, True),
    "plan": Offer("plan", "How one memory leads to another: paths over their edges.", reads=True),
    "reason": Offer("reason", "What supports a claim, and what contradicts it.", reads=True),
    "inspect": Offer("inspect", "One memory whole, with its write story.", reads=True),
}


class McpDoor:
    """One project's memory as an MCP server. What was remembered here is recalled here at once."""

    def __init__(self, memory: MemoryClient) -> None:
        self._memory, self._written = memory, 0

    def server(self) -> Server[Any]:
        return Server(
            "memlane",
            version=importlib.metadata.version("memlane"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    async def _list_tools(self, _: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name, offer) for name, offer in OFFERS.items()])

    async def _call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in OFFERS:
            raise MCPError(types.INVALID_PARAMS, f"no tool {params.name!r}; there are {', '.join(OFFERS)}")
        verb = VERBS[OFFERS[params.name].verb]
        try:
            request = wire.validate(verb.request, params.arguments or {})
            reply = await self._ask(OFFERS[params.name].verb, request, verb.reply)
        except MemlaneError as error:  # for the model to read and to mend, so a result and no protocol error
            return types.CallToolResult(
                content=[types.TextContent(text=str(error))],
                structured_content=to_reply(error).model_dump(mode="json"),
                is_error=True,
            )
        if isinstance(reply, EncodeReply):
            self._written = max(self._written, reply.position)
        return types.CallToolResult(
            content=[types.TextContent(text=readable(reply))], structured_content=reply.model_dump(mode="json")
        )

    async def _ask(self, verb: str, request: BaseModel, reply: type[BaseModel]) -> BaseModel:
        """A read that names no consistency waits for what was remembered through this door; where that is
        late, an answer without it is better than none."""
        waits = "position" in type(request).model_fields and "consistency" not in request.model_fields_set
        if waits and self._written:
            own = request.model_copy(update={"consistency": "ReadAfterWrite", "position": self._written})
            try:
                return await self._memory.call(verb, own, reply)
            except MemlaneError as error:
                if error.code is not ErrorCode.CONSISTENCY_TIMEOUT:
                    raise
        return await self._memory.call(verb, request, reply)

    async def _list_resources(self, _: Any, __: Any) -> types.ListResourcesResult:
        graph = types.Resource(
            name="graph", uri=GRAPH_URI, mime_type=JSON, description="The project's typed graph, its first page."
        )
        return types.ListResourcesResult(resources=[graph])

    async def _list_templates(self, _: Any, __: Any) -> types.ListResourceTemplatesResult:
        memory = types.ResourceTemplate(
            name="memory",
            uri_template=f"{MEMORY_URI}{{id}}",
            mime_type=JSON,
            description="A memory and its write story.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[memory])

    async def _read_resource(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            if uri == GRAPH_URI:
                found: BaseModel = await self._memory.graph_fetch()
            elif uri.startswith(MEMORY_URI):
                found = await self._memory.inspect(uri.removeprefix(MEMORY_URI))
            else:
                raise MCPError(types.INVALID_PARAMS, f"no resource {uri}")
        except MemlaneError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        text = wire.encode(found).decode()
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def _tool(name: str, offer: Offer) -> types.Tool:
    verb = VERBS[offer.verb]
    hints = types.ToolAnnotations(
        read_only_hint=offer.reads,
        destructive_hint=offer.destroys,
        idempotent_hint=offer.reads or offer.verb == "encode",  # the id follows from the content
        open_world_hint=False,
    )
    return types.Tool(
        name=name, description=offer.description, input_schema=verb.request.model_json_schema(), annotations=hints
    )

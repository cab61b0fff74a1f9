"""A typed graph as JSON, GraphML or DOT."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from contracts import wire
from contracts.graph import GraphEdge, GraphFetchReply, GraphNode, NodeKind

_SHAPES = {NodeKind.ENTITY: "ellipse", NodeKind.STATEMENT: "note", NodeKind.MEMORY: "box"}
#: What XML 1.0 cannot hold, even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_json(graph: GraphFetchReply) -> bytes:
    """``{"nodes": [...], "edges": [...]}``, as graph_fetch has them."""
    return wire.encode(graph) + b"\n"


def as_graphml(graph: GraphFetchReply) -> bytes:
    """A directed multigraph; fields that a node or edge does not have are left out. Characters that XML cannot hold
    become U+FFFD."""
    import networkx

    multigraph = networkx.MultiDiGraph()
    for node in graph.nodes:
        multigraph.add_node(_xml(node.id), **_attributes(node, "id"))
    for edge in graph.edges:
        multigraph.add_edge(_xml(edge.source), _xml(edge.target), **_attributes(edge, "source", "target"))
    out = io.BytesIO()
    networkx.write_graphml_xml(multigraph, out, named_key_ids=True)
    return out.getvalue()


def as_dot(graph: GraphFetchReply) -> bytes:
    """For Graphviz: entities as ellipses, statements as notes, memories as boxes, placeholders dashed."""
    lines = ["digraph memlane {", "  rankdir=LR;"]
    for node in graph.nodes:
        style = ", style=dashed" if node.placeholder or node.tombstoned or node.superseded_by else ""
        lines.append(f"  {_quoted(node.id)} [label={_quoted(node.label)}, shape={_SHAPES[node.kind]}{style}];")
    for edge in graph.edges:
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [label={_quoted(edge.kind)}];")
    return "\n".join([*lines, "}", ""]).encode()


FORMATS: dict[str, Callable[[GraphFetchReply], bytes]] = {"json": as_json, "graphml": as_graphml, "dot": as_dot}


def _attributes(item: GraphNode | GraphEdge, *but: str) -> dict[str, str | float | bool]:
    fields = item.model_dump(mode="json", exclude=set(but), exclude_none=True)
    return {name: _xml(value) if isinstance(value, str) else value for name, value in fields.items()}


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _quoted(text: str) -> str:
    """A quoted DOT string. A backslash would begin an escape of Graphviz's own, a line end the next line."""
    text = " ".join(text.replace("\x00", "\ufffd").splitlines())
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

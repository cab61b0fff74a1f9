"""The typed graph: laws of the pure translation, what each layer shows, and files that other programs can read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import networkx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import wire
from contracts.catalog import HydrateReply, ListPage, Row
from contracts.errors import ErrorCode, InvalidRequest
from contracts.graph import GraphFetchReply, GraphFetchRequest, GraphNode, entity_id, statement_id, union
from contracts.memory import Edge, Entity, MemoryKind, Relation, Statement, Tombstone, derive_id
from infra.graph_formats import as_dot, as_graphml, as_json
from orchestrator.catalog import Catalog, place_of
from orchestrator.consistency import Horizon
from orchestrator.enumerate import MOST_GRAPH_BYTES, EnumerationService
from orchestrator.graph_export import graph_of, part_of

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
ALL = GraphFetchRequest()

names = st.sampled_from(["Ana", "ana", "Bo", "Globex", "Team  A", "a" * 200, "?!", 'q"\\', "<&>", "é\x07"])
kinds = st.sampled_from(["Thing", "Person", "Team"])
ids = st.sampled_from([derive_id(str(number)) for number in range(8)])
rows = st.builds(
    Row,
    id=ids,
    text=st.text(max_size=200),
    kind=st.just(MemoryKind.EPISODIC),
    position=st.just(1),
    version=st.just(1),
    created_at=st.just(WHEN),
    entities=st.lists(
        st.builds(Entity, name=names, type=kinds, aliases=st.lists(names, max_size=1).map(tuple)), max_size=3
    ).map(tuple),
    statements=st.lists(
        st.builds(Statement, subject=names, predicate=st.sampled_from(["works_at", "met"]), object=names), max_size=3
    ).map(tuple),
    relations=st.lists(
        st.builds(lambda a, b: Relation(**{"from": a, "type": "knows", "to": b}), names, names), max_size=2
    ).map(tuple),
    edges=st.lists(st.builds(Edge, kind=st.just("SUPPORTS"), target=ids), max_size=2).map(tuple),
    superseded_by=st.none() | ids,
)
memories = st.lists(rows, max_size=8, unique_by=lambda row: row.id)


@st.composite
def requests(draw: st.DrawFn) -> GraphFetchRequest:
    with_memories = draw(st.booleans())
    return GraphFetchRequest(
        include_statements=draw(st.booleans()),
        include_memories=with_memories,
        include_edges=with_memories and draw(st.booleans()),
        types=tuple(draw(st.lists(st.sampled_from(["person", "Team", "Robot"]), max_size=2))),
    )


class TestLaws:
    @given(memories, requests())
    def test_every_edge_has_both_its_ends_and_all_is_there_once(
        self, rows: list[Row], layers: GraphFetchRequest
    ) -> None:
        for page in (graph_of(rows, layers), *(part_of(row, layers) for row in rows)):
            known = {node.id for node in page.nodes}
            assert all({edge.source, edge.target} <= known for edge in page.edges)
        whole = graph_of(rows, layers)
        assert len({node.id for node in whole.nodes}) == len(whole.nodes)
        assert len({edge.key for edge in whole.edges}) == len(whole.edges)

    @given(memories, requests(), st.integers(1, 4))
    def test_pages_put_together_are_the_whole(self, rows: list[Row], layers: GraphFetchRequest, size: int) -> None:
        pages = [graph_of(rows[start : start + size], layers) for start in range(0, len(rows), size)]
        assert union(pages) == graph_of(rows, layers)

    @given(memories, requests())
    def test_an_entity_shows_only_where_something_links_to_it(self, rows: list[Row], layers: GraphFetchRequest) -> None:
        graph = graph_of(rows, layers)
        linked = {end for edge in graph.edges for end in (edge.source, edge.target)}
        assert all(node.id in linked for node in graph.nodes if node.kind == "Entity")
        wanted = {name.casefold() for name in layers.types}
        assert all(
            not wanted or (node.type or "").casefold() in wanted for node in graph.nodes if node.kind == "Entity"
        )

    @given(memories, requests())
    def test_other_programs_read_what_is_written(self, rows: list[Row], layers: GraphFetchRequest) -> None:
        graph = graph_of(rows, layers)
        assert GraphFetchReply.model_validate(orjson.loads(as_json(graph))) == graph
        root = ElementTree.fromstring(as_graphml(graph))
        space = {"g": "http://graphml.graphdrawing.org/xmlns"}
        assert len(root.findall("g:graph/g:node", space)) == len(graph.nodes)
        assert len(root.findall("g:graph/g:edge", space)) == len(graph.edges)
        assert dot_statements(as_dot(graph)) == (len(graph.nodes), len(graph.edges))


def dot_statements(data: bytes) -> tuple[int, int]:
    """How many nodes and edges a DOT file has, once every quoted string is out of the way; what is left may hold
    nothing that came from a name."""
    bare = re.sub(r'"(?:[^"\\\n]|\\.)*"', "@", data.decode())
    head, rankdir, *body, foot, end = bare.split("\n")
    assert (head, rankdir.strip(), foot, end) == ("digraph memlane {", "rankdir=LR;", "}", "")
    shape = re.compile(r"  @ \[label=@, shape=(?:ellipse|note|box)(?:, style=dashed)?\];")
    nodes = [line for line in body if shape.fullmatch(line)]
    edges = [line for line in body if line == "  @ -> @ [label=@];"]
    assert len(nodes) + len(edges) == len(body)
    return len(nodes), len(edges)


def row(name: str, minute: int = 0, **fields: Any) -> Row:
    return Row(**{
        "id": derive_id(name), "text": name, "kind": MemoryKind.EPISODIC, "position": 1, "version": 1,
        "created_at": WHEN + timedelta(minutes=minute),
    } | fields)  # fmt: skip


FULL = row(
    "Ana joined\nGlobex",
    entities=(Entity(name="Ana", type="Person", aliases=("A. Perez",)), Entity(name="Globex", type="Company")),
    statements=(
        Statement(subject="A. Perez", predicate="works_at", object="Globex", kind="Attribute"),
        Statement(subject="Ana", predicate="likes", object="green tea"),
    ),
    relations=(Relation(**{"from": "Ana", "type": "reports_to", "to": "Bo"}),),
    edges=(Edge(kind="CAUSED", target=derive_id("next"), weight=0.5),),
    superseded_by=derive_id("newer"),
)


def links(graph: GraphFetchReply) -> set[tuple[str, str, str]]:
    labels = {node.id: node.label for node in graph.nodes}
    return {(labels[edge.source], edge.kind, labels[edge.target]) for edge in graph.edges}


BETWEEN = {("Ana", "reports_to", "Bo"), ("Ana", "works_at", "Globex")}
MENTIONED = {("Ana joined Globex", "Mentions", name) for name in ("Ana", "Globex", "Bo")}
CAUSED = {("Ana joined Globex", "CAUSED", derive_id("next"))}
STATED = {
    (source, "HasStatement", said)
    for source in ("Ana", "Ana joined Globex")
    for said in ("A. Perez works at Globex", "Ana likes green tea")
}


class TestLayers:
    def test_everything(self) -> None:
        graph = graph_of([FULL], ALL)
        assert links(graph) == BETWEEN | MENTIONED | CAUSED | STATED
        nodes = {node.label: node for node in graph.nodes}
        assert nodes["Ana"] == GraphNode(id="e:ana", kind="Entity", label="Ana", type="Person")
        assert nodes["Ana joined Globex"].superseded_by == derive_id("newer")
        assert nodes["Ana joined Globex"].at == WHEN
        assert nodes[derive_id("next")].placeholder
        assert nodes["A. Perez works at Globex"].type == "Attribute"
        assert [edge.weight for edge in graph.edges if edge.kind == "CAUSED"] == [0.5]

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"include_statements": False}, BETWEEN | MENTIONED | CAUSED),
            ({"include_edges": False}, BETWEEN | MENTIONED | STATED),
            ({"include_memories": False, "include_edges": False},
             BETWEEN | {link for link in STATED if link[0] == "Ana"}),
            ({"include_memories": False, "include_edges": False, "include_statements": False}, BETWEEN),
            ({"types": ["PERSON"]}, {("Ana joined Globex", "Mentions", "Ana")} | CAUSED | STATED),
            ({"types": ["Robot"]}, set()),
        ],
    )  # fmt: skip
    def test_less_than_that(self, fields: dict[str, Any], expected: set[tuple[str, str, str]]) -> None:
        assert links(graph_of([FULL], GraphFetchRequest(**fields))) == expected

    def test_edges_need_memories(self) -> None:
        with pytest.raises(InvalidRequest) as caught:
            wire.validate(GraphFetchRequest, {"include_memories": False})
        assert caught.value.code is ErrorCode.INVALID_REQUEST

    def test_ids_are_the_same_for_every_spelling(self) -> None:
        one, other = (
            Statement(subject=s, predicate=p, object="Globex") for s, p in (("Ana", "works_at"), ("ana ", "Works At"))
        )
        assert statement_id(one) == statement_id(other)
        assert entity_id("Ana") == entity_id(" ANA's") == "e:ana"
        assert len(entity_id("x" * 256)) == 28
        assert entity_id("?") != entity_id("!")

    def test_a_later_page_knows_more(self) -> None:
        first = graph_of(
            [row("a", entities=(Entity(name="Ana"),), edges=(Edge(kind="CAUSED", target=derive_id("b")),))], ALL
        )
        second = graph_of([row("b", entities=(Entity(name="ANA", type="Person"),), tombstone=Tombstone(at=WHEN))], ALL)
        nodes = {node.id: node for node in union([first, second]).nodes}
        assert (nodes["e:ana"].label, nodes["e:ana"].type) == ("ANA", "Person")
        assert not nodes[derive_id("b")].placeholder
        assert nodes[derive_id("b")].tombstoned
        assert union([second, first]).nodes == tuple(nodes[key] for key in (derive_id("b"), "e:ana", derive_id("a")))

    def test_what_one_memory_adds_always_fits(self) -> None:
        """Every list full, every name as long as it may be, of the widest characters."""

        def wide(number: int) -> str:
            return "\U0001d4d0" * 250 + f"{number:06}"

        full = row(
            "a" * 200_000,
            entities=tuple(Entity(name=wide(number)) for number in range(256)),
            statements=tuple(Statement(subject=wide(n), predicate=wide(n), object=wide(n + 1)) for n in range(64)),
            relations=tuple(Relation(**{"from": wide(n), "type": wide(n), "to": wide(n + 1)}) for n in range(64)),
            edges=tuple(Edge(kind="CAUSED", target=derive_id(str(n))) for n in range(64)),
        )
        assert len(wire.encode(part_of(full, ALL))) < MOST_GRAPH_BYTES

    def test_graphml_keeps_what_is_known(self) -> None:
        read = networkx.parse_graphml(as_graphml(graph_of([FULL], ALL)).decode(), force_multigraph=True)
        assert read.nodes["e:ana"] == {
            "kind": "Entity",
            "label": "Ana",
            "type": "Person",
            "tombstoned": False,
            "placeholder": False,
        }
        assert {data["kind"] for *_, data in read.edges(data=True)} >= {
            "reports_to",
            "works_at",
            "HasStatement",
            "Mentions",
        }


class OneLog:
    async def end(self, project: str, *shard: Any) -> int:
        return 1


class CatalogBus:
    """Two shards' rows; a reply holds at most `most` of those asked for."""

    def __init__(self, shards: list[list[Row]], most: int) -> None:
        self.shards, self.most = shards, most

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        page = wire.decode_reply(ListPage, data)
        rows = sorted(
            self.shards[int(subject.split(".")[3].partition("of")[0])],
            key=place_of,
            reverse=page.request.order == "newest",
        )
        if page.after:
            rows = [row for row in rows if place_of(row) > page.after]
        rows = rows[: page.request.limit + 1]
        return wire.encode(HydrateReply(rows=tuple(rows[: self.most]), position=1, more=len(rows) > self.most))

    async def publish(self, subject: str, data: bytes) -> None:
        raise AssertionError


def service(rows: list[Row], most: int = 1000) -> EnumerationService:
    bus = CatalogBus([rows[::2], rows[1::2]], most)
    return EnumerationService(OneLog(), Catalog(bus, 2), Horizon(OneLog(), 2))  # type: ignore[arg-type]


async def fetched(service: EnumerationService, **fields: Any) -> list[GraphFetchReply]:
    pages = [await service.graph_fetch("p", GraphFetchRequest(**fields))]
    while pages[-1].cursor:
        pages.append(await service.graph_fetch("p", GraphFetchRequest(**fields, cursor=pages[-1].cursor)))
    return pages


class TestPages:
    @pytest.mark.parametrize("limit", [1, 7, 150, 500])
    @pytest.mark.parametrize("most", [1, 3, 1000])
    async def test_every_memory_once_from_every_shard(self, limit: int, most: int) -> None:
        """Also where a catalog's reply does not hold all of a page: nothing is skipped."""
        rows = [row(f"m{n}", n % 40, edges=(Edge(kind="SUPPORTS", target=derive_id("m0")),)) for n in range(120)]
        pages = await fetched(service(rows, most), limit=limit)
        shown = [node.id for page in pages for node in page.nodes if not node.placeholder]
        assert sorted(set(shown)) == sorted(row.id for row in rows)
        assert len(pages) == -(-len(rows) // limit)
        assert union(pages).edges == graph_of(sorted(rows, key=place_of), ALL).edges

    async def test_a_page_ends_before_it_fills_a_message(self) -> None:
        said = tuple(Statement(subject="s" * 250 + str(n), predicate="p", object="o" * 250) for n in range(64))
        rows = [
            row(f"m{n}", n, statements=tuple(s.model_copy(update={"predicate": f"p{n}"}) for s in said))
            for n in range(40)
        ]
        pages = await fetched(service(rows), limit=500)
        assert len(pages) > 1
        assert all(len(wire.encode(page)) < MOST_GRAPH_BYTES + 1000 for page in pages)
        assert union(pages).edges == graph_of(rows, ALL).edges

    async def test_nothing_there(self) -> None:
        assert await fetched(service([])) == [GraphFetchReply(nodes=(), edges=())]

    async def test_a_cursor_of_other_filters_is_stale(self) -> None:
        graph = service([row(f"m{n}", n) for n in range(3)])
        cursor = (await graph.graph_fetch("p", GraphFetchRequest(limit=1))).cursor
        for fields in (
            {"cursor": cursor, "types": ("Person",)},
            {"cursor": cursor, "include_edges": False},
            {"cursor": "x"},
        ):
            with pytest.raises(InvalidRequest) as caught:
                await graph.graph_fetch("p", GraphFetchRequest(**fields))
            assert caught.value.code is ErrorCode.STALE_CURSOR
        assert (await graph.graph_fetch("p", GraphFetchRequest(limit=2, cursor=cursor))).cursor is None

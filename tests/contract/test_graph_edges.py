"""Which edges the graph tells of, over the reference in plain Python, the embedded store and a real Neo4j 5."""

# ruff: noqa: F811  (a fixture is named as a parameter where it is used)
from __future__ import annotations

import random
from typing import Any

import pytest

from contracts.lanes import EdgesQuery, EdgesReply
from contracts.memory import Edge, EdgeKind, MemoryRecord, derive_id
from contracts.shards import all_shards
from tests.contract.test_graph import PATIENCE_MS, Bench, backend, bench  # noqa: F401
from tests.graph_servers import embedded_graph, real_neo4j  # noqa: F401

KINDS = tuple(EdgeKind)
Row = tuple[str, str, str, float]


def edge(bench: Bench, kind: EdgeKind, target: object, weight: float = 1.0) -> Edge:
    return Edge(kind=kind, target=bench.id(target), weight=weight)


async def ask(bench: Bench, direction: str, *names: object, index: Any = None, **more: Any) -> EdgesReply:
    fields = {"project": bench.project, "kinds": KINDS, "direction": direction, "remaining_ms": PATIENCE_MS, **more}
    query = EdgesQuery(ids=tuple(map(bench.id, names)), **fields)
    reply = await (index or bench.index).edges(query)
    assert isinstance(reply, EdgesReply)
    return reply


def rows(reply: EdgesReply) -> list[Row]:
    return list(zip(reply.sources, reply.kinds, reply.targets, reply.weights, strict=True))


async def chain(bench: Bench) -> None:
    """1 caused 2 (0.5) and supports 3; 2 is part of 3 and contradicts 1 (-0.25)."""
    await bench.apply(
        bench.memory(1, edges=(edge(bench, EdgeKind.CAUSED, 2, 0.5), edge(bench, EdgeKind.SUPPORTS, 3))),
        bench.memory(2, edges=(edge(bench, EdgeKind.PART_OF, 3), edge(bench, EdgeKind.CONTRADICTS, 1, -0.25))),
        bench.memory(3),
    )


async def test_edges_in_both_directions(bench: Bench) -> None:
    await chain(bench)
    one, two, three = map(bench.id, (1, 2, 3))
    assert rows(await ask(bench, "out", 1)) == [(one, "CAUSED", two, 0.5), (one, "SUPPORTS", three, 1.0)]
    assert rows(await ask(bench, "in", 1)) == [(two, "CONTRADICTS", one, -0.25)]
    expected = sorted([(one, "SUPPORTS", three, 1.0), (two, "PART_OF", three, 1.0)])
    assert rows(await ask(bench, "in", 3)) == expected
    assert rows(await ask(bench, "out", 3)) == []


async def test_only_the_kinds_asked_for(bench: Bench) -> None:
    await chain(bench)
    found = await ask(bench, "out", 1, 2, kinds=(EdgeKind.CAUSED, EdgeKind.PART_OF))
    assert sorted(found.kinds) == ["CAUSED", "PART_OF"]
    assert rows(await ask(bench, "out", 1, kinds=(EdgeKind.SIMILAR_TO,))) == []


async def test_unknown_and_repeated_ids(bench: Bench) -> None:
    await chain(bench)
    assert rows(await ask(bench, "out", "nobody")) == []
    assert rows(await ask(bench, "out")) == []
    assert await ask(bench, "out", 1, 1) == await ask(bench, "out", 1)


async def test_an_edge_to_what_is_not_there_is_told_and_a_forgotten_source_tells_none(bench: Bench) -> None:
    await bench.apply(bench.memory(1, edges=(edge(bench, EdgeKind.CAUSED, "later"),)))
    assert rows(await ask(bench, "out", 1)) == [(bench.id(1), "CAUSED", bench.id("later"), 1.0)]
    await bench.apply(bench.gone(1))
    assert rows(await ask(bench, "out", 1)) == []
    assert rows(await ask(bench, "in", "later")) == []


async def test_a_newer_state_replaces_the_edges(bench: Bench) -> None:
    await chain(bench)
    await bench.apply(bench.memory(1, edges=(edge(bench, EdgeKind.CAUSED, 2, 0.75),)))
    assert rows(await ask(bench, "out", 1)) == [(bench.id(1), "CAUSED", bench.id(2), 0.75)]


async def test_a_cut_keeps_the_heaviest(bench: Bench) -> None:
    weights = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.7}
    edges = tuple(edge(bench, EdgeKind.CAUSED, name, weight) for name, weight in weights.items())
    against = edge(bench, EdgeKind.CONTRADICTS, "e", -0.8)
    await bench.apply(bench.memory(1, edges=(*edges, against)), bench.memory(2, edges=edges[:2]))
    found = await ask(bench, "out", 1, 2, most=2)
    assert found.cut
    assert sorted(found.weights) == [-0.8, 0.1, 0.9, 0.9]
    assert not (await ask(bench, "out", 1, 2, most=5)).cut


async def test_a_shard_tells_of_its_own_memories_only(bench: Bench) -> None:
    names = [bench.name_in(shard) for shard in all_shards(2)]
    await bench.apply(*(bench.memory(name, edges=(edge(bench, EdgeKind.CAUSED, "end"),)) for name in names))
    for shard, name in zip(all_shards(2), names, strict=True):
        index = await bench.open(shard, wipe=False)
        assert (await ask(bench, "in", "end", index=index)).sources == (bench.id(name),)
        assert (await ask(bench, "out", *names, index=index)).sources == (bench.id(name),)
    assert set((await ask(bench, "in", "end")).sources) == set(map(bench.id, names))


async def test_projects_do_not_see_each_other(bench: Bench) -> None:
    other = f"{bench.project[:40]}x"
    target = bench.id("shared")
    foreign = MemoryRecord(
        id=derive_id(other, "1"), project=other, text="t", created_at=bench.memory(0).created_at,
        changed_at=bench.memory(0).created_at, edges=(Edge(kind=EdgeKind.CAUSED, target=target),),
    )  # fmt: skip
    await bench.apply(foreign, bench.memory("shared"))
    assert rows(await ask(bench, "in", "shared")) == []
    assert (await ask(bench, "in", "shared", project=other)).sources == (foreign.id,)


@pytest.mark.parametrize("seed", range(2))
async def test_random_histories_agree_with_the_reference(bench: Bench, seed: int) -> None:
    rng = random.Random(seed)
    oracle = Bench(*backend("reference", None), project=bench.project, shard=bench.shard)  # type: ignore[arg-type]
    await oracle.open()
    for _ in range(5):
        entries = bench.entries(*(_random_memory(bench, rng) for _ in range(10)))
        await bench.index.apply(entries)
        await oracle.index.apply(entries)
    for direction in ("out", "in"):
        for most in (1, 3, 64):
            kinds = tuple(rng.sample(KINDS, 5))
            asked = [ask(one, direction, *range(20), kinds=kinds, most=most) for one in (bench, oracle)]
            assert await asked[0] == await asked[1]


def _random_memory(bench: Bench, rng: random.Random) -> MemoryRecord:
    number = rng.randrange(16)
    if rng.random() < 0.2:
        return bench.gone(number)
    pairs = {(rng.choice(KINDS), rng.randrange(20)) for _ in range(rng.randrange(6))}
    weights = (0.1, 0.5, 1.0)
    return bench.memory(
        number, edges=tuple(edge(bench, kind, target, rng.choice(weights)) for kind, target in sorted(pairs))
    )


async def test_it_gives_up_when_its_time_is_up(bench: Bench) -> None:
    if bench.address is None:
        pytest.skip("the reference takes no time")
    with pytest.raises(TimeoutError):
        await ask(bench, "out", 1, remaining_ms=0.01)

"""The graph lane's contract, over the reference in plain Python, the embedded store and a real Neo4j 5."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from contracts.base import MemoryId
from contracts.lanes import LaneQuery, LaneReply, ScoreQuery, ScoreReply
from contracts.memory import Edge, EdgeKind, Entity, MemoryRecord, Relation, Statement, Tombstone, derive_id
from contracts.ports import Entry
from contracts.shards import WHOLE, Shard, all_shards
from infra.graph_server import GraphAddress
from tests.graph_servers import embedded_graph, real_neo4j  # noqa: F401
from workers.graph import ranking, store
from workers.graph.bolt import Bolt
from workers.graph.index import GraphIndex
from workers.graph.reference import ReferenceGraph, ReferenceIndex
from workers.lane import LaneIndex

DAY = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_MS = 30_000.0

Opener = Callable[[Shard, bool], Awaitable[LaneIndex]]


@dataclass
class Bench:
    """One project in one shard of a backend, and the log positions handed out so far."""

    opener: Opener
    address: GraphAddress | None
    project: str = field(default_factory=lambda: f"t{uuid.uuid4().hex}")
    shard: Shard = WHOLE
    position: int = 0
    opened: list[LaneIndex] = field(default_factory=list)

    async def open(self, shard: Shard | None = None, wipe: bool = False) -> LaneIndex:
        index = await self.opener(shard or self.shard, wipe)
        self.opened.append(index)
        return index

    @property
    def index(self) -> LaneIndex:
        return self.opened[0]

    def id(self, name: object) -> MemoryId:
        return derive_id(self.project, str(name))

    def name_in(self, shard: Shard) -> str:
        """A name whose memory is of that shard."""
        return next(str(name) for name in itertools.count() if shard.holds(self.id(name)))

    def memory(self, name: object, *entities: str | Entity, day: int = 0, **parts: Any) -> MemoryRecord:
        at = DAY + timedelta(days=day)
        named = tuple(e if isinstance(e, Entity) else Entity(name=e) for e in entities)
        fields = {"project": self.project, "text": f"memory {name}", "entities": named, "created_at": at} | parts
        return MemoryRecord(id=derive_id(fields["project"], str(name)), changed_at=at, **fields)

    def gone(self, name: object) -> MemoryRecord:
        return self.memory(name, tombstone=Tombstone(at=DAY))

    def entries(self, *records: MemoryRecord) -> list[Entry]:
        numbered = [(self.position + n, record) for n, record in enumerate(records, start=1)]
        self.position += len(records)
        return numbered

    async def apply(self, *records: MemoryRecord) -> list[Entry]:
        entries = self.entries(*records)
        await self.index.apply(entries)
        return entries

    async def search(self, cue: str, project: str | None = None, **more: Any) -> LaneReply:
        query = LaneQuery(project=project or self.project, cue=cue, remaining_ms=PATIENCE_MS, **more)
        return await self.index.search(query)

    async def score(self, cue: str, *names: object) -> ScoreReply:
        ids = tuple(map(self.id, names))
        return await self.index.score(ScoreQuery(project=self.project, cue=cue, ids=ids, remaining_ms=PATIENCE_MS))

    async def count(self, query: str) -> int | None:
        """What a query counts in this project; None in the reference, which has no such inside."""
        if self.address is None:
            return None
        a = self.address
        bolt = await Bolt.connect(a.uri, a.user, a.password, a.database)
        try:
            return int((await bolt.read(query, 30, project=self.project, prefix=f"{self.project}/"))[0]["n"])
        finally:
            await bolt.close()


ENTITIES = "MATCH (e:Entity {project: $project}) RETURN count(e) AS n"
LINKS = "MATCH (:Entity)-[r:RELATES {project: $project}]->(:Entity) RETURN count(r) AS n"
NAMES = "MATCH (n:Name) WHERE n.key STARTS WITH $prefix RETURN count(n) AS n"
MEMORIES = "MATCH (m:Memory {project: $project}) RETURN count(m) AS n"
MENTIONS = "MATCH (m:Memory {project: $project})-[x:MENTIONS]->() RETURN count(x) AS n"
EDGES = "MATCH (m:Memory {project: $project})-[x:EDGE]->() RETURN count(x) AS n"
COUNTED = "MATCH (e:Entity {project: $project}) RETURN sum(e.mentions) AS n"


def backend(name: str, request: pytest.FixtureRequest) -> tuple[Opener, GraphAddress | None]:
    if name == "reference":
        graph = ReferenceGraph()

        async def reference(shard: Shard, wipe: bool) -> LaneIndex:
            return ReferenceIndex(graph, shard, wipe)

        return reference, None
    address: GraphAddress = request.getfixturevalue(name)

    async def stored(shard: Shard, wipe: bool) -> LaneIndex:
        return await GraphIndex.open(address.uri, address.user, address.password, address.database, shard, wipe)

    return stored, address


@pytest.fixture(params=["reference", "embedded_graph", "real_neo4j"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    made = Bench(*backend(request.param, request))
    await made.open(wipe=True)
    yield made
    for index in made.opened:
        await index.close()


def ids(reply: LaneReply, kind: str) -> list[str]:
    return [item for item, its in zip(reply.items, reply.kinds, strict=True) if its == kind]


def row(reply: LaneReply, kind: str, item: str) -> dict[str, Any]:
    at = next(i for i, pair in enumerate(zip(reply.kinds, reply.items, strict=True)) if pair == (kind, item))
    columns = ("labels", "scores", "sources", "evidence", "confirmed")
    return {column: getattr(reply, column)[at] for column in columns}


def works_at(who: str, where: str) -> Relation:
    return Relation.model_validate({"from": who, "type": "works_at", "to": where})


async def test_an_empty_store_answers_with_nothing(bench: Bench) -> None:
    reply = await bench.search("who is Diego?")
    assert (reply.items, reply.notes, bench.index.position) == ((), {"anchors": ()}, 0)
    assert (await bench.score("Diego", 1)).evidence == (0.0,)


async def test_a_mention_is_found_and_confirmed_by_a_rare_name(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "Diego"), bench.memory(2, "Priya"))
    reply = await bench.search("What does DIEGO's do?")
    assert ids(reply, "memory") == [bench.id(1)]
    assert ids(reply, "entity") == ["diego"]
    found = row(reply, "memory", bench.id(1))
    assert (found["sources"], found["evidence"], found["confirmed"]) == ((bench.id(1),), 1.0, True)
    assert row(reply, "entity", "diego")["labels"] == "Diego"
    assert reply.notes == {"anchors": ("Diego",)}


async def test_an_alias_and_the_asked_subject_are_names_too(bench: Bench) -> None:
    await bench.apply(bench.memory(1, Entity(name="PostgreSQL", aliases=("pg", "Postgres"))))
    for reply in (await bench.search("is pg slow?"), await bench.search("is it slow?", subject="postgres")):
        assert ids(reply, "memory") == [bench.id(1)]
        assert reply.notes == {"anchors": ("PostgreSQL",)}


async def test_names_with_inner_punctuation_are_found_in_a_cue(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "Acme, Inc. (Berlin)"))
    assert ids(await bench.search("who runs Acme, Inc. (Berlin) now"), "memory") == [bench.id(1)]


async def test_a_relation_has_a_label_and_its_sources(bench: Bench) -> None:
    await bench.apply(*(bench.memory(n, relations=(works_at("Diego", "billing team"),), day=n) for n in (1, 2)))
    reply = await bench.search("Diego")
    (relation,) = ids(reply, "relation")
    found = row(reply, "relation", relation)
    assert found["labels"] == "Diego —works_at→ billing team"
    assert set(found["sources"]) == {bench.id(1), bench.id(2)}
    assert row(reply, "entity", "billing team")["evidence"] == 0.5


async def test_a_statement_joins_its_subject_and_object(bench: Bench) -> None:
    said = Statement(subject="billing team", predicate="managed_by", object="Priya")
    await bench.apply(
        bench.memory(1, relations=(works_at("Diego", "billing team"),)), bench.memory(2, statements=(said,))
    )
    reply = await bench.search("who manages the team of Diego?")
    assert ids(reply, "memory") == [bench.id(1), bench.id(2)]
    assert row(reply, "memory", bench.id(2))["evidence"] == 0.5
    assert row(reply, "entity", "priya")["evidence"] == pytest.approx(1 / 3)


async def test_two_anchors_outrank_one_and_a_rare_one_outweighs_a_common_one(bench: Bench) -> None:
    await bench.apply(
        *(bench.memory(f"common{n}", "Acme") for n in range(30)),
        bench.memory("rare", "Zurich"),
        bench.memory("both", "Acme", "Zurich"),
    )
    reply = await bench.search("Acme in Zurich")
    memories = ids(reply, "memory")
    assert memories[:2] == [bench.id("both"), bench.id("rare")]
    confirmed = {item for item, sure in zip(reply.items, reply.confirmed, strict=True) if sure}
    assert confirmed == {bench.id("both")}
    assert list(reply.scores) == sorted(reply.scores, reverse=True)


async def test_a_longer_name_hides_the_shorter_one_inside_it(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "New York"), bench.memory(2, "New York Times"))
    assert (await bench.search("the New York Times")).notes == {"anchors": ("New York Times",)}


async def test_no_anchor_gives_an_empty_reply(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "Diego"))
    reply = await bench.search("what about the weather")
    assert (reply.items, reply.notes) == ((), {"anchors": ()})


async def test_forgetting_removes_the_memory_what_it_asserted_and_orphans(bench: Bench) -> None:
    diego = Entity(name="Diego", aliases=("El D",))
    await bench.apply(
        bench.memory(1, diego, relations=(works_at("Diego", "Acme"),)), bench.memory(2, "Acme"), bench.memory(3)
    )
    await bench.apply(bench.gone(1), bench.gone(3))
    for cue in ("Diego", "El D"):
        assert (await bench.search(cue)).items == ()
    reply = await bench.search("Acme")
    assert (ids(reply, "memory"), ids(reply, "relation"), ids(reply, "entity")) == ([bench.id(2)], [], ["acme"])
    counts = [await bench.count(query) for query in (ENTITIES, LINKS, NAMES, MEMORIES)]
    assert counts in ([1, 0, 0, 1], [None] * 4)


async def test_a_memory_encoded_again_is_visible_again(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "Diego"))
    await bench.apply(bench.gone(1))
    await bench.apply(bench.memory(1, "Diego"))
    assert ids(await bench.search("Diego"), "memory") == [bench.id(1)]


async def test_an_update_replaces_what_was_asserted(bench: Bench) -> None:
    old = Entity(name="Diego", aliases=("the intern",))
    await bench.apply(bench.memory(1, old, relations=(works_at("Diego", "Acme"),)), bench.memory(2, "Diego"))
    await bench.apply(bench.memory(1, "Diego", relations=(works_at("Diego", "Globex"),)))
    reply = await bench.search("Diego")
    assert [label for label in reply.labels if "→" in label] == ["Diego —works_at→ Globex"]
    assert (await bench.search("Acme")).items == (await bench.search("the intern")).items == ()


async def test_only_the_last_record_in_a_batch_counts(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "Acme"), bench.memory(1, "Globex"), bench.memory(2, "Acme"), bench.gone(2))
    assert (await bench.search("Acme")).items == ()
    assert ids(await bench.search("Globex"), "memory") == [bench.id(1)]


async def test_replay_changes_nothing(bench: Bench) -> None:
    entries = await bench.apply(
        bench.memory(1, "Diego", relations=(works_at("Diego", "Acme"),)),
        bench.memory(2, "Diego", edges=(Edge(kind=EdgeKind.CAUSED, target=bench.id(1)),)),
        bench.memory(3, "Acme"),
        bench.gone(3),
    )
    inside = (ENTITIES, LINKS, NAMES, MEMORIES, MENTIONS, EDGES, COUNTED)
    before = await bench.search("Diego"), [await bench.count(query) for query in inside]
    replica = await bench.open()
    for part in (entries, entries[:2], entries):
        await bench.index.apply(part)
        await replica.apply(part)
    assert before == (await bench.search("Diego"), [await bench.count(query) for query in inside])


async def test_the_position_survives_and_comes_with_the_effect(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "Diego"), bench.memory(2))
    assert (bench.index.position, (await bench.open()).position) == (2, 2)


async def test_a_shard_of_another_number_begins_where_those_that_hold_its_memories_are(bench: Bench) -> None:
    names = [bench.name_in(shard) for shard in all_shards(2)]
    await bench.apply(*(bench.memory(name, "Diego") for name in names))
    halves = [await bench.open(shard) for shard in all_shards(2)]
    assert [half.position for half in halves] == [2, 2]
    await halves[0].apply(bench.entries(bench.gone(names[0])))
    assert [(await bench.open(shard)).position for shard in (Shard(0, 4), Shard(1, 4))] == [3, 2]
    assert ids(await bench.search("Diego"), "memory") == [bench.id(names[1])]


async def test_a_failed_write_leaves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    if bench.address is None:
        pytest.skip("the reference cannot fail half-way")
    await bench.apply(bench.memory(1, "Diego"))
    entries = bench.entries(bench.memory(2, "Diego", "Acme"), bench.gone(1))
    with monkeypatch.context() as broken:
        broken.setattr(store.Replacement, "_sweep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await bench.index.apply(entries)
    assert (bench.index.position, (await bench.open()).position) == (1, 1)
    assert ids(await bench.search("Diego Acme"), "memory") == [bench.id(1)]
    await bench.index.apply(entries)
    assert ids(await bench.search("Diego Acme"), "memory") == [bench.id(2)]


async def test_a_wipe_removes_one_shard_only(bench: Bench) -> None:
    lost, kept = bench.name_in(Shard(0, 2)), bench.name_in(Shard(1, 2))
    await bench.apply(bench.memory(lost, "Diego", relations=(works_at("Diego", "Acme"),)), bench.memory(kept, "Diego"))
    wiped = await bench.open(Shard(0, 2), wipe=True)
    assert (wiped.position, bench.index.position) == (0, 2)
    assert ids(await bench.search("Diego"), "memory") == [bench.id(kept)]
    assert (await bench.search("Acme")).items == ()


async def test_projects_do_not_see_each_other(bench: Bench) -> None:
    other = f"{bench.project[:40]}x"
    shared = Entity(name="Diego", aliases=("dd",))
    await bench.apply(
        bench.memory(1, shared, relations=(works_at("Diego", "Acme"),)),
        bench.memory(2, shared, project=other, relations=(works_at("Diego", "Globex"),)),
    )
    for cue in ("Diego", "dd"):
        mine, theirs = await bench.search(cue), await bench.search(cue, project=other)
        assert set(itertools.chain(*mine.sources)) == {bench.id(1)}
        assert set(itertools.chain(*theirs.sources)) == {derive_id(other, "2")}
        assert "Globex" not in " ".join(mine.labels)
    assert (await bench.search("Globex")).items == ()
    assert (await bench.score("Diego", 1)).evidence == (1.0,)


async def test_parallel_writers_of_hot_entities_lose_nothing(bench: Bench) -> None:
    """Eight shards that share the database, each writing to the same three entities, which are new."""
    writers = [await bench.open(shard, wipe=True) for shard in all_shards(8)]
    failures: list[BaseException] = []

    async def write(number: int, index: LaneIndex) -> None:
        try:
            for step in range(6):
                record = bench.memory(f"{number}-{step}", "Acme", "Diego", f"own {number}", statements=HOT)
                await index.apply([(step + 1, record)])
        except BaseException as error:
            failures.append(error)
            raise

    async with anyio.create_task_group() as tasks:
        for number, index in enumerate(writers):
            tasks.start_soon(write, number, index)
    reply = await bench.search("Acme", top_n=500)
    assert len(row(reply, "entity", "acme")["sources"]) == 48
    counts = [await bench.count(query) for query in (MEMORIES, ENTITIES, MENTIONS, COUNTED, LINKS)]
    assert counts in ([48, 10, 144, 144, 48], [None] * 5)


HOT = (Statement(subject="Diego", predicate="works_at", object="Acme"),)

HOSTILE = [
    'Robert"); MATCH (n) DETACH DELETE n //',
    "O'Brien",
    "`}) RETURN 1 //",
    "$rows {key} \\u0000 \\",
    "Ünïcødé 東京 🦊",
    "x" * 200,
    "a/b/../c",
    "Straße",
]


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_are_only_names(bench: Bench, name: str) -> None:
    said = Statement(subject=name, predicate=name, object="Acme")
    await bench.apply(bench.memory(1, Entity(name=name, type=name, aliases=(f"{name}2",)), statements=(said,)))
    for cue in (name, f"{name}2"):
        reply = await bench.search(cue)
        assert ids(reply, "memory") == [bench.id(1)]
        assert f"{name} —{name}→ Acme" in reply.labels
    await bench.apply(bench.gone(1))
    assert (await bench.search(name)).items == ()


async def test_a_name_of_punctuation_only_is_left_out(bench: Bench) -> None:
    await bench.apply(bench.memory(1, "...", "Diego", statements=(Statement(subject="?", predicate="is", object="!"),)))
    assert ids(await bench.search("Diego ..."), "memory") == [bench.id(1)]
    assert (await bench.search("... ? !")).items == ()


async def test_an_edge_may_point_at_a_memory_that_comes_later(bench: Bench) -> None:
    edge = Edge(kind=EdgeKind.FOLLOWED_BY, target=bench.id("later"), weight=0.5)
    await bench.apply(bench.memory(1, "Diego", edges=(edge,)))
    assert bench.id("later") not in itertools.chain(*(await bench.search("Diego")).sources)
    await bench.apply(bench.memory("later", "Acme"))
    reply = await bench.search("Diego")
    assert ids(reply, "memory") == [bench.id(1), bench.id("later")]
    assert row(reply, "memory", bench.id("later"))["evidence"] == 0.5
    # Forgotten it hides again, but the edge of the other stays; without that edge nothing stays.
    await bench.apply(bench.gone("later"))
    assert ids(await bench.search("Diego"), "memory") == [bench.id(1)]
    assert await bench.count(MEMORIES) in (2, None)
    await bench.apply(bench.memory(1, "Diego"))
    assert await bench.count(MEMORIES) in (1, None)


async def test_score_follows_the_rule_of_search(bench: Bench) -> None:
    await bench.apply(
        bench.memory("direct", "Diego", relations=(works_at("Diego", "Acme"),)),
        bench.memory("near", "Acme"),
        bench.memory("joined", edges=(Edge(kind=EdgeKind.SUPPORTS, target=bench.id("direct")),)),
        bench.memory("apart", "Globex"),
    )
    reply = await bench.score("Diego?", "apart", "joined", "near", "direct", "unknown")
    assert reply.evidence == (0.0, 0.5, 0.5, 1.0, 0.0)
    assert reply.confirmed == (False, False, False, True, False)
    assert (await bench.score("weather", "direct")).evidence == (0.0,)


async def test_bounds_keep_the_newest(bench: Bench) -> None:
    total = 2 * ranking.SOURCES + 30
    await bench.apply(*(bench.memory(n, "Acme", relations=(works_at(f"w{n}", "Acme"),), day=n) for n in range(total)))
    newest = [bench.id(n) for n in range(total - 1, -1, -1)]
    reply = await bench.search("Acme", top_n=1000)
    assert list(row(reply, "entity", "acme")["sources"]) == newest[: ranking.SOURCES]
    assert len(ids(reply, "relation")) == ranking.CHILDREN
    assert len((await bench.search("Acme", top_n=7)).items) == 7
    # When the newest are forgotten, older ones take their place.
    await bench.apply(*(bench.gone(n) for n in range(40, total)))
    reply = await bench.search("Acme", top_n=1000)
    assert list(row(reply, "entity", "acme")["sources"]) == [bench.id(n) for n in range(39, -1, -1)]


async def test_what_two_common_names_share_is_found(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "READABLE", 5)
    await bench.apply(
        *(bench.memory(n, ("Acme", "Globex")[n % 2], day=n) for n in range(20)),
        bench.memory("both", "Acme", "Globex", day=15),
    )
    found = row(await bench.search("Acme and Globex"), "memory", bench.id("both"))
    assert found["confirmed"] is True


async def test_the_order_is_the_same_on_every_run(bench: Bench) -> None:
    await bench.apply(
        *(bench.memory(n, "Acme", f"e{n % 5}", relations=(works_at(f"e{n % 7}", "Acme"),)) for n in range(60))
    )
    first = await bench.search("Acme e1 e2")
    assert first.model_dump() == (await bench.search("Acme e1 e2")).model_dump()
    keys = [(-score, kind != "memory", kind != "relation", item) for score, kind, item in _ranked(first)]
    assert keys == sorted(keys)


def _ranked(reply: LaneReply) -> Sequence[tuple[float, str, str]]:
    return list(zip(reply.scores, reply.kinds, reply.items, strict=True))


@pytest.mark.parametrize("seed", range(3))
async def test_random_histories_agree_with_the_reference(bench: Bench, seed: int) -> None:
    rng = random.Random(seed)
    names = [f"Name{n}" for n in range(12)]
    oracle = Bench(*backend("reference", None), project=bench.project, shard=bench.shard)  # type: ignore[arg-type]
    await oracle.open()
    for _ in range(8):
        entries = bench.entries(*(_random_memory(bench, rng, names) for _ in range(rng.randint(1, 12))))
        await bench.index.apply(entries)
        await oracle.index.apply(entries)
    for cue in [*names, "Name1 with Name2", "al3 and Name5 or Name7"]:
        assert await bench.search(cue, top_n=500) == await oracle.search(cue, top_n=500)
        assert await bench.score(cue, *range(20)) == await oracle.score(cue, *range(20))


def _random_memory(bench: Bench, rng: random.Random, names: list[str]) -> MemoryRecord:
    number = rng.randrange(20)
    if rng.random() < 0.25:
        return bench.gone(number)
    picked = [rng.choice(names) for _ in range(5)]
    targets = {bench.id(rng.randrange(24)) for _ in range(rng.randrange(3))}
    return bench.memory(
        number,
        picked[0],
        Entity(name=picked[1], aliases=(f"al{rng.randrange(6)}",)),
        day=rng.randrange(400),
        relations=(works_at(picked[2], picked[3]),) * rng.randrange(2),
        statements=(Statement(subject=picked[3], predicate="likes", object=picked[4]),) * rng.randrange(2),
        edges=tuple(Edge(kind=EdgeKind.SIMILAR_TO, target=target) for target in sorted(targets)),
    )


async def test_search_gives_up_when_its_time_is_up(bench: Bench) -> None:
    if bench.address is None:
        pytest.skip("the reference takes no time")
    with pytest.raises(TimeoutError):
        await bench.index.search(LaneQuery(project=bench.project, cue="Diego", remaining_ms=0.01))
    await bench.apply(bench.memory(1, "Diego"))
    assert ids(await bench.search("Diego"), "memory") == [bench.id(1)]

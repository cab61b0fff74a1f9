"""The same memories on 1, 2 or 4 shards give the same answer: each lane's list, the evidence, the fused pool."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts import subjects, wire
from contracts.client import MemoryClient
from contracts.lanes import Lane
from contracts.memory import Entity, MemoryRecord, Relation, Statement, Tombstone, derive_id, pack_vector
from contracts.ports import Call, Entry
from contracts.recall import RecallReply, RecallRequest
from contracts.shards import Shard, all_shards, shard_of
from contracts.work import EmbedReply
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon
from orchestrator.gather import Gathered, Question, gather
from orchestrator.profiles import PROFILES
from orchestrator.recall import RecallService
from orchestrator.term_statistics import TermStore, add
from tests.stack import Stack
from tests.world import LocalBus, MemoryLog
from workers.catalog import CatalogStore, CatalogWorker
from workers.graph.reference import ReferenceGraph, ReferenceIndex
from workers.graph.worker import GraphWorker
from workers.lane import LaneWorker
from workers.lexical.index import LexicalIndex
from workers.lexical.worker import LexicalWorker
from workers.semantic import SemanticIndex

EngineName = Literal["whoosh", "tantivy"]
NUMBERS = (1, 2, 4)
PROJECT, NOON = "p", datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = ("Ana", "Ben", "Cleo", "Globex")
WORDS = (*NAMES, "roof", "roofs", "leaks", "again", "ACME-1247", "it", "the", "invoice", "x1")


@dataclass(frozen=True)
class Memory:
    words: tuple[str, ...]
    direction: tuple[int, int, int]
    session: bool = False
    names: tuple[str, ...] = ()
    stated: bool = False
    fate: Literal["kept", "forgotten", "rewritten"] = "kept"


memories = st.lists(
    st.builds(
        Memory,
        words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(tuple),
        direction=st.tuples(*[st.integers(-3, 3)] * 3).filter(any),
        session=st.booleans(),
        names=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
        stated=st.booleans(),
        fate=st.sampled_from(["kept", "kept", "kept", "forgotten", "rewritten"]),
    ),
    min_size=1,
    max_size=14,
)
cues = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def entries_of(given: Sequence[Memory], shards: int) -> list[Entry]:
    """Every memory once, then what became of it, in one log."""
    log: list[MemoryRecord] = []
    for fated in (False, True):
        for number, one in enumerate(given):
            if fated and one.fate == "kept":
                continue
            memory_id, at = derive_id(PROJECT, str(number)), NOON + timedelta(seconds=number)
            text = " ".join(one.words) + (" anew" if fated else "")
            gone = Tombstone(at=at) if fated and one.fate == "forgotten" else None
            said = (
                (Statement(subject=one.names[0], predicate="likes", object="tea"),) if one.stated and one.names else ()
            )
            known = [{"from": one.names[0], "type": "KNOWS", "to": one.names[1]}] if len(one.names) > 1 else []
            links = tuple(Relation.model_validate(link) for link in known)
            log.append(
                MemoryRecord(
                    id=memory_id, project=PROJECT, text=text, created_at=at,
                    changed_at=at, occurred_at=at, session="s" if one.session else None, tombstone=gone,
                    entities=tuple(Entity(name=name) for name in one.names), statements=said,
                    relations=links,
                    vector=pack(one.direction), statement_vectors=(pack(one.direction[::-1]),) * len(said),
                )
            )  # fmt: skip
    return list(enumerate(log, 1))


def pack(direction: Sequence[int]) -> str:
    vector = np.array(direction, dtype=np.float32)
    return pack_vector(vector / np.linalg.norm(vector))


class NoTransactions:
    async def last(self, project: str, txn_id: str) -> None:
        return None


@dataclass
class Sharded:
    """All lanes and catalogs of one log on some number of shards."""

    shards: int
    bus: LocalBus = field(default_factory=LocalBus)
    log: Any = field(default_factory=MemoryLog)

    def question(self, cue: str, top_n: int) -> Question:
        return Question(PROJECT, cue, None, top_n, [0] * self.shards)

    async def gather(self, cue: str, top_n: int) -> Gathered:
        return await gather(self.bus, self.question(cue, top_n), time.monotonic() + 30)

    async def recall(self, cue: str) -> RecallReply:
        catalog, horizon, nothing = Catalog(self.bus, self.shards), Horizon(self.log, self.shards), NoTransactions()
        service = RecallService(self.bus, catalog, horizon, nothing, PROFILES["minilm"], 50)  # type: ignore[arg-type]
        request = RecallRequest(cue=cue, deadline_ms=60_000, trace=True)
        return await service.recall(PROJECT, request, time.monotonic())


async def embed(_: Call) -> bytes:
    return wire.encode(EmbedReply(model="m", dimension=3, vectors=(pack((1, 2, 1)),)))


@asynccontextmanager
async def sharded(given: Sequence[Memory], shards: int, engine: EngineName) -> AsyncIterator[Sharded]:
    entries, world, graph = entries_of(given, shards), Sharded(shards), ReferenceGraph()
    world.log.entries = entries
    world.bus.handlers[subjects.EMBED] = embed
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        made = [ReferenceIndex(graph, shard) for shard in all_shards(shards)]
        for position, record in entries:  # one store for all shards: in the order of the log
            await made[shard_of(record.id, shards)].apply([(position, record)])
        for shard in all_shards(shards):
            own = [entry for entry in entries if shard.holds(entry[1].id)]
            semantic = SemanticIndex(folder / f"semantic-{shard}")
            lexical = LexicalIndex(folder / f"lexical-{shard}", engine)
            store = CatalogStore(folder / f"catalog-{shard}", shard)
            stack.callback(store.close)
            stack.push_async_callback(lexical.close)
            if own:
                await semantic.apply(own)
                # in two commits, so that removed documents are still in the files
                await lexical.apply(own[: len(own) // 2])
                await lexical.apply(own[len(own) // 2 :])
            store.apply(entries)
            log: Any = world.log
            for role in (
                LaneWorker(Lane.SEMANTIC, shard, "a", semantic, log),
                LexicalWorker(shard, "a", lexical, log),
                GraphWorker(shard, "a", made[shard.number], log),
                CatalogWorker(shard, "a", store, log),
            ):
                world.bus.serve(role.endpoints())
        yield world


@pytest.fixture(params=["whoosh", "tantivy"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    if request.param == "tantivy":
        pytest.importorskip("tantivy", reason="the engine 'tantivy' is the optional extra 'scale'")
    engine: EngineName = request.param
    return engine


some = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@some
@given(given=memories, cue=cues, top_n=st.sampled_from([2, 5, 100]))
async def test_lanes_answer_alike(engine: EngineName, given: list[Memory], cue: str, top_n: int) -> None:
    seen = []
    for number in NUMBERS:
        async with sharded(given, number, engine) as world:
            gathered = await world.gather(cue, top_n)
            assert gathered.answered
            seen.append((gathered.lists, {lane for lane, _ in gathered.exhausted}))
    assert seen[0] == seen[1] == seen[2]


@some
@given(given=memories, cue=cues)
async def test_recall_answers_alike(engine: EngineName, given: list[Memory], cue: str) -> None:
    seen = []
    for number in NUMBERS:
        async with sharded(given, number, engine) as world:
            reply = await world.recall(cue)
            assert not reply.degraded
            assert reply.trace is not None
            seen.append((reply.answer_kind, reply.members, reply.trace.fused, reply.trace.dropped))
    assert seen[0] == seen[1] == seen[2]


async def test_statistics_serve_again_until_a_later_position_is_asked_for() -> None:
    given = [Memory(("roof", "leaks"), (1, 0, 0)), Memory(("roof",), (0, 1, 0)), Memory(("again",), (0, 1, 0))]
    async with sharded(given, 2, "whoosh") as world:
        store, later = TermStore(), time.monotonic() + 30
        first = await store.ask(world.bus, PROJECT, "roof", [0, 0], later)
        assert first.statistics is not None
        assert (first.whole, first.statistics.count, first.statistics.df) == (True, 3, (2, 2))
        asked = len(world.bus.asked)
        assert await store.ask(world.bus, PROJECT, "roof", [0, 0], later) == first
        assert len(world.bus.asked) == asked
        assert not (await store.ask(world.bus, PROJECT, "roof", [99, 99], time.monotonic() + 0.02)).whole


async def test_a_shard_that_does_not_tell_is_left_out_and_that_shows() -> None:
    async with sharded([Memory(("roof",), (1, 0, 0))], 2, "whoosh") as world:
        del world.bus.handlers[subjects.lane(Lane.LEXICAL, Shard(1, 2), "terms")]
        gathered = await world.gather("roof", 10)
        assert gathered.notes[Lane.LEXICAL]["statistics"] == ("not of all shards",)


def test_nothing_added_up_is_nothing() -> None:
    assert add([]) is None


async def test_the_real_stack_on_two_shards_answers_as_on_one(tmp_path: Path) -> None:
    texts = [f"{name} repaired the {thing} of the house" for name in NAMES for thing in ("roof", "door", "boiler")]
    seen = []
    for number in (1, 2):
        with Stack(tmp_path / str(number), {"MEMLANE_LOG__SHARDS": str(number)}) as stack:
            async with MemoryClient(stack.url, project="team") as memory:
                for text in texts:
                    await memory.encode(text, occurred_at="2026-03-01T12:00:00Z")
                reply = await memory.recall(
                    "who repaired the boiler?", consistency="ReadAfterWrite", deadline_ms=10_000, trace=True
                )
                assert not reply.degraded
                assert reply.trace is not None
                seen.append(([(one.id, one.score) for one in reply.members], reply.trace.fused))
    assert seen[0] == seen[1]

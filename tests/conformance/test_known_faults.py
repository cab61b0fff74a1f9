"""What other memories got wrong, right here: one test a kind of fault, with the report it comes from."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
from nats.aio.msg import Msg

from contracts import subjects, wire
from contracts.client import MemoryClient
from contracts.errors import MemlaneError
from contracts.work import RerankReply, RerankRequest
from tests.conformance.conftest import Mind, noise, texts
from tests.stack import Stack


async def test_the_old_and_the_new_employer_do_not_both_come_back(mind: Mind) -> None:
    """mem0 4956: add-only memories return both. The old one stays inspectable, and true as of its time."""
    works = [("Ana", "works_at", name) for name in ("Acme", "Globex")]
    old = await mind.learn("Ana works at Acme", works[0], occurred_at="2024-01-10T00:00:00Z")
    new = await mind.learn("Ana now works at Globex", works[1], occurred_at="2024-03-10T00:00:00Z")
    assert texts(await mind.recall("where does Ana work")) == ["Ana now works at Globex"]
    assert texts(await mind.recall("where does Ana work", as_of="2024-02-01T00:00:00Z")) == ["Ana works at Acme"]
    found = await mind.memory.inspect(old)
    assert found.memory is not None
    assert found.memory.superseded_by == new


async def test_a_contradiction_never_loses_both(mind: Mind) -> None:
    """mem0 4536: the old fact was deleted and the new one not stored."""
    for feeling in ("loves", "hates"):
        await mind.learn(f"Ana {feeling} Chinese food", ("Ana", "feels_about_chinese_food", feeling))
    assert texts(await mind.recall("How does Ana feel about Chinese food?")) == ["Ana hates Chinese food"]
    assert len((await mind.memory.list()).memories) == 2


async def test_a_mention_retires_nothing(mind: Mind) -> None:
    """graphiti 1728: a new fact that only mentions the entity retired true ones."""
    first = await mind.learn("Ana works at Acme", ("Ana", "works_at", "Acme"))
    await mind.learn("Ana manages the Acme Git organisation", ("Ana", "manages", "Acme Git organisation"))
    await mind.learn("Acme moved to Ghent", ("Acme", "is_located_in", "Ghent"))
    assert first in [member.id for member in (await mind.recall("where does Ana work?")).members]
    story = await mind.memory.inspect(first)
    assert story.memory is not None
    assert story.memory.superseded_by is None


async def test_times_have_zones_and_compare_in_utc(mind: Mind) -> None:
    """graphiti 920, neo4j-python-driver 1318: naive times, or order by local clock, also across a change of clocks."""
    with pytest.raises(MemlaneError) as caught:
        await mind.learn("It rained", occurred_at="2026-03-29T02:30:00")
    assert caught.value.details["field"] == "occurred_at"
    for text, at in (
        ("Rain gauge one was read", "2026-03-29T01:59:59+01:00"),
        ("Rain gauge two was read", "2026-03-29T03:00:00+02:00"),
        ("Rain gauge three was read", "2026-03-29T07:00:00+05:30"),
    ):
        await mind.learn(text, occurred_at=at)
    reply = await mind.recall("rain gauge was read", since="2026-03-29T01:00:00Z", until="2026-03-29T01:20:00Z")
    assert texts(reply) == ["Rain gauge two was read"]
    assert "three" in texts(await mind.recall("rain gauge was read", since="2026-03-29T01:25:00Z"))[0]


async def test_a_search_is_never_blind_without_saying_so(mind: Mind) -> None:
    """basic-memory 787, caura 687: acknowledged, and not found for seconds. The reply names each lane's position."""
    written = await mind.memory.encode("The museum roof leaks")
    reply = await mind.memory.recall("museum roof", deadline_ms=20_000)
    assert set(reply.lanes) == {"semantic", "lexical", "graph"}
    reached = all(lane.position >= written.position for lane in reply.lanes.values())
    assert texts(reply) == ["The museum roof leaks"] or not reached
    assert texts(await mind.recall("museum roof", position=written.position)) == ["The museum roof leaks"]


async def test_no_lane_ignores_the_project(mind: Mind, service: Stack) -> None:
    """mem0 1805, adk-python 1019: one lane or one read ignored the tenant. Nor do another's texts move scores."""
    claim = ("Zora", "owns", "a boat")
    own = await mind.learn("Zora owns a boat in Ghent", claim)
    before = await mind.recall("Zora boat")
    async with MemoryClient(service.url, project=f"{mind.memory.project}-other") as other:
        for number in range(15):
            await other.encode(f"Zora owns a boat called {number}", entities=[{"name": "Zora"}])
        foreign = await other.encode("Zora owns a boat in Ghent, they say", supersedes=[own])
        after = await mind.recall("Zora boat")
        assert after.trace.lanes == before.trace.lanes
        assert texts(after) == ["Zora owns a boat in Ghent"]
        assert not (await mind.memory.inspect(foreign.id)).found
        with pytest.raises(MemlaneError):
            await mind.memory.forget(foreign.id)
        assert [row.id for row in (await mind.memory.list()).memories] == [own]


_ORDER = """
import json, random, sys
from orchestrator.fusion import Hit, reciprocal_rank_fusion
from contracts.lanes import Lane
from contracts.memory import derive_id
lanes = [Lane.SEMANTIC, Lane.LEXICAL, Lane.GRAPH]
lists = {}
for lane in (lanes if sys.argv[1] == "1" else reversed(lanes)):
    lists[lane] = [Hit(m, "memory", "", 1.0 - i / 10, (m,)) for i, m in
                   enumerate(derive_id(f"{lane}{n}") for n in range(6))]
weights = {lane: 1.0 for lane in set(lanes)}
print(json.dumps([c.id for c in reciprocal_rank_fusion(lists, weights)]))
"""


def test_ties_do_not_depend_on_hashing_or_arrival() -> None:
    """xerj 940, RediSearch 10074, elastic 101847: the order of tied results changed with the hash seed."""
    answers = set()
    for seed in ("1", "2", "77"):
        run = subprocess.run(
            [sys.executable, "-c", _ORDER, seed],
            env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, cwd=os.getcwd(),
        )  # fmt: skip
        answers.add(run.stdout)
    assert len(answers) == 1
    assert len(json.loads(answers.pop())) == 18


class TestRerank:
    """With a cross-encoder's place taken by one whose scores and pace the test decides."""

    async def test_it_comes_before_the_ceiling(self, mind: Mind, service: Stack) -> None:
        """ai-memory-mcp 2605: reranked after truncation, so that it could change nothing."""
        for number in range(45):
            await mind.learn(f"Penguin colony {number} lives on the southern ice")
        order = (await mind.recall("penguin colonies on the southern ice")).trace.fused
        last = (await mind.memory.inspect(order[40])).memory
        assert last is not None

        def score(request: RerankRequest) -> tuple[float, ...]:
            return tuple(0.99 if text == last.text else 0.01 for text in request.texts)

        async with Reranker(service.url, score):
            await anyio.sleep(2.1)  # that nobody reranks is remembered for two seconds
            reply = await mind.recall("penguin colonies on the southern ice", max_results=1)
        assert (reply.rerank, texts(reply)) == ("done", [last.text])

    async def test_a_slow_one_costs_no_more_than_the_deadline(self, mind: Mind, service: Stack) -> None:
        """hindsight 3534, 3623: 13 to 130 s on a CPU. In time, in fused order, and it says so."""
        await noise(mind)
        await mind.recall("museum roof")
        asked: list[int] = []

        def count(request: RerankRequest) -> None:
            asked.append(len(request.texts))

        async with Reranker(service.url, count):
            await anyio.sleep(2.1)
            with anyio.fail_after(5):
                reply = await mind.recall("museum roof", deadline_ms=1500)
        assert (reply.rerank, reply.answer_kind, reply.degraded) == ("skipped_deadline", "Single", False)
        assert max(asked) <= 50


class Reranker:
    """Answers rerank requests with `score`; not at all where it gives None."""

    def __init__(self, url: str, score: object) -> None:
        self._client = MemoryClient(url, project="rerank")
        self._score = score

    async def __aenter__(self) -> Reranker:
        await self._client.__aenter__()
        connection = await self._client.connection()

        async def answer(message: Msg) -> None:
            scores = self._score(wire.decode(RerankRequest, message.data))  # type: ignore[operator]
            if scores is not None:
                await message.respond(wire.encode(RerankReply(model="test", scores=scores)))

        await connection.subscribe(subjects.RERANK, queue="rerank", cb=answer)
        await connection.flush()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__(None, None, None)

"""Gather asks every shard of every lane; whatever a lane does, the others answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio
import numpy as np
import pytest

from contracts import subjects, wire
from contracts.errors import ErrorCode, Exhausted, Internal, Unavailable
from contracts.lanes import Lane, LaneQuery, LaneReply, LaneStatus
from contracts.memory import derive_id, pack_vector
from contracts.ports import NoReply, NoResponders
from contracts.shards import WHOLE, Shard, all_shards
from contracts.work import EmbedReply, EmbedRequest
from orchestrator.gather import Gathered, Question, gather

VECTOR = pack_vector(np.array([0.6, 0.8], dtype=np.float32))
Answer = bytes | Exception | Callable[[bytes], Awaitable[bytes]]


def found(*items: str, position: int = 7, shard: int = 0) -> bytes:
    count = len(items)
    return wire.encode(
        LaneReply(
            position=position, items=items, kinds=("memory",) * count, labels=("",) * count,
            scores=tuple(1.0 - number / 10 for number in range(count)), notes={"terms": ("roof", str(shard))},
            sources=tuple((derive_id(item),) for item in items), evidence=(0.5,) * count, confirmed=(False,) * count,
        )
    )  # fmt: skip


class FakeBus:
    """`contracts.ports.Bus` with an answer a subject; a subject without one has no listener."""

    def __init__(self, **replaced: Answer | None) -> None:
        embedded = wire.encode(EmbedReply(model="m", dimension=2, vectors=(VECTOR,)))
        self.answers: dict[str, Answer] = {subjects.EMBED: embedded}
        for lane in Lane:
            for shard in (WHOLE, Shard(0, 2)):
                self.answers[subjects.lane(lane, shard, "search")] = found(f"{lane}-1", f"{lane}-2")
        for name, answer in replaced.items():
            self.set(subjects.EMBED if name == "embed" else subjects.lane(Lane(name), WHOLE, "search"), answer)
        self.asked: dict[str, tuple[bytes, float]] = {}
        self.calls = 0

    def set(self, subject: str, answer: Answer | None) -> None:
        self.answers.pop(subject, None)
        if answer is not None:
            self.answers[subject] = answer

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        self.asked[subject] = (data, timeout_s)
        self.calls += 1
        await anyio.sleep(0)
        answer = self.answers.get(subject, NoResponders())
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, bytes):
            return answer
        with anyio.move_on_after(timeout_s):
            return await answer(data)
        raise NoReply

    async def publish(self, subject: str, data: bytes) -> None:
        raise AssertionError("nothing is published")


async def ask(bus: FakeBus, shards: int = 1, patience_s: float = 2.0, top_n: int = 10) -> Gathered:
    question = Question("p", "the cue", "Ana", top_n, tuple(range(shards)))
    return await gather(bus, question, time.monotonic() + patience_s)


def statuses(gathered: Gathered) -> dict[Lane, LaneStatus]:
    return {lane: outcome.status for lane, outcome in gathered.outcomes.items()}


async def silence(_: bytes) -> bytes:
    await anyio.sleep_forever()
    raise AssertionError


async def test_all_answer() -> None:
    bus = FakeBus()
    gathered = await ask(bus)
    assert statuses(gathered) == dict.fromkeys(Lane, LaneStatus.OK)
    assert gathered.answered
    assert gathered.vector == VECTOR
    for lane in Lane:
        assert [hit.item for hit in gathered.lists[lane]] == [f"{lane}-1", f"{lane}-2"]
        outcome = gathered.outcomes[lane]
        assert (outcome.hits, outcome.position, outcome.detail) == (2, 7, None)
        assert gathered.notes[lane] == {"terms": ("roof", "0")}


async def test_what_is_asked() -> None:
    bus = FakeBus()
    await ask(bus, patience_s=1.0)
    assert wire.decode_reply(EmbedRequest, bus.asked[subjects.EMBED][0]).purpose == "cue"
    for lane in Lane:
        data, timeout_s = bus.asked[subjects.lane(lane, WHOLE, "search")]
        query = wire.decode_reply(LaneQuery, data)
        assert (query.project, query.cue, query.subject, query.top_n) == ("p", "the cue", "Ana", 10)
        assert query.vector == (VECTOR if lane is Lane.SEMANTIC else "")
        assert 0 < query.remaining_ms < timeout_s * 1000 <= 1000


FAILURES: list[tuple[Answer | None, LaneStatus]] = [
    (None, LaneStatus.ABSENT),
    (NoReply(), LaneStatus.TIMEOUT),
    (silence, LaneStatus.TIMEOUT),
    (b"", LaneStatus.ERROR),
    (b"\xff junk", LaneStatus.ERROR),
    (b"[]", LaneStatus.ERROR),
    (b'{"error":{}}', LaneStatus.ERROR),
    (b'{"items":["a"],"kinds":["memory"]}', LaneStatus.ERROR),
    (b'{"items":["a"],"kinds":["no such"]}', LaneStatus.ERROR),
    (wire.encode_error(Internal(ErrorCode.INTERNAL, "broken")), LaneStatus.ERROR),
    (wire.encode_error(Exhausted(ErrorCode.OVERLOADED, "full")), LaneStatus.OVERLOADED),
    (wire.encode(LaneReply(status=LaneStatus.OVERLOADED)), LaneStatus.OVERLOADED),
    (wire.encode(LaneReply(status=LaneStatus.BEHIND, position=3)), LaneStatus.BEHIND),
    (RuntimeError("odd"), LaneStatus.ERROR),
]


@pytest.mark.parametrize("lane", list(Lane))
@pytest.mark.parametrize(("answer", "status"), FAILURES)
async def test_one_lane_lost(lane: Lane, answer: Answer | None, status: LaneStatus) -> None:
    gathered = await ask(FakeBus(**{str(lane): answer}), patience_s=0.1 if answer is silence else 2.0)
    assert statuses(gathered) == dict.fromkeys(Lane, LaneStatus.OK) | {lane: status}
    assert gathered.lists[lane] == []
    assert gathered.outcomes[lane].detail
    assert all(len(gathered.lists[other]) == 2 for other in Lane if other is not lane)
    assert gathered.answered


async def test_the_words_of_a_failure() -> None:
    bus = FakeBus(graph=wire.encode_error(Unavailable(ErrorCode.UNAVAILABLE, "no database")), lexical=b"secret junk")
    gathered = await ask(bus)
    assert gathered.outcomes[Lane.GRAPH].detail == "shard 0 of 1: no database"
    assert gathered.outcomes[Lane.LEXICAL].detail == "shard 0 of 1: unreadable reply"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (None, LaneStatus.ABSENT),
        (NoReply(), LaneStatus.TIMEOUT),
        (b"junk", LaneStatus.ERROR),
        (b'{"model":"m","dimension":2,"vectors":[]}', LaneStatus.ERROR),
        (wire.encode_error(Exhausted(ErrorCode.OVERLOADED, "full")), LaneStatus.OVERLOADED),
    ],
)
async def test_without_embed_there_is_no_semantic_lane(answer: Answer | None, status: LaneStatus) -> None:
    bus = FakeBus(embed=answer)
    gathered = await ask(bus)
    assert statuses(gathered) == {Lane.SEMANTIC: status, Lane.LEXICAL: LaneStatus.OK, Lane.GRAPH: LaneStatus.OK}
    assert gathered.outcomes[Lane.SEMANTIC].detail.startswith("embed: ")
    assert subjects.lane(Lane.SEMANTIC, WHOLE, "search") not in bus.asked
    assert gathered.lists[Lane.SEMANTIC] == []
    assert gathered.answered


async def test_all_lost() -> None:
    gathered = await ask(FakeBus(semantic=None, lexical=NoReply(), graph=b"junk"))
    assert not gathered.answered
    assert set(gathered.outcomes) == set(gathered.lists) == set(Lane)


async def test_lanes_are_asked_at_once() -> None:
    async def slow(_: bytes) -> bytes:
        await anyio.sleep(0.2)
        return found("x")

    started = time.monotonic()
    gathered = await ask(FakeBus(semantic=slow, lexical=slow, graph=slow))
    assert time.monotonic() - started < 0.5
    assert all(outcome.status is LaneStatus.OK for outcome in gathered.outcomes.values())


async def test_shards_are_merged_and_each_is_asked_for_its_position() -> None:
    bus = FakeBus()
    for number, items in enumerate((("a", "c"), ("b",), (), ())):
        bus.set(subjects.lane(Lane.LEXICAL, Shard(number, 4), "search"), found(*items, position=10 - number))
    gathered = await ask(bus, shards=4)
    assert [hit.item for hit in gathered.lists[Lane.LEXICAL]] == ["a", "b", "c"]
    assert gathered.outcomes[Lane.LEXICAL].position == 7
    for shard in all_shards(4):
        data, _ = bus.asked[subjects.lane(Lane.LEXICAL, shard, "search")]
        assert wire.decode_reply(LaneQuery, data).min_position == shard.number


async def test_a_lost_shard_shows_and_the_rest_counts() -> None:
    bus = FakeBus()
    bus.set(subjects.lane(Lane.LEXICAL, Shard(1, 2), "search"), NoReply())
    gathered = await ask(bus, shards=2)
    outcome = gathered.outcomes[Lane.LEXICAL]
    assert (outcome.status, outcome.hits) == (LaneStatus.TIMEOUT, 2)
    assert outcome.detail.startswith("shard 1 of 2")


@pytest.mark.parametrize("labels", [b'["one"]', b'["one","two","three"]'])
async def test_labels_of_another_length_are_garbage(labels: bytes) -> None:
    odd = found("a", "b").replace(b'"labels":["",""]', b'"labels":' + labels)
    gathered = await ask(FakeBus(graph=odd))
    assert gathered.outcomes[Lane.GRAPH].status is LaneStatus.ERROR
    assert gathered.outcomes[Lane.LEXICAL].status is LaneStatus.OK


async def test_notes_of_all_shards_are_one() -> None:
    bus = FakeBus()
    bus.set(subjects.lane(Lane.GRAPH, Shard(1, 2), "search"), found("x", shard=1))
    gathered = await ask(bus, shards=2)
    assert gathered.notes[Lane.GRAPH] == {"terms": ("roof", "0", "1")}

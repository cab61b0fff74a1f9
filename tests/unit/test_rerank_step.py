"""The steps between fusion and the reply: rerank, evidence, and members that vanish under way."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest

from contracts import subjects, wire
from contracts.catalog import Row
from contracts.lanes import Lane, ScoreQuery, ScoreReply
from contracts.memory import derive_id
from contracts.ports import NoReply, NoResponders
from contracts.shards import WHOLE
from contracts.work import RerankReply
from orchestrator import rerank as rerank_module
from orchestrator.evidence import collect_evidence
from orchestrator.fusion import Candidate, LaneVote
from orchestrator.gather import Gathered, Question
from orchestrator.membership import Answer, Belonging
from orchestrator.rerank import Reranker
from tests.unit.test_gather import FakeBus
from tests.unit.test_stages import row

A, B = derive_id("a"), derive_id("b")


def bus_with(subject: str, answer: bytes | Exception) -> FakeBus:
    bus = FakeBus()
    bus.set(subject, answer)
    return bus


async def rows(ids: Sequence[str]) -> Mapping[str, Row]:
    return {one: row(one, text=one) for one in ids}


async def outcome(reranker: Reranker) -> tuple[list[str], str]:
    done = await reranker.rerank("c", [Candidate(A, 2.0), Candidate(B, 1.0)], rows, time.monotonic() + 1)
    return [candidate.id for candidate in done.candidates], done.outcome


class TestRerank:
    async def test_the_new_order(self) -> None:
        bus = bus_with(subjects.RERANK, wire.encode(RerankReply(model="m", scores=(0.1, 0.9))))
        assert await outcome(Reranker(bus, 50)) == ([B, A], "done")

    async def test_only_the_top_is_asked_for(self) -> None:
        bus = bus_with(subjects.RERANK, wire.encode(RerankReply(model="m", scores=(0.1,))))
        assert await outcome(Reranker(bus, 1)) == ([A, B], "done")

    @pytest.mark.parametrize(
        ("answer", "word"), [(NoReply(), "skipped_deadline"), (b"junk", "failed"), (NoResponders(), "off")]
    )
    async def test_a_failure_leaves_the_fused_order(self, answer: bytes | Exception, word: str) -> None:
        assert await outcome(Reranker(bus_with(subjects.RERANK, answer), 50)) == ([A, B], word)

    async def test_that_nobody_listens_is_remembered_for_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bus = FakeBus()
        reranker = Reranker(bus, 50)
        assert [(await outcome(reranker))[1] for _ in range(3)] == ["off"] * 3
        assert bus.calls == 1
        monkeypatch.setattr(rerank_module, "OFF_S", 0.0)
        forgetful = Reranker(bus, 50)
        assert [(await outcome(forgetful))[1] for _ in range(2)] == ["off"] * 2
        assert bus.calls == 3


class TestEvidence:
    def vote(self, evidence: float) -> LaneVote:
        return LaneVote(1, 1, 1.0, evidence, False, ())

    async def collect(self, exhausted: set[tuple[Lane, int]]) -> tuple[dict[str, tuple[float, float]], FakeBus]:
        subject = subjects.lane(Lane.LEXICAL, WHOLE, "score")
        bus = bus_with(subject, wire.encode(ScoreReply(evidence=(0.4,), confirmed=(False,))))
        pool = [Candidate(A, 1.0, {Lane.LEXICAL: self.vote(0.8)}), Candidate(B, 0.5, {Lane.SEMANTIC: self.vote(0.6)})]
        gathered = Gathered(exhausted=exhausted)
        found = await collect_evidence(bus, Question("p", "c", None, 100, [0]), gathered, pool, time.monotonic() + 1)
        return {one: (evidence.cosine, evidence.coverage) for one, evidence in found.items()}, bus

    async def test_a_lane_is_asked_only_for_what_it_did_not_list(self) -> None:
        found, bus = await self.collect(set())
        assert found == {A: (0.0, 0.8), B: (0.6, 0.4)}
        [(data, _)] = bus.asked.values()
        assert bus.calls == 1
        assert wire.decode_reply(ScoreQuery, data).ids == (B,)

    async def test_a_lane_that_listed_all_it_has_is_not_asked(self) -> None:
        found, bus = await self.collect({(Lane.LEXICAL, WHOLE)})
        assert found == {A: (0.0, 0.8), B: (0.6, 0.0)}
        assert bus.asked == {}


@pytest.mark.parametrize(("gone", "kind", "total"), [([], "Many", 3), ([A], "Many", 2), ([A, B], "Single", 1)])
def test_members_that_vanished(gone: list[str], kind: str, total: int) -> None:
    """Two listed of three that belong: the ceiling never changes the kind, forgetting does."""
    members = tuple(Belonging(Candidate(one, 1.0), 1.0, ("x",)) for one in (A, B))
    answer = Answer("Many", members, 3, {}).without(gone)
    assert (answer.kind, answer.total) == (kind, total)
    assert [member.candidate.id for member in answer.members] == [one for one in (A, B) if one not in gone]

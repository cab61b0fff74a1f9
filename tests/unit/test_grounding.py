"""Grounded members: how they get in, where they stand, and which are one answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from contracts import subjects, wire
from contracts.catalog import Claim, ClaimsReply
from contracts.memory import derive_id
from contracts.ports import NoReply, NoResponders
from contracts.recall import RecallRequest
from orchestrator.filters import apply_filters
from orchestrator.fusion import Candidate
from orchestrator.grounding import Grounding, ground
from orchestrator.membership import Answer, decide
from orchestrator.profiles import PROFILES
from orchestrator.relevance import Evidence, judge
from tests.unit.test_gather import FakeBus
from tests.unit.test_stages import WHEN, row

IDS = [derive_id(f"g{number}") for number in range(10)]
A, B, C, D = IDS[:4]
PROFILE = PROFILES["minilm"]


def claim(memory: str, value: str, subject: str = "ana") -> Claim:
    return Claim(memory=memory, number=0, subject=subject, predicate="works at", object=value, since=0)


def grounding(*claims: Claim, stale: Sequence[str] = ()) -> Grounding:
    by_memory: dict[str, tuple[Claim, ...]] = {}
    for one in claims:
        by_memory[one.memory] = (*by_memory.get(one.memory, ()), one)
    return Grounding(by_memory, frozenset(stale))


def answer(found: dict[str, float], grounds: Grounding, ages: dict[str, float] | None = None, most: int = 50) -> Answer:
    """Over candidates of that cosine and coverage; ages as -days."""
    candidates = [Candidate(memory, 0.1) for memory in found]
    evidence = {memory: Evidence(cosine=value, coverage=value) for memory, value in found.items()}
    band = judge(found, evidence, PROFILE)
    return decide(candidates, evidence, band, most, grounds, lambda memory: (ages or {}).get(memory, 0.0))


def members(found: Answer) -> list[str]:
    return [member.candidate.id for member in found.members]


class TestMembership:
    def test_grounded_members_come_in_below_the_floor_and_first(self) -> None:
        found = answer({A: 0.9, B: 0.1, C: 0.1}, grounding(claim(B, "globex")))
        assert (found.kind, members(found)) == ("Many", [B, A])
        assert found.members[0].why == ("states: ana works at globex",)

    def test_the_same_answer_is_one_member_the_newest(self) -> None:
        same = grounding(*(claim(memory, "globex") for memory in (A, B, C)))
        found = answer({A: 0.9, B: 0.5, C: 0.1}, same, {A: 3.0, B: 1.0, C: 2.0})
        assert (found.kind, members(found), found.members[0].agrees) == ("Single", [B], (C, A))

    def test_the_order_of_arrival_does_not_show(self) -> None:
        same = grounding(*(claim(memory, "globex") for memory in (A, B)))
        assert answer({A: 0.9, B: 0.9}, same) == answer({B: 0.9, A: 0.9}, same)

    def test_contradicting_answers_are_many(self) -> None:
        found = answer({A: 0.9, B: 0.2}, grounding(claim(A, "globex"), claim(B, "acme")))
        assert (found.kind, found.total) == ("Many", 2)

    def test_a_member_that_says_more_is_another(self) -> None:
        found = answer({A: 0.9, B: 0.9}, grounding(claim(A, "globex"), claim(B, "globex"), claim(B, "globex", "bo")))
        assert found.kind == "Many"

    def test_what_no_statement_grounds_is_never_folded(self) -> None:
        assert answer({A: 0.9, B: 0.9}, Grounding()).total == 2

    def test_the_ceiling_cuts_after_folding(self) -> None:
        same = grounding(*(claim(memory, "globex") for memory in (A, B, C)))
        found = answer({A: 0.9, B: 0.9, C: 0.9, D: 0.9}, same, most=1)
        assert (found.kind, found.total, len(found.members)) == ("Many", 2, 1)


class TestWindows:
    def test_the_grounded_are_looked_at_first(self) -> None:
        pool = [Candidate(memory, 1.0 - number / 10) for number, memory in enumerate(IDS[:6])]
        parts = grounding(claim(IDS[5], "x"), claim(IDS[9], "x"), claim(A, "x")).windows(pool, 2)
        assert [[one.id for one in part] for part in parts] == [[A, B, IDS[5], IDS[9]], [C, D], [IDS[4]]]

    def test_an_empty_pool(self) -> None:
        assert grounding(claim(A, "x")).windows([], 2) == [[Candidate(A, 0.0)]]
        assert Grounding().windows([], 2) == [[]]


def test_outdated_answers_are_dropped_for_that_reason() -> None:
    rows = {one: row(one) for one in (A, B)}
    kept, dropped = apply_filters([Candidate(A, 1.0), Candidate(B, 1.0)], rows, RecallRequest(cue="c"), WHEN, {A})
    assert ([one.id for one in kept], dropped) == ([B], {"outdated": 1})


class TestAsking:
    async def ask(self, answer: bytes | Exception, **fields: object) -> Grounding:
        bus = FakeBus()
        bus.set(subjects.catalog(None, "claims"), answer)
        request = wire.validate(RecallRequest, {"cue": "where does Ana work", **fields})
        return await ground(bus, "p", request, [3, 9], time.monotonic() + 1)

    async def test_by_memory(self) -> None:
        reply = wire.encode(ClaimsReply(claims=(claim(A, "x"), claim(B, "y"), claim(A, "z")), stale=(C,)))
        found = await self.ask(reply)
        assert {one: [claim.object for claim in claims] for one, claims in found.claims.items()} == {
            A: ["x", "z"], B: ["y"],
        }  # fmt: skip
        assert found.stale == {C}
        assert (await self.ask(reply, include_superseded=True)).stale == frozenset()

    @pytest.mark.parametrize("answer", [NoReply(), NoResponders(), b"junk", b'{"claims": 3}'])
    async def test_without_an_answer_there_is_no_grounding(self, answer: bytes | Exception) -> None:
        assert await self.ask(answer) == Grounding()

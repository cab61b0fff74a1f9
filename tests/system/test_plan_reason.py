"""Edges, plans and evidence, end to end over a running service."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import nats
import pytest

from contracts.client import MemoryClient
from contracts.edges import PlanReply, ReasonReply
from contracts.errors import ErrorCode, NotFound
from tests.stack import Stack
from tests.system.test_main_job import noise

FRESH = {"consistency": "ReadAfterWrite", "budget_ms": 20_000}
NOBODY = "a" * 26

INCIDENT = [
    ("10:00:00", "Release 41 of the checkout went live without its database migration"),
    ("10:01:00", "The checkout began to fail with errors about a missing column"),
    ("10:03:30", "Customers flooded the help desk with requests for refunds"),
]


async def incident(memory: MemoryClient) -> list[str]:
    """Three memories of one session, a minute and two and a half apart."""
    return [
        (await memory.encode(text, session="incident", occurred_at=f"2026-03-01T{at}Z")).id for at, text in INCIDENT
    ]


async def plan(memory: MemoryClient, start: str, goal: str, **fields: Any) -> PlanReply:
    """Between two ids."""
    return await memory.plan({"id": start}, {"id": goal}, **{**FRESH, **fields})


async def reason(memory: MemoryClient, claim: str, **fields: Any) -> ReasonReply:
    return await memory.reason({"id": claim}, **{**FRESH, **fields})


def ids(reply: PlanReply) -> list[list[str]]:
    return [[step.id for step in path.steps] for path in reply.paths]


async def test_a_session_is_a_path_and_forgetting_the_middle_breaks_it(memory: MemoryClient) -> None:
    first, middle, last = await incident(memory)
    reply = await plan(memory, first, last)
    assert (reply.status, reply.complete) == ("GoalReached", True)
    assert ids(reply) == [[first, middle, last]]
    [path] = reply.paths
    assert [step.text for step in path.steps] == [text for _, text in INCIDENT]
    assert [step.transition for step in path.steps] == ["Initial", "FOLLOWED_BY", "FOLLOWED_BY"]
    assert [step.distance_to_goal for step in path.steps] == [2, 1, 0]
    assert [step.derived for step in path.steps] == [False, True, True]
    assert [step.weight for step in path.steps] == pytest.approx([1.0, 0.82, 0.55])
    assert path.score == pytest.approx(1 / 3 * (0.82 * 0.55) ** 0.5 * 0.5)

    assert (await plan(memory, last, first)).status == "NoPathFound"
    await memory.forget(middle)
    reply = await plan(memory, first, last)
    assert ids(reply) == [[first, last]], "the next one that stands is 210 s away"
    await memory.forget(last)
    with pytest.raises(NotFound) as caught:
        await plan(memory, first, last)
    assert caught.value.details["field"] == "goal.id"


async def test_edges_of_encode_and_link_make_a_path_and_forgetting_the_middle_leaves_none(memory: MemoryClient) -> None:
    last = await memory.encode("The rollout of the new router firmware was stopped")
    middle = await memory.encode(
        "The routers of floor two reboot every hour", edges=[{"kind": "CAUSED", "target": last.id, "weight": 0.5}]
    )
    first = await memory.encode("The firmware of the routers was upgraded to version 9")
    linked = await memory.link(first.id, "CAUSED", middle.id)
    assert linked.changed
    reply = await plan(memory, first.id, last.id)
    assert ids(reply) == [[first.id, middle.id, last.id]]
    assert not reply.paths[0].steps[1].derived
    assert (await plan(memory, first.id, last.id, max_steps=1)).status == "NoPathFound"
    assert (await plan(memory, first.id, last.id, edge_kinds=["PART_OF"])).status == "NoPathFound"

    assert (await memory.unlink(first.id, "CAUSED", middle.id)).changed
    assert not (await memory.unlink(first.id, "CAUSED", middle.id)).changed
    assert (await plan(memory, first.id, last.id)).status == "NoPathFound"
    await memory.link(first.id, "CAUSED", middle.id, 0.25)
    assert (await plan(memory, first.id, last.id)).status == "GoalReached"

    await memory.forget(middle.id)
    reply = await plan(memory, first.id, last.id)
    assert (reply.status, reply.paths, reply.complete) == ("NoPathFound", (), True)


async def test_texts_as_ends(memory: MemoryClient) -> None:
    for text in noise(20):
        await memory.encode(text)
    first, middle, last = await incident(memory)
    reply = await memory.plan({"text": "checkout release without migration"}, {"text": "refund requests"}, **FRESH)
    assert reply.status == "GoalReached"
    assert [first, middle, last] in ids(reply)


async def test_only_what_stands_and_only_the_session_asked_for(memory: MemoryClient) -> None:
    first, middle, last = await incident(memory)
    assert ids(await plan(memory, first, last, session="incident")) == [[first, middle, last]]
    assert (await plan(memory, first, last, session="another")).status == "NoPathFound"
    newer = await memory.encode("The checkout failed since the migration was forgotten", supersedes=[middle])
    reply = await plan(memory, first, last)
    assert not {middle, newer.id} & {one for path in ids(reply) for one in path}


async def test_linking_loses_nothing_and_is_told_in_the_story(memory: MemoryClient) -> None:
    fields = {"tags": ["ops"], "metadata": {"ticket": 7}, "importance": 0.9, "source": "chat"}
    statement = {"subject": "Diego", "predicate": "works_at", "object": "billing", "kind": "Attribute"}
    written = await memory.encode("Diego works at billing", statements=[statement], **fields)
    other = await memory.encode("The billing team moved to Porto")
    before = (await memory.inspect(written.id)).memory
    linked = await memory.link(written.id, "REFERENCES", other.id, 0.5)
    assert (linked.changed, linked.weight) == (True, 0.5)
    again = await memory.link(written.id, "REFERENCES", other.id, 0.5)
    assert (again.changed, again.position) == (False, linked.position)
    assert (await memory.link(written.id, "REFERENCES", other.id, 0.75)).changed
    await memory.unlink(written.id, "REFERENCES", other.id)
    await memory.recall("Diego", consistency="ReadAfterWrite", deadline_ms=10_000)
    told = await memory.inspect(written.id)
    assert [entry.change for entry in told.story] == ["encoded", "linked", "linked", "unlinked"]
    assert [entry.version for entry in told.story] == [1, 2, 3, 4]
    assert before is not None
    assert told.memory is not None
    changed = {"position", "version", "uses", "uses_14d", "last_used"}  # the recall was a use
    assert told.memory.model_dump(exclude=changed) == before.model_dump(exclude=changed)
    assert (await memory.encode("Diego works at billing", statements=[statement], **fields)).deduplicated
    reply = await memory.recall("Diego works at billing", consistency="ReadAfterWrite", deadline_ms=10_000)
    assert written.id in [member.id for member in reply.members]


async def test_reason_weighs_both_sides(memory: MemoryClient) -> None:
    claim = (await memory.encode("The outage was caused by the new checkout release")).id
    log = (await memory.encode("The error log names a column that only release 41 uses")).id
    report = (await memory.encode("The database team traced the errors to release 41")).id
    denial = (await memory.encode("The outage was caused by a power cut in the data centre")).id
    meter = (await memory.encode("The power meters show no interruption that day")).id
    await memory.link(log, "SUPPORTS", claim, 0.9)
    await memory.link(claim, "DERIVED_FROM", report, 0.8)
    await memory.link(denial, "CONTRADICTS", claim, -0.6)
    await memory.link(meter, "CONTRADICTS", denial, 1.0)

    reply = await reason(memory, claim)
    assert reply.status == "Complete"
    assert [basis.id for basis in reply.basis] == [claim]
    assert [(one.id, one.score) for one in reply.supporting] == [(log, 0.45), (report, 0.4), (meter, 0.2)]
    assert [(one.id, one.score) for one in reply.contradicting] == [(denial, 0.3)]
    assert reply.supporting[2].path == ("CONTRADICTS", "CONTRADICTS")
    assert (reply.supporting[2].from_id, reply.supporting[2].via) == (claim, (denial,))
    assert reply.confidence == pytest.approx((1.05 - 0.3) / 1.35)
    assert (await reason(memory, claim, depth=1)).status == "DepthLimitReached"
    assert [one.id for one in (await reason(memory, claim, max_evidence=1)).supporting] == [log]

    in_words = await memory.reason({"text": "the checkout release caused the outage"}, **FRESH, threshold=0.0)
    assert claim in [basis.id for basis in in_words.basis]
    assert {log, report} <= {one.id for one in in_words.supporting}

    await memory.forget(log)
    assert [one.id for one in (await reason(memory, claim)).supporting] == [report, meter]


async def test_no_evidence_is_an_answer(memory: MemoryClient) -> None:
    alone = (await memory.encode("The museum closes early on Mondays")).id
    reply = await reason(memory, alone)
    assert (reply.status, reply.supporting, reply.contradicting, reply.confidence) == ("Complete", (), (), 0.0)


async def test_a_spent_budget_is_an_answer(memory: MemoryClient) -> None:
    first, _, last = await incident(memory)
    reply = await plan(memory, first, last, budget_ms=1)
    assert reply.status == "BudgetExhausted"
    assert not reply.complete
    assert (await reason(memory, first, budget_ms=1)).status == "BudgetExhausted"


async def test_one_project_never_sees_another(stack: Stack, memory: MemoryClient) -> None:
    first, _, last = await incident(memory)
    async with MemoryClient(stack.url, project=f"{memory.project}-other") as other:
        mine = await other.encode("A memory of another project")
        for call in (
            lambda: plan(other, mine.id, last),
            lambda: reason(other, first),
            lambda: other.link(mine.id, "CAUSED", first),
            lambda: other.link(first, "CAUSED", mine.id),
            lambda: other.unlink(first, "CAUSED", mine.id),
        ):
            with pytest.raises(NotFound) as caught:
                await call()
            assert caught.value.code is ErrorCode.MEMORY_NOT_FOUND


BAD = [
    ("plan", {}, "INVALID_REQUEST"),
    ("plan", {"start": {"text": "a"}}, "INVALID_REQUEST"),
    ("plan", {"start": {}, "goal": {"text": "a"}}, "INVALID_REQUEST"),
    ("plan", {"start": {"id": NOBODY, "text": "a"}, "goal": {"text": "a"}}, "INVALID_REQUEST"),
    ("plan", {"start": "a", "goal": {"text": "a"}}, "INVALID_REQUEST"),
    ("plan", {"start": {"id": "short"}, "goal": {"text": "a"}}, "INVALID_REQUEST"),
    ("plan", {"start": {"txet": "a"}, "goal": {"text": "a"}}, "UNKNOWN_FIELD"),
    ("plan", {"start": {"text": " "}, "goal": {"text": "a"}}, "TEXT_EMPTY"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "word " * 10_000}}, "TEXT_TOO_LARGE"),
    ("plan", {"start": {"text": "a\x00"}, "goal": {"text": "a"}}, "INVALID_REQUEST"),
    ("plan", {"start": {"id": NOBODY}, "goal": {"text": "a"}}, "MEMORY_NOT_FOUND"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "max_steps": 11}, "OUT_OF_RANGE"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "max_steps": 0}, "OUT_OF_RANGE"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "max_branches": 0}, "OUT_OF_RANGE"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "max_paths": 101}, "OUT_OF_RANGE"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "budget_ms": 0}, "OUT_OF_RANGE"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "edge_kinds": []}, "INVALID_REQUEST"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "edge_kinds": ["LIKES"]}, "INVALID_REQUEST"),
    ("plan", {"start": {"text": "a"}, "goal": {"text": "b"}, "strategy": "AStar"}, "UNKNOWN_FIELD"),
    ("reason", {}, "INVALID_REQUEST"),
    ("reason", {"claim": {"text": ""}}, "TEXT_EMPTY"),
    ("reason", {"claim": {"id": NOBODY}}, "MEMORY_NOT_FOUND"),
    ("reason", {"claim": {"text": "a"}, "depth": 11}, "OUT_OF_RANGE"),
    ("reason", {"claim": {"text": "a"}, "threshold": 1.5}, "OUT_OF_RANGE"),
    ("reason", {"claim": {"text": "a"}, "max_evidence": 51}, "OUT_OF_RANGE"),
    ("link", {}, "INVALID_REQUEST"),
    ("link", {"source": NOBODY, "target": "GOOD", "kind": "CAUSED"}, "MEMORY_NOT_FOUND"),
    ("link", {"source": "GOOD", "target": NOBODY, "kind": "CAUSED"}, "MEMORY_NOT_FOUND"),
    ("link", {"source": "GOOD", "target": "GOOD", "kind": "CAUSED"}, "INVALID_REQUEST"),
    ("link", {"source": "GOOD", "target": NOBODY, "kind": "LIKES"}, "INVALID_REQUEST"),
    ("link", {"source": "GOOD", "target": NOBODY, "kind": "CAUSED", "weight": -0.5}, "OUT_OF_RANGE"),
    ("link", {"source": "GOOD", "target": NOBODY, "kind": "CONTRADICTS", "weight": -1.5}, "OUT_OF_RANGE"),
    ("link", {"source": "GOOD", "target": NOBODY, "kind": "CAUSED", "weight": 1.5}, "OUT_OF_RANGE"),
    ("link", {"source": "GOOD", "target": NOBODY, "kind": "CAUSED", "weight": "heavy"}, "INVALID_REQUEST"),
    ("unlink", {"source": "GOOD", "target": NOBODY, "kind": "CAUSED"}, "MEMORY_NOT_FOUND"),
    ("unlink", {"source": "GOOD", "target": "GOOD", "kind": "CAUSED"}, "INVALID_REQUEST"),
    ("unlink", {"source": "GOOD", "target": NOBODY, "kind": "CAUSED", "weight": 1.0}, "UNKNOWN_FIELD"),
    ("encode", {"text": "a", "edges": [{"kind": "SUPPORTS", "target": NOBODY, "weight": -0.5}]}, "OUT_OF_RANGE"),
    ("encode", {"text": "a", "edges": [{"kind": "CONTRADICTS", "target": NOBODY, "weight": -2}]}, "OUT_OF_RANGE"),
]


async def test_bad_input(stack: Stack, memory: MemoryClient) -> None:
    good = (await memory.encode("The good memory")).id
    link = await nats.connect(stack.url)
    try:
        for verb, request, code in BAD:
            data = json.dumps(request).replace("GOOD", good).encode()
            reply = json.loads((await link.request(f"memlane.v1.{memory.project}.{verb}", data, timeout=20)).data)
            assert reply.get("error", {}).get("code") == code, (verb, request, reply)
            assert not reply["error"]["retryable"]
        for verb, data in (
            ("plan", b'{"start": {"text": "a"}, "goal": {"text": "b"}}'),
            ("reason", b'{"claim": {"text": "a"}}'),
        ):
            reply = json.loads((await link.request(f"memlane.v1.nobody-was-here.{verb}", data, timeout=20)).data)
            assert reply["error"]["code"] == "UNKNOWN_PROJECT"
        for verb in ("plan", "reason", "link", "unlink"):
            reply = json.loads((await link.request(f"memlane.v1.bad$name.{verb}", b"{}", timeout=20)).data)
            assert reply["error"]["code"] == "INVALID_PROJECT"
    finally:
        await link.close()


def memlane(stack: Stack, memory: MemoryClient, *words: str) -> str:
    command = [sys.executable, "-m", "infra.cli", *words, "--nats", stack.url, "--project", memory.project]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


async def test_the_commands(stack: Stack, memory: MemoryClient) -> None:
    first, middle, last = await incident(memory)
    fresh = ("--consistency", "ReadAfterWrite")
    assert "linked at position" in memlane(stack, memory, "link", first, "SUPPORTS", last, "--weight", "0.8")
    assert "was linked so before" in memlane(stack, memory, "link", first, "supports", last, "--weight", "0.8")
    shown = memlane(stack, memory, "plan", first, last, *fresh)
    assert "GoalReached" in shown
    assert middle in shown.replace("\n", "")
    assert json.loads(memlane(stack, memory, "plan", first, last, "--json", *fresh))["status"] == "GoalReached"
    assert "confidence +1.00" in memlane(stack, memory, "reason", last, *fresh)
    assert json.loads(memlane(stack, memory, "reason", last, "--json", *fresh))["confidence"] == 1.0
    assert "unlinked at position" in memlane(stack, memory, "unlink", first, "SUPPORTS", last)

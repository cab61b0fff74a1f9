"""Transactions over a running service: read your own writes, and nobody else's."""

from __future__ import annotations

import pytest

from contracts.client import MemoryClient
from contracts.errors import ErrorCode, MemlaneError
from contracts.recall import RecallReply
from tests.system.test_main_job import fresh


def texts(reply: RecallReply) -> list[str]:
    return [member.text for member in reply.members]


def lives(city: str) -> dict[str, object]:
    return {"subject": "Ana Ruiz", "predicate": "lives_in", "object": city, "kind": "Attribute"}


async def test_pending_memories_show_inside_and_only_inside(memory: MemoryClient) -> None:
    await memory.encode("The quarterly budget was approved on Monday")
    async with memory.transaction() as txn:
        encoded = await txn.encode("The harbour crane failed its safety inspection")
        assert (encoded.position, encoded.deduplicated) == (0, False)
        cue = "Did the harbour crane pass its inspection?"
        inside, outside = await txn.recall(cue), await fresh(memory, cue)
        assert (inside.answer_kind, texts(inside)) == ("Single", ["The harbour crane failed its safety inspection"])
        assert (outside.answer_kind, texts(outside)) == ("None", [])
    assert txn.committed is not None
    after = await fresh(memory, cue, position=txn.committed.position)
    assert (after.answer_kind, texts(after)) == ("Single", texts(inside))
    assert after.members[0].score == pytest.approx(inside.members[0].score, abs=0.15)


async def test_pending_tombstones_hide(memory: MemoryClient) -> None:
    old = await memory.encode("The harbour crane failed its safety inspection")
    async with memory.transaction() as txn:
        await txn.forget(old.id)
        assert (await txn.recall("harbour crane inspection", consistency="ReadAfterWrite")).answer_kind == "None"
        assert (await fresh(memory, "harbour crane inspection")).answer_kind == "Single"
    assert (await fresh(memory, "harbour crane inspection")).answer_kind == "None"


async def test_a_pending_value_replaces_the_committed_one(memory: MemoryClient) -> None:
    await memory.encode("Ana Ruiz lives in Rome", statements=[lives("Rome")])
    async with memory.transaction() as txn:
        await txn.encode("Ana Ruiz moved, she lives in Oslo", statements=[lives("Oslo")])
        cue = "Where does Ana Ruiz live?"
        assert texts(await txn.recall(cue, consistency="ReadAfterWrite")) == ["Ana Ruiz moved, she lives in Oslo"]
        assert texts(await fresh(memory, cue)) == ["Ana Ruiz lives in Rome"]
    assert texts(await fresh(memory, cue)) == ["Ana Ruiz moved, she lives in Oslo"]


async def test_filters_hold_for_pending_memories_too(memory: MemoryClient) -> None:
    async with memory.transaction() as txn:
        await txn.encode("The harbour crane failed its safety inspection", session="a", kind="Semantic")
        for fields, kind in (
            ({"session": "a"}, "Single"), ({"session": "b"}, "None"), ({"kinds": ["Semantic"]}, "Single"),
            ({"kinds": ["Episodic"]}, "None"), ({"since": "2999-01-01T00:00:00Z"}, "None"),
        ):  # fmt: skip
            assert (await txn.recall("harbour crane inspection", **fields)).answer_kind == kind, fields


async def test_two_transactions_never_see_each_other(memory: MemoryClient) -> None:
    async with memory.transaction() as one, memory.transaction() as other:
        await one.encode("The harbour crane failed its safety inspection")
        await other.encode("The museum roof leaks over the east wing")
        assert (await one.recall("museum roof leaks")).answer_kind == "None"
        assert (await other.recall("museum roof leaks")).answer_kind == "Single"
        assert (await other.recall("harbour crane inspection")).answer_kind == "None"


async def test_a_block_that_raises_leaves_nothing(memory: MemoryClient) -> None:
    await memory.encode("The quarterly budget was approved on Monday")
    with pytest.raises(RuntimeError):  # noqa: PT012
        async with memory.transaction() as txn:
            await txn.encode("The harbour crane failed its safety inspection")
            raise RuntimeError("changed my mind")
    assert (await fresh(memory, "harbour crane inspection")).answer_kind == "None"
    with pytest.raises(MemlaneError) as caught:
        await memory.recall("harbour crane", txn_id=txn.txn_id)
    assert caught.value.code == ErrorCode.TXN_CLOSED


@pytest.mark.parametrize(
    ("verb", "fields", "code"),
    [
        ("recall", {"cue": "x", "txn_id": "nobody"}, ErrorCode.TXN_NOT_FOUND),
        ("encode", {"text": "x", "txn_id": "nobody"}, ErrorCode.TXN_NOT_FOUND),
        ("encode", {"text": "x", "txn_id": "a b"}, ErrorCode.INVALID_REQUEST),
        ("begin", {"timeout_s": 0}, ErrorCode.OUT_OF_RANGE),
        ("begin", {"timeout_s": 301}, ErrorCode.OUT_OF_RANGE),
        ("begin", {"name": "x"}, ErrorCode.UNKNOWN_FIELD),
        ("commit", {"txn_id": "nobody"}, ErrorCode.TXN_NOT_FOUND),
        ("abort", {"txn_id": "nobody"}, ErrorCode.TXN_NOT_FOUND),
    ],
)
async def test_bad_input(memory: MemoryClient, verb: str, fields: dict[str, object], code: ErrorCode) -> None:
    await memory.encode("The quarterly budget was approved on Monday")
    with pytest.raises(MemlaneError) as caught:
        await getattr(memory, verb)(**fields)
    assert caught.value.code == code

"""The main job, end to end over a running service: what was encoded is recalled, what was not is not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import nats
import pytest
from nats.js.errors import NotFoundError

from contracts import subjects
from contracts.client import MemoryClient
from contracts.encode import EncodeReply, EncodeRequest
from contracts.errors import Conflict, ErrorCode, InvalidRequest, NotFound
from contracts.recall import RecallReply
from tests.stack import Stack

LANES = {"semantic", "lexical", "graph"}
SUBJECTS = ("printer", "router", "garden", "bakery", "bicycle", "violin", "harbour", "museum", "kitchen", "library")
EVENTS = (
    "was repainted in blue",
    "closed early for the holidays",
    "needs a spare part from Lisbon",
    "got a new opening schedule",
    "was praised by two visitors",
    "lost power for an hour",
    "moved to the second floor",
    "was cleaned by volunteers",
    "is booked until spring",
    "received a donation",
)


def noise(count: int) -> list[str]:
    """Different sentences about nothing in particular."""
    return [f"The {SUBJECTS[i % 10]} {EVENTS[i // 10 % 10]} in week {i}" for i in range(count)]


async def encode_all(memory: MemoryClient, texts: list[str], **fields: Any) -> list[EncodeReply]:
    gate = asyncio.Semaphore(32)

    async def one(text: str) -> EncodeReply:
        async with gate:
            return await memory.encode(text, **fields)

    return list(await asyncio.gather(*(one(text) for text in texts)))


async def fresh(memory: MemoryClient, cue: str, **fields: Any) -> RecallReply:
    """Recall of all that was written."""
    return await memory.recall(cue, **{"consistency": "ReadAfterWrite", "deadline_ms": 10_000, **fields})


async def until(check: Callable[[], Awaitable[bool]], patience_s: float = 15.0) -> None:
    deadline = time.monotonic() + patience_s
    while not await check():
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.05)


def ids(reply: RecallReply) -> list[str]:
    return [member.id for member in reply.members]


async def test_a_paraphrase_finds_the_memory(memory: MemoryClient) -> None:
    await encode_all(memory, noise(20))
    written = await memory.encode("The customer wants her money back because the parcel arrived broken")
    reply = await fresh(memory, "the customer asked for a refund because the package was damaged")
    assert ids(reply)[:1] == [written.id]
    assert reply.members[0].provenance["semantic"].rank == 1


async def test_a_paraphrase_without_a_word_in_common_ranks_first(memory: MemoryClient) -> None:
    await encode_all(memory, noise(20))
    written = await memory.encode("The customer wants her money back because the parcel arrived broken")
    reply = await fresh(memory, "a client asks for a refund since package damage", trace=True)
    assert reply.trace is not None
    assert reply.trace.lanes["semantic"][0].sources == (written.id,)
    assert reply.trace.fused[0] == written.id


async def test_an_exact_id_is_a_single_answer(memory: MemoryClient) -> None:
    await encode_all(memory, noise(60))
    written = await memory.encode("Invoice ACME-1247 was disputed by the customer")
    reply = await fresh(memory, "ACME-1247")
    assert reply.answer_kind == "Single"
    assert ids(reply) == [written.id]
    assert reply.members[0].provenance["lexical"].rank == 1


async def test_an_entity_finds_its_memory_through_the_graph(memory: MemoryClient) -> None:
    await encode_all(memory, noise(20))
    written = await memory.encode("Marguerite Duval leads the Northwind migration")
    reply = await fresh(memory, "what does Marguerite Duval do?")
    assert ids(reply)[:1] == [written.id]
    assert "graph" in reply.members[0].provenance


async def test_a_reply_tells_of_every_lane_and_how_far_it_is(memory: MemoryClient) -> None:
    written = await memory.encode("Diego moved to the billing team")
    reply = await fresh(memory, "where does Diego work?")
    assert set(reply.lanes) == LANES
    for outcome in reply.lanes.values():
        assert outcome.status == "ok"
        assert outcome.position >= written.position
    assert not reply.degraded
    assert reply.trace is None


async def test_a_trace_shows_what_each_lane_and_the_fusion_saw(memory: MemoryClient) -> None:
    written = await memory.encode("Diego works at the billing team since Priya left")
    reply = await fresh(memory, "Diego billing team", trace=True)
    assert reply.trace is not None
    assert set(reply.trace.lanes) == LANES
    kinds = {hit.kind for hits in reply.trace.lanes.values() for hit in hits}
    assert "memory" in kinds
    assert kinds <= {"memory", "statement", "entity", "relation"}
    for hits in reply.trace.lanes.values():
        assert any(written.id in hit.sources for hit in hits)
    assert written.id in reply.trace.fused


async def test_nonsense_is_answered_with_none(memory: MemoryClient) -> None:
    await encode_all(memory, noise(100))
    reply = await fresh(memory, "PHRASE_NOT_PRESENT_QQQQ")
    assert reply.answer_kind == "None"
    assert reply.members == ()


async def test_plain_json_over_plain_nats_is_enough(stack: Stack) -> None:
    link = await nats.connect(stack.url)
    try:

        async def call(verb: str, request: dict[str, Any]) -> dict[str, Any]:
            message = await link.request(f"memlane.v1.plain.{verb}", json.dumps(request).encode(), timeout=15)
            reply = json.loads(message.data)
            assert isinstance(reply, dict)
            return reply

        written = await call("encode", {"text": "Nadia keeps the spare key under the blue flowerpot"})
        cue = {"cue": "where is the spare key?", "consistency": "ReadAfterWrite", "deadline_ms": 5000}
        reply = await call("recall", cue)
        assert [member["id"] for member in reply["members"]] == [written["id"]]
        assert reply["answer_kind"] == "Single"
        assert (await call("recall", {"cue": ""}))["error"]["code"] == "TEXT_EMPTY"
    finally:
        await link.close()


async def test_a_newer_value_of_an_attribute_supersedes_the_older(memory: MemoryClient) -> None:
    def value(team: str, at: str) -> dict[str, Any]:
        statement = {"subject": "Diego", "predicate": "works_at", "object": team, "kind": "Attribute", "valid_from": at}
        return {"statements": [statement], "occurred_at": at}

    old = await memory.encode("Diego works at the support team", **value("support team", "2026-01-01T00:00:00Z"))
    new = await memory.encode("Diego works at the billing team", **value("billing team", "2026-03-01T00:00:00Z"))
    cue = "which team does Diego work at"

    assert ids(await fresh(memory, cue)) == [new.id]
    both = await fresh(memory, cue, include_superseded=True)
    assert set(ids(both)) == {old.id, new.id}
    assert {member.id: member.superseded_by for member in both.members} == {old.id: new.id, new.id: None}
    assert ids(await fresh(memory, cue, as_of="2026-02-01T00:00:00Z")) == [old.id]


async def test_the_forgotten_is_never_returned(memory: MemoryClient) -> None:
    text = "Rosalind Okafor approved purchase order PO-88213"
    await encode_all(memory, noise(10))
    written = await memory.encode(text)
    assert ids(await fresh(memory, text)) == [written.id]

    gone = await memory.forget(written.id)
    assert gone.forgotten
    assert gone.position > written.position
    for cue in (text, "Rosalind Okafor", "PO-88213"):
        reply = await fresh(memory, cue, include_superseded=True, trace=True)
        assert written.id not in ids(reply), cue
    assert not (await memory.forget(written.id)).forgotten

    again = await memory.encode(text)
    assert again.id == written.id
    assert not again.deduplicated
    assert ids(await fresh(memory, "PO-88213")) == [written.id]


async def test_forgetting_what_is_not_there_is_not_found(memory: MemoryClient) -> None:
    with pytest.raises(NotFound) as caught:
        await memory.forget("a" * 26)
    assert caught.value.code is ErrorCode.MEMORY_NOT_FOUND


async def test_hard_forgetting_erases_the_text_from_the_log(stack: Stack, memory: MemoryClient) -> None:
    written = await memory.encode("The vault code is zebra-quartz-nine")
    await fresh(memory, "vault code")
    await memory.forget(written.id, mode="hard")
    assert ids(await fresh(memory, "zebra-quartz-nine")) == []
    link = await nats.connect(stack.url)
    try:
        stream = link.jetstream()
        with pytest.raises(NotFoundError):
            await stream.get_msg(subjects.LOG_STREAM, written.position)
        last = await stream.get_msg(subjects.LOG_STREAM, subject=subjects.log(memory.project, written.id))
        assert b"zebra" not in (last.data or b"")
    finally:
        await link.close()


async def test_a_ceiling_does_not_change_the_kind_of_answer(memory: MemoryClient) -> None:
    for text in ("Invoice ACME-1247 was sent on Monday", "Invoice ACME-1247 was paid on Friday"):
        await memory.encode(text)
    assert len((await fresh(memory, "ACME-1247")).members) == 2
    reply = await fresh(memory, "ACME-1247", max_results=1)
    assert reply.answer_kind == "Many"
    assert len(reply.members) == 1


async def test_one_request_id_is_one_memory_however_often_it_is_sent(memory: MemoryClient) -> None:
    text = "The lease of the Hamburg office ends in June"
    replies = await asyncio.gather(
        *(memory.encode(text, request_id="lease-1", allow_duplicates=True) for _ in range(40))
    )
    assert len({reply.id for reply in replies}) == 1
    assert sum(not reply.deduplicated for reply in replies) == 1
    await fresh(memory, text)
    assert [row.id for row in (await memory.list()).memories] == [replies[0].id]


async def test_a_request_id_for_other_content_is_a_conflict(memory: MemoryClient) -> None:
    await memory.encode("The lease ends in June", request_id="lease-2")
    with pytest.raises(Conflict) as caught:
        await memory.encode("The lease ends in July", request_id="lease-2")
    assert caught.value.code is ErrorCode.IDEMPOTENCY_CONFLICT


async def test_the_same_text_twice_is_one_memory(memory: MemoryClient) -> None:
    first = await memory.encode("The boiler is serviced every October")
    second = await memory.encode("The boiler is serviced every October")
    assert (second.id, second.deduplicated) == (first.id, True)
    assert not first.deduplicated
    third = await memory.encode("The boiler is serviced every October", allow_duplicates=True)
    assert third.id != first.id


async def test_what_is_put_on_the_queue_is_found(memory: MemoryClient) -> None:
    await memory.encode("The project exists")
    for number in range(20):
        await memory.ingest(EncodeRequest(text=f"Queue note QN-{number + 500} was filed by Ingrid"))

    async def found() -> bool:
        return len((await memory.list()).memories) == 21

    await until(found)
    reply = await fresh(memory, "QN-517")
    assert [member.text for member in reply.members] == ["Queue note QN-517 was filed by Ingrid"]


async def test_poison_on_the_queue_ends_in_the_dead_letters(stack: Stack, memory: MemoryClient) -> None:
    link = await nats.connect(stack.url)
    try:
        stream = link.jetstream()
        await stream.publish(subjects.ingest(memory.project), b"\xff")
        await stream.publish(subjects.ingest(memory.project), b'{"text": "  "}')
        await memory.ingest(EncodeRequest(text="The good one behind the poison is PX-4242"))

        async def buried() -> bool:
            info = await stream.stream_info(subjects.DLQ_STREAM, subjects_filter=subjects.dead_letter(memory.project))
            return sum((info.state.subjects or {}).values()) == 2

        await until(buried)
        first = (await stream.stream_info(subjects.DLQ_STREAM)).state.last_seq - 1
        letters = {}
        for sequence in (first, first + 1):
            letter = await stream.get_msg(subjects.DLQ_STREAM, sequence)
            letters[letter.data] = (letter.headers or {})["Memlane-Error"]
        assert letters == {b"\xff": "INVALID_ENCODING", b'{"text": "  "}': "TEXT_EMPTY"}
    finally:
        await link.close()

    async def found() -> bool:
        try:
            return len((await fresh(memory, "PX-4242")).members) == 1
        except NotFound:
            return False

    await until(found)


async def test_a_listing_pages_through_everything_once(memory: MemoryClient) -> None:
    written = await encode_all(memory, noise(25), session="first")
    await fresh(memory, "the printer")
    seen: list[str] = []
    cursor = None
    while True:
        page = await memory.list(limit=10, **({"cursor": cursor} if cursor else {}))
        assert len(page.memories) <= 10
        seen += [row.id for row in page.memories]
        cursor = page.cursor
        if cursor is None:
            break
    assert len(seen) == 25
    assert set(seen) == {reply.id for reply in written}


async def test_a_cursor_with_other_filters_is_stale(memory: MemoryClient) -> None:
    await encode_all(memory, noise(5), session="first")
    await fresh(memory, "the printer")
    page = await memory.list(limit=2)
    assert page.cursor is not None
    for fields in ({"session": "first"}, {"order": "oldest"}, {"include_tombstoned": True}):
        with pytest.raises(InvalidRequest) as caught:
            await memory.list(limit=2, cursor=page.cursor, **fields)
        assert caught.value.code is ErrorCode.STALE_CURSOR
    with pytest.raises(InvalidRequest) as caught:
        await memory.list(cursor="garbage")
    assert caught.value.code is ErrorCode.STALE_CURSOR


async def test_inspect_tells_the_write_story(memory: MemoryClient) -> None:
    written = await memory.encode("The old badge reader is at gate four")
    gone = await memory.forget(written.id, reason="replaced")
    await fresh(memory, "badge reader")

    reply = await memory.inspect(written.id)
    assert reply.found
    assert [entry.position for entry in reply.story] == [written.position, gone.position]
    assert [entry.version for entry in reply.story] == [1, 2]
    assert [entry.change for entry in reply.story] == ["encoded", "forgotten (soft)"]
    assert not (await memory.inspect("b" * 26)).found


async def test_projects_do_not_see_each_other(stack: Stack, memory: MemoryClient) -> None:
    mine = await memory.encode("The launch code word is Kingfisher")
    async with MemoryClient(stack.url, project=f"{memory.project}-other") as other:
        with pytest.raises(NotFound) as caught:
            await other.recall("Kingfisher")
        assert caught.value.code is ErrorCode.UNKNOWN_PROJECT
        await other.encode("The canteen serves soup on Tuesdays")
        for cue in ("The launch code word is Kingfisher", "Kingfisher"):
            assert ids(await fresh(other, cue)) == []
            assert ids(await fresh(memory, cue)) == [mine.id]
        assert not (await other.inspect(mine.id)).found
        with pytest.raises(NotFound):
            await other.forget(mine.id)
        assert mine.id not in {row.id for row in (await other.list()).memories}


async def test_a_paraphrase_without_a_shared_word_is_answered(memory: MemoryClient) -> None:
    await encode_all(memory, noise(20))
    written = await memory.encode("The customer wants her money back because the parcel arrived broken")
    reply = await fresh(memory, "a client asks for a refund since the package was damaged")
    assert ids(reply)[:1] == [written.id]

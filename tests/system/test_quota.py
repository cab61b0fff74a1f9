"""Quotas over a running service: loud or silent, counted once, shared by verb and queue; and the default project."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import subjects
from contracts.client import MemoryClient
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, Exhausted, InvalidRequest, NotFound, Unavailable
from contracts.usage import DayUsage
from infra.discovery import discover
from tests.stack import Stack

SETTINGS = """
default_project = "acme"
[quota]
mode = "strict"
[upkeep]
enabled = false  # it embeds too, and a test counts who does
[quota.projects.loud]
encode = 3
recall = 2
[quota.projects.race]
encode = 7
[quota.projects.quiet]
mode = "silent"
encode = 1
recall = 2
[quota.projects.mute]
mode = "silent"
recall = 0
[quota.projects.queue]
encode = 2
[quota.projects.queue-quiet]
mode = "silent"
encode = 2
"""


async def holds(memory: MemoryClient, count: int) -> bool:
    """Whether the catalog shows so many memories: it follows the log a moment behind."""
    return len((await memory.list()).memories) == count


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("quota")
    (folder / "memlane.toml").write_text(SETTINGS, "utf-8")
    with Stack(folder / "data", {"MEMLANE_CONFIG": str(folder / "memlane.toml")}) as stack:
        yield stack


@pytest.fixture
async def link(limited: Stack) -> AsyncIterator[Client]:
    client = await nats.connect(limited.url)
    yield client
    await client.close()


async def counted(memory: MemoryClient, **counts: int) -> None:
    """Within a few seconds, exactly this was used today."""

    async def right() -> bool:
        [day] = (await memory.usage()).days
        return day == DayUsage(day=day.day, **counts)

    await until(right)


async def until(right: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(100):
        if await right():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come about in time")


async def test_strict_refuses_says_when_and_counts_no_failure(limited: Stack) -> None:
    async with MemoryClient(limited.url, project="loud") as memory:
        first = await memory.encode("The Lisbon office opens in May")
        with pytest.raises(InvalidRequest):
            await memory.call("encode", EncodeRequest.model_construct(text=" "), type(first))
        for _ in range(2):
            await memory.encode("The Lisbon office opens in May")
        with pytest.raises(Exhausted) as caught:
            await memory.encode("The Porto office opens in June")
        error = caught.value
        assert (error.code, error.retryable) == (ErrorCode.QUOTA_EXCEEDED, True)
        assert (error.details["kind"], error.details["limit"]) == ("encode", 3)
        now = datetime.now(UTC)
        to_midnight = 86_400 - (now.hour * 3600 + now.minute * 60 + now.second)
        assert abs(error.details["retry_after_ms"] / 1000 - to_midnight) < 5
        for _ in range(2):
            await memory.recall("Lisbon")
        with pytest.raises(Exhausted):
            await memory.recall("Lisbon")
        usage = await memory.usage()
        assert (usage.mode, usage.limits, usage.left) == (
            "strict",
            {"encode": 3, "recall": 2},
            {"encode": 0, "recall": 0},
        )
        await counted(memory, encodes=3, recalls=2)
        assert (await memory.inspect(first.id)).found  # what is not limited still works


async def test_calls_that_race_are_admitted_up_to_the_limit(limited: Stack) -> None:
    async with MemoryClient(limited.url, project="race") as memory:
        outcomes = await asyncio.gather(
            *(memory.encode(f"Note {number} about the race") for number in range(40)), return_exceptions=True
        )
        assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 7
        assert {type(outcome) for outcome in outcomes if isinstance(outcome, Exception)} == {Exhausted}
        await counted(memory, encodes=7)


async def test_silent_answers_as_if_nothing_were_wrong_and_does_nothing(limited: Stack, link: Client) -> None:
    async with MemoryClient(limited.url, project="quiet") as memory:
        kept = await memory.encode("The Lisbon office opens in May")
        assert not kept.silent
        embeds = await embed_requests(link)
        lost = await memory.encode("The Porto office opens in June")
        again = await memory.encode("The Porto office opens in June")
        assert lost.silent
        assert (lost.id, lost.position, lost.deduplicated) == (again.id, 0, False)
        assert await embed_requests(link) == embeds
        assert not (await memory.inspect(lost.id)).found
        await until(partial(holds, memory, 1))
        assert [row.id for row in (await memory.list()).memories] == [kept.id]
        with pytest.raises(InvalidRequest):  # bad input is told as ever
            await memory.call("encode", EncodeRequest.model_construct(text=" "), type(lost))

        seen = [await memory.recall("Lisbon", consistency="ReadAfterWrite", deadline_ms=10_000) for _ in range(3)]
        assert [reply.silent for reply in seen] == [False, False, True]
        assert [reply.answer_kind for reply in seen] == ["Single", "Single", "None"]
        assert seen[2].members == ()
        await counted(memory, encodes=1, recalls=2)


async def test_a_true_none_has_no_such_header(link: Client) -> None:
    async def ask(project: str) -> Msg:
        data = json.dumps({"cue": "PHRASE_NOT_PRESENT_QQQQ", "deadline_ms": 10_000}).encode()
        return await link.request(f"memlane.v1.{project}.recall", data, timeout=15)

    await link.request("memlane.v1.true-none.encode", b'{"text": "The canteen serves soup"}', timeout=15)
    true, silent = await ask("true-none"), await ask("mute")
    assert not true.headers
    assert silent.headers == {"X-Memlane-Silent": "1"}
    for message in (true, silent):
        reply = json.loads(message.data)
        assert (reply["answer_kind"], reply["members"]) == ("None", [])
        assert "silent" not in reply


async def embed_requests(link: Client) -> int:
    return sum(process.requests for process in await discover(link) if process.role == "embed")


async def test_the_queue_counts_too_and_buries_what_is_over_the_limit(limited: Stack, link: Client) -> None:
    async with MemoryClient(limited.url, project="queue") as memory:
        for number in range(5):
            await memory.ingest(EncodeRequest(text=f"Queue note {number} was filed by Ingrid"))
        stream = link.jetstream()

        async def buried() -> bool:
            subject = subjects.dead_letter("queue")
            info = await stream.stream_info(subjects.DLQ_STREAM, subjects_filter=subject)
            return sum((info.state.subjects or {}).values()) == 3

        await until(buried)
        letter = await stream.get_last_msg(subjects.DLQ_STREAM, subjects.dead_letter("queue"))
        assert (letter.headers or {})["Memlane-Error"] == "QUOTA_EXCEEDED"
        await counted(memory, encodes=2)
    async with MemoryClient(limited.url, project="queue-quiet") as memory:
        for number in range(5):
            await memory.ingest(EncodeRequest(text=f"Queue note {number} was filed by Ingrid"))

        async def empty() -> bool:
            return (await stream.stream_info(subjects.INGEST_STREAM)).state.messages == 0

        await until(empty)
        await counted(memory, encodes=2)
        await until(partial(holds, memory, 2))


async def test_who_names_no_project_is_in_the_default_one(limited: Stack, link: Client) -> None:
    async def ask(subject: str, request: dict[str, str], project: str | None = None) -> dict[str, object]:
        headers = {"X-Project-ID": project} if project is not None else None
        reply = json.loads(
            (await link.request(subject, json.dumps(request).encode(), timeout=15, headers=headers)).data
        )
        assert isinstance(reply, dict)
        return reply

    written = await ask("memlane.v1._.encode", {"text": "Acme keeps its seal in the safe"})
    other = await ask("memlane.v1._.encode", {"text": "Beta keeps its seal in the desk"}, "beta")
    async with MemoryClient(limited.url) as default, MemoryClient(limited.url, project="acme") as acme:
        assert (await acme.inspect(str(written["id"]))).found
        assert (await default.inspect(str(written["id"]))).found
        assert not (await default.inspect(str(other["id"]))).found
        await default.ingest(EncodeRequest(text="Queued without a project"))

        async def there() -> bool:
            return "Queued without a project" in [row.text for row in (await acme.list()).memories]

        await until(there)
    assert (await ask("memlane.v1._.inspect", {"id": str(other["id"])}, "beta"))["found"]
    assert (await ask("memlane.v1.beta.inspect", {"id": str(other["id"])}, "beta"))["found"]
    for subject, project in (
        ("memlane.v1._.inspect", "a.b"),
        ("memlane.v1._.inspect", "*"),
        ("memlane.v1._.inspect", ""),
        ("memlane.v1._.inspect", "_"),
        ("memlane.v1.acme.inspect", "beta"),
        ("memlane.v1.acme.inspect", "a.b"),
    ):
        error = (await ask(subject, {"id": str(other["id"])}, project))["error"]
        assert isinstance(error, dict)
        assert error["code"] == "INVALID_PROJECT", (subject, project)


async def test_a_queued_message_of_a_bad_project_is_buried(limited: Stack, link: Client) -> None:
    stream = link.jetstream()
    headers = {"X-Project-ID": "no.such*project"}
    await stream.publish(subjects.ingest("_"), b'{"text": "lost"}', headers=headers)

    async def buried() -> bool:
        info = await stream.stream_info(subjects.DLQ_STREAM, subjects_filter=subjects.dead_letter("_"))
        return sum((info.state.subjects or {}).values()) == 1

    await until(buried)
    letter = await stream.get_last_msg(subjects.DLQ_STREAM, subjects.dead_letter("_"))
    assert (letter.headers or {})["Memlane-Error"] == "INVALID_PROJECT"


async def test_usage_refuses_what_it_cannot_count(limited: Stack) -> None:
    async with MemoryClient(limited.url, project="nobody-was-here") as memory:
        assert (await memory.usage(days=92)).days[91].encodes == 0
        for fields in ({"days": 0}, {"days": 93}, {"day": "yesterday"}, {"month": 1}):
            with pytest.raises(InvalidRequest):
                await memory.usage(**fields)
        with pytest.raises(NotFound):
            await memory.recall("anything")
        await counted(memory)


async def test_what_was_counted_survives_a_restart(limited: Stack) -> None:
    """The counts of the last second are written when a process is told to end."""
    async with MemoryClient(limited.url, project="restart", timeout_s=3) as memory:
        await memory.encode("The Lisbon office opens in May")
        for _ in range(3):
            await memory.recall("Lisbon")
        for role in ("orchestrator", "encode"):
            limited.kill(role, signal.SIGTERM)

        async def right() -> bool:
            try:
                [day] = (await memory.usage()).days
            except Unavailable:  # it is starting again
                return False
            return (day.encodes, day.recalls) == (1, 3)

        await until(right)

"""Transactions on a real NATS server: all or nothing, whoever dies when."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import anyio
import pytest
from nats.aio.client import Client

from contracts.base import now
from contracts.encode import ForgetRequest
from contracts.errors import Conflict, ErrorCode, MemlaneError, NotFound, Unavailable
from contracts.memory import MemoryRecord, derive_id
from contracts.ports import WrongPosition
from contracts.txn import MOST_OPERATIONS, BeginRequest, EndRequest, Step
from infra.nats_log import JetStreamLog
from infra.nats_queue import KvRequestIds
from infra.nats_txns import BATCH, StreamTransactions
from workers.encode.transactions import Transactor
from workers.encode.writer import MemoryWriter

_projects = itertools.count()


class Case:
    """A transactor over the real log, in a project of its own."""

    def __init__(self, client: Client) -> None:
        self.project = f"p{next(_projects)}"
        self.log, self.transactions = JetStreamLog(client), StreamTransactions(client)
        self.writer = MemoryWriter(self.log, KvRequestIds(client))
        self.transactor = Transactor(self.transactions, self.log, self.writer)

    def record(self, text: str, **fields: Any) -> MemoryRecord:
        at, memory_id = now(), derive_id(self.project, text)
        return MemoryRecord(
            id=memory_id, project=self.project, text=text, created_at=at, changed_at=at, digest=text,
            **fields,
        )  # fmt: skip

    async def begin(self, **fields: Any) -> str:
        return (await self.transactor.begin(self.project, BeginRequest(**fields))).txn_id

    async def encode(self, txn_id: str, text: str, **fields: Any) -> None:
        await self.transactor.encode(self.record(text, **fields), txn_id)

    async def forget(self, txn_id: str, text: str, **fields: Any) -> bool:
        request = ForgetRequest(id=derive_id(self.project, text), **fields)
        return (await self.transactor.forget(self.project, request, txn_id)).forgotten

    async def commit(self, txn_id: str) -> tuple[int, int]:
        reply = await self.transactor.commit(self.project, EndRequest(txn_id=txn_id))
        return reply.operations_applied, reply.position

    async def abort(self, txn_id: str) -> int:
        return (await self.transactor.abort(self.project, EndRequest(txn_id=txn_id))).operations_discarded

    async def state(self, text: str) -> str:
        """What the log says of a memory."""
        entry = await self.log.last(self.project, derive_id(self.project, text))
        return "none" if entry is None else "live" if entry[1].live else entry[1].tombstone.mode  # type: ignore[union-attr]


@pytest.fixture
async def case(client: Client) -> Case:
    return Case(client)


async def refused(code: ErrorCode, call: Any) -> MemlaneError:
    with pytest.raises(MemlaneError) as caught:
        await call
    assert caught.value.code == code
    return caught.value


class TestCommit:
    async def test_nothing_before_everything_after(self, case: Case) -> None:
        await case.writer.store(case.record("old"))
        txn = await case.begin()
        await case.encode(txn, "a")
        await case.encode(txn, "b")
        assert await case.forget(txn, "old") is True
        assert [await case.state(text) for text in ("a", "b", "old")] == ["none", "none", "live"]
        applied, position = await case.commit(txn)
        assert [await case.state(text) for text in ("a", "b", "old")] == ["live", "live", "soft"]
        assert (applied, position) == (3, await case.log.end(case.project))

    async def test_again_is_the_same_answer(self, case: Case) -> None:
        txn = await case.begin()
        await case.encode(txn, "a")
        assert await case.commit(txn) == await case.commit(txn)
        assert len(await case.log.history(case.project, derive_id(case.project, "a"))) == 1

    async def test_of_nothing(self, case: Case) -> None:
        assert await case.commit(await case.begin()) == (0, 0)

    async def test_operations_on_one_memory_fold(self, case: Case) -> None:
        await case.writer.store(case.record("old"))
        txn = await case.begin()
        await case.encode(txn, "a")
        assert await case.forget(txn, "a") is True
        assert await case.forget(txn, "old") is True
        assert await case.forget(txn, "old") is False
        await case.encode(txn, "old")
        assert (await case.commit(txn))[0] == 5
        assert [await case.state(text) for text in ("a", "old")] == ["none", "live"]
        assert len(await case.log.history(case.project, derive_id(case.project, "old"))) == 2

    async def test_a_hard_forget_erases(self, case: Case) -> None:
        await case.writer.store(case.record("secret"))
        txn = await case.begin()
        await case.forget(txn, "secret", mode="hard")
        await case.commit(txn)
        [(_, record)] = await case.log.history(case.project, derive_id(case.project, "secret"))
        assert (record.text, record.version) == ("", 2)

    async def test_another_writer_in_between(self, case: Case) -> None:
        """Read committed: the operations apply to what is there at the commit."""
        txn = await case.begin()
        await case.encode(txn, "a")
        await case.writer.store(case.record("a"))
        await case.writer.forget(case.project, ForgetRequest(id=derive_id(case.project, "a")))
        await case.commit(txn)
        history = await case.log.history(case.project, derive_id(case.project, "a"))
        assert [(record.version, record.live) for _, record in history] == [(1, True), (2, False), (3, True)]

    async def test_the_whole_limit(self, case: Case) -> None:
        txn = await case.begin()
        for number in range(MOST_OPERATIONS):
            await case.encode(txn, f"m{number}")
        error = await refused(ErrorCode.TXN_TOO_LARGE, case.encode(txn, "one more"))
        assert error.details["operations"] == MOST_OPERATIONS
        assert (await case.commit(txn))[0] == MOST_OPERATIONS
        assert await case.state(f"m{MOST_OPERATIONS - 1}") == "live"
        assert await case.state("one more") == "none"

    async def test_many_at_once(self, case: Case) -> None:
        txn = await case.begin()
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(case.encode, txn, f"m{number}")
        assert (await case.commit(txn))[0] == 12


class TestCrash:
    async def test_between_the_log_and_the_answer(self, case: Case) -> None:
        """The records are in the log, and the step that says so is not: the next commit must not write them again."""
        txn = await case.begin()
        await case.encode(txn, "a")
        append = case.transactions.append

        async def dies(project: str, txn_id: str, step: Step, expected: int) -> int:
            if step.state == "committed":
                raise Unavailable(ErrorCode.UNAVAILABLE, "gone")
            return await append(project, txn_id, step, expected)

        case.transactions.append = dies  # type: ignore[method-assign]
        await refused(ErrorCode.UNAVAILABLE, case.commit(txn))
        case.transactions.append = append  # type: ignore[method-assign]
        assert (await case.commit(txn))[0] == 1
        assert len(await case.log.history(case.project, derive_id(case.project, "a"))) == 1

    async def test_before_the_log(self, case: Case) -> None:
        txn = await case.begin()
        await case.encode(txn, "a")
        at, last = await case.transactions.last(case.project, txn)  # type: ignore[misc]
        await case.transactions.append(
            case.project, txn, last.model_copy(update={"state": "committing", "record": None}), at
        )
        assert await case.state("a") == "none"
        await refused(ErrorCode.TXN_CLOSED, case.encode(txn, "b"))
        await refused(ErrorCode.TXN_CLOSED, case.abort(txn))
        assert (await case.commit(txn))[0] == 1
        assert await case.state("a") == "live"


class TestEnd:
    async def test_abort(self, case: Case) -> None:
        txn = await case.begin()
        await case.encode(txn, "a")
        assert [await case.abort(txn), await case.abort(txn)] == [1, 1]
        await refused(ErrorCode.TXN_CLOSED, case.commit(txn))
        await refused(ErrorCode.TXN_CLOSED, case.encode(txn, "b"))
        assert await case.state("a") == "none"

    async def test_nothing_is_left_of_it_but_its_end(self, case: Case) -> None:
        for end in (case.commit, case.abort):
            txn = await case.begin()
            await case.encode(txn, f"secret {end.__name__}")
            await end(txn)
            [step] = await case.transactions.steps(case.project, txn)
            assert step.record is None

    async def test_expiry(self, case: Case) -> None:
        txn = await case.begin()
        await case.encode(txn, "a")
        at, last = await case.transactions.last(case.project, txn)  # type: ignore[misc]
        late = last.model_copy(update={"expires_at": now() - timedelta(seconds=1)})
        await case.transactions.append(case.project, txn, late, at)
        await refused(ErrorCode.TXN_TIMEOUT, case.commit(txn))
        await refused(ErrorCode.TXN_TIMEOUT, case.encode(txn, "b"))
        assert await case.abort(txn) == 1
        assert await case.state("a") == "none"

    async def test_unknown(self, case: Case) -> None:
        for call in (case.commit("x"), case.abort("x"), case.encode("x", "a"), case.forget("x", "a")):
            await refused(ErrorCode.TXN_NOT_FOUND, call)

    async def test_of_another_project(self, case: Case) -> None:
        txn = await case.begin()
        case.project = "elsewhere"
        await refused(ErrorCode.TXN_NOT_FOUND, case.commit(txn))


class TestBegin:
    async def test_by_the_callers_own_id(self, case: Case) -> None:
        assert [await case.begin(txn_id="mine"), await case.begin(txn_id="mine")] == ["mine"] * 2
        await case.abort("mine")
        await refused(ErrorCode.TXN_CLOSED, case.begin(txn_id="mine"))


class TestOperations:
    async def test_forgetting_what_is_nowhere(self, case: Case) -> None:
        txn = await case.begin()
        with pytest.raises(NotFound):
            await case.forget(txn, "nobody")
        assert (await case.commit(txn))[0] == 0

    async def test_a_request_id_of_other_content(self, case: Case) -> None:
        txn = await case.begin()
        await case.encode(txn, "a", request_id="r")
        with pytest.raises(Conflict):
            await case.encode(txn, "b", request_id="r")
        assert (await case.commit(txn))[0] == 1


class TestStream:
    @pytest.mark.parametrize("count", [0, 1, BATCH, BATCH + 1])
    async def test_steps_are_read_whole(self, case: Case, count: int) -> None:
        at, step = 0, Step(expires_at=now())
        for number in range(count):
            at = await case.transactions.append(case.project, "t", step.model_copy(update={"number": number}), at)
        assert [one.number for one in await case.transactions.steps(case.project, "t")] == list(range(count))

    async def test_the_log_takes_all_or_none(self, case: Case) -> None:
        a, b = case.record("a"), case.record("b")
        await case.log.append(a, 0)
        with pytest.raises(WrongPosition):
            await case.log.append_all([(b, 0), (a, 0)])
        assert await case.state("b") == "none"

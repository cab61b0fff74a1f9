"""Transactions: operations wait in a stream of their own until one atomic append puts them into the log, or nothing.

A transaction that is not ended, by whatever crash, leaves nothing: its steps are forgotten with time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta

import anyio

from contracts import wire
from contracts.base import MemoryId, Position, now
from contracts.encode import EncodeReply, ForgetReply, ForgetRequest
from contracts.errors import Conflict, ErrorCode, NotFound, Unavailable
from contracts.memory import MemoryRecord
from contracts.ports import Entry, Log, WrongPosition
from contracts.stores import Transactions
from contracts.txn import (
    MOST_BYTES,
    MOST_OPERATIONS,
    AbortReply,
    BeginReply,
    BeginRequest,
    CommitReply,
    EndRequest,
    Step,
    txn_closed,
    txn_not_found,
)
from workers.encode.writer import ATTEMPTS, MemoryWriter, tombstoned

READS_AT_ONCE = 16


class Transactor:
    """Any number of replicas: who is first to add the next step wins, the others look again."""

    def __init__(self, transactions: Transactions, log: Log, writer: MemoryWriter) -> None:
        self._transactions, self._log, self._writer = transactions, log, writer

    async def begin(self, project: str, request: BeginRequest) -> BeginReply:
        """Open a transaction. Raises Conflict (TXN_CLOSED) when that id was used and ended."""
        txn_id = request.txn_id or uuid.uuid4().hex
        step = Step(expires_at=now() + timedelta(seconds=request.timeout_s))
        try:
            await self._transactions.append(project, txn_id, step, 0)
        except WrongPosition:
            _, step = await self._open(project, txn_id)
        return BeginReply(txn_id=txn_id, expires_at=step.expires_at)

    async def encode(self, record: MemoryRecord, txn_id: str) -> EncodeReply:
        """Add a memory to be. Raises as `_add`, and Conflict (IDEMPOTENCY_CONFLICT) as outside a transaction."""
        await self._open(record.project, txn_id)
        await self._writer.claim(record)
        await self._add(record.project, txn_id, lambda last: last.model_copy(update={"record": record, "forget": None}))
        present = await self._log.last(record.project, record.id)
        return EncodeReply(id=record.id, position=0, deduplicated=present is not None and present[1].live)

    async def forget(self, project: str, request: ForgetRequest, txn_id: str) -> ForgetReply:
        """Add a memory to be forgotten. Raises as `_add`, and NotFound when neither the log nor the transaction holds
        it."""
        await self._open(project, txn_id)
        present = await self._log.last(project, request.id)
        live = present is not None and present[1].live
        for step in await self._transactions.steps(project, txn_id):
            if step.record and step.record.id == request.id:
                live, present = True, present or (0, step.record)
            elif step.forget and step.forget.id == request.id:
                live = False
        if present is None:
            raise NotFound(ErrorCode.MEMORY_NOT_FOUND, "no such memory in this project", id=request.id)
        await self._add(project, txn_id, lambda last: last.model_copy(update={"record": None, "forget": request}))
        return ForgetReply(id=request.id, position=0, forgotten=live)

    async def commit(self, project: str, request: EndRequest) -> CommitReply:
        """Write all operations at once. A commit that was cut short is taken up again by the next one.

        Raises as `_open`, and Unavailable when the log did not acknowledge: it may have been committed, and
        committing again tells.
        """
        txn_id = request.txn_id
        for _ in range(ATTEMPTS):
            at, last = await self._last(project, txn_id)
            if last.state == "committed":
                return CommitReply(txn_id=txn_id, operations_applied=last.number, position=last.position)
            if last.state != "committing":
                last.check_open(txn_id)
                last = _bare(last, state="committing")
                try:
                    at = await self._transactions.append(project, txn_id, last, at)
                except WrongPosition:
                    continue
            steps = await self._transactions.steps(project, txn_id)
            position = await self._write(project, txn_id, steps)
            try:
                await self._transactions.append(project, txn_id, _bare(last, state="committed", position=position), at)
            except WrongPosition:  # somebody else took up the same commit, and came to the same end
                continue
            await self._transactions.clear(project, txn_id)
            return CommitReply(txn_id=txn_id, operations_applied=last.number, position=position)
        raise _contended(txn_id)

    async def abort(self, project: str, request: EndRequest) -> AbortReply:
        """Drop all operations. Raises NotFound, and Conflict (TXN_CLOSED) when it was committed."""
        for _ in range(ATTEMPTS):
            at, last = await self._last(project, request.txn_id)
            if last.state in ("committing", "committed"):
                raise txn_closed(request.txn_id, last.state)
            if last.state == "open":
                try:
                    await self._transactions.append(project, request.txn_id, _bare(last, state="aborted"), at)
                except WrongPosition:
                    continue
                await self._transactions.clear(project, request.txn_id)
            return AbortReply(txn_id=request.txn_id, operations_discarded=last.number)
        raise _contended(request.txn_id)

    async def _add(self, project: str, txn_id: str, operation: Callable[[Step], Step]) -> None:
        """Add a step. Raises NotFound (TXN_NOT_FOUND), Conflict (TXN_CLOSED, TXN_TIMEOUT, TXN_TOO_LARGE)."""
        for _ in range(ATTEMPTS * 4):  # a caller may send many operations at once
            at, last = await self._open(project, txn_id)
            step = operation(last)
            number, size = last.number + 1, last.size + len(wire.encode(step))
            if number > MOST_OPERATIONS or size > MOST_BYTES:
                raise Conflict(
                    ErrorCode.TXN_TOO_LARGE,
                    f"a transaction takes {MOST_OPERATIONS} operations and {MOST_BYTES} bytes at most",
                    txn_id=txn_id,
                    operations=last.number,
                )
            try:
                await self._transactions.append(
                    project, txn_id, step.model_copy(update={"number": number, "size": size}), at
                )
            except WrongPosition:
                continue
            return
        raise _contended(txn_id)

    async def _write(self, project: str, txn_id: str, steps: Sequence[Step]) -> Position:
        operations: dict[MemoryId, list[MemoryRecord | ForgetRequest]] = {}
        for step in steps:
            if step.record:
                operations.setdefault(step.record.id, []).append(step.record)
            elif step.forget:
                operations.setdefault(step.forget.id, []).append(step.forget)
        for _ in range(ATTEMPTS):
            present = await self._present(project, list(operations))
            done = [entry[0] for entry in present.values() if entry and entry[1].txn == txn_id]
            if done:  # the log had it all before the last try died
                return max(done)
            records = [
                (record.model_copy(update={"txn": txn_id}), entry[0] if entry else 0)
                for memory_id, entry in present.items()
                if (record := outcome(entry, operations[memory_id])) is not None
            ]
            if not records:
                return 0
            try:
                position = await self._log.append_all(records)
            except WrongPosition:
                continue
            for record, _ in records:
                if record.tombstone and record.tombstone.mode == "hard":
                    await self._log.erase(project, record.id, position - len(records) + 1)
            return position
        raise _contended(txn_id)

    async def _present(self, project: str, ids: Sequence[MemoryId]) -> dict[MemoryId, Entry | None]:
        present: dict[MemoryId, Entry | None] = dict.fromkeys(ids)
        limiter = anyio.CapacityLimiter(READS_AT_ONCE)

        async def read(memory_id: MemoryId) -> None:
            async with limiter:
                present[memory_id] = await self._log.last(project, memory_id)

        async with anyio.create_task_group() as tasks:
            for memory_id in ids:
                tasks.start_soon(read, memory_id)
        return present

    async def _last(self, project: str, txn_id: str) -> tuple[Position, Step]:
        found = await self._transactions.last(project, txn_id)
        if found is None:
            raise txn_not_found(txn_id)
        return found

    async def _open(self, project: str, txn_id: str) -> tuple[Position, Step]:
        at, last = await self._last(project, txn_id)
        last.check_open(txn_id)
        return at, last


def outcome(entry: Entry | None, operations: Sequence[MemoryRecord | ForgetRequest]) -> MemoryRecord | None:
    """The record that operations on one memory, in order, end in; None when they change nothing."""
    before = state = entry[1] if entry else None
    for operation in operations:
        if isinstance(operation, MemoryRecord):
            if state is None or not state.live:
                state = operation
        elif state is not None and (state.live or (operation.mode == "hard" and not _is_hard(state))):
            state = tombstoned(state, operation)
    if state is before or (before is None and state is not None and not state.live):
        return None  # nothing happened, or it came and went unseen
    return state.model_copy(update={"version": before.version + 1 if before else 1}) if state else None


def _is_hard(state: MemoryRecord) -> bool:
    return state.tombstone is not None and state.tombstone.mode == "hard"


def _bare(last: Step, **changes: object) -> Step:
    """The step after `last` that carries no operation."""
    return last.model_copy(update={"record": None, "forget": None, **changes})


def _contended(txn_id: str) -> Unavailable:
    return Unavailable(ErrorCode.UNAVAILABLE, "too many at once in this transaction; try again", txn_id=txn_id)

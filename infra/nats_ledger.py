"""The usage ledger in a JetStream key-value bucket: one key a project and day, compare-and-set by revision.

Group commit: of each key a process has one write under way, and all that comes meanwhile goes into the next one. A lone
call waits for one round trip, a thousand at once for two, and the counts are exact all the same.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from types import TracebackType

import anyio
import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.js import api
from nats.js.errors import APIError, KeyNotFoundError
from nats.js.errors import Error as JetStreamError
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from contracts import subjects
from contracts.base import now
from contracts.errors import ErrorCode, Garbled, Unavailable
from contracts.stores import WrongRevision
from contracts.usage import Admission, Charge, Kind

logger = structlog.get_logger()

FLUSH_EVERY_S = 1.0
CLOSE_S = 3.0
WRITE_TIMEOUT_S = 2.0
ATTEMPTS = 64
#: The server's codes for an expected revision that is not the last.
_WRONG_LAST = (10071, 10164)
_MARK = "Memlane-Mark"
_FAULTS = (TimeoutError, nats.errors.Error, JetStreamError)

Counts = dict[Kind, int]


@dataclass(eq=False)
class _Ticket:
    """An admission that waits for the next write."""

    charge: Charge
    limits: Charge
    done: anyio.Event = field(default_factory=anyio.Event)
    refused: Kind | None = None
    fault: Exception | None = None

    def apply(self, counts: Counts) -> Kind | None:
        """Add the charge to the counts, or tell whose limit forbids it."""
        for kind, number in self.charge.items():
            if kind in self.limits and counts.get(kind, 0) + number > self.limits[kind]:
                return kind
        _add(counts, self.charge)
        return None


@dataclass(eq=False)
class _Account:
    """What this process knows and has to write of one key. `known`: the revision and counts it wrote or read last."""

    key: str
    day: date
    known: tuple[int, Counts] | None = None
    tickets: list[_Ticket] = field(default_factory=list)
    soon: Counts = field(default_factory=dict)
    due: bool = False
    busy: bool = False


class KvLedger:
    """`contracts.stores.Ledger`. An async context manager: at its end, what is not written yet is."""

    def __init__(self, client: Client, clock: Callable[[], datetime] = now) -> None:
        self._js, self._clock = client.jetstream(), clock
        self._bucket: KeyValue | None = None
        self._accounts: dict[str, _Account] = {}

    async def __aenter__(self) -> KvLedger:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._flush_for_ever)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with anyio.move_on_after(CLOSE_S, shield=True):
            self._flush()
            while any(account.busy for account in self._accounts.values()):
                await anyio.sleep(0.005)
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    async def admit(self, project: str, charge: Charge, limits: Charge) -> Admission:
        day = self._clock().date()
        account = self._account(project, day)
        if not any(kind in limits for kind in charge):
            _add(account.soon, charge)
            return Admission(day, charge)
        ticket = _Ticket(charge, limits)
        account.tickets.append(ticket)
        self._start(account)
        await ticket.done.wait()
        if ticket.fault is not None:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the ledger did not answer", reason=str(ticket.fault))
        return Admission(day, charge, ticket.refused, exact=True)

    def give_back(self, project: str, admission: Admission) -> None:
        if admission.refused is None:
            account = self._account(project, admission.day)
            _add(account.soon, {kind: -number for kind, number in admission.charge.items()})
            if admission.exact:  # others may wait for that unit
                self._start(account)

    def count(self, project: str, day: date, charge: Charge) -> None:
        _add(self._account(project, day).soon, charge)

    async def read(self, project: str, day: date) -> Counts:
        try:
            return (await self._read(_key(project, day)))[1]
        except _FAULTS as error:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the ledger did not answer", reason=str(error)) from None

    def _account(self, project: str, day: date) -> _Account:
        key = _key(project, day)
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _Account(key, day)
        return account

    async def _flush_for_ever(self) -> None:
        while True:
            await anyio.sleep(FLUSH_EVERY_S)
            self._flush()

    def _flush(self) -> None:
        today = self._clock().date()
        for account in list(self._accounts.values()):
            if any(account.soon.values()):
                self._start(account)
            elif account.day != today and not account.busy:
                del self._accounts[account.key]

    def _start(self, account: _Account) -> None:
        account.due = True
        if not account.busy:
            account.busy = True
            self._tasks.start_soon(self._commit, account)

    async def _commit(self, account: _Account) -> None:
        """Write all that waits, and what comes meanwhile, one write after the other."""
        try:
            while account.tickets or account.due:
                tickets, account.tickets = account.tickets, []
                soon, account.soon = account.soon, {}
                account.due = False
                try:
                    await self._settle(account, tickets, soon)
                except Exception as error:  # whatever it is, those who wait must hear of it
                    logger.warning("ledger write failed", action="ledger_failed", key=account.key, error=str(error))
                    account.known = None
                    _add(account.soon, soon)  # the next flush tries again
                    for ticket in tickets:
                        ticket.fault = error
                for ticket in tickets:
                    ticket.done.set()
        finally:
            account.busy = False

    async def _settle(self, account: _Account, tickets: list[_Ticket], soon: Counts) -> None:
        for attempt in range(ATTEMPTS):
            remembered = account.known
            revision, before = remembered or await self._read(account.key)
            counts = dict(before)
            _add(counts, soon)
            for ticket in tickets:
                ticket.refused = ticket.apply(counts)
            if counts == before and (remembered is None or not tickets):
                account.known = (revision, before)
                return
            account.known = None
            if counts == before:
                continue  # refused by what we remember: somebody may have given back since
            try:
                account.known = (await self._write(account.key, counts, revision), counts)
                return
            except WrongRevision:
                await anyio.sleep(random.uniform(0, 0.002 * min(attempt + 1, 10)))
        raise TimeoutError("the key is too contended")

    async def _read(self, key: str) -> tuple[int, Counts]:
        if self._bucket is None:
            self._bucket = await self._js.key_value(subjects.LEDGER_BUCKET)
        try:
            entry = await self._bucket.get(key)
        except KeyNotFoundError:
            return 0, {}
        return entry.revision or 0, counts_of(entry.value or b"{}")

    async def _write(self, key: str, counts: Counts, revision: int) -> int:
        """The new revision. A write whose answer was lost is sent once more; if it was carried out the first time, the
        record that followed `revision` has its mark."""
        mark = secrets.token_hex(12)
        headers = {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(revision), _MARK: mark}
        subject = f"$KV.{subjects.LEDGER_BUCKET}.{key}"
        data = orjson.dumps({kind.value: number for kind, number in counts.items()})
        sent_again = False
        try:
            try:
                return (await self._js.publish(subject, data, WRITE_TIMEOUT_S, headers=headers)).seq
            except TimeoutError:
                sent_again = True
                return (await self._js.publish(subject, data, WRITE_TIMEOUT_S, headers=headers)).seq
        except APIError as error:
            if error.err_code not in _WRONG_LAST:
                raise
        if sent_again:
            stream = f"KV_{subjects.LEDGER_BUCKET}"
            followed = await self._js.get_msg(stream, revision + 1, subject=subject, next=True)
            if (followed.headers or {}).get(_MARK) == mark and followed.seq:
                return followed.seq
        raise WrongRevision(key)


_KINDS = frozenset(Kind)
_COUNTS = TypeAdapter(dict[str, int])


def counts_of(data: bytes) -> Counts:
    """What a key holds; a newer release's kinds are left out. Raises Garbled."""
    try:
        return {Kind(kind): number for kind, number in _COUNTS.validate_json(data).items() if kind in _KINDS}
    except ValidationError:
        raise Garbled("the ledger holds something else than counts") from None


def _key(project: str, day: date) -> str:
    return f"{project}.{day.isoformat()}"


def _add(counts: Counts, charge: Mapping[Kind, int]) -> None:
    for kind, number in charge.items():
        counts[kind] = counts.get(kind, 0) + number

"""Appending with optimistic concurrency: one memory, one writer at a time, whoever it is."""

from __future__ import annotations

from datetime import timedelta

from contracts.base import MAX_EDGES, MemoryId, now
from contracts.edges import LinkReply, LinkRequest, UnlinkRequest
from contracts.encode import GRACE_S, EncodeReply, ForgetReply, ForgetRequest, RestoreReply, RestoreRequest
from contracts.errors import Conflict, ErrorCode, InvalidRequest, NotFound, Unavailable
from contracts.memory import Edge, EdgeKind, MemoryRecord, RetiredSlot, Tombstone
from contracts.ports import Log, WrongPosition
from contracts.stores import RequestIds

#: Times to try again when another writer was faster.
ATTEMPTS = 8


class MemoryWriter:
    """Stores new memories, tombstones, and changes of a memory's edges in the log."""

    def __init__(self, log: Log, request_ids: RequestIds) -> None:
        self._log, self._request_ids = log, request_ids

    async def store(self, record: MemoryRecord) -> EncodeReply:
        """Store a memory once. A memory that is there and live is left as it is, and the reply says so; one that was
        forgotten is written anew.

        Raises Conflict (IDEMPOTENCY_CONFLICT) when the request id was used for other content, Unavailable when the
        log does not acknowledge; then a retry with the same request is safe.
        """
        await self.claim(record)
        expected = 0
        for _ in range(ATTEMPTS):
            try:
                return EncodeReply(id=record.id, position=await self._log.append(record, expected))
            except WrongPosition:
                entry = await self._log.last(record.project, record.id)
            if entry is None:
                expected = 0
                continue
            expected, present = entry
            if present.live:
                return EncodeReply(id=record.id, position=expected, deduplicated=True)
            record = record.model_copy(update={"version": present.version + 1})
        raise _too_contended(record.id)

    async def forget(self, project: str, request: ForgetRequest) -> ForgetReply:
        """Append a tombstone; with mode hard also erase the text and vector of all earlier states from the log.

        Raises NotFound (MEMORY_NOT_FOUND). Forgetting again answers `forgotten: false`.
        """
        for _ in range(ATTEMPTS):
            entry = await self._log.last(project, request.id)
            if entry is None:
                raise NotFound(ErrorCode.MEMORY_NOT_FOUND, "no such memory in this project", id=request.id)
            position, present = entry
            harder = request.mode == "hard" and present.tombstone and present.tombstone.mode == "soft"
            if not present.live and not harder:
                if request.mode == "hard":
                    await self._log.erase(project, request.id, position)  # an earlier try may have died before this
                return ForgetReply(id=request.id, position=position, forgotten=False)
            try:
                after = await self._log.append(tombstoned(present, request), position)
            except WrongPosition:
                continue
            if request.mode == "hard":
                await self._log.erase(project, request.id, after)
            return ForgetReply(id=request.id, position=after, forgotten=True)
        raise _too_contended(request.id)

    async def restore(self, project: str, request: RestoreRequest) -> RestoreReply:
        """Append the state before a soft forget. Raises NotFound (MEMORY_NOT_FOUND), Conflict (GRACE_OVER) after a
        hard forget or 7 days."""
        for _ in range(ATTEMPTS):
            entry = await self._log.last(project, request.id)
            if entry is None:
                raise NotFound(ErrorCode.MEMORY_NOT_FOUND, "no such memory in this project", id=request.id)
            position, present = entry
            if present.tombstone is None:
                return RestoreReply(id=request.id, position=position, restored=False)
            if present.tombstone.mode == "hard" or now() - present.tombstone.at > timedelta(seconds=GRACE_S):
                raise Conflict(ErrorCode.GRACE_OVER, "the memory is forgotten for good", id=request.id)
            live = present.model_copy(update={"version": present.version + 1, "changed_at": now(), "tombstone": None})
            try:
                return RestoreReply(id=request.id, position=await self._log.append(live, position), restored=True)
            except WrongPosition:
                continue
        raise _too_contended(request.id)

    async def link(self, project: str, request: LinkRequest) -> LinkReply:
        """Append the source with the edge added, or its weight overwritten. An edge that is there with this weight
        is left as it is.

        Raises NotFound (MEMORY_NOT_FOUND) unless both ends are live memories of the project, InvalidRequest for a link
        to itself, and OUT_OF_RANGE for more than MAX_EDGES edges.
        """
        _check_ends(request)
        if not await self._live(project, request.target):
            raise _not_found("target", request.target)
        return await self._rewrite(project, request, request.weight)

    async def unlink(self, project: str, request: UnlinkRequest) -> LinkReply:
        """Append the source without the edge. An edge that is not there is no error, nor is a forgotten target.

        Raises NotFound (MEMORY_NOT_FOUND) unless the source is a live memory of the project and the target one it had
        at some time; InvalidRequest for a link to itself.
        """
        _check_ends(request)
        reply = await self._rewrite(project, request, None)
        if not reply.changed and await self._log.last(project, request.target) is None:
            raise _not_found("target", request.target)
        return reply

    async def _rewrite(self, project: str, request: LinkRequest | UnlinkRequest, weight: float | None) -> LinkReply:
        """Give the edge this weight, or with None take it away."""
        edge = (request.kind, request.target)
        for _ in range(ATTEMPTS):
            entry = await self._log.last(project, request.source)
            if entry is None or not entry[1].live:
                raise _not_found("source", request.source)
            position, present = entry
            before = {(one.kind, one.target): one.weight for one in present.edges}
            changed = before.get(edge) != weight
            if changed:
                try:
                    position = await self._log.append(_with_edge(present, before, edge, weight), position)
                except WrongPosition:
                    continue
            return LinkReply(
                source=request.source,
                target=request.target,
                kind=request.kind,
                weight=weight,
                position=position,
                changed=changed,
            )
        raise _too_contended(request.source)

    async def _live(self, project: str, memory_id: MemoryId) -> bool:
        entry = await self._log.last(project, memory_id)
        return entry is not None and entry[1].live

    async def claim(self, record: MemoryRecord) -> None:
        """Bind the record's request id, if it has one, to its content. Raises Conflict (IDEMPOTENCY_CONFLICT)."""
        if record.request_id is None:
            return
        bound = await self._request_ids.claim(record.project, record.request_id, record.digest)
        if bound != record.digest:
            raise Conflict(
                ErrorCode.IDEMPOTENCY_CONFLICT,
                "this request_id was used for other content",
                field="request_id",
                request_id=record.request_id,
            )


def tombstoned(present: MemoryRecord, request: ForgetRequest) -> MemoryRecord:
    """The state after forgetting. A hard one keeps no text, no name and no vector."""
    at = now()
    tombstone = Tombstone(at=at, mode=request.mode, reason=request.reason)
    if request.mode == "soft":
        return present.model_copy(update={"version": present.version + 1, "changed_at": at, "tombstone": tombstone})
    return MemoryRecord(
        id=present.id,
        project=present.project,
        version=present.version + 1,
        text="",
        kind=present.kind,
        created_at=present.created_at,
        changed_at=at,
        occurred_at=present.occurred_at,
        supersedes=present.supersedes,
        tombstone=tombstone,
        retired=present.retired or _retired(present),
    )


def _retired(present: MemoryRecord) -> tuple[RetiredSlot, ...]:
    return tuple(
        RetiredSlot(slot=statement.slot, since=statement.valid_from or present.event_time)
        for statement in present.statements
        if statement.kind.single_valued
    )


def _with_edge(
    present: MemoryRecord,
    before: dict[tuple[EdgeKind, MemoryId], float],
    edge: tuple[EdgeKind, MemoryId],
    weight: float | None,
) -> MemoryRecord:
    """The next full state: all of the present one but this edge."""
    weights = dict(before)
    if weight is None:
        weights.pop(edge)
    else:
        weights[edge] = weight
    if len(weights) > MAX_EDGES and len(weights) > len(before):
        raise InvalidRequest(
            ErrorCode.OUT_OF_RANGE, f"a memory has at most {MAX_EDGES} edges", field="source", limit=MAX_EDGES
        )
    edges = tuple(Edge(kind=kind, target=target, weight=each) for (kind, target), each in weights.items())
    return present.model_copy(update={"version": present.version + 1, "changed_at": now(), "edges": edges})


def _check_ends(request: LinkRequest | UnlinkRequest) -> None:
    if request.source == request.target:
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "a memory cannot link itself", field="target")


def _not_found(field: str, memory_id: MemoryId) -> NotFound:
    return NotFound(ErrorCode.MEMORY_NOT_FOUND, f"{field}: no such memory in this project", field=field, id=memory_id)


def _too_contended(memory_id: MemoryId) -> Unavailable:
    return Unavailable(ErrorCode.UNAVAILABLE, "the memory changes too fast; try again", id=memory_id)

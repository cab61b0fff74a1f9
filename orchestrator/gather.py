"""Gather: ask every shard of every lane at once, take what comes by the deadline. A lane's failure is a value."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import anyio
from pydantic import ValidationError

from contracts import subjects, watch, wire
from contracts.base import Position
from contracts.errors import MemlaneError
from contracts.lanes import Lane, LaneQuery, LaneReply, LaneStatus, TermStatistics
from contracts.ports import Bus, BusFault, NoResponders
from contracts.recall import LaneOutcome
from contracts.shards import Shard, all_shards
from contracts.work import EmbedReply, EmbedRequest
from orchestrator.fusion import Hit
from orchestrator.term_statistics import TermStore

#: Kept back from a lane's time for the way to it and home.
TRAVEL_MS = 2.0
#: What is remembered of term statistics, by the bus that told: another bus is another log.
_stores: WeakKeyDictionary[Bus, TermStore] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Question:
    """What all lanes are asked. `positions` is per shard: what each must have applied."""

    project: str
    cue: str
    subject: str | None
    top_n: int
    positions: Sequence[Position]


@dataclass(slots=True)
class Gathered:
    """Asked = answered + failed: every lane is in `outcomes`, and its hits, if any, in `lists`."""

    lists: dict[Lane, list[Hit]] = field(default_factory=dict)
    outcomes: dict[Lane, LaneOutcome] = field(default_factory=dict)
    notes: dict[Lane, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    vector: str = ""
    #: What the lexical lane scores with, where there are several shards.
    statistics: TermStatistics | None = None
    #: (lane, shard) whose whole list is in the lane's: what is not listed, it has no evidence for.
    exhausted: set[tuple[Lane, Shard]] = field(default_factory=set)

    @property
    def answered(self) -> bool:
        return any(outcome.status is LaneStatus.OK for outcome in self.outcomes.values())


async def gather(bus: Bus, question: Question, deadline: float, lanes: Collection[Lane] = tuple(Lane)) -> Gathered:
    """Ask all lanes, or those named, until `deadline` (monotonic seconds). Never raises for a lane; ends when all have
    answered."""
    gathered, started = Gathered(), time.monotonic()
    async with anyio.create_task_group() as tasks:
        if Lane.SEMANTIC in lanes:
            tasks.start_soon(_semantic, bus, question, deadline, gathered, started)
        if Lane.LEXICAL in lanes:
            tasks.start_soon(_lexical, bus, question, deadline, gathered, started)
        if Lane.GRAPH in lanes:
            tasks.start_soon(_ask_lane, bus, Lane.GRAPH, question, deadline, gathered, started)
    watch.lanes(gathered.outcomes)
    return gathered


async def _lexical(bus: Bus, question: Question, deadline: float, gathered: Gathered, started: float) -> None:
    store = _stores.setdefault(bus, TermStore())
    told = await store.ask(bus, question.project, question.cue, question.positions, deadline)
    gathered.statistics = told.statistics
    await _ask_lane(bus, Lane.LEXICAL, question, deadline, gathered, started)
    if not told.whole:
        gathered.notes[Lane.LEXICAL] = {**gathered.notes[Lane.LEXICAL], "statistics": ("not of all shards",)}


async def _semantic(bus: Bus, question: Question, deadline: float, gathered: Gathered, started: float) -> None:
    try:
        [gathered.vector] = await embed_cues(bus, [question.cue], deadline)
    except Exception as error:
        gathered.lists[Lane.SEMANTIC] = []
        gathered.outcomes[Lane.SEMANTIC] = LaneOutcome(
            status=_status_of(error), took_ms=_since(started), detail=f"embed: {_words(error)}"
        )
        return
    await _ask_lane(bus, Lane.SEMANTIC, question, deadline, gathered, started)


async def embed_cues(bus: Bus, cues: Sequence[str], deadline: float) -> Sequence[str]:
    """Their packed vectors. Raises BusFault, MemlaneError, ValueError for an unreadable reply."""
    left = deadline - time.monotonic()
    request = EmbedRequest(texts=tuple(cues), purpose="cue", remaining_ms=left * 1000 - TRAVEL_MS)
    return wire.decode_reply(EmbedReply, await bus.request(subjects.EMBED, wire.encode(request), left)).vectors


async def _ask_lane(
    bus: Bus, lane: Lane, question: Question, deadline: float, gathered: Gathered, started: float
) -> None:
    """`started` is when work for the lane began: for the semantic lane, with the cue's vector."""
    shards = all_shards(len(question.positions))
    replies: list[LaneReply | Exception] = [NoResponders() for _ in shards]

    async def ask(shard: Shard) -> None:
        try:
            replies[shard.number] = await ask_shard(
                bus, lane, shard, question, gathered.vector, deadline, gathered.statistics
            )
        except Exception as error:
            replies[shard.number] = error

    async with anyio.create_task_group() as tasks:
        for shard in shards:
            tasks.start_soon(ask, shard)
    answers = [reply for reply in replies if isinstance(reply, LaneReply)]
    merged = merge(answers)
    gathered.lists[lane] = merged[: question.top_n]
    gathered.outcomes[lane] = _outcome(replies, len(gathered.lists[lane]), _since(started))
    gathered.notes[lane] = _notes(answers)
    if len(merged) < question.top_n:  # else the merged list may have cut what a shard has listed
        gathered.exhausted |= {
            (lane, shard)
            for shard, reply in zip(shards, replies, strict=True)
            if isinstance(reply, LaneReply) and reply.status is LaneStatus.OK
        }


async def ask_shard(
    bus: Bus,
    lane: Lane,
    shard: Shard,
    question: Question,
    vector: str,
    deadline: float,
    statistics: TermStatistics | None = None,
) -> LaneReply:
    left = deadline - time.monotonic()
    query = LaneQuery(
        project=question.project,
        cue=question.cue,
        vector=vector if lane is Lane.SEMANTIC else "",
        statistics=statistics if lane is Lane.LEXICAL else None,
        subject=question.subject,
        top_n=question.top_n,
        min_position=question.positions[shard.number],
        remaining_ms=left * 1000 - TRAVEL_MS,
    )
    data = await bus.request(subjects.lane(lane, shard, "search"), wire.encode(query), left)
    reply = wire.decode_reply(LaneReply, data)
    lengths = {len(reply.kinds), len(reply.scores), len(reply.sources), len(reply.evidence), len(reply.confirmed)}
    if reply.labels:
        lengths.add(len(reply.labels))
    if lengths != {len(reply.items)}:
        raise ValueError("the lane's columns differ in length")
    return reply


def merge(replies: Sequence[LaneReply], top_n: int | None = None) -> list[Hit]:
    """The shards' lists as one: by score, ties by item id, so that the order of arrival does not show. An item that
    two shards return (an entity mentioned in both) stands for the memories of both."""
    merged: dict[str, Hit] = {}
    for reply in replies:
        labels = reply.labels or ("",) * len(reply.items)
        rows = zip(
            reply.items, reply.kinds, labels, reply.scores, reply.sources, reply.evidence, reply.confirmed, strict=True
        )
        for hit in (Hit(*row) for row in rows):
            twin = merged.get(hit.item)
            merged[hit.item] = hit if twin is None else _join(twin, hit)
    return sorted(merged.values(), key=lambda hit: (-hit.score, hit.item))[:top_n]


def _notes(replies: Sequence[LaneReply]) -> dict[str, tuple[str, ...]]:
    """The shards' notes as one: a shard knows only the terms and anchors that its own memories have."""
    merged: dict[str, dict[str, None]] = {}
    for reply in replies:
        for name, values in reply.notes.items():
            merged.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: tuple(values) for name, values in merged.items()}


def _join(one: Hit, other: Hit) -> Hit:
    return Hit(
        one.item,
        one.kind,
        one.label,
        max(one.score, other.score),
        tuple(dict.fromkeys(one.sources + other.sources)),
        max(one.evidence, other.evidence),
        one.confirmed or other.confirmed,
    )


def _outcome(replies: Sequence[LaneReply | Exception], hits: int, took_ms: float) -> LaneOutcome:
    """The lane's outcome is that of its first shard that failed: a part that is missing must show."""
    statuses = [reply.status if isinstance(reply, LaneReply) else _status_of(reply) for reply in replies]
    failed = [(shard, status) for shard, status in enumerate(statuses) if status is not LaneStatus.OK]
    positions = [reply.position for reply in replies if isinstance(reply, LaneReply)]
    detail = None
    if failed:
        shard, _ = failed[0]
        reply = replies[shard]
        detail = f"shard {shard} of {len(replies)}" + (f": {_words(reply)}" if isinstance(reply, Exception) else "")
    return LaneOutcome(
        status=failed[0][1] if failed else LaneStatus.OK,
        position=min(positions, default=0),
        took_ms=round(took_ms, 3),
        hits=hits,
        detail=detail,
    )


def _status_of(error: Exception) -> LaneStatus:
    if isinstance(error, NoResponders):
        return LaneStatus.ABSENT
    if isinstance(error, BusFault):
        return LaneStatus.TIMEOUT
    if isinstance(error, MemlaneError) and error.category == "exhausted":
        return LaneStatus.OVERLOADED
    return LaneStatus.ERROR


def _words(error: Exception) -> str:
    if isinstance(error, ValidationError | ValueError):
        return "unreadable reply"
    return error.message if isinstance(error, MemlaneError) else type(error).__name__


def _since(started: float) -> float:
    return (time.monotonic() - started) * 1000

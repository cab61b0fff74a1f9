"""Upkeep's rounds: what no longer stands leaves its topic, and summaries follow their topics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio.lowlevel
import structlog

from contracts import subjects, wire
from contracts.base import MemoryId, now
from contracts.catalog import HydrateReply, HydrateRequest, Row
from contracts.encode import EncodeReply, ForgetReply, ForgetRequest
from contracts.errors import MemlaneError
from contracts.memory import unpack_vector
from contracts.ports import Bus, BusFault
from contracts.shards import by_shard
from contracts.stores import Lease
from contracts.topics import SummariseRequest, summary_id
from contracts.work import EmbedReply, EmbedRequest
from workers.lane import Progress
from workers.upkeep.due import Due, Writing, asked_of, due
from workers.upkeep.index import TopicIndex
from workers.upkeep.summary import Sentence, sentences_of, summarise
from workers.upkeep.topics import ProjectTopics

logger = structlog.get_logger()

#: Rows asked of a catalog at once: it answers queries in between.
ROWS = 200
#: Memories whose sentences are looked at for a summary, and texts embedded at once, so that nobody waits for long.
SOURCES, TEXTS = 24, 16
#: Summaries written in one round of a project; the next round goes on.
MOST_WRITINGS = 50
ASK_TIMEOUT_S = 10.0
LEASE = "upkeep"


@dataclass(slots=True)
class Report:
    """What a round did."""

    projects: int = 0
    written: int = 0
    taken_away: int = 0
    failed: int = 0


class Rounds:
    """Only one process acts at a time, the one with the lease. That is for economy: ids of summaries follow from their
    topics and a live one is left as it is, so two that act at once write nothing twice."""

    def __init__(self, bus: Bus, index: TopicIndex, progress: Progress, lease: Lease, holder: str, shards: int) -> None:
        self._bus, self._index, self._progress = bus, index, progress
        self._lease, self._holder, self._shards = lease, holder, shards
        self._last = 0  #: position of what was written last: a round that did not see it would write it again
        self.acting = False

    async def run_once(self) -> Report:
        """One round over the projects in which something changed. A project whose round fails is tried again in the
        next one; never raises for that."""
        report = Report()
        for project in self._index.projects():
            topics = self._index.of(project)
            if topics is None or not self._is_due(topics):
                continue
            self.acting = await self._lease.hold(LEASE, self._holder)
            if not self.acting:
                return report
            report.projects += 1
            topics.changed = topics.erased = False
            try:
                await self._round(topics, report)
            except (BusFault, MemlaneError, ValueError) as error:
                topics.changed = True
                report.failed += 1
                logger.warning("upkeep failed", action="upkeep_failed", project=project, error=str(error))
        return report

    def _is_due(self, topics: ProjectTopics) -> bool:
        """Something was written, or a member has expired since it was last looked at."""
        if topics.changed:
            return True
        with self._index.lock:
            at = now()
            asked = asked_of(topics, self._index.min_members)
            return any(one not in topics.retired and not topics.stands(one, at) for one in asked)

    async def _round(self, topics: ProjectTopics, report: Report) -> None:
        await self._retire(topics)
        await self._name(topics)
        with self._index.lock:
            work: Due = due(topics, self._index.min_members, now())
        for memory_id in work.strays:
            await self._take_away(topics.project, memory_id)
            report.taken_away += 1
        for writing in work.writings[:MOST_WRITINGS]:
            report.written += await self._write(topics, writing)
        if len(work.writings) > MOST_WRITINGS:
            topics.changed = True
        await self._progress.reached(self._last, time.monotonic() + ASK_TIMEOUT_S)

    async def _retire(self, topics: ProjectTopics) -> None:
        """Ask the catalogs which members stand: what a newer statement replaced, they alone know."""
        with self._index.lock:
            ids = asked_of(topics, self._index.min_members)
        rows = await self._rows(topics.project, ids, lean=True)
        at = now()
        with self._index.lock:
            topics.retire([one for one in ids if one not in rows or not rows[one].stands(at)])

    async def _name(self, topics: ProjectTopics) -> None:
        """Reckon labels ahead, so that no query waits for them."""
        with self._index.lock:
            named = [one for one in topics.clusters if len(topics.clusters.members(one)) >= self._index.min_members]
        for topic in named:
            with self._index.lock:
                if topic in topics.clusters:
                    topics.label(topic, now())
            await anyio.lowlevel.checkpoint()

    async def _write(self, topics: ProjectTopics, writing: Writing) -> bool:
        """Write a topic's summary, the older one erased first: no word of a parent that is gone may stay."""
        project = topics.project
        rows = await self._rows(project, writing.parents[:SOURCES], lean=False)
        at = now()
        if any(one not in rows or not rows[one].stands(at) for one in writing.parents[:SOURCES]):
            topics.changed = True  # it changed just now: the next round knows more
            return False
        with self._index.lock:
            if not all(topics.stands(one, at) for one in writing.parents):
                topics.changed = True
                return False
            label = topics.label_of(writing.parents)
        sources = sorted((rows[one] for one in writing.parents[:SOURCES]), key=lambda row: (row.event_time, row.id))
        text = summarise(label, await self._sentences(sources))
        if writing.replaces:
            await self._take_away(project, summary_id(project, writing.topic))
        request = SummariseRequest(
            project=project, topic=writing.topic, label=label, text=text, parents=writing.parents, size=writing.size,
            occurred_at=sources[-1].event_time,
        )  # fmt: skip
        data = await self._bus.request(subjects.SUMMARISE, wire.encode(request), ASK_TIMEOUT_S)
        self._last = max(self._last, wire.decode_reply(EncodeReply, data).position)
        return True

    async def _sentences(self, rows: Sequence[Row]) -> list[Sentence]:
        told = [(row.id, text) for row in rows for text in sentences_of(row.text)]
        sentences: list[Sentence] = []
        for start in range(0, len(told), TEXTS):
            part = told[start : start + TEXTS]
            request = EmbedRequest(texts=tuple(text for _, text in part), remaining_ms=ASK_TIMEOUT_S * 1000)
            data = await self._bus.request(subjects.EMBED, wire.encode(request), ASK_TIMEOUT_S)
            vectors = wire.decode_reply(EmbedReply, data).vectors
            sentences += [
                Sentence(memory, text, unpack_vector(vector))
                for (memory, text), vector in zip(part, vectors, strict=True)
            ]
        return sentences

    async def _take_away(self, project: str, memory_id: MemoryId) -> None:
        """Hard, as a summary can always be made again, and what it says of others must not outlive them."""
        request = ForgetRequest(id=memory_id, mode="hard", reason="its topic has changed")
        data = await self._bus.request(subjects.verb(project, "forget"), wire.encode_request(request), ASK_TIMEOUT_S)
        self._last = max(self._last, wire.decode_reply(ForgetReply, data).position)

    async def _rows(self, project: str, ids: Sequence[MemoryId], lean: bool) -> dict[MemoryId, Row]:
        """The rows of those ids that exist, by catalogs that have applied all that we have."""
        rows: dict[MemoryId, Row] = {}
        for shard, wanted in by_shard(ids, self._shards).items():
            left = wanted
            while left:
                request = HydrateRequest(
                    project=project, ids=tuple(left[:ROWS]), lean=lean, min_position=self._index.position,
                    remaining_ms=ASK_TIMEOUT_S * 1000,
                )  # fmt: skip
                data = await self._bus.request(subjects.catalog(shard, "hydrate"), wire.encode(request), ASK_TIMEOUT_S)
                reply = wire.decode_reply(HydrateReply, data)
                rows.update((row.id, row) for row in reply.rows)
                left = left[left.index(reply.rows[-1].id) + 1 :] if reply.more else left[ROWS:]
        return rows

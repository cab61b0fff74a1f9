"""Topics' summaries: what upkeep asks encode to store, on no project's account."""

from __future__ import annotations

from contracts import wire
from contracts.base import now
from contracts.memory import Edge, EdgeKind, MemoryKind, MemoryRecord
from contracts.ports import Call
from contracts.topics import SummariseRequest, summary_id
from contracts.work import EmbedReply
from workers.encode.pipeline import EncodePipeline
from workers.encode.quality import quality_of
from workers.encode.writer import MemoryWriter


class Summaries:
    """Stores a topic's summary as a memory. One that is there and live is left as it is."""

    def __init__(self, pipeline: EncodePipeline, writer: MemoryWriter) -> None:
        self._pipeline, self._writer = pipeline, writer

    async def store(self, call: Call) -> bytes:
        """Answer a SummariseRequest with an EncodeReply. Raises Unavailable when the text could not be embedded or the
        log does not acknowledge; a retry is safe."""
        request = wire.decode_reply(SummariseRequest, call.data)
        embedded = await self._pipeline.embed([request.text], call.arrived + request.remaining_ms / 1000)
        return wire.encode(await self._writer.store(summary_record(request, embedded)))


def summary_record(request: SummariseRequest, embedded: EmbedReply) -> MemoryRecord:
    """A memory of kind Consolidated, DERIVED_FROM its parents. It holds no names and no statements: those of its
    parents count for themselves, and must not count twice."""
    at, key = now(), summary_id(request.project, request.topic)
    return MemoryRecord(
        id=key,
        project=request.project,
        text=request.text,
        kind=MemoryKind.CONSOLIDATED,
        created_at=at,
        changed_at=at,
        occurred_at=request.occurred_at,
        quality=quality_of(request.text),
        metadata={"topic": request.label, "topic_id": request.topic, "topic_size": request.size},
        edges=tuple(Edge(kind=EdgeKind.DERIVED_FROM, target=parent) for parent in request.parents),
        model=embedded.model,
        vector=embedded.vectors[0],
    )

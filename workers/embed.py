"""The embed role: one model, cues before documents, waiting texts embedded together."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from contracts import subjects, wire
from contracts.errors import ErrorCode, Exhausted
from contracts.memory import Vector, pack_vector
from contracts.ports import Call, Endpoint
from contracts.work import EmbedReply, EmbedRequest
from workers.models import Embedder

#: Texts that may wait. At MiniLM's few hundred texts a second more could not be done within a caller's patience.
MOST_WAITING = 8192


@dataclass(eq=False)
class _Job:
    texts: list[str]
    deadline: float
    packed: list[str] = field(default_factory=list)
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: Exception | None = None

    @property
    def left(self) -> int:
        return len(self.texts) - len(self.packed)


class EmbedWorker:
    """Answers `EmbedRequest`. `batch` is how many texts go through the model at once; it bounds how long a cue waits
    behind documents."""

    name = "embed"

    def __init__(self, embedder: Embedder, batch: int, cache: int) -> None:
        self._embedder, self._batch, self._cache_size = embedder, batch, cache
        self._cache: OrderedDict[str, str] = OrderedDict()
        self._cues: deque[_Job] = deque()
        self._documents: deque[_Job] = deque()
        self._work = anyio.Event()
        self._embedded = self._batches = 0

    def endpoints(self) -> Sequence[Endpoint]:
        return [Endpoint("embed", subjects.EMBED, "embed", self._embed)]

    def stats(self) -> dict[str, object]:
        waiting = sum(job.left for queue in (self._cues, self._documents) for job in queue)
        return {"model": self._embedder.model, "embedded": self._embedded, "batches": self._batches, "waiting": waiting}

    async def run(self, ready: Callable[[], None]) -> None:
        await anyio.to_thread.run_sync(self._embedder.embed, ["warm up"])
        ready()
        while True:
            if not (self._cues or self._documents):
                self._work = anyio.Event()
                await self._work.wait()
            await self._step(self._cues or self._documents)

    async def _embed(self, call: Call) -> bytes:
        request = wire.decode_reply(EmbedRequest, call.data)
        if request.purpose == "cue" and len(request.texts) == 1 and request.texts[0] in self._cache:
            self._cache.move_to_end(request.texts[0])
            return self._reply([self._cache[request.texts[0]]], call)
        waiting = sum(job.left for job in self._documents)
        if request.purpose == "document" and waiting + len(request.texts) > MOST_WAITING:
            raise Exhausted(ErrorCode.OVERLOADED, "too many texts wait to be embedded", waiting=waiting)
        job = _Job(list(request.texts), call.arrived + request.remaining_ms / 1000)
        (self._cues if request.purpose == "cue" else self._documents).append(job)
        self._work.set()
        await job.done.wait()
        if job.failure:
            raise job.failure
        if request.purpose == "cue":
            self._remember(job)
        return self._reply(job.packed, call)

    async def _step(self, queue: deque[_Job]) -> None:
        """Embed one batch off a queue, from as many jobs as fit. Jobs that nobody waits for any more are dropped."""
        now = time.monotonic()
        parts: list[tuple[_Job, int]] = []
        room = self._batch
        while queue and room:
            job = queue[0]
            if job.deadline < now:
                job.failure = Exhausted(ErrorCode.DEADLINE_EXCEEDED, "not embedded in time")
            take = 0 if job.failure else min(room, job.left)
            parts.append((job, take))
            room -= take
            if job.failure or take == job.left:
                queue.popleft()
            else:
                break
        texts = [text for job, take in parts for text in job.texts[len(job.packed) : len(job.packed) + take]]
        try:
            vectors: Sequence[Vector] = (
                list(await anyio.to_thread.run_sync(self._embedder.embed, texts)) if texts else []
            )
        except Exception as error:
            for job, _ in parts:
                job.failure = error
                job.done.set()
            return
        packed = iter([pack_vector(vector) for vector in vectors])
        self._embedded += len(texts)
        self._batches += bool(texts)
        for job, take in parts:
            job.packed.extend(next(packed) for _ in range(take))
            if job.failure or not job.left:
                job.done.set()

    def _remember(self, job: _Job) -> None:
        for text, packed in zip(job.texts, job.packed, strict=True):
            self._cache[text] = packed
        while len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)

    def _reply(self, packed: Sequence[str], call: Call) -> bytes:
        return wire.encode(
            EmbedReply(
                model=self._embedder.model,
                dimension=self._embedder.dimension,
                vectors=tuple(packed),
                took_ms=(time.monotonic() - call.arrived) * 1000,
            )
        )

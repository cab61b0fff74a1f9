"""Store a question set in a running service and ask it: over the real bus, as any agent would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio

from contracts.client import MemoryClient
from contracts.encode import EncodeReply
from contracts.recall import AnswerKind, RecallReply
from infra.cli_common import access
from infra.cli_ingest import IN_FLIGHT, patiently
from infra.evaluation.datasets import Document, Question, QuestionSet, Stranger

DEADLINE_MS = 30_000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came back for one question: by view (a lane, or `fused`) the keys of its ranked memories, best first."""

    question: Question
    ranked: dict[str, list[str]]
    members: list[str]
    kind: AnswerKind
    took_ms: float


@dataclass(frozen=True, slots=True)
class Refused:
    stranger: Stranger
    kind: AnswerKind


class Asker:
    """One service, and what became of the set's documents in it."""

    def __init__(self, url: str, questions: QuestionSet, progress: Progress) -> None:
        self._url, self._set, self._progress = url, questions, progress
        self._keys: dict[tuple[str, str], str] = {}
        self._position = 0
        self._clients: dict[str, MemoryClient] = {}

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Asker]:
        async with AsyncExitStack() as stack:
            for project in sorted({document.project for document in self._set.documents}):
                client = MemoryClient(self._url, project=project, timeout_s=60, access=access())
                self._clients[project] = await stack.enter_async_context(client)
            yield self

    async def store(self) -> None:
        """Encode all documents, retried where that may help; those that are there already are left alone."""
        limiter, done, total = anyio.Semaphore(IN_FLIGHT), 0, len(self._set.documents)

        async def one(document: Document) -> None:
            nonlocal done
            client = self._clients[document.project]
            try:
                reply = await patiently(lambda: client.call("encode", document.request, EncodeReply))
            finally:
                limiter.release()
            self._keys[document.project, reply.id] = document.key
            self._position = max(self._position, reply.position)
            done += 1
            self._progress("stored", done, total)

        async with anyio.create_task_group() as tasks:
            for document in self._set.documents:
                await limiter.acquire()
                tasks.start_soon(one, document)

    async def ask(self, questions: Iterable[Question]) -> list[Asked]:
        """One after the other, each once all lanes hold all documents."""
        questions = list(questions)
        asked = []
        for number, question in enumerate(questions, 1):
            reply = await self._recall(question.project, question.text, trace=True)
            ranked = {name: self._named(question.project, ids) for name, ids in _views(reply).items()}
            members = self._named(question.project, [member.id for member in reply.members])
            asked.append(Asked(question, ranked, members, reply.answer_kind, reply.took_ms))
            self._progress("asked", number, len(questions))
        return asked

    async def ask_strangers(self, strangers: Iterable[Stranger]) -> list[Refused]:
        strangers = list(strangers)
        refused = []
        for number, stranger in enumerate(strangers, 1):
            reply = await self._recall(stranger.project, stranger.text, trace=False)
            refused.append(Refused(stranger, reply.answer_kind))
            self._progress("asked elsewhere", number, len(strangers))
        return refused

    async def _recall(self, project: str, cue: str, trace: bool) -> RecallReply:
        return await patiently(
            lambda: self._clients[project].recall(
                cue, consistency="ReadAfterWrite", position=self._position, deadline_ms=DEADLINE_MS,
                max_results=1000, trace=trace,
            )
        )  # fmt: skip

    def _named(self, project: str, ids: Iterable[str]) -> list[str]:
        return [key for one in ids if (key := self._keys.get((project, one)))]


def _views(reply: RecallReply) -> dict[str, list[str]]:
    """The ranked memories of each lane, and of the fused, filtered and reranked pool."""
    assert reply.trace is not None
    views = {
        lane: list(dict.fromkeys(source for hit in hits for source in hit.sources))
        for lane, hits in reply.trace.lanes.items()
    }
    return {**views, "fused": list(reply.trace.fused)}

"""From checked requests to log records: ids, entities and statements, vectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import anyio

from contracts import subjects, wire
from contracts.base import now
from contracts.catalog import NamesReply, NamesRequest
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest, MemlaneError, Unavailable
from contracts.identity import memory_id
from contracts.memory import Entity, MemoryRecord, Statement
from contracts.names import normalise, spans
from contracts.ports import Bus, BusFault
from contracts.work import EmbedReply, EmbedRequest
from workers.encode.digest import request_digest
from workers.encode.quality import quality_of
from workers.encode.vectors import caller_vector
from workers.encode.vocabulary import Vocabularies, Vocabulary
from workers.extract import Extraction, Extractor

#: One embed request stays well under the bus's message size, there and back.
MOST_TEXTS, MOST_BYTES = 128, 400_000
#: Names looked up for one text; a longer text is long on ordinary words, not on names.
MOST_SPANS = 2000

Known = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A request that passed its checks, with the project it is for."""

    project: str
    request: EncodeRequest


class EncodePipeline:
    """Builds records. Needs the embed role; does without the catalog's known names when it is away, as extraction
    never fails an encode."""

    def __init__(self, bus: Bus, extractor: Extractor, vocabularies: Vocabularies) -> None:
        self._bus, self._extractor, self._vocabularies = bus, extractor, vocabularies

    async def build(self, drafts: Sequence[Draft], deadline: float) -> list[MemoryRecord]:
        """One record a draft, in order. Raises Unavailable when the texts could not be embedded by the deadline, and
        InvalidRequest for a caller's vector of a wrong dimension or a name that the project's schema does not have."""
        vocabularies = {project: await self._vocabularies.of(project) for project in {d.project for d in drafts}}
        stated = [vocabularies[draft.project].check(draft.request) for draft in drafts]
        known = await self._known_all(drafts)
        understood = [
            self._understand(draft, statements, names, vocabularies[draft.project])
            for draft, statements, names in zip(drafts, stated, known, strict=True)
        ]
        texts = [draft.request.text for draft in drafts]
        for _, statements in understood:
            texts.extend(statement.sentence for statement in statements)
        embedded = await self.embed(texts, deadline)
        vectors = iter(embedded.vectors[len(drafts) :])
        records = []
        for draft, (entities, statements), vector in zip(drafts, understood, embedded.vectors, strict=False):
            packed = caller_vector(draft.request.vector, embedded.dimension) or vector
            record = _record(draft).model_copy(
                update={
                    "entities": entities,
                    "statements": statements,
                    "model": embedded.model,
                    "vector": packed,
                    "statement_vectors": tuple(next(vectors) for _ in statements),
                }
            )
            records.append(record)
        return records

    def _understand(
        self, draft: Draft, stated: tuple[Statement, ...], known: Known, vocabulary: Vocabulary
    ) -> tuple[tuple[Entity, ...], tuple[Statement, ...]]:
        """The caller's entities and statements first; extraction, unless he wants none, adds entities, and statements
        where there are none, less what the schema does not know."""
        request = draft.request
        found = self._extractor.extract(request.text, known) if request.extract else Extraction()
        entities = {normalise(entity.name): entity for entity in request.entities}
        for relation in request.relations:
            for name in (relation.source, relation.target):
                entities.setdefault(normalise(name), Entity(name=name))
        for entity in vocabulary.known_entities(found.entities):
            entities.setdefault(normalise(entity.name), entity)
        return tuple(entities.values()), stated or vocabulary.known_statements(found.statements)

    async def _known_all(self, drafts: Sequence[Draft]) -> list[Known]:
        """What the project knows of each draft's names; all are asked at once, so that a catalog that hangs costs a
        batch no more than it costs one."""
        known: list[Known] = [{} for _ in drafts]

        async def ask(number: int, draft: Draft) -> None:
            known[number] = await self._known(draft)

        async with anyio.create_task_group() as tasks:
            for number, draft in enumerate(drafts):
                tasks.start_soon(ask, number, draft)
        return known

    async def _known(self, draft: Draft) -> Known:
        names = tuple(spans(draft.request.text)[:MOST_SPANS])
        request = NamesRequest(project=draft.project, names=names)
        try:
            reply = await self._bus.request(subjects.catalog(None, "names"), wire.encode(request), 0.5)
            return wire.decode_reply(NamesReply, reply).known
        except (BusFault, MemlaneError, ValueError):
            return {}

    async def embed(self, texts: Sequence[str], deadline: float) -> EmbedReply:
        """Their vectors. Raises Unavailable when they could not be had by the deadline."""
        replies = [await self._embed_part(part, deadline) for part in _parts(texts)]
        return replies[0].model_copy(update={"vectors": tuple(v for reply in replies for v in reply.vectors)})

    async def _embed_part(self, texts: tuple[str, ...], deadline: float) -> EmbedReply:
        left = deadline - time.monotonic()
        request = EmbedRequest(texts=texts, remaining_ms=left * 1000)
        try:
            return wire.decode_reply(EmbedReply, await self._bus.request(subjects.EMBED, wire.encode(request), left))
        except BusFault as fault:
            raise Unavailable(
                ErrorCode.UNAVAILABLE, "the embed role did not answer", fault=type(fault).__name__
            ) from None


def _parts(texts: Sequence[str]) -> list[tuple[str, ...]]:
    parts: list[tuple[str, ...]] = []
    part: list[str] = []
    size = 0
    for text in texts:
        if part and (len(part) >= MOST_TEXTS or size + len(text) * 3 > MOST_BYTES):
            parts.append(tuple(part))
            part, size = [], 0
        part.append(text)
        size += len(text) * 3
    return [*parts, tuple(part)] if part else parts


def _record(draft: Draft) -> MemoryRecord:
    request, at = draft.request, now()
    created = request.created_at or at
    if created > at:
        raise InvalidRequest(ErrorCode.OUT_OF_RANGE, "created_at is in the future", field="created_at")
    key = memory_id(draft.project, request)
    if key in request.supersedes or any(edge.target == key for edge in request.edges):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, "a memory cannot supersede or link itself", field="supersedes")
    return MemoryRecord(
        id=key,
        project=draft.project,
        text=request.text,
        kind=request.kind,
        created_at=created,
        changed_at=at,
        occurred_at=request.occurred_at,
        session=request.session,
        source=request.source,
        tags=request.tags,
        importance=request.importance,
        salience=request.salience,
        confidence=request.confidence,
        quality=quality_of(request.text),
        expires_at=created + timedelta(seconds=request.ttl_s) if request.ttl_s else None,
        metadata=request.metadata,
        relations=request.relations,
        edges=request.edges,
        supersedes=request.supersedes,
        request_id=request.request_id,
        digest=request_digest(request),
    )

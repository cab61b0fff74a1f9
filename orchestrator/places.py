"""Where a walk begins or ends: a memory by its id, or the memories nearest to a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from contracts import wire
from contracts.base import MAX_CUE_BYTES, MemoryId
from contracts.edges import Place
from contracts.errors import ErrorCode, Unavailable
from contracts.lanes import Lane, LaneReply, LaneStatus
from contracts.memory import MemoryKind
from contracts.ports import Bus, BusFault
from contracts.shards import Shard, all_shards
from orchestrator.gather import Question, ask_shard, embed_cues, merge
from orchestrator.neighbourhood import Neighbourhood
from orchestrator.together import all_of

#: Memories that a text stands for.
NEAREST = 5
#: Hits asked of each shard: some are of one memory, some of memories that do not stand.
TOP_N = 200

#: Memories with their similarity in (0, 1], the most similar first.
Near = dict[MemoryId, float]


def check_places(places: Mapping[str, Place]) -> None:
    """Raises InvalidRequest for a text that is empty or too large."""
    for name, place in places.items():
        if place.text is not None:
            wire.check_text(place.text, f"{name}.text", MAX_CUE_BYTES)


class Places:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def find(self, places: Mapping[str, Place], around: Neighbourhood) -> dict[str, Near]:
        """The standing memories of each place, by its name. An id that is superseded, or of another session than the
        one asked for, stands for none.

        Raises NotFound for an id that was never stored, is forgotten or expired; Unavailable when the texts
        cannot be embedded or a shard of the semantic lane does not answer.
        """
        found: dict[str, Near] = {}
        texts = {name: place.text for name, place in places.items() if place.text is not None}
        vectors = dict(zip(texts, await self._embed(list(texts.values()), around), strict=True)) if texts else {}

        async def one(name: str, place: Place) -> None:
            if place.id is not None:
                await around.named(f"{name}.id", place.id)
                found[name] = dict.fromkeys(await around.look([place.id]), 1.0)
            else:
                found[name] = await self._nearest(texts[name], vectors[name], around)

        await all_of([partial(one, name, place) for name, place in places.items()])
        return {name: found[name] for name in places}

    async def _nearest(self, text: str, vector: str, around: Neighbourhood) -> Near:
        scope = around.scope
        question = Question(scope.project, text, None, TOP_N, scope.positions)
        replies: list[LaneReply] = []

        async def ask(shard: Shard) -> None:
            replies.append(await self._ask(shard, question, vector, scope.deadline))

        await all_of([partial(ask, shard) for shard in all_shards(len(scope.positions))])
        near: Near = {}
        for hit in merge(replies, TOP_N):
            for memory_id in hit.sources:
                if hit.evidence > 0:
                    near.setdefault(memory_id, min(hit.evidence, 1.0))
        standing = await around.look(list(near))
        told = [
            one for one in standing if around.standing[one].kind is not MemoryKind.CONSOLIDATED
        ]  # no evidence itself
        return {memory_id: near[memory_id] for memory_id in told[:NEAREST]}

    async def _ask(self, shard: Shard, question: Question, vector: str, deadline: float) -> LaneReply:
        try:
            reply = await ask_shard(self._bus, Lane.SEMANTIC, shard, question, vector, deadline)
        except BusFault as fault:
            raise Unavailable(
                ErrorCode.UNAVAILABLE,
                "the semantic lane did not answer",
                lane="semantic",
                shard=str(shard),
                fault=type(fault).__name__,
            ) from None
        if reply.status is not LaneStatus.OK:
            behind = reply.status is LaneStatus.BEHIND
            code = ErrorCode.CONSISTENCY_TIMEOUT if behind else ErrorCode.DEADLINE_EXCEEDED
            raise Unavailable(code, f"the semantic lane is {reply.status}", lane="semantic", position=reply.position)
        return reply

    async def _embed(self, texts: Sequence[str], around: Neighbourhood) -> Sequence[str]:
        try:
            return await embed_cues(self._bus, texts, around.scope.deadline)
        except BusFault as fault:
            raise Unavailable(
                ErrorCode.UNAVAILABLE, "the embed role did not answer", fault=type(fault).__name__
            ) from None

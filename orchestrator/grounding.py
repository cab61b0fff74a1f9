"""Grounding: the memories whose current statements answer the cue outright, by subject and predicate.

A similarity may miss them and an old value may come close; the catalog knows which statement stands.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contracts import subjects, wire
from contracts.base import MemoryId, Position
from contracts.catalog import Claim, ClaimsReply, ClaimsRequest
from contracts.errors import MemlaneError
from contracts.ports import Bus, BusFault
from contracts.recall import RecallRequest
from orchestrator.fusion import Candidate


@dataclass(frozen=True, slots=True)
class Grounding:
    """`claims` of each memory that answer the cue, and the memories that only have outdated answers to it."""

    claims: Mapping[MemoryId, tuple[Claim, ...]] = field(default_factory=dict)
    stale: frozenset[MemoryId] = frozenset()

    def windows(self, pool: Sequence[Candidate], size: int) -> list[list[Candidate]]:
        """The pool in parts of `size`. The first also holds the grounded memories from further down, and those that no
        lane found, which have no score."""
        below = [one for one in pool[size:] if one.id in self.claims]
        known = {one.id for one in pool}
        unseen = [Candidate(memory_id, 0.0) for memory_id in self.claims if memory_id not in known]
        rest = [one for one in pool[size:] if one.id not in self.claims]
        parts = [rest[start : start + size] for start in range(0, len(rest), size)]
        return [[*pool[:size], *below, *unseen], *parts]


async def ground(
    bus: Bus, project: str, request: RecallRequest, positions: Sequence[Position], deadline: float
) -> Grounding:
    """Ask the catalog what stands on the cue's names. Where it does not answer there is no grounding: whether recall
    can do without the catalog is not decided here."""
    left = deadline - time.monotonic()
    question = ClaimsRequest(
        project=project,
        cue=request.cue,
        subject=request.subject,
        as_of=request.as_of,
        believed_at=request.believed_at,
        min_position=max(positions),
        remaining_ms=left * 1000,
    )
    try:
        data = await bus.request(subjects.catalog(None, "claims"), wire.encode(question), left)
        reply = wire.decode_reply(ClaimsReply, data)
    except (BusFault, MemlaneError, ValueError):
        return Grounding()
    claims: dict[MemoryId, tuple[Claim, ...]] = {}
    for claim in reply.claims:
        claims[claim.memory] = (*claims.get(claim.memory, ()), claim)
    return Grounding(claims, frozenset() if request.include_superseded else frozenset(reply.stale))

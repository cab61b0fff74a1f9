"""What a query session changes: memories that scored well in it are lifted, and its tier never falls."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from contracts.base import MemoryId
from contracts.errors import MemlaneError
from contracts.query import ComputationTier, SessionState
from contracts.stores import Sessions
from orchestrator.afterwards import Afterwards
from orchestrator.tiers import higher

#: Share of a memory's last score in the session that its score gains: less than any signal's default weight but one, so
#: that it breaks near ties and turns nothing over.
SHARE = 0.05
#: A session that takes longer to read is not waited for.
WAIT_S = 0.1
#: Memories a session remembers, the latest first.
MOST = 100


class SessionMemory:
    """Sessions are a hint: where the store is away, a query is answered without one."""

    def __init__(self, sessions: Sessions, afterwards: Afterwards) -> None:
        self._sessions, self._afterwards = sessions, afterwards

    async def read(self, project: str, session_id: str | None) -> SessionState:
        if session_id is None:
            return SessionState()
        try:
            with anyio.move_on_after(WAIT_S):
                return await self._sessions.read(project, session_id)
        except MemlaneError:
            pass
        return SessionState()

    def remember(
        self,
        project: str,
        session_id: str | None,
        before: SessionState,
        tier: ComputationTier,
        scores: Mapping[MemoryId, float],
    ) -> None:
        """Written after the reply. Of two queries of one session at once the later one's memory stays."""
        if session_id is None:
            return
        state = after(before, tier, scores)
        self._afterwards.soon(lambda: self._sessions.write(project, session_id, state))


def boost(session: SessionState, memory_id: MemoryId) -> float:
    """``0.05 · last score in the session``, 0 for a memory it has not given."""
    return SHARE * min(1.0, max(0.0, session.scores.get(memory_id, 0.0)))


def after(before: SessionState, tier: ComputationTier, scores: Mapping[MemoryId, float]) -> SessionState:
    """The state once a query was answered. `scores` are those before any boost, else each query would add to the last
    one's boost."""
    merged = {memory_id: round(score, 4) for memory_id, score in scores.items()}
    for memory_id, score in before.scores.items():
        merged.setdefault(memory_id, score)
    return SessionState(tier=higher(tier, before.tier), scores=dict(list(merged.items())[:MOST]))

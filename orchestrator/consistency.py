"""How far the log is: what a read-after-write must wait for, and which projects there are."""

from __future__ import annotations

from collections import OrderedDict

from contracts.base import Consistency, Position
from contracts.errors import ErrorCode, NotFound, Unavailable
from contracts.lanes import Lane, LaneStatus
from contracts.ports import Log
from contracts.shards import all_shards
from orchestrator.gather import Gathered

#: Projects remembered as existing; a project once written to never stops existing.
MOST_PROJECTS = 100_000


class Horizon:
    """Answers from the log itself, which is the only one that knows."""

    def __init__(self, log: Log, shards: int) -> None:
        self._log, self._shards = log, shards
        self._projects: OrderedDict[str, None] = OrderedDict()

    @property
    def anywhere(self) -> list[Position]:
        """Per shard, the positions of a read that waits for nothing."""
        return [0] * self._shards

    async def check_project(self, project: str) -> None:
        """Raises NotFound (UNKNOWN_PROJECT) for a project that nothing was ever encoded into."""
        if project in self._projects:
            return
        if not await self._log.end(project):
            raise NotFound(ErrorCode.UNKNOWN_PROJECT, "nothing was ever encoded into this project", project=project)
        self._projects[project] = None
        while len(self._projects) > MOST_PROJECTS:
            self._projects.popitem(last=False)

    async def positions(
        self, project: str, consistency: Consistency, position: Position | None = None
    ) -> list[Position]:
        """Per shard, what a read must wait for. ReadAfterWrite: all of the project now, or all of it up to `position`;
        a shard whose last record of the project is below that has nothing more to wait for."""
        if consistency != "ReadAfterWrite":
            return self.anywhere
        ends = [await self._log.end(project, shard) for shard in all_shards(self._shards)]
        return ends if position is None else [min(end, position) for end in ends]


def check_consistency(gathered: Gathered) -> None:
    """Raises Unavailable (CONSISTENCY_TIMEOUT) that names the first lane which did not reach the position in time.

    A lane that nobody runs cannot be waited for: it degrades the answer, as ever.
    """
    for lane in Lane:
        outcome = gathered.outcomes.get(lane)
        if outcome and outcome.status in (LaneStatus.BEHIND, LaneStatus.TIMEOUT):
            raise Unavailable(
                ErrorCode.CONSISTENCY_TIMEOUT,
                f"the {lane} lane has not applied the position in time",
                lane=str(lane),
                position=outcome.position,
            )


def check_answered(gathered: Gathered) -> None:
    """Raises Unavailable where no lane that was asked has answered: nothing found would claim too much."""
    if gathered.answered:
        return
    statuses = {str(lane): str(outcome.status) for lane, outcome in gathered.outcomes.items()}
    if set(statuses.values()) <= {LaneStatus.TIMEOUT, LaneStatus.OVERLOADED}:
        raise Unavailable(ErrorCode.DEADLINE_EXCEEDED, "no lane could answer in time", lanes=statuses)
    raise Unavailable(ErrorCode.LANES_LOST, "no lane answered", lanes=statuses)

"""The orchestrator role: which verb goes to which service."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from contracts import subjects, wire
from contracts.catalog import InspectRequest, ListRequest
from contracts.ports import Call, Endpoint
from contracts.recall import RecallRequest
from orchestrator.enumerate import EnumerationService
from orchestrator.recall import RecallService


class OrchestratorRole:
    name = "orchestrator"

    def __init__(self, recall: RecallService, enumeration: EnumerationService) -> None:
        self._recall_service, self._enumeration = recall, enumeration
        self._recalls = 0

    def endpoints(self) -> Sequence[Endpoint]:
        handlers = {"recall": self._recall, "list": self._list, "inspect": self._inspect}
        return [Endpoint(verb, subjects.verb("*", verb), "orchestrator", handle) for verb, handle in handlers.items()]

    def stats(self) -> dict[str, object]:
        return {"recalls": self._recalls}

    async def run(self, ready: Callable[[], None]) -> None:
        ready()
        await anyio.sleep_forever()

    async def _recall(self, call: Call) -> bytes:
        self._recalls += 1
        project = _project(call)
        return wire.encode(
            await self._recall_service.recall(project, wire.decode(RecallRequest, call.data), call.arrived)
        )

    async def _list(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._enumeration.list(project, wire.decode(ListRequest, call.data or b"{}")))

    async def _inspect(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._enumeration.inspect(project, wire.decode(InspectRequest, call.data)))


def _project(call: Call) -> str:
    project = subjects.project_of(call.subject)
    wire.check_project(project)
    return project

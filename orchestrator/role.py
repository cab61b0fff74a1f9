"""The orchestrator role: which verb goes to which service."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contracts import subjects, wire
from contracts.catalog import InspectRequest, ListRequest
from contracts.edges import PlanRequest, ReasonRequest
from contracts.graph import GraphFetchRequest
from contracts.ports import Call, Endpoint
from contracts.query import FeedbackRequest, QueryRequest
from contracts.recall import RecallRequest
from contracts.schema import DeclareRequest, SchemaRequest
from contracts.usage import UsageRequest
from orchestrator.afterwards import Afterwards
from orchestrator.enumerate import EnumerationService
from orchestrator.plan import PlanService
from orchestrator.query import QueryService
from orchestrator.reason import ReasonService
from orchestrator.recall import RecallService
from orchestrator.schema import SchemaService
from orchestrator.tariffs import TARIFFS
from orchestrator.usage import UsageService
from orchestrator.uses import UsesService, successful


class OrchestratorRole:
    name = "orchestrator"

    def __init__(
        self,
        recall: RecallService,
        enumeration: EnumerationService,
        schemas: SchemaService,
        plan: PlanService,
        reason: ReasonService,
        usage: UsageService,
        query: QueryService,
        uses: UsesService,
        afterwards: Afterwards,
    ) -> None:
        self._recall_service, self._enumeration, self._schemas = recall, enumeration, schemas
        self._plan_service, self._reason_service, self._usage_service = plan, reason, usage
        self._query_service, self._uses, self._afterwards = query, uses, afterwards
        self._recalls = self._queries = 0

    def endpoints(self) -> Sequence[Endpoint]:
        handlers = {
            "recall": self._recall,
            "query": self._query,
            "feedback": self._feedback,
            "list": self._list,
            "inspect": self._inspect,
            "plan": self._plan,
            "reason": self._reason,
            "graph_fetch": self._graph_fetch,
            "schema.declare": self._declare,
            "schema.get": self._schema,
            "usage": self._usage,
        }
        return [
            Endpoint(subjects.endpoint(verb), subjects.verb("*", verb), "orchestrator", handle, TARIFFS.get(verb))
            for verb, handle in handlers.items()
        ]

    def stats(self) -> dict[str, object]:
        lost = self._afterwards.failed + self._afterwards.dropped
        return {"recalls": self._recalls, "queries": self._queries, **({"afterwards_lost": lost} if lost else {})}

    async def run(self, ready: Callable[[], None]) -> None:
        ready()
        await self._afterwards.run()

    async def _recall(self, call: Call) -> bytes:
        self._recalls += 1
        project = _project(call)
        reply = await self._recall_service.recall(project, wire.decode(RecallRequest, call.data), call.arrived)
        self._uses.returned(project, [member.id for member in reply.members])
        return wire.encode(reply)

    async def _query(self, call: Call) -> bytes:
        self._queries += 1
        project = _project(call)
        reply = await self._query_service.query(project, wire.decode(QueryRequest, call.data), call.arrived)
        self._uses.returned(project, successful(reply))
        return wire.encode(reply)

    async def _feedback(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._uses.feedback(project, wire.decode(FeedbackRequest, call.data)))

    async def _list(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._enumeration.list(project, wire.decode(ListRequest, call.data or b"{}")))

    async def _inspect(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._enumeration.inspect(project, wire.decode(InspectRequest, call.data)))

    async def _graph_fetch(self, call: Call) -> bytes:
        project = _project(call)
        request = wire.decode(GraphFetchRequest, call.data or b"{}")
        return wire.encode(await self._enumeration.graph_fetch(project, request))

    async def _declare(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._schemas.declare(project, wire.decode(DeclareRequest, call.data)))

    async def _schema(self, call: Call) -> bytes:
        project = _project(call)
        wire.decode(SchemaRequest, call.data or b"{}")
        return wire.encode(await self._schemas.get(project))

    async def _usage(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._usage_service.usage(project, wire.decode(UsageRequest, call.data or b"{}")))

    async def _plan(self, call: Call) -> bytes:
        project = _project(call)
        return wire.encode(await self._plan_service.plan(project, wire.decode(PlanRequest, call.data), call.arrived))

    async def _reason(self, call: Call) -> bytes:
        project = _project(call)
        request = wire.decode(ReasonRequest, call.data)
        return wire.encode(await self._reason_service.reason(project, request, call.arrived))


def _project(call: Call) -> str:
    project = subjects.project_of(call.subject)
    wire.check_project(project)
    return project

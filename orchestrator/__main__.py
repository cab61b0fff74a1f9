"""`python -m orchestrator`: the composition root. Only here does the orchestrator meet infra."""

from __future__ import annotations

import sys

import anyio
import structlog

from contracts.errors import ErrorCode, InvalidRequest, MemlaneError
from infra import settings as settings_module
from infra import streams, telemetry
from infra.metering import QuotaMeter
from infra.nats_bus import NatsBus, connect
from infra.nats_ledger import KvLedger
from infra.nats_log import JetStreamLog
from infra.nats_schemas import KvSchemas
from infra.nats_sessions import KvSessions
from infra.nats_txns import StreamTransactions
from infra.nats_uses import StreamUses
from infra.service import Service
from infra.settings import Settings
from orchestrator.afterwards import Afterwards
from orchestrator.catalog import Catalog
from orchestrator.consistency import Horizon
from orchestrator.enumerate import EnumerationService
from orchestrator.plan import PlanService
from orchestrator.profiles import PROFILES
from orchestrator.query import QueryService
from orchestrator.reason import ReasonService
from orchestrator.recall import RecallService
from orchestrator.role import OrchestratorRole
from orchestrator.schema import SchemaService
from orchestrator.session import SessionMemory
from orchestrator.usage import UsageService
from orchestrator.uses import UsesService

logger = structlog.get_logger()


async def run(settings: Settings) -> None:
    profile = PROFILES.get(settings.profile)
    if profile is None:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, f"no profile {settings.profile!r}", field="profile", known=sorted(PROFILES)
        )
    client = await connect(settings.nats, f"memlane-orchestrator-{settings.replica}")
    try:
        await streams.ensure(client, settings.log, settings.sessions.ttl_s)
        bus, log, shards = NatsBus(client), JetStreamLog(client), settings.log.shards
        catalog, horizon, afterwards = Catalog(bus, shards), Horizon(log, shards), Afterwards()
        recall = RecallService(bus, catalog, horizon, StreamTransactions(client), profile, settings.rerank.top)
        ledger = KvLedger(client)
        role = OrchestratorRole(
            recall,
            EnumerationService(log, catalog, horizon),
            SchemaService(KvSchemas(client)),
            PlanService(bus, catalog, horizon),
            ReasonService(bus, catalog, horizon),
            UsageService(ledger, settings.quota.of),
            QueryService(bus, catalog, horizon, SessionMemory(KvSessions(client), afterwards)),
            UsesService(StreamUses(client), catalog, horizon, afterwards),
            afterwards,
        )
        async with ledger:
            await Service(client, role, settings, QuotaMeter(ledger, settings.quota)).serve()
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await client.close()


def main() -> int:
    try:
        settings = settings_module.load()
        telemetry.configure(settings.log_level, "orchestrator")
        anyio.run(run, settings)
    except MemlaneError as error:
        logger.error("cannot run", action="cannot_run", code=error.code, error=error.message, details=error.details)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

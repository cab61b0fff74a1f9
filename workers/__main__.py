"""`python -m workers ROLE`: the composition root of every worker. Only here do workers meet infra."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

import anyio
import structlog
from nats.aio.client import Client

from contracts.errors import MemlaneError
from contracts.lanes import Lane
from contracts.ports import Role
from contracts.stores import Meter
from infra import settings as settings_module
from infra import streams, telemetry
from infra.child import NOT_NEEDED
from infra.metering import QuotaMeter
from infra.nats_bus import NatsBus, connect
from infra.nats_lease import KvLease
from infra.nats_ledger import KvLedger
from infra.nats_log import JetStreamLog
from infra.nats_queue import JetStreamIngest, KvRequestIds
from infra.nats_schemas import KvSchemas
from infra.nats_txns import StreamTransactions
from infra.nats_uses import StreamUses
from infra.service import Service
from infra.settings import Settings

logger = structlog.get_logger()


async def _encode(client: Client, settings: Settings, meter: Meter) -> Role:
    from workers.encode.pipeline import EncodePipeline
    from workers.encode.reclaim import Reclaimer
    from workers.encode.transactions import Transactor
    from workers.encode.vocabulary import Vocabularies
    from workers.encode.worker import EncodeWorker
    from workers.encode.writer import MemoryWriter
    from workers.extract import RuleExtractor

    vocabularies = Vocabularies(KvSchemas(client))
    pipeline = EncodePipeline(NatsBus(client), RuleExtractor(), vocabularies)
    log = JetStreamLog(client)
    writer = MemoryWriter(log, KvRequestIds(client))
    transactor = Transactor(StreamTransactions(client), log, writer)
    queue = JetStreamIngest(client, default_project=settings.default_project)
    reclaimer = Reclaimer(NatsBus(client), writer, settings.log.shards, settings.encode.reclaim_every_s)
    return EncodeWorker(pipeline, writer, transactor, queue, reclaimer, meter)


async def _embed(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.embed import EmbedWorker
    from workers.models import SentenceEmbedder

    embedder = SentenceEmbedder(settings.embed.model, settings.embed.threads)
    return EmbedWorker(embedder, settings.embed.batch, settings.embed.cache)


async def _rerank(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.models import CrossEncoderScorer
    from workers.rerank import RerankWorker

    return RerankWorker(CrossEncoderScorer(settings.rerank.model, settings.embed.threads))


async def _catalog(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.catalog import CatalogStore, CatalogWorker

    store = CatalogStore(settings.folder("catalog"), settings.part)
    log = JetStreamLog(client)
    return CatalogWorker(settings.part, settings.replica, store, log, StreamUses(client))


async def _semantic(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.lane import LaneWorker
    from workers.semantic import SemanticIndex

    index = SemanticIndex(settings.folder("semantic"))
    return LaneWorker(Lane.SEMANTIC, settings.part, settings.replica, index, JetStreamLog(client))


async def _lexical(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.lexical.index import LexicalIndex
    from workers.lexical.worker import LexicalWorker

    index = LexicalIndex(settings.folder("lexical"), settings.lexical.engine)
    return LexicalWorker(settings.part, settings.replica, index, JetStreamLog(client))


async def _graph(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.graph.index import GraphIndex
    from workers.graph.worker import GraphWorker

    graph = settings.graph
    index = await GraphIndex.open(
        graph.uri or "", graph.user, graph.password.get_secret_value(), graph.database, settings.part
    )
    return GraphWorker(settings.part, settings.replica, index, JetStreamLog(client))


async def _upkeep(client: Client, settings: Settings, _: Meter) -> Role:
    from workers.upkeep import TopicIndex, UpkeepWorker

    upkeep, log = settings.upkeep, JetStreamLog(client)
    index = TopicIndex(upkeep.min_members, upkeep.join, upkeep.merge)
    bus, lease = NatsBus(client), KvLease(client)
    return UpkeepWorker(log, bus, lease, index, settings.replica, settings.log.shards, upkeep.every_s)


ROLES: dict[str, Callable[[Client, Settings, Meter], Awaitable[Role]]] = {
    "encode": _encode,
    "embed": _embed,
    "rerank": _rerank,
    "catalog": _catalog,
    "semantic": _semantic,
    "lexical": _lexical,
    "graph": _graph,
    "upkeep": _upkeep,
}


#: These use no stream, so a locked bus lets them near none.
STATELESS = {"embed", "rerank"}


async def run(name: str, settings: Settings) -> None:
    client = await connect(settings.nats, f"memlane-{name}-{settings.shard}-{settings.replica}")
    try:
        if name not in STATELESS:
            await streams.ensure(client, settings.log, settings.sessions.ttl_s)
        ledger = KvLedger(client)
        meter = QuotaMeter(ledger, settings.quota)
        role = await ROLES[name](client, settings, meter)
        async with ledger:
            await Service(client, role, settings, meter).serve()
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await client.close()


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        print(f"usage: python -m workers {'|'.join(ROLES)}", file=sys.stderr)
        return 2
    name = sys.argv[1]
    try:
        settings = settings_module.load()
        telemetry.configure(settings.log_level, name)
        anyio.run(run, name, settings)
    except MemlaneError as error:
        logger.error("cannot run", action="cannot_run", code=error.code, error=error.message, details=error.details)
        return NOT_NEEDED if name == "rerank" else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every subject, stream, bucket, durable and queue-group name, in one table.

| subject                                         | who listens                   | what                             |
|-------------------------------------------------|-------------------------------|----------------------------------|
| memlane.v1.<project>.<verb>                     | the role of contracts.verbs   | the verbs agents use             |
| memlane.lane.v1.<lane>.<shard>.search / score   | that lane's replicas          | one shard of one lane            |
| memlane.lane.v1.lexical.<shard>.terms           | the lexical lane's replicas   | term statistics of one shard     |
| memlane.lane.v1.graph.<shard>.edges             | the graph lane's replicas     | edges of one shard's memories    |
| memlane.catalog.v1.<shard>.<op>                 | that shard's catalogs         | hydrate, list, match, …          |
| memlane.catalog.v1.any.<op>                     | catalogs of any shard         | claims, names, beside            |
| memlane.work.v1.embed / rerank                  | embed and rerank workers      | models                           |
| memlane.work.v1.topics                          | upkeep workers                | the topics of given memories     |
| memlane.work.v1.summarise                       | encode workers                | store a topic's summary          |
| memlane.ops.v1.scale                            | `memlane up`                  | how many replicas of a role      |
| memlane.ops.v1.reshard                          | `memlane up`                  | how many shards                  |
| memlane.log.v1.<project>.<bits>.<memory id>     | stream MEMLANE_LOG            | full state of a memory           |
| memlane.ingest.v1.<project>                     | stream MEMLANE_INGEST         | encode requests, fire and forget |
| memlane.txn.v1.<project>.<txn id>               | stream MEMLANE_TXN            | what a transaction has pending   |
| memlane.used.v1.<project>                       | stream MEMLANE_USAGE          | memories that were of use        |
| memlane.dlq.v1.<project>                        | stream MEMLANE_DLQ            | what could not be ingested       |
| key <project> of bucket MEMLANE_SCHEMAS         | orchestrators, encode workers | a project's declared schema      |
| key <project>.<day> of bucket MEMLANE_LEDGER    | orchestrators, encode workers | what a project used on a UTC day |
| key <project>.<hash> of bucket MEMLANE_SESSIONS | orchestrators                 | what a query session remembers   |
| key <name> of bucket MEMLANE_LEASES             | upkeep workers                | which process acts               |

A shard is one token, ``1of4``; the bits of a memory's hash are eight: `contracts.shards`.

Where `_` stands for the project (no project can be called that), the header X-Project-ID names it, or else it is the
organisation's default project: `contracts.addressing`.
"""

from __future__ import annotations

from contracts.base import MemoryId
from contracts.lanes import Lane
from contracts.shards import WHOLE, Shard, bits_of

LOG_STREAM = "MEMLANE_LOG"
INGEST_STREAM = "MEMLANE_INGEST"
TXN_STREAM = "MEMLANE_TXN"
DLQ_STREAM = "MEMLANE_DLQ"
USAGE_STREAM = "MEMLANE_USAGE"
REQUESTS_BUCKET = "MEMLANE_REQUESTS"
SCHEMAS_BUCKET = "MEMLANE_SCHEMAS"
LEDGER_BUCKET = "MEMLANE_LEDGER"
SESSIONS_BUCKET = "MEMLANE_SESSIONS"
LEASES_BUCKET = "MEMLANE_LEASES"
INGEST_DURABLE = "encode"

LOG_SUBJECTS = f"memlane.log.v1.*.{WHOLE.filter}.*"
INGEST_SUBJECTS = "memlane.ingest.v1.*"
TXN_SUBJECTS = "memlane.txn.v1.*.*"
DLQ_SUBJECTS = "memlane.dlq.v1.*"
USAGE_SUBJECTS = "memlane.used.v1.*"

EMBED = "memlane.work.v1.embed"
RERANK = "memlane.work.v1.rerank"
TOPICS = "memlane.work.v1.topics"
SCALE = "memlane.ops.v1.scale"
RESHARD = "memlane.ops.v1.reshard"
SUMMARISE = "memlane.work.v1.summarise"


def verb(project: str, name: str) -> str:
    """The subject of a verb; `project` may be ``*`` in a subscription. A verb may be of two tokens: ``schema.get``."""
    return f"memlane.v1.{project}.{name}"


def endpoint(verb_name: str) -> str:
    """A verb as the name of a service endpoint, in which no dot may be."""
    return verb_name.replace(".", "-")


def project_of(subject: str) -> str:
    """The project token of a verb, ingest or log subject."""
    tokens = subject.split(".")
    return tokens[2] if tokens[1] == "v1" else tokens[3]


def lane(name: Lane, shard: Shard, op: str) -> str:
    return f"memlane.lane.v1.{name}.{shard}.{op}"


def catalog(shard: Shard | None, op: str) -> str:
    """One shard's catalogs, or without a shard whichever: of names, claims and sessions each knows those of all."""
    return f"memlane.catalog.v1.{shard or 'any'}.{op}"


def log(project: str, memory_id: MemoryId) -> str:
    """The log subject of a memory."""
    return f"memlane.log.v1.{project}.{bits_of(memory_id)}.{memory_id}"


def logs(project: str, shard: Shard = WHOLE) -> str:
    """A filter for the log subjects of a project's memories (``*``: of all projects') in a shard."""
    return f"memlane.log.v1.{project}.{shard.filter}.*"


def ingest(project: str) -> str:
    return f"memlane.ingest.v1.{project}"


def txn(project: str, txn_id: str) -> str:
    return f"memlane.txn.v1.{project}.{txn_id}"


def used(project: str) -> str:
    """Where uses of a project's memories are told."""
    return f"memlane.used.v1.{project}"


def dead_letter(project: str) -> str:
    return f"memlane.dlq.v1.{project}"


def durable(role: str, shard: Shard, replica: str) -> str:
    """The durable consumer of one replica's follower of one shard."""
    return f"{role}-{shard}-{replica}"

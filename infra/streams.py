"""The streams and buckets, made or brought up to date at start. Safe to run from every process at once."""

from __future__ import annotations

from nats.aio.client import Client
from nats.js import api
from nats.js.errors import BadRequestError

from contracts import subjects
from contracts.txn import MAX_TIMEOUT_S
from contracts.usage import MAX_DAYS
from infra.settings import Log, Sessions

#: How long a request id is remembered.
REQUEST_IDS_TTL_S = 30 * 86400
#: How long a day of the ledger is kept: as far back as `usage` looks, and then some.
LEDGER_TTL_S = (MAX_DAYS + 8) * 86400
#: How long a lease that is not prolonged is held: a round of upkeep asks for it again at each project.
LEASE_S = 60
#: How long uses are kept: as long as catalogs count them.
USES_KEPT_S = 180 * 86400


async def ensure(client: Client, settings: Log, session_ttl_s: float = Sessions().ttl_s) -> None:
    """Make every stream and bucket that is not there, and update those whose settings differ. Query sessions that
    nothing is written to are forgotten after `session_ttl_s`."""
    js = client.jetstream()
    for config in _streams(settings):
        try:
            await js.add_stream(config)
        except BadRequestError:  # it is there with other settings
            await js.update_stream(config)
    await js.create_key_value(
        api.KeyValueConfig(
            bucket=subjects.REQUESTS_BUCKET, history=1, ttl=REQUEST_IDS_TTL_S, replicas=settings.replicas
        )
    )
    await js.create_key_value(
        api.KeyValueConfig(bucket=subjects.SCHEMAS_BUCKET, history=16, replicas=settings.replicas)
    )
    await js.create_key_value(
        api.KeyValueConfig(bucket=subjects.LEDGER_BUCKET, history=8, ttl=LEDGER_TTL_S, replicas=settings.replicas)
    )
    await js.create_key_value(
        api.KeyValueConfig(bucket=subjects.LEASES_BUCKET, history=1, ttl=LEASE_S, replicas=settings.replicas)
    )
    await _ensure_sessions(client, settings, session_ttl_s)


async def _ensure_sessions(client: Client, settings: Log, ttl_s: float) -> None:
    """The lifetime is a setting and may change: then the bucket's stream is brought up to it."""
    js = client.jetstream()
    config = api.KeyValueConfig(bucket=subjects.SESSIONS_BUCKET, history=1, ttl=ttl_s, replicas=settings.replicas)
    try:
        await js.create_key_value(config)
    except BadRequestError:
        found = (await js.stream_info(f"KV_{subjects.SESSIONS_BUCKET}")).config
        await js.update_stream(found.evolve(max_age=ttl_s, duplicate_window=min(ttl_s, 120.0)))


def _streams(settings: Log) -> list[api.StreamConfig]:
    return [
        api.StreamConfig(
            name=subjects.LOG_STREAM,
            description="full state of every memory after every change; the truth",
            subjects=[subjects.LOG_SUBJECTS],
            storage=api.StorageType.FILE,
            max_msgs_per_subject=settings.story,
            num_replicas=settings.replicas,
            allow_direct=True,
            allow_atomic=True,
            duplicate_window=120,
        ),
        api.StreamConfig(
            name=subjects.INGEST_STREAM,
            description="encode requests, fire and forget",
            subjects=[subjects.INGEST_SUBJECTS],
            retention=api.RetentionPolicy.WORK_QUEUE,
            storage=api.StorageType.FILE,
            num_replicas=settings.replicas,
            duplicate_window=120,
        ),
        api.StreamConfig(
            name=subjects.TXN_STREAM,
            description="what open transactions have pending; one that nobody ends is forgotten with its messages",
            subjects=[subjects.TXN_SUBJECTS],
            storage=api.StorageType.FILE,
            max_age=2 * MAX_TIMEOUT_S,
            num_replicas=settings.replicas,
            allow_direct=True,
        ),
        api.StreamConfig(
            name=subjects.USAGE_STREAM,
            description="which memories were of use, for the signals usage and decay",
            subjects=[subjects.USAGE_SUBJECTS],
            storage=api.StorageType.FILE,
            max_age=USES_KEPT_S,
            num_replicas=settings.replicas,
            duplicate_window=120,
        ),
        api.StreamConfig(
            name=subjects.DLQ_STREAM,
            description="ingest messages that could not be encoded, with the reason in their headers",
            subjects=[subjects.DLQ_SUBJECTS],
            storage=api.StorageType.FILE,
            max_age=30 * 86400,
            num_replicas=settings.replicas,
        ),
    ]

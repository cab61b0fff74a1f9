"""Who may publish and subscribe to what. What is not named here is denied.

Memlane's own processes are in one account, the core, where the streams are. Each project has an account of its own,
into which the core lets exactly that project's verbs and its ingest subject: another project's subjects, the log,
JetStream and foreign inboxes are not there at all. That also makes reply subjects harmless: what an agent names as the
place of its answer is a place in its own account, so nobody can be made to answer into the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts import subjects
from contracts.access import inbox_of
from contracts.verbs import VERBS

API = "$JS.API"
LANES = ("semantic", "lexical", "graph")
#: Replies to callers of our own account and, by way of the server, of others.
REPLIES = ("_INBOX.>", "_R_.>")
#: What the core lets into the accounts of projects.
EXPORTS = ("memlane.v1.*.>", subjects.INGEST_SUBJECTS)


@dataclass(frozen=True, slots=True)
class Grant:
    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()

    def with_inbox(self, public_key: str) -> Grant:
        return Grant(self.publish, (*self.subscribe, f"{inbox_of(public_key)}.>"))


def imports(project: str) -> tuple[str, ...]:
    """What is there in a project's account."""
    return (f"memlane.v1.{project}.>", subjects.ingest(project))


def agent(project: str) -> Grant:
    return Grant((*(subjects.verb(project, name) for name in VERBS), subjects.ingest(project)))


def _verbs_of(role: str) -> tuple[str, ...]:
    return tuple(subjects.verb("*", name) for name, verb in VERBS.items() if verb.role == role)


def _reads(stream: str) -> tuple[str, ...]:
    return (f"{API}.STREAM.MSG.GET.{stream}", f"{API}.DIRECT.GET.{stream}", f"{API}.DIRECT.GET.{stream}.>")


def _follows(stream: str) -> tuple[str, ...]:
    consumer = f"{API}.CONSUMER"
    return (
        f"{consumer}.CREATE.{stream}.>",
        f"{consumer}.DURABLE.CREATE.{stream}.*",
        f"{consumer}.DELETE.{stream}.*",
        f"{consumer}.MSG.NEXT.{stream}.*",
        f"$JS.ACK.{stream}.>",
    )


def _bucket(name: str, *, writes: bool = True) -> tuple[str, ...]:
    return (*_reads(f"KV_{name}"), *((f"$KV.{name}.>",) if writes else ()))


def _ensures() -> tuple[str, ...]:
    """At start every process that uses streams makes those that are missing. Not by name: a credential is sent in one
    line of at most 4096 bytes."""
    return tuple(f"{API}.STREAM.{op}.*" for op in ("CREATE", "UPDATE", "INFO"))


def _service(publish: tuple[str, ...], subscribe: tuple[str, ...]) -> Grant:
    return Grant((*REPLIES, *publish), ("$SRV.>", *subscribe))


#: How far a follower of the log is behind it.
_LOG_END = f"{API}.STREAM.MSG.GET.{subjects.LOG_STREAM}"


def _lane(name: str) -> Grant:
    return _service((*_ensures(), *_follows(subjects.LOG_STREAM), _LOG_END), (f"memlane.lane.v1.{name}.>",))


#: The role that may take everything out and put it back.
BACKUP = "backup"

ROLES: dict[str, Grant] = {
    "orchestrator": _service(
        (
            "memlane.lane.v1.>",
            "memlane.catalog.v1.>",
            subjects.EMBED,
            subjects.RERANK,
            subjects.TOPICS,
            subjects.USAGE_SUBJECTS,
            *_ensures(),
            *_reads(subjects.LOG_STREAM),
            *_reads(subjects.TXN_STREAM),
            *_bucket(subjects.SCHEMAS_BUCKET),
            *_bucket(subjects.SESSIONS_BUCKET),
            *_bucket(subjects.LEDGER_BUCKET),
        ),
        _verbs_of("orchestrator"),
    ),
    "encode": _service(
        (
            subjects.LOG_SUBJECTS,
            subjects.TXN_SUBJECTS,
            subjects.DLQ_SUBJECTS,
            subjects.EMBED,
            "memlane.catalog.v1.>",
            *_ensures(),
            *_reads(subjects.LOG_STREAM),
            f"{API}.STREAM.MSG.DELETE.{subjects.LOG_STREAM}",
            *_reads(subjects.TXN_STREAM),
            f"{API}.STREAM.PURGE.{subjects.TXN_STREAM}",
            *_follows(subjects.INGEST_STREAM),
            *_bucket(subjects.REQUESTS_BUCKET),
            *_bucket(subjects.SCHEMAS_BUCKET, writes=False),
            *_bucket(subjects.LEDGER_BUCKET),
        ),
        (*_verbs_of("encode"), subjects.SUMMARISE),
    ),
    "catalog": _service(
        (*_ensures(), *_follows(subjects.LOG_STREAM), *_follows(subjects.USAGE_STREAM), _LOG_END),
        ("memlane.catalog.v1.>",),
    ),
    **{name: _lane(name) for name in LANES},
    "upkeep": _service(
        (
            "memlane.catalog.v1.>",
            subjects.EMBED,
            subjects.SUMMARISE,
            subjects.verb("*", "forget"),
            *_ensures(),
            *_reads(subjects.LOG_STREAM),
            *_follows(subjects.LOG_STREAM),
            *_bucket(subjects.LEASES_BUCKET),
        ),
        (*_verbs_of("upkeep"), subjects.TOPICS),
    ),
    "embed": _service((), (subjects.EMBED,)),
    "rerank": _service((), (subjects.RERANK,)),
    "http": Grant((*(subjects.verb("*", name) for name in VERBS), "$SRV.STATS")),
    "supervisor": Grant((*REPLIES, "$SRV.STATS"), (subjects.SCALE, subjects.RESHARD)),
    "operator": Grant(
        (
            "memlane.v1.>",
            subjects.INGEST_SUBJECTS,
            subjects.SCALE,
            subjects.RESHARD,
            "$SRV.>",
            *_reads(subjects.LOG_STREAM),  # how far behind a follower is
        )
    ),
    # "DELETE" is for empty streams that stand where a backup is to be restored
    BACKUP: Grant(
        (
            "$SRV.STATS",
            *(f"{API}.STREAM.{op}.*" for op in ("SNAPSHOT", "RESTORE", "INFO", "DELETE")),
            "$JS.SNAPSHOT.>",  # acknowledgements and chunks
        )
    ),
}
#: The one thing that is done in the server's own account.
SYSTEM = Grant(("$SYS.REQ.CLAIMS.UPDATE",))

"""A locked service: what a credential opens, and that it opens nothing else. Each refusal is the server's own word."""

from __future__ import annotations

import gc
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import nats
import nats.errors
import orjson
import pytest
from nats.aio.client import Client

from contracts import subjects, wire
from contracts.access import Access, inbox_of, read_claims
from contracts.client import MemoryClient
from contracts.encode import EncodeRequest
from contracts.errors import Denied, InvalidRequest, Unavailable
from contracts.memory import derive_id
from infra.security import certificates, claims, permissions
from infra.security.claims import Key
from infra.security.permissions import BACKUP, ROLES
from infra.security.vault import Vault
from tests.stack import Stack

MEMORY = derive_id("somebody's")
#: The library leaves the socket of a handshake that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    folder = tmp_path_factory.mktemp("keys") / "security"
    cli("security", "init", "--out", str(folder), "--project", "a", "--project", "b")
    return Vault(folder)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, vault: Vault) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("locked"), {"MEMLANE_SECURITY": str(vault.folder)}) as stack:
        yield stack


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done


def agent(vault: Vault, project: str, name: str = "agent") -> Access:
    return Access(creds=vault.folder / "agents" / project / f"{name}.creds", tls_ca=vault.ca)


@asynccontextmanager
async def link(stack: Stack, access: Access, **more: Any) -> AsyncIterator[tuple[Client, list[str]]]:
    """A bare connection, and what the server says against it."""
    said: list[str] = []

    async def hear(error: Exception) -> None:
        said.append(str(error))

    # longer than the server waits for a handshake, so that it is the server that ends it
    options = {"allow_reconnect": False, "connect_timeout": 10, "error_cb": hear, **access.options(), **more}
    client = await nats.connect(stack.url, **options)
    try:
        yield client, said
    finally:
        await client.close()


async def word_of(client: Client, said: list[str]) -> str:
    """What the server says to the last command. The library's flush may overtake what was published before it, so one
    is not enough."""
    with anyio.fail_after(10):
        while not said:
            await client.flush()
    [only] = said
    said.clear()
    return only


async def refused(stack: Stack, access: Access) -> str:
    """What the server, or the client on its behalf, says to one that may not even connect."""
    with pytest.raises((nats.errors.Error, OSError)) as caught:
        async with link(stack, access):
            pass
    gc.collect()
    return str(caught.value).lower()


async def test_an_agent_writes_and_reads_its_own_project(locked: Stack, vault: Vault) -> None:
    async with MemoryClient(locked.url, project="a", access=agent(vault, "a")) as memory:
        stored = await memory.encode("Ana works at Globex")
        await memory.ingest(EncodeRequest(text="Ben works at Acme", request_id="queued"))
        answer = await memory.recall("where does Ana work?", consistency="ReadAfterWrite", deadline_ms=10_000)
        assert [member.id for member in answer.members][:1] == [stored.id]
        while not (await memory.recall("where does Ben work?", deadline_ms=10_000)).members:
            pass
        async with memory.transaction() as txn:
            await txn.encode("Cleo works at Initech")
        await memory.declare_schema({"predicates": [{"name": "works_at", "kind": "Attribute"}]})
        with anyio.fail_after(30):
            while (await memory.usage()).days[0].encodes < 2:  # written once a second
                await anyio.sleep(0.1)
        await memory.query("Ana", session_id="s", consistency="ReadAfterWrite", deadline_ms=10_000)
        await memory.forget(stored.id, mode="hard")
        assert (await memory.topics()).topics == ()


async def test_projects_do_not_see_each_other(locked: Stack, vault: Vault) -> None:
    async with MemoryClient(locked.url, project="b", access=agent(vault, "b")) as memory:
        await memory.encode("Dora owns the roadmap")
        answer = await memory.recall("where does Ana work?", consistency="ReadAfterWrite", deadline_ms=10_000)
        assert all(member.text == "Dora owns the roadmap" for member in answer.members)


async def test_a_call_that_is_not_allowed_fails_at_once_and_by_name(locked: Stack, vault: Vault) -> None:
    async with MemoryClient(locked.url, project="b", timeout_s=60, access=agent(vault, "a")) as memory:
        with pytest.raises(Denied, match=r"memlane\.v1\.b\.recall"):
            await memory.recall("anything")
        with pytest.raises(Denied, match=r"memlane\.ingest\.v1\.b"):
            await memory.ingest(EncodeRequest(text="not mine"))


PUBLISH_DENIED = [
    "memlane.v1.b.recall",
    "memlane.v1.b.encode",
    "memlane.v1.b.schema.get",
    "memlane.v1._.recall",
    "memlane.v1.a.unheard_of",
    "memlane.ingest.v1.b",
    "memlane.ingest.v1._",
    f"memlane.log.v1.b.0.{MEMORY}",
    f"memlane.log.v1.a.0.{MEMORY}",
    "memlane.txn.v1.a.t",
    "memlane.txn.v1.b.t",
    "memlane.used.v1.a.0",
    "memlane.dlq.v1.a",
    "memlane.lane.v1.semantic.0.search",
    "memlane.lane.v1.graph.0.edges",
    "memlane.catalog.v1.0.hydrate",
    "memlane.catalog.v1.0.list",
    subjects.EMBED,
    subjects.RERANK,
    subjects.TOPICS,
    subjects.SUMMARISE,
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.INFO.MEMLANE_LOG",
    "$JS.API.STREAM.MSG.GET.MEMLANE_LOG",
    "$JS.API.STREAM.PURGE.MEMLANE_LOG",
    "$JS.API.STREAM.DELETE.MEMLANE_LOG",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.UPDATE.MEMLANE_LOG",
    "$JS.API.CONSUMER.CREATE.MEMLANE_LOG.spy",
    "$JS.API.CONSUMER.DURABLE.CREATE.MEMLANE_LOG.spy",
    "$JS.API.CONSUMER.MSG.NEXT.MEMLANE_LOG.semantic-0of1-a",
    "$JS.API.DIRECT.GET.MEMLANE_LOG",
    "$JS.API.DIRECT.GET.KV_MEMLANE_SCHEMAS.$KV.MEMLANE_SCHEMAS.b",
    "$JS.ACK.MEMLANE_INGEST.encode.1.1.1.1.0",
    "$KV.MEMLANE_SCHEMAS.b",
    "$KV.MEMLANE_LEDGER.a.2026-11-30",
    "$KV.MEMLANE_SESSIONS.b.x",
    "$KV.MEMLANE_REQUESTS.b.x",
    "$KV.MEMLANE_LEASES.upkeep",
    "$SRV.PING",
    "$SRV.STATS",
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.CLAIMS.UPDATE",
    "_INBOX.somebody",
    "_R_.somebody",
    "anything.else",
]  # fmt: skip


async def test_what_an_agent_may_not_publish_to(locked: Stack, vault: Vault) -> None:
    async with link(locked, agent(vault, "a")) as (client, said):
        mine, theirs = (read_claims(agent(vault, project).creds or Path())["sub"] for project in "ab")
        assert mine != theirs
        for subject in [*PUBLISH_DENIED, f"{inbox_of(theirs)}.x"]:
            await client.publish(subject, b"{}")
            assert await word_of(client, said) == f'nats: permissions violation for publish to "{subject.lower()}"'


SUBSCRIBE_DENIED = [
    ">",
    "*",
    "*.>",
    "memlane.>",
    "memlane.v1.>",
    "memlane.v1.a.>",
    "memlane.v1.a.recall",
    "memlane.v1.b.>",
    "memlane.v1.*.encode",
    "memlane.v1._.>",
    "memlane.ingest.v1.a",
    "memlane.ingest.v1.b",
    "memlane.log.v1.>",
    "memlane.log.v1.a.>",
    "memlane.txn.v1.>",
    "memlane.used.v1.>",
    "memlane.dlq.v1.>",
    "memlane.lane.v1.>",
    "memlane.catalog.v1.>",
    "memlane.work.v1.>",
    "$KV.>",
    "$JS.>",
    "$JS.API.>",
    "$JS.EVENT.ADVISORY.>",
    "$SRV.>",
    "$SYS.>",
    "_INBOX.>",
    "_INBOX.*",
    "_INBOX.*.>",
    "_R_.>",
]


async def test_what_an_agent_may_not_subscribe_to(locked: Stack, vault: Vault) -> None:
    async with link(locked, agent(vault, "a")) as (client, said):
        theirs = read_claims(agent(vault, "b").creds or Path())["sub"]
        for subject in [*SUBSCRIBE_DENIED, f"{inbox_of(theirs)}.>"]:
            await client.subscribe(subject)
            assert await word_of(client, said) == f'nats: permissions violation for subscription to "{subject.lower()}"'


async def test_two_agents_of_one_project_do_not_read_each_others_replies(locked: Stack, vault: Vault) -> None:
    mine, other = agent(vault, "a"), vault.add_agent("a", "other")
    async with link(locked, mine) as (client, said):
        await client.subscribe(f"{inbox_of(read_claims(other)['sub'])}.>")
        assert "permissions violation for subscription" in await word_of(client, said)


async def test_a_reply_subject_makes_nobody_write_where_the_caller_may_not(locked: Stack, vault: Vault) -> None:
    """Without accounts the server itself would put its acknowledgement there, and a service its answer."""
    purge = f"$JS.API.STREAM.PURGE.{subjects.LOG_STREAM}"
    targets = [f"memlane.log.v1.b.0.{MEMORY}", purge, "$KV.MEMLANE_SCHEMAS.b", "memlane.v1.b.forget", subjects.EMBED]
    async with link(locked, vault.access("catalog")) as (core, _), link(locked, agent(vault, "a")) as (client, _):
        js = core.jetstream()
        names = (subjects.LOG_STREAM, f"KV_{subjects.SCHEMAS_BUCKET}")
        before = [(await js.stream_info(name)).state for name in names]
        for target in targets:
            await client.publish(subjects.verb("a", "list"), b"not json", reply=target)  # answered at once
            await client.publish(subjects.ingest("a"), b"not json", reply=target)  # acknowledged at once
        await client.request(subjects.verb("a", "list"), b"{}", timeout=15)
        await client.request(subjects.ingest("a"), b"not json", timeout=15)
        after = [(await js.stream_info(name)).state for name in names]
    assert [(state.messages, state.last_seq) for state in after] == [
        (state.messages, state.last_seq) for state in before
    ]


async def test_a_header_names_no_other_project(locked: Stack, vault: Vault) -> None:
    async with link(locked, agent(vault, "a")) as (client, _):
        reply = await client.request(subjects.verb("a", "list"), b"{}", timeout=15, headers={"X-Project-ID": "b"})
    with pytest.raises(InvalidRequest, match="two projects"):
        wire.decode_reply(EncodeRequest, reply.data)


NOT_OF_ROLE = [
    ("embed", "$JS.API.STREAM.MSG.GET.MEMLANE_LOG"),
    ("embed", "memlane.v1.a.recall"),
    ("rerank", "$JS.API.STREAM.INFO.MEMLANE_LOG"),
    ("semantic", f"memlane.log.v1.a.0.{MEMORY}"),
    ("lexical", "$JS.API.STREAM.MSG.GET.KV_MEMLANE_SCHEMAS"),
    ("graph", "memlane.v1.a.forget"),
    ("catalog", "$KV.MEMLANE_LEDGER.a.2026-11-30"),
    ("orchestrator", f"memlane.log.v1.a.0.{MEMORY}"),
    ("orchestrator", "memlane.txn.v1.a.t"),
    ("orchestrator", "$JS.API.STREAM.MSG.DELETE.MEMLANE_LOG"),
    ("upkeep", "memlane.v1.a.encode"),
    ("upkeep", f"memlane.log.v1.a.0.{MEMORY}"),
    ("encode", "$KV.MEMLANE_SCHEMAS.a"),
    ("http", "$JS.API.STREAM.MSG.GET.MEMLANE_LOG"),
    ("supervisor", "memlane.v1.a.recall"),
    ("operator", "$JS.API.STREAM.SNAPSHOT.MEMLANE_LOG"),
    ("backup", "memlane.v1.a.recall"),
    *((role, "$JS.API.STREAM.DELETE.MEMLANE_LOG") for role in ROLES if role != BACKUP),
    *((role, "$JS.API.STREAM.PURGE.MEMLANE_LOG") for role in ROLES),
    *((role, "$SYS.REQ.CLAIMS.UPDATE") for role in ROLES),
]


async def test_what_a_role_does_not_need_it_may_not_do(locked: Stack, vault: Vault) -> None:
    for role, subject in NOT_OF_ROLE:
        async with link(locked, vault.access(role)) as (client, said):
            await client.publish(subject, b"{}")
            assert await word_of(client, said) == f'nats: permissions violation for publish to "{subject.lower()}"'


async def test_nobody_connects_without_a_credential(locked: Stack, vault: Vault) -> None:
    assert "authorization violation" in await refused(locked, Access(tls_ca=vault.ca))
    with pytest.raises(Denied):
        async with MemoryClient(locked.url, project="a", access=Access(tls_ca=vault.ca)):
            pass


async def test_nobody_connects_in_plain_text(locked: Stack, vault: Vault) -> None:
    assert "expecting info" in await refused(locked, Access(creds=agent(vault, "a").creds))


async def test_a_server_that_our_authority_does_not_vouch_for_is_refused(
    locked: Stack, vault: Vault, tmp_path: Path
) -> None:
    stranger = tmp_path / "ca.crt"
    stranger.write_bytes(certificates.make(["127.0.0.1"]).ca)
    access = Access(creds=agent(vault, "a").creds, tls_ca=stranger)
    assert "certificate verify failed" in await refused(locked, access)
    with pytest.raises(Unavailable) as caught:
        async with MemoryClient(locked.url, project="a", access=access):
            pass
    assert "certificate verify failed" in caught.value.details["reason"].lower()


async def test_a_server_under_another_name_is_refused(locked: Stack, vault: Vault) -> None:
    access = agent(vault, "a")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        async with link(locked, access, tls_hostname="memory.example"):
            pass


def forged(vault: Vault, file: Path, signer: Key, account: str | None = None, **options: Any) -> Access:
    """A credential for project a that `signer` has signed."""
    key, grant = Key.new("user"), permissions.agent("a")
    mine = grant.with_inbox(key.public)
    account = account or vault._key("projects/a", "account").public
    token = claims.user(signer, account, key.public, "forged", mine.publish, mine.subscribe, **options)
    file.write_bytes(claims.credentials(token, key))
    return Access(creds=file, tls_ca=vault.ca)


async def test_credentials_that_are_not_or_no_longer_good(locked: Stack, vault: Vault, tmp_path: Path) -> None:
    signer = vault._key("projects/a", "signer")
    good = forged(vault, tmp_path / "good.creds", signer, expires=int(time.time()) + 60)
    async with link(locked, good):
        pass  # so that what follows is refused for the right reason
    text = (tmp_path / "good.creds").read_bytes()
    (tmp_path / "stolen.creds").write_bytes(text.replace(text.split(b"\n")[5], Key.new("user").seed()))
    bad = {
        "expired": forged(vault, tmp_path / "1.creds", signer, expires=int(time.time()) - 1),
        "signed by a stranger": forged(vault, tmp_path / "2.creds", Key.new("account")),
        "signed by another project": forged(vault, tmp_path / "3.creds", vault._key("projects/b", "signer")),
        "of no account": forged(vault, tmp_path / "4.creds", signer, Key.new("account").public),
        "claims without their key": Access(creds=tmp_path / "stolen.creds", tls_ca=vault.ca),
    }
    seed = tmp_path / "user.seed"
    seed.write_bytes(Key.new("user").seed())
    bad["a bare key"] = Access(nkey=seed, tls_ca=vault.ca)
    for name, access in bad.items():
        assert "authorization violation" in await refused(locked, access), name


async def test_a_running_server_takes_new_projects_and_revocations(locked: Stack, vault: Vault) -> None:
    folder = str(vault.folder)
    cli("security", "agent", "later", "--name", "one", "--days", "1", "--dir", folder)
    vault.add_agent("later", "two")
    one, two = (agent(vault, "later", name) for name in ("one", "two"))
    kept = vault.folder.parent / "kept.creds"
    kept.write_bytes((one.creds or Path()).read_bytes())
    async with MemoryClient(locked.url, project="later", access=one) as memory:
        assert (await memory.encode("Emma leads support")).id
        cli("security", "revoke", "later", "--name", "one", "--dir", folder, "--nats", locked.url)
    assert "authorization violation" in await refused(locked, Access(creds=kept, tls_ca=vault.ca))
    async with MemoryClient(locked.url, project="later", access=two) as memory:
        assert (await memory.list()).memories


async def test_the_operator_sees_every_process(locked: Stack, vault: Vault) -> None:
    flags = ("--creds", str(vault.folder / "operator.creds"), "--ca", str(vault.ca))
    done = cli(*flags, "status", "--nats", locked.url, "--json")
    roles = {process["role"] for process in orjson.loads(done.stdout)}
    assert roles >= {"orchestrator", "encode", "catalog", "embed", "semantic", "lexical", "graph", "upkeep"}
    assert {process["lag"] for process in orjson.loads(done.stdout)} <= {0, None}
    assert "eof_received" not in done.stderr
    assert done.stderr == ""
    scaled = cli(*flags, "scale", "orchestrator", "2", "--nats", locked.url, "--json")
    assert orjson.loads(scaled.stdout)["started"] == ["orchestrator-2"]


async def test_backups_have_a_credential_of_their_own(locked: Stack, vault: Vault, tmp_path: Path) -> None:
    flags = ("--creds", str(vault.folder / "roles" / "backup.creds"), "--ca", str(vault.ca))
    done = cli(*flags, "backup", "create", str(tmp_path / "kept"), "--nats", locked.url, "--json")
    assert {one["stream"] for one in orjson.loads(done.stdout)} >= {"MEMLANE_LOG", "KV_MEMLANE_SCHEMAS"}


async def test_no_secret_is_in_any_log(locked: Stack, vault: Vault) -> None:
    """Last, so that there is something to find. The server names public keys, which are no secret."""
    secrets = {path.read_bytes().strip() for path in vault.folder.rglob("*.seed")}
    for path in vault.folder.rglob("*.creds"):
        lines = path.read_bytes().split(b"\n")
        secrets |= {lines[1], lines[5]}
    secrets |= {path.read_bytes().split(b"\n")[1] for path in vault.folder.rglob("*.key")}
    logs = [*locked.data.rglob("*.log"), locked.data / "up.out", locked.data / "up.err"]
    assert len(logs) > 8
    assert len(secrets) > 30
    for log in logs:
        said = log.read_bytes()
        assert not [secret[:12] for secret in secrets if secret in said], log
        assert b"PRIVATE KEY" not in said
        assert b"NKEY SEED" not in said

"""Everything on one machine: servers and workers as children, restarted when they fall, stopped together."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import anyio
import structlog
from nats.aio.msg import Msg

from contracts import subjects, wire
from contracts.base import LaxMessage
from contracts.errors import Conflict, ErrorCode, InvalidRequest, MemlaneError, Unavailable
from contracts.ops import ReshardReply, ReshardRequest, ScaleReply, ScaleRequest
from infra.child import NOT_NEEDED, end, spawn, tail
from infra.discovery import await_roles
from infra.graph_server import EmbeddedGraph
from infra.nats_bus import connect
from infra.nats_server import NatsServer
from infra.resharding import Resharding, Stage, remember, remembered, remove_others
from infra.roster import ONCE, PER_SHARD, Post, change, posts
from infra.security.vault import Vault
from infra.settings import Nats, Settings

logger = structlog.get_logger()

READY_TIMEOUT_S = 120.0
BACKOFF_S, MOST_BACKOFF_S = 0.3, 10.0
#: A child that lived this long starts again without waiting.
STEADY_S = 20.0


@dataclass
class Worker:
    """A child process and its history."""

    post: Post
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    backoff: float = BACKOFF_S
    due: float = 0.0
    off: bool = False
    slot: int = 0  #: among the ports for metrics; no two processes hold one

    @property
    def role(self) -> str:
        return self.post.role

    @property
    def label(self) -> str:
        """The first replica's is the shortest."""
        role, shard, number = self.post
        parts = [role, *([str(shard)] if role in PER_SHARD else []), *([str(number + 1)] if number else [])]
        return "-".join(parts)


@dataclass
class Supervisor:
    """`start`, then `watch` until cancelled, then `stop`. What is given by settings (a NATS url, a Neo4j uri) is used;
    what is not is started on loopback."""

    settings: Settings
    port: int = 0
    own_nats: bool = True
    workers: list[Worker] = field(default_factory=list)
    leaving: list[Worker] = field(default_factory=list)
    shards: int = 1
    _resharding: Resharding | None = None
    _nats: NatsServer | None = None
    _graph: EmbeddedGraph | None = None
    _graph_env: dict[str, str] = field(default_factory=dict)
    _vault: Vault | None = None

    def __post_init__(self) -> None:
        if self.settings.security is not None:
            self._vault = Vault(self.settings.security)

    @property
    def url(self) -> str:
        return self._nats.url if self._nats else self.settings.nats.url

    async def start(self) -> None:
        """Start all and wait until every role answers. Raises Unavailable that says which does not, and why."""
        data = self.settings.data.absolute()
        given = "shards" in self.settings.log.model_fields_set
        self.shards = (None if given else remembered(data)) or self.settings.log.shards
        remember(data, self.shards)
        if gone := remove_others(data, self.shards):
            logger.info("indexes of another number of shards removed", action="remove_indexes", folders=gone)
        if self.own_nats:
            lock = (self._vault.server_config(), self._vault.core) if self._vault else ()
            self._nats = NatsServer(data / "nats", self.port, *lock)
            self._nats.start()
        if self.settings.graph.uri is None:
            self._graph = EmbeddedGraph(data / "graph", self.settings.graph.heap_mb)
            self._start_graph()
        off = {"rerank": not self.settings.rerank.enabled, "upkeep": not self.settings.upkeep.enabled}
        for role in (*ONCE, *PER_SHARD):
            if not off.get(role):
                self._hire(posts(role, self.shards, self.settings.replicas.of(role)))
        await self._await_ready()

    async def watch(self) -> None:
        """Start again whatever ends, for ever."""
        while True:
            await anyio.sleep(0.1)
            if self._nats and not self._nats.alive:
                logger.warning("nats ended", action="restart_nats")
                self._nats.start()
            if self._graph and not self._graph.alive:
                logger.warning("graph store ended", action="restart_graph")
                self._restart_graph()
            for worker in self.workers:
                self._tend(worker)
            self.leaving = [worker for worker in self.leaving if worker.process and worker.process.poll() is None]

    async def control(self) -> None:
        """Obey `memlane scale` and `memlane reshard`, for ever."""
        client = await connect(self._link(), "memlane-control")

        def answering(obey: Callable[[bytes], LaxMessage]) -> Callable[[Msg], Awaitable[None]]:
            async def answer(message: Msg) -> None:
                try:
                    await message.respond(wire.encode(obey(message.data)))
                except MemlaneError as error:
                    await message.respond(wire.encode_error(error))

            return answer

        try:
            async with anyio.create_task_group() as tasks:

                def begin(going: Resharding) -> None:
                    tasks.start_soon(going.run, client)

                def reshard(data: bytes) -> ReshardReply:
                    return self.reshard(wire.decode(ReshardRequest, data), begin)

                await client.subscribe(
                    subjects.SCALE, cb=answering(lambda data: self.scale(wire.decode(ScaleRequest, data)))
                )
                await client.subscribe(subjects.RESHARD, cb=answering(reshard))
                await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(2):
                await client.close()

    def scale(self, request: ScaleRequest) -> ScaleReply:
        """Start or stop replicas of a role. Raises InvalidRequest for a role that is off by the settings, Conflict
        while the shards change."""
        if self._resharding and self._resharding.stage is not Stage.DONE:
            raise Conflict(ErrorCode.INVALID_REQUEST, f"the shards change to {self._resharding.to}: wait for that")
        present = [worker.post for worker in self.workers]
        if not any(post.role == request.role for post in present):
            raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"the role {request.role} is off", field="role")
        leaving = {worker.post for worker in self.leaving}
        asked = change(present, leaving, request.role, self.shards, request.replicas)
        stopped, started = self._dismiss(asked.stop), self._hire(asked.start)
        names = tuple(one.label for one in started), tuple(one.label for one in stopped)
        logger.info("scaled", action="scale", role=request.role, started=names[0], stopped=names[1])
        return ScaleReply(role=request.role, replicas=request.replicas, started=names[0], stopped=names[1])

    def reshard(self, request: ReshardRequest, begin: Callable[[Resharding], None]) -> ReshardReply:
        """Begin to change the number of shards, or say how far that is. Raises Conflict while it changes to another."""
        going = self._resharding
        if going is None or (going.stage is Stage.DONE and going.to != request.shards):
            if request.shards == self.shards:
                return ReshardReply(before=self.shards, shards=self.shards, stage="done")
            going = self._resharding = Resharding(
                self, self.settings.data.absolute(), self.settings.replica, request.shards
            )
            begin(going)
        if going.to != request.shards:
            raise Conflict(ErrorCode.INVALID_REQUEST, f"the shards change to {going.to}: wait for that", field="shards")
        return going.reply()

    def posts(self) -> list[Post]:
        return [worker.post for worker in self.workers]

    def start_posts(self, posts: Sequence[Post]) -> None:
        self._hire(posts)

    async def stop_posts(self, posts: Collection[Post]) -> None:
        going = self._dismiss(posts)
        while any(worker.process and worker.process.poll() is None for worker in going):
            await anyio.sleep(0.1)

    def _hire(self, posts: Sequence[Post]) -> list[Worker]:
        staffed = []
        for post in posts:
            taken = {worker.slot for worker in (*self.workers, *self.leaving)}
            worker = Worker(post, slot=next(slot for slot in count() if slot not in taken))
            self.workers.append(worker)
            self._spawn(worker)
            staffed.append(worker)
        return staffed

    def _dismiss(self, posts: Collection[Post]) -> list[Worker]:
        """Tell their processes to stop; they finish what is in hand."""
        stopped = [worker for worker in self.workers if worker.post in posts]
        self.workers = [worker for worker in self.workers if worker.post not in posts]
        for worker in stopped:
            if worker.process and worker.process.poll() is None:
                worker.process.terminate()
                self.leaving.append(worker)
        return stopped

    def stop(self) -> None:
        """Workers first, so that they finish what is in hand; then the servers they need for that."""
        for worker in self.workers:
            if worker.process and worker.process.poll() is None:
                worker.process.terminate()
        for worker in [*self.workers, *self.leaving]:
            if worker.process:
                end(worker.process)
        if self._graph:
            self._graph.stop()
        if self._nats:
            self._nats.stop()

    def log_of(self, worker: Worker) -> Path:
        return self.settings.data.absolute() / "logs" / f"{worker.label}.log"

    def _link(self) -> Nats:
        mine = self.settings.nats.model_copy(update={"url": self.url})
        if self._vault is None:
            return mine
        access = self._vault.access("supervisor")
        return mine.model_copy(update={"creds": access.creds, "tls_ca": access.tls_ca})

    def _start_graph(self) -> None:
        assert self._graph is not None
        address = self._graph.start()
        self._graph_env = {
            "MEMLANE_GRAPH__URI": address.uri,
            "MEMLANE_GRAPH__USER": address.user,
            "MEMLANE_GRAPH__PASSWORD": address.password,
            "MEMLANE_GRAPH__DATABASE": address.database,
        }

    def _restart_graph(self) -> None:
        """It comes back on another port, so its workers start again too."""
        self._start_graph()
        for worker in self.workers:
            if worker.role == "graph" and worker.process:
                end(worker.process)

    def _spawn(self, worker: Worker) -> None:
        module = ["orchestrator"] if worker.role == "orchestrator" else ["workers", worker.role]
        port = self.settings.metrics.port  # 0, any free one, is the same for all
        env = {
            "MEMLANE_DATA": str(self.settings.data.absolute()),
            "MEMLANE_SHARD": str(worker.post.shard.number),
            "MEMLANE_LOG__SHARDS": str(worker.post.shard.of if worker.role in PER_SHARD else self.shards),
            "MEMLANE_REPLICA": worker.post.replica(self.settings.replica),
            "MEMLANE_NATS__URL": self.url,
            **({"MEMLANE_METRICS__PORT": str(port + worker.slot)} if port else {}),
            **(self._graph_env if worker.role == "graph" else {}),
            **(self._vault.environment(worker.role) if self._vault else {}),
        }
        worker.process = spawn([sys.executable, "-m", *module], self.log_of(worker), env)
        worker.started = time.monotonic()

    def _tend(self, worker: Worker) -> None:
        if worker.off or worker.process is None:
            return
        code = worker.process.poll()
        if code is None:
            return
        if code == NOT_NEEDED:
            worker.off = True
            logger.info("role is off", action="role_off", worker=worker.label)
            return
        present = time.monotonic()
        if not worker.due:
            steady = present - worker.started > STEADY_S
            worker.backoff = BACKOFF_S if steady else min(worker.backoff * 2, MOST_BACKOFF_S)
            worker.due = present + (0.0 if steady else worker.backoff)
            logger.warning("worker ended", action="restart_worker", worker=worker.label, code=code)
        if present >= worker.due:
            worker.due = 0.0
            self._spawn(worker)

    async def _await_ready(self) -> None:
        wanted: dict[str, int] = {}
        for worker in self.workers:
            if worker.role != "rerank":
                wanted[worker.role] = wanted.get(worker.role, 0) + 1
        client = await connect(self._link(), "memlane-up")
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.watch)
                missing = await await_roles(client, wanted, READY_TIMEOUT_S)
                tasks.cancel_scope.cancel()
        finally:
            await client.close()
        if missing:
            worker = next(worker for worker in self.workers if worker.role in missing)
            raise Unavailable(
                ErrorCode.UNAVAILABLE,
                f"{', '.join(missing)} did not become ready; the log of {worker.label} ends:\n"
                f"{tail(self.log_of(worker))}",
            )


@contextmanager
def only_one(data: Path) -> Iterator[None]:
    """Hold a data folder. Raises Conflict when another process of ours holds it."""
    data.mkdir(parents=True, exist_ok=True)
    with (data / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(ErrorCode.INVALID_REQUEST, f"another memlane up runs on {data}", field="data") from None
        yield


async def run(supervisor: Supervisor, announce: Callable[[str], None]) -> None:
    """Start, announce, watch until SIGINT or SIGTERM, stop."""
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as tasks:

                async def stop_on_signal() -> None:
                    async for _ in signals:
                        tasks.cancel_scope.cancel()

                tasks.start_soon(stop_on_signal)
                await supervisor.start()
                tasks.start_soon(supervisor.control)
                announce(supervisor.url)
                await supervisor.watch()
    finally:
        supervisor.stop()

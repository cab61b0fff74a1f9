"""The embedded graph store: ArcadeDB out of the wheel `arcadedb-embedded`, as a child that speaks Bolt on loopback.

The wheel brings its own Java. Any process may connect with the official Neo4j driver while the child runs.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from neo4j import GraphDatabase
from neo4j.exceptions import DriverError, Neo4jError

from contracts.errors import ErrorCode, Unavailable
from infra.child import end, free_port, spawn, tail

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
PORT_TRIES = 5
QUERY_LIMIT_MS = 3000  #: the server ends a query after this; it takes no limit from clients
TAIL_CHARS = 2000
DATABASE = "neo4j"
USER = "root"
#: Not loaded: what would open an endpoint that nobody here uses.
UNUSED_JARS = ("arcadedb-mcp", "arcadedb-postgresw", "arcadedb-redisw", "arcadedb-graphql")


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """Where a graph server listens and how to sign in."""

    uri: str
    user: str
    password: str = field(repr=False)
    database: str


class _PortTaken(Exception):
    pass


class EmbeddedGraph:
    """One server with its data, log and password in `data`; a second one on the same folder is refused by a lock."""

    def __init__(self, data: Path, heap_mb: int = 512) -> None:
        self._data, self._heap_mb = data, heap_mb
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Raises Unavailable before the start."""
        if self._process is None:
            raise Unavailable(ErrorCode.UNAVAILABLE, "the embedded graph store is not started")
        return self._process.pid

    @property
    def log(self) -> Path:
        return self._data / "server.log"

    def start(self) -> GraphAddress:
        """Start, and wait until a query is answered.

        Raises Unavailable when the wheel is not installed, or with the end of the log when nothing answers in time.
        """
        package = _package()
        self._data.mkdir(parents=True, exist_ok=True)
        password = self._password()
        for _ in range(PORT_TRIES):
            address = GraphAddress(f"bolt://127.0.0.1:{free_port()}", USER, password, DATABASE)
            self._launch(package, address)
            try:
                self._await(address)
            except _PortTaken:
                self.stop()
            except BaseException:
                self.stop()
                raise
            else:
                return address
        raise self._failure("found no free port")

    def stop(self) -> None:
        """End the child: first politely, so that it closes its files, then by force. Harmless when it has ended."""
        process, self._process = self._process, None
        if process is not None:
            end(process, STOP_TIMEOUT_S)

    @property
    def _password_file(self) -> Path:
        return self._data / "password"

    def _password(self) -> str:
        # The server takes it at its first start only, so it must last as long as the data.
        if not self._password_file.exists():
            private = os.open(self._password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(private, "w") as file:
                file.write(secrets.token_urlsafe(24))
        return self._password_file.read_text().strip()

    def _launch(self, package: Path, address: GraphAddress) -> None:
        settings = {
            "server.rootPath": str(self._data),
            "server.rootPasswordPath": str(self._password_file),
            "server.defaultDatabases": f"{DATABASE}[]",
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "server.httpIncomingHost": "127.0.0.1",
            "server.httpIncomingPort": str(free_port()),
            "bolt.host": "127.0.0.1",
            "bolt.port": address.uri.rpartition(":")[2],
            "command.timeout": str(QUERY_LIMIT_MS),
            # Write to the file system before a commit returns: survives a kill of this process.
            "txWalFlush": "1",
        }
        jars = [jar for jar in sorted((package / "jars").glob("*.jar")) if not jar.name.startswith(UNUSED_JARS)]
        command = [
            str(package / "jre" / "bin" / "java"),
            f"-Xmx{self._heap_mb}m",
            *(f"-Darcadedb.{name}={value}" for name, value in settings.items()),
            "-cp",
            os.pathsep.join(map(str, jars)),
            "com.arcadedb.server.ArcadeDBServer",
        ]
        self.log.unlink(missing_ok=True)  # what an earlier start wrote there would be read as this one's
        self._process = spawn(command, self.log, folder=self._data)

    def _await(self, address: GraphAddress) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if not self.alive:
                raise self._failure("ended while starting")
            written = tail(self.log, TAIL_CHARS)
            if "Unable to listen" in written or "Address already in use" in written:
                raise _PortTaken  # the server logs this and then hangs
            # Not before: on a taken port the driver would wait for whoever listens there.
            if "Server started" in written and answers(address):
                return
            time.sleep(0.1)
        raise self._failure(f"did not answer within {START_TIMEOUT_S:.0f} s")

    def _failure(self, what: str) -> Unavailable:
        return Unavailable(
            ErrorCode.UNAVAILABLE, f"the embedded graph store {what}; its log ends:\n{tail(self.log, TAIL_CHARS)}"
        )


def answers(address: GraphAddress) -> bool:
    """Whether a query is answered there now."""
    port = int(address.uri.rpartition(":")[2])
    with socket.socket() as probe:
        # The driver takes its time over a refused connection.
        if probe.connect_ex(("127.0.0.1", port)):
            return False
    credentials = (address.user, address.password)
    try:
        with (
            GraphDatabase.driver(address.uri, auth=credentials, connection_timeout=2) as driver,
            driver.session(database=address.database) as session,
        ):
            session.run("RETURN 1").consume()  # outside a managed transaction: those are tried for 30 s
    except (DriverError, Neo4jError, OSError):
        return False
    return True


def _package() -> Path:
    """The wheel's folder, found without an import, which would start a JVM in this process."""
    found = importlib.util.find_spec("arcadedb_embedded")
    if found is None or not found.submodule_search_locations:
        raise Unavailable(
            ErrorCode.UNAVAILABLE, "no arcadedb-embedded: install the extra `embedded`, or set the graph's uri"
        )
    return Path(found.submodule_search_locations[0])

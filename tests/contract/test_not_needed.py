"""A role that has nothing to do on this machine says so with its exit code, and is then left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from infra.child import NOT_NEEDED
from infra.nats_server import NatsServer


def test_rerank_without_weights(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    server.start()
    try:
        env = os.environ | {"NATS_URL": server.url, "MEMLANE_RERANK__MODEL": str(tmp_path / "no-weights")}
        done = subprocess.run([sys.executable, "-m", "workers", "rerank"], env=env, timeout=120, check=False)
        assert done.returncode == NOT_NEEDED
    finally:
        server.stop()

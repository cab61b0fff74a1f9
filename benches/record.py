"""Measured figures as files: one JSON a bench and case under `benches/results/`, with what makes them comparable.

A figure without its date, commit and machine cannot be held beside another. README's tables are made from these files.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from contracts.base import now

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """What this machine is: cores that may be used, processor, memory in GiB, Python."""
    processor = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": processor,
        "memory_gib": round(memory),
        "python": platform.python_version(),
    }


def commit() -> str:
    """The commit that was measured, with `+` where files differ from it; empty outside a git checkout."""
    folder = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=10", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
        dirty = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if dirty else "")


def spread(values_ms: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 of times in milliseconds; ValueError for fewer than two."""
    cuts = statistics.quantiles(values_ms, n=100)
    return {
        "p50_ms": round(statistics.median(values_ms), 2),
        "p95_ms": round(cuts[94], 2),
        "p99_ms": round(cuts[98], 2),
    }


def keep(name: str, case: Mapping[str, Any], figures: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Write the figures of one case of a bench. Returns the file's path; an older file of the case is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'-'.join([name, *(str(value) for value in case.values())])}.json"
    whole = {
        "bench": name,
        "case": dict(case),
        "date": now().date().isoformat(),
        "commit": commit(),
        "machine": machine() | {"load_at_end": round(os.getloadavg()[0], 1)},
        "figures": dict(figures),
    }
    path.write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n")
    return path

"""What one look at the processes shows."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from contracts.shards import WHOLE, Shard
from infra.discovery import Process
from infra.top import NEEDED, Frame, render


def process(role: str, **facts: Any) -> Process:
    return Process(role, "id", {"replica": "a", **facts}, 10, facts.pop("errors", 0))


def frame(*processes: Process, at: float = 100.0, end: int = 50, connected: bool = True) -> Frame:
    return Frame(at, "nats://here:1", connected, processes, {WHOLE: end, Shard(0, 2): end - 8, Shard(1, 2): end})


def text(shown: Frame, before: Frame | None = None) -> list[str]:
    console = Console(width=80, no_color=True)
    with console.capture() as captured:
        console.print(render(shown, before))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def row(lines: list[str], role: str) -> list[str]:
    [found] = [line.split() for line in lines if line.split()[0] == role]
    return found


def test_lag_is_behind_what_a_process_follows() -> None:
    lines = text(
        frame(
            process("semantic", shard="0of2", position=40, per_s=3.0, median_ms=1.5, overloaded=2),
            process("graph", shard="1of2", position=50, per_s=1.5),
            process("catalog", shard="0of2", position=50, per_s=0.0),
            process("embed", waiting=7, per_s=0.0),
        )
    )
    assert "…" not in "".join(lines)
    assert row(lines, "semantic") == ["semantic", "0of2", "a", "40", "2", "3.0", "█" * 4, "1.5", "0", "2"]
    assert row(lines, "graph") == ["graph", "1of2", "a", "50", "0", "1.5", "█" * 2, "0", "0"]
    assert row(lines, "catalog")[4] == "0"  # of the whole log, not of its shard
    assert row(lines, "embed") == ["embed", "a", "0.0", "0", "7", "0"]


def test_who_is_missing_is_named() -> None:
    shown = frame(*(process(role) for role in NEEDED if role not in ("graph", "encode")))
    assert shown.missing == ["encode", "graph"]
    assert text(shown)[-1] == "nobody answers for encode, graph"
    assert "nobody" not in " ".join(text(frame(*(process(role) for role in NEEDED))))


def test_growth_needs_two_looks() -> None:
    first, second = frame(at=100.0, end=50), frame(at=104.0, end=60)
    assert first.written_per_s(None) is None
    assert second.written_per_s(first) == pytest.approx(2.5)
    assert text(second, first)[0] == "memlane nats://here:1  0 processes  log at 60 (2.5 a second)"
    assert first.written_per_s(second) is None
    assert frame(at=105.0, end=0).written_per_s(second) == 0  # another log: nothing is written backwards


def test_a_server_that_is_away_is_no_missing_role() -> None:
    lines = text(frame(connected=False))
    assert "NATS does not answer; trying again" in lines
    assert not [line for line in lines if line.startswith("nobody")]


def test_as_values() -> None:
    shown = frame(process("semantic", shard="0of2", position=40)).as_dict(None)
    assert (shown["log_end"], shown["written_per_s"]) == (50, None)
    assert shown["processes"] == [
        {
            "role": "semantic",
            "id": "id",
            "facts": {"replica": "a", "shard": "0of2", "position": 40},
            "requests": 10,
            "errors": 0,
            "lag": 2,
        }
    ]

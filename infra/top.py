"""What `memlane top` shows: one look at all processes as one frame. Pure: nothing is asked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from contracts.shards import WHOLE, Shard
from infra.discovery import Process, lag

#: Roles without which some verb cannot be answered, or not in full.
NEEDED = ("orchestrator", "encode", "embed", "catalog", "semantic", "lexical", "graph")
BAR = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """One look: who answered, and the ends of the log (`infra.discovery.log_ends`). `at` is on the monotonic clock."""

    at: float
    url: str
    connected: bool
    processes: Sequence[Process]
    ends: Mapping[Shard, int]

    @property
    def end(self) -> int:
        return self.ends.get(WHOLE, 0)

    @property
    def missing(self) -> list[str]:
        present = {process.role for process in self.processes}
        return [role for role in NEEDED if role not in present]

    def written_per_s(self, before: Frame | None) -> float | None:
        """Positions by which the log grew a second since an earlier look."""
        if before is None or self.at <= before.at:
            return None
        return max(0, self.end - before.end) / (self.at - before.at)

    def as_dict(self, before: Frame | None) -> dict[str, Any]:
        return {
            "connected": self.connected,
            "log_end": self.end,
            "written_per_s": self.written_per_s(before),
            "missing": self.missing,
            "processes": [
                {name: getattr(one, name) for name in one.__slots__} | {"lag": lag(one, self.ends)}
                for one in self.processes
            ],
        }


def render(frame: Frame, before: Frame | None = None) -> RenderableType:
    """The frame for a terminal. Rates of the log are against the frame before."""
    parts: list[RenderableType] = [_head(frame, before)]
    if not frame.connected:
        parts.append(Text.from_markup("[red]NATS does not answer; trying again[/red]"))
    parts.append(_table(frame))
    if frame.connected and frame.missing:
        parts.append(Text.from_markup(f"[red]nobody answers for {', '.join(frame.missing)}[/red]"))
    return Group(*parts)


def _head(frame: Frame, before: Frame | None) -> Text:
    written = frame.written_per_s(before)
    growing = "" if written is None else f" [dim]({written:.1f} a second)[/dim]"
    return Text.from_markup(
        f"[bold]memlane[/bold] {escape(frame.url)}  {len(frame.processes)} processes  log at {frame.end}{growing}\n"
    )


def _table(frame: Frame) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")  # it fits into 80 columns
    table.add_column("role", no_wrap=True, min_width=max(map(len, NEEDED)))
    for name in ("shard", "replica", "position", "lag", "per s"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("", no_wrap=True, width=BAR)
    for name in ("ms", "errors", "queue", "refused"):
        table.add_column(name, no_wrap=True, justify="right")
    most = max((_number(one, "per_s") for one in frame.processes), default=0.0)
    for one in frame.processes:
        behind = lag(one, frame.ends)
        table.add_row(
            one.role,
            _fact(one, "shard"),
            _fact(one, "replica"),
            _fact(one, "position"),
            "" if behind is None else f"[yellow]{behind}[/yellow]" if behind else "0",
            _fact(one, "per_s"),
            f"[green]{'█' * round(BAR * _number(one, 'per_s') / most)}[/green]" if most else "",
            f"{_number(one, 'median_ms'):.1f}" if "median_ms" in one.facts else "",
            _alarming(one.errors),
            _fact(one, "waiting"),
            _alarming(int(_number(one, "refused") + _number(one, "overloaded"))),
        )
    return table


def _fact(process: Process, name: str) -> str:
    return escape(str(process.facts.get(name, "")))


def _number(process: Process, name: str) -> float:
    value = process.facts.get(name, 0)
    return float(value) if isinstance(value, int | float) else 0.0


def _alarming(count: int) -> str:
    return f"[red]{count}[/red]" if count else "0"

"""How a query's answer looks in the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contracts.memory import derive_id
from contracts.query import QueryMemory, QueryReply, Scores
from contracts.recall import LaneOutcome
from infra import cli_query
from infra.cli_query import BAR, bar
from orchestrator.weights import DEFAULT, SIGNALS


@pytest.mark.parametrize(("value", "blocks"), [(0.0, 0), (0.5, BAR // 2), (1.0, BAR), (1.7, BAR), (-1.0, 0)])
def test_a_bar_is_as_long_as_its_value(value: float, blocks: int) -> None:
    assert bar(value, 0.1).count("█") == blocks
    assert bar(value, 0.1).count("░") == BAR - blocks


def test_every_signal_has_a_bar_and_texts_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    memory = QueryMemory(
        id=derive_id("a"), text="[red]not markup[/red]", score=0.5, scores=Scores(semantic=0.25), tags=(),
        created_at=datetime(2026, 1, 1, tzinfo=UTC), explain=("close in meaning (0.25)",),
    )  # fmt: skip
    reply = QueryReply(
        memories=(memory,), computation_tier="medium", tier_reason="filters", latency_ms=7, weights=DEFAULT,
        traversal_depth=2, filter_relaxed=True, relaxed=("tags",), rerank="off",
        lanes={"semantic": LaneOutcome(status="ok")},  # type: ignore[arg-type]
    )  # fmt: skip
    cli_query._answered(reply)
    shown = capsys.readouterr().out
    assert all(name in shown for name in SIGNALS)
    assert shown.count("x 0.") == len(SIGNALS)
    assert "[red]not markup[/red]" in shown
    assert "relaxed tags" in shown
    assert "rerank: off" in shown
    assert "close in meaning (0.25)" in shown


def test_nothing_is_said_to_be_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cli_query._answered(
        QueryReply(
            memories=(),
            computation_tier="low",
            tier_reason="3 tokens",
            latency_ms=1,
            weights=DEFAULT,
            traversal_depth=0,
        )
    )
    assert "nothing" in capsys.readouterr().out

"""What was measured, as numbers by name and as tables to read."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from infra.evaluation.asking import Asked, Refused
from infra.evaluation.datasets import QuestionSet
from infra.evaluation.measures import all_at, ndcg_at, recall_at, reciprocal_rank

Measure = Callable[[Sequence[str], Mapping[str, float]], float]

MEASURES: dict[str, Measure] = {
    "recall@5": lambda ranked, relevant: recall_at(ranked, relevant, 5),
    "recall@10": lambda ranked, relevant: recall_at(ranked, relevant, 10),
    "recall@20": lambda ranked, relevant: recall_at(ranked, relevant, 20),
    "recall@100": lambda ranked, relevant: recall_at(ranked, relevant, 100),
    "all@5": lambda ranked, relevant: all_at(ranked, relevant, 5),
    "all@10": lambda ranked, relevant: all_at(ranked, relevant, 10),
    "mrr": reciprocal_rank,
    "ndcg@10": lambda ranked, relevant: ndcg_at(ranked, relevant, 10),
}
VIEWS = ("semantic", "lexical", "graph", "fused")


def summarise(questions: QuestionSet, asked: Sequence[Asked], refused: Sequence[Refused]) -> dict[str, Any]:
    """Means over questions. `answers` is of the members: `hit` where any evidence is among them, `members` how many a
    reply had, `none_own` where there were none though there is evidence, `none_foreign` and `none_named` where there
    rightly were none (the latter for questions that name people whom the project knows)."""
    summary: dict[str, Any] = {"set": questions.name, "documents": len(questions.documents), "questions": len(asked)}
    summary["ranking"] = {view: _ranking(asked, view) for view in VIEWS}
    categories = sorted({one.question.category for one in asked})
    summary["categories"] = {
        name: {"questions": len(part), **_ranking(part, "fused")}
        for name in categories
        if (part := [one for one in asked if one.question.category == name])
    }
    summary["answers"] = _answers(asked, refused)
    halves = questions.halves()
    if halves[1]:
        summary["halves"] = [
            {
                "projects": sorted(half),
                **_ranking([one for one in asked if one.question.project in half], "fused"),
                **_answers(
                    [one for one in asked if one.question.project in half],
                    [one for one in refused if one.stranger.project in half],
                ),
            }
            for half in halves
        ]
    summary["took_ms"] = {"p50": round(statistics.median(one.took_ms for one in asked), 1)}
    return summary


def _ranking(asked: Sequence[Asked], view: str) -> dict[str, float]:
    return {
        name: _mean(measure(one.ranked.get(view, []), one.question.relevant) for one in asked)
        for name, measure in MEASURES.items()
    }


def _answers(asked: Sequence[Asked], refused: Sequence[Refused]) -> dict[str, float]:
    answers = {
        "hit": _mean(bool(one.question.relevant.keys() & set(one.members)) for one in asked),
        "members": _mean(len(one.members) for one in asked),
        "none_own": _mean(one.kind == "None" for one in asked),
    }
    for name, named in (("none_foreign", False), ("none_named", True)):
        if part := [one.kind == "None" for one in refused if one.stranger.named is named]:
            answers[name] = _mean(part)
    return answers


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return round(sum(values) / len(values), 4) if values else 0.0


def show(summary: Mapping[str, Any], console: Console) -> None:
    names = list(MEASURES)
    title = f"{summary['set']}: {summary['documents']} memories, {summary['questions']} questions"
    table = Table(title=title, header_style="bold", box=None, padding=(0, 1), pad_edge=False)
    for column in ("", *(name.replace("recall", "r") for name in names)):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for view, values in summary["ranking"].items():
        table.add_row(view, *(f"{values[name]:.3f}" for name in names))
    table.add_section()
    for category, values in summary["categories"].items():
        table.add_row(f"fused, {category} ({values['questions']})", *(f"{values[name]:.3f}" for name in names))
    if "halves" in summary:
        table.add_section()
        for number, half in enumerate(summary["halves"], 1):
            table.add_row(f"fused, half {number}", *(f"{half[name]:.3f}" for name in names))
    console.print(table)
    answers = Table(title="answers", header_style="bold", box=None, padding=(0, 1), pad_edge=False)
    answers.add_column("")
    for name in summary["answers"]:
        answers.add_column(name, justify="right")
    answers.add_row("all", *(f"{value:.3f}" for value in summary["answers"].values()))
    for number, half in enumerate(summary.get("halves", ()), 1):
        answers.add_row(f"half {number}", *(f"{half[name]:.3f}" for name in summary["answers"]))
    console.print(answers)
    console.print(f"recall took {summary['took_ms']['p50']} ms p50, one at a time, with trace")

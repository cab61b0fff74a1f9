"""LoCoMo as questions with evidence: what the quality benches ask. The file is read, never shipped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import orjson

_EVIDENCE = re.compile(r"D(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    project: str
    text: str
    category: int
    evidence: frozenset[str]


def read_questions(file: Path) -> list[Question]:
    """Every question whose evidence exists, evidence ids cleaned (``D30:05`` is D30:5; dangling ones dropped)."""
    questions = []
    for conversation in orjson.loads(file.read_bytes()):
        turns = {
            turn["dia_id"]
            for name, session in conversation["conversation"].items()
            if re.fullmatch(r"session_\d+", name)
            for turn in session
        }
        for qa in conversation["qa"]:
            found = {f"D{int(s)}:{int(t)}" for raw in qa.get("evidence", []) for s, t in _EVIDENCE.findall(str(raw))}
            if evidence := frozenset(found & turns):
                questions.append(Question(conversation["sample_id"], qa["question"], qa["category"], evidence))
    return questions

"""An extractive summary: a topic's most central sentences, each telling something that the others do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contracts.base import MemoryId
from contracts.memory import Vector

#: Characters of a summary, its label among them.
MOST_CHARS = 600
#: Sentences looked at of one memory.
MOST_SENTENCES = 5
#: Against likeness to what is chosen already, centrality counts so much (maximal marginal relevance, Carbonell and
#: Goldstein 1998).
CENTRALITY = 0.7

_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a memory with its unit vector, shape (d,)."""

    memory: MemoryId
    text: str
    vector: Vector


def sentences_of(text: str) -> list[str]:
    """The first `MOST_SENTENCES` sentences of a text, each on one line."""
    parts = (" ".join(part.split()) for part in _END.split(text))
    return [part for part in parts if part][:MOST_SENTENCES]


def summarise(label: str, sentences: Sequence[Sentence], most_chars: int = MOST_CHARS) -> str:
    """The label and the sentences that are chosen, in the order given, at most `most_chars` in all.

    Next is chosen always the sentence with the most ``0.7 · cos(centroid) - 0.3 · cos(likest chosen)`` that still fits;
    ties go to the earlier one. Deterministic. A first sentence that is too long is cut. No sentences give "".
    """
    if not sentences:
        return ""
    vectors = np.stack([one.vector for one in sentences])
    central = CENTRALITY * (vectors @ _unit(vectors.sum(axis=0)))
    likest = np.zeros(len(sentences), dtype=np.float32)
    left = most_chars - len(label) - 2
    chosen: list[int] = []
    open_ones = set(range(len(sentences)))
    while open_ones:
        best = max(sorted(open_ones), key=lambda one: float(central[one] - (1 - CENTRALITY) * likest[one]))
        open_ones.remove(best)
        if (size := len(_closed(sentences[best].text)) + 1) > left:
            continue
        left -= size
        chosen.append(best)
        likest = np.maximum(likest, vectors @ vectors[best])
    if not chosen:
        return f"{label}: {sentences[int(np.argmax(central))].text}"[: most_chars - 1] + "…"
    return f"{label}: " + " ".join(_closed(sentences[one].text) for one in sorted(chosen))


def _closed(sentence: str) -> str:
    return sentence if sentence[-1] in ".!?…。！？" else sentence + "."


def _unit(vector: Vector) -> Vector:
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm > 0.0 else vector

"""One normal form of names, so that every store agrees on when two names are the same."""

from __future__ import annotations

import re
import unicodedata

_SPACES = re.compile(r"\s+")
_POSSESSIVE = re.compile(r"['\u2019]s$")


def normalise(name: str) -> str:
    """NFKC, case-folded, single-spaced, without surrounding punctuation or a possessive 's."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    trimmed = _SPACES.sub(" ", folded).strip(" \t.,;:!?\"'()[]{}<>\u2019\u201c\u201d\u3002\u3001\uff0c")
    return _POSSESSIVE.sub("", trimmed)


def phrase(predicate: str) -> str:
    """A predicate or relation type as words in normal form: ``works_at`` is ``works at``."""
    return normalise(predicate.replace("_", " "))


def spans(text: str, longest: int = 5) -> list[str]:
    """Every run of 1 to `longest` words of a text in normal form, longer runs first: what could be a name in it."""
    words = [word for word in (normalise(part) for part in text.split()) if word]
    runs: dict[str, None] = {}
    for size in range(min(longest, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            runs.setdefault(" ".join(words[start : start + size]))
    return list(runs)

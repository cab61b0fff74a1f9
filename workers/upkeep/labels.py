"""What a topic is called: the words that its texts share and the project's other texts do not."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from workers.analysis import stem, tokens
from workers.stopwords import FILLER, STOP_WORDS

#: Words in a label.
WORDS = 3
#: Characters of a text that are looked at: what it is about shows early.
MOST_CHARS = 4000
_SHORTEST = 3


def words_of(text: str) -> tuple[str, ...]:
    """The different content words of a text, case folded, in order: no stop words, numbers or ids."""
    found = (token.whole for token in tokens(text[:MOST_CHARS]) if token.form in ("word", "run"))
    return tuple(dict.fromkeys(word for word in found if _has_content(word)))


def label_of(texts: Iterable[tuple[str, ...]], project: Mapping[str, int], clusters: int) -> str:
    """The `WORDS` best words by class-based tf-idf (Grootendorst 2022): the share of a topic's texts with a word times
    ``log(1 + A / f)``, with f the texts of the project that have it and A the words a cluster has on average.

    Words of one stem count as one and show in their commonest form. `texts` are the words of each member, `project`
    counts texts by stem over all `clusters`. One of a single member is taken only where the members share none. Ties by
    name.
    """
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    shared: Counter[str] = Counter()
    for words in texts:
        shared.update({stem(word) for word in words})
        for word in words:
            forms[stem(word)][word] += 1
    average = sum(project.values()) / max(1, clusters)
    weights = {
        name: count * math.log1p(average / max(count, project.get(name, 0)))
        for name, count in shared.items()
        if count > 1 or max(shared.values()) == 1
    }
    best = sorted(weights, key=lambda name: (-weights[name], name))[:WORDS]
    return ", ".join(min(forms[name], key=lambda word: (-forms[name][word], word)) for name in best)


def _has_content(word: str) -> bool:
    if word in STOP_WORDS or word in FILLER or any(char.isdigit() for char in word):
        return False
    return len(word) >= (_SHORTEST if word.isascii() else 2)

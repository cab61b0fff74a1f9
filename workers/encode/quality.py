"""How much a text is likely to tell: a deterministic score of its form, the `quality` of a memory."""

from __future__ import annotations

import math
import re
from collections import Counter

from workers.stopwords import FILLER, STOP_WORDS

#: Entropy of the content words, in bits, that counts as full information: sixteen different ones.
FULL_BITS = 4.0
#: Share of specific tokens that counts as fully specific.
FULL_SHARE = 0.3
#: Content words at which a text has 63 % of what length can give it.
LENGTH_SCALE = 5.0
#: Only so much of a long text is looked at: the score has saturated long before.
MOST_CHARS = 20_000

_TOKEN = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]|\w+(?:[-'’./:@]\w+)*")


def quality_of(text: str) -> float:
    """In [0, 1]: ``length · repetition · (0.55 · information + 0.30 · specificity + 0.15)``.

    - information: entropy of the content words (neither stop words nor filler) in bits over 4, at most 1;
    - specificity: share of tokens with a digit, or with a capital where no sentence begins, over 0.3, at most 1;
    - length: ``1 - exp(-n / 5)`` with n the content words;
    - repetition: the share of content words that are not repeats, as a square root.
    """
    text = text[:MOST_CHARS]
    found = [(match.group(), match.start()) for match in _TOKEN.finditer(text)]
    content = [word.casefold() for word, _ in found if _has_content(word.casefold())]
    if not content:
        return 0.0
    counts = Counter(content)
    bits = -math.fsum(n / len(content) * math.log2(n / len(content)) for n in counts.values())
    information = min(1.0, max(0.0, bits) / FULL_BITS)
    specific = sum(1 for word, start in found if _is_specific(word, text, start))
    specificity = min(1.0, specific / len(found) / FULL_SHARE)
    length = 1.0 - math.exp(-len(content) / LENGTH_SCALE)
    repetition = math.sqrt(len(counts) / len(content))
    return round(length * repetition * (0.55 * information + 0.30 * specificity + 0.15), 4)


def _has_content(word: str) -> bool:
    return word not in STOP_WORDS and word not in FILLER


def _is_specific(word: str, text: str, start: int) -> bool:
    """An id, a number, or a name; the capital that begins a sentence says nothing."""
    if any(char.isdigit() for char in word):
        return True
    if not word[0].isupper() or word.casefold() in STOP_WORDS:
        return False
    before = text[max(0, start - 8) : start].rstrip()
    return (bool(before) and before[-1] not in ".!?:\n") or word[1:] != word[1:].lower()

"""Entities and statements out of free text: the port, and an extractor by rules that needs no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from contracts.base import MAX_NAME_CHARS
from contracts.memory import Entity, Statement
from contracts.names import normalise
from workers.extract_rules import Span, statements
from workers.extract_words import CALENDAR, COMMON, FUNCTION, SHORTHAND, ordinary

MOST_ENTITIES = 64
SCANNED_CHARS = 65_536  #: text beyond this is not looked at, so that one memory cannot hold up the others
LONGEST_RUN = 6  #: words in a name

Known = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Extraction:
    entities: tuple[Entity, ...] = ()
    statements: tuple[Statement, ...] = ()


class Extractor(Protocol):
    def extract(self, text: str, known: Known) -> Extraction:
        """What a text names and asserts.

        `known` maps the normalised names a project has to their canonical name and type. Never raises: a text that
        nothing can be made of gives an empty extraction. At most 64 entities, each normalised name once, in the
        order of the text.
        """
        ...


class RuleExtractor:
    """Deterministic rules, precision before recall: a statement must be asserted, not asked, denied, supposed,
    quoted or told of the past."""

    def extract(self, text: str, known: Known) -> Extraction:
        scanned = _UNCLEAN.sub("\ufffd", text[:SCANNED_CHARS])
        marked = list(_marked(scanned, known))
        spans = _resolve([*marked, *_known(scanned, known), *_names(_masked(scanned, marked), known)])
        entities: dict[str, Entity] = {}
        for span in spans:
            if len(entities) == MOST_ENTITIES:
                break
            entities.setdefault(normalise(span.name), Entity(name=span.name, type=span.type))
        kept = [span for span in spans if normalise(span.name) in entities]
        return Extraction(tuple(entities.values()), statements(scanned, kept))


_UNCLEAN = re.compile("[\x00\ud800-\udfff]")  # what no name may hold
_MARKED = re.compile(
    r"""
    (?P<Url>\b(?:https?://|www\.)[^\s<>"'`]+)
  | (?P<Email>(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})
  | (?P<Handle>(?<![\w@/.])@[A-Za-z0-9_](?:[\w.-]{0,38}\w)?)
  | (?P<Path>(?<![\w/.:~@-])(?:[A-Za-z]:\\[\w.\\-]+ | (?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/?
      | [\w.-]+(?:/[\w.@+-]+)+\.\w{1,8}
      | [\w-]+\.(?:py|ya?ml|json|toml|md|txt|csv|log|conf|cfg|ini|sql|go|rs|tsx?|jsx?|sh|pdf|docx?|xlsx?|png|jpe?g)\b))
  | (?P<Id>(?<![\w-])[A-Z][A-Z0-9]{1,9}(?:-\d{1,10}){1,3}(?![\w-]))
    """,
    re.VERBOSE,
)
#: What looks like an id or a handle and names nothing in the project.
_NOT_ID = re.compile(r"(?:UTF|SHA|ISO|MD|AES|RSA|COVID|GPT|HTTP|TLS|UTC|GMT)-")
_BROADCAST = {"@here", "@channel", "@all", "@everyone", "@team"}
_TRAILING = ".,;:!?)]}'\"\u2019\u201d"

_WORD = re.compile(r"[^\W\d_][\w\u2019'&-]*")
_PARTICLES = {"de", "la", "del", "da", "dos", "van", "von", "der", "den", "du", "di", "bin", "al", "el", "y"}
_SPEAKER = re.compile(r"^[ \t]*([^\W\d_][^\n:]{0,48}):[ \t]", re.MULTILINE)
_OPENERS = " \t\"'([{*_\u201c\u2018\u00ab>"
_CONTRACTED = re.compile(r"['\u2019](?:s|S|d|ll|re|ve|m)?$")
_POSSESSIVE = re.compile(r"['\u2019](?:s|S)?$")
_NO_SPACE = re.compile(r"\S+")
_EDGES = "\"'`()[]{}<>.,;:!?*_\u201c\u201d\u2018\u2019\u3002\u3001\uff0c\u2026"


def _span(start: int, end: int, name: str, kind: str, known: Known) -> Span | None:
    """A span under the canonical name where the project has one; None for what no entity can be called."""
    name, kind = known.get(normalise(name), (name, kind))
    fits = len(name) <= MAX_NAME_CHARS and len(kind) <= MAX_NAME_CHARS and not _UNCLEAN.search(name + kind)
    return Span(start, end, name, kind) if fits and normalise(name) and kind.strip() else None


def _marked(text: str, known: Known) -> Iterator[Span]:
    """Names that their own form gives away: ids, handles, addresses, links, paths."""
    for found in _MARKED.finditer(text):
        kind, name = found.lastgroup or "", found[0].rstrip(_TRAILING)
        if (kind == "Id" and _NOT_ID.match(name)) or (kind == "Handle" and name.lower() in _BROADCAST):
            continue
        span = _span(found.start(), found.start() + len(name), name, kind, known)
        if span:
            yield span


def _masked(text: str, spans: list[Span]) -> str:
    """The text with some spans struck out, so that no name runs across them."""
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], "|" * (span.end - span.start)]
        at = span.end
    return "".join([*parts, text[at:]])


def _known(text: str, known: Known) -> Iterator[Span]:
    """Names the project has, in any case, longest first at each word."""
    tokens = [_bare(found) for found in _NO_SPACE.finditer(text)] if known else []
    words = [normalise(text[start:end]) for start, end, _, _ in tokens]
    at = 0
    while at < len(tokens):
        size = next((size for size in range(_reach(tokens, at), 0, -1) if " ".join(words[at : at + size]) in known), 0)
        start, end = tokens[at][0], tokens[at + max(size, 1) - 1][1]
        name = _POSSESSIVE.sub("", text[start:end])
        # A lower-case "will" is the verb, even where Will is known.
        if size and not (size == 1 and words[at] in COMMON | FUNCTION and not name[:1].isupper()):
            span = _span(start, start + len(name), " ".join(words[at : at + size]), "", known)
            if span:
                yield span
        at += max(size, 1)


def _bare(found: re.Match[str]) -> tuple[int, int, bool, bool]:
    """A token without its punctuation, and whether it had some before or after."""
    token = found[0]
    left = len(token) - len(token.lstrip(_EDGES))
    core = token.strip(_EDGES)
    return found.start() + left, found.start() + left + len(core), left > 0, left + len(core) < len(token)


def _reach(tokens: list[tuple[int, int, bool, bool]], at: int) -> int:
    """How many words from `at` on no punctuation parts."""
    size = 1
    while size < LONGEST_RUN and at + size < len(tokens) and not (tokens[at + size - 1][3] or tokens[at + size][2]):
        size += 1
    return size


def _names(text: str, known: Known) -> Iterator[Span]:
    """Runs of capitalised words, and who speaks where lines begin with a name and a colon."""
    for found in _SPEAKER.finditer(text):
        words = found[1].split()
        if len(words) <= 3 and all(word[0].isupper() for word in words) and not ordinary(words[0]):
            span = _span(found.start(1), found.end(1), found[1].strip(), "Name", known)
            if span:
                yield span
    run: list[re.Match[str]] = []
    inner = {word[0] for word in _WORD.finditer(text) if word[0][0].isupper() and not _opens(text, word.start())}
    for word in _WORD.finditer(text):
        if run and not _joined(text, run[-1].end(), word.start()):
            yield from _run(text, run, inner, known)
            run = []
        if (word[0][0].isupper() and not _barred(word[0])) or (run and word[0] in _PARTICLES):
            run.append(word)
        elif run:
            yield from _run(text, run, inner, known)
            run = []
    if run:
        yield from _run(text, run, inner, known)


def _joined(text: str, end: int, start: int) -> bool:
    return start - end <= 2 and text[end:start].strip(" ") == "" and text[end - 2 : end] not in ("'s", "\u2019s")


def _barred(word: str) -> bool:
    low = _CONTRACTED.sub("", word).lower()
    return (
        low in FUNCTION
        or low in CALENDAR
        or low.removesuffix("s") in CALENDAR
        or low in SHORTHAND
        or len(word) == 1
        or bool(_NOT_ID.match(word))
    )


def _opens(text: str, start: int) -> bool:
    """Whether a sentence begins here, so that a capital says nothing."""
    at = start - 1
    while at >= 0 and text[at] in _OPENERS + "-\u2022#":
        at -= 1
    return at < 0 or text[at] in ".!?:\n\u3002\uff01\uff1f\u2026"


def _run(text: str, run: list[re.Match[str]], inner: set[str], known: Known) -> Iterator[Span]:
    words = list(run[: LONGEST_RUN * 2])
    if _shouted(text, words):
        return
    if _opens(text, words[0].start()):
        alone = len(words) == 1 and words[0][0] not in inner
        if ordinary(words[0][0]) if alone else words[0][0].lower() in COMMON:
            words.pop(0)
    while words and words[-1][0] in _PARTICLES:
        words.pop()
    while words and words[0][0] in _PARTICLES:
        words.pop(0)
    if words and len(words) <= LONGEST_RUN:
        start = words[0].start()
        name = _POSSESSIVE.sub("", text[start : words[-1].end()]).rstrip("-&'\u2019")
        if len(name) > 1 and (span := _span(start, start + len(name), name, "Name", known)):
            yield span


def _shouted(text: str, words: list[re.Match[str]]) -> bool:
    """Whether the line is in capitals throughout, which then mark nothing."""
    at = words[0].start()
    line = text[max(at - 100, 0) : at].rpartition("\n")[2] + text[at : at + 100].partition("\n")[0]
    letters = [char for char in line if char.isalpha()]
    return len(line.split()) > 2 and sum(char.isupper() for char in letters) > 0.7 * len(letters)


def _resolve(spans: list[Span]) -> list[Span]:
    """Spans without overlaps, in text order: a form (id, link) beats a name, the longer name beats the shorter, and
    of equals the first given stays."""
    kept: list[Span] = []
    taken: set[int] = set()
    rank = {"Url": 0, "Email": 1, "Path": 2, "Id": 3, "Handle": 4}
    for span in sorted(spans, key=lambda span: (rank.get(span.type, 9), span.start - span.end)):
        if taken.isdisjoint(range(span.start, span.end)):
            taken.update(range(span.start, span.end))
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)

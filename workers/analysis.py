"""From a text to the tokens that both engines index: whole forms, and stems of their parts."""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import snowballstemmer

#: An id names one thing; a mark is a rare way to write (@bob, #tag, C++, AT&T); a run has no spaces between words.
Form = Literal["word", "id", "mark", "run", "emoji"]

#: Longer tokens are kept as their digest: engines limit the length of a term.
MAX_TOKEN_CHARS = 200
#: Longer runs of unspaced script are sentences rather than words, so their whole form is no use.
MAX_WHOLE_RUN = 8

_RUN = "\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
_RUN += "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"  # ideographs, kana and Hangul ...
_RUN += "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # ... Thai, Lao, Burmese and Khmer
_EMOJI = "\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff"
_MARKS = "\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e\xa1-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7"
_MARKS += "\u2010-\u205f\u20a0-\u20cf\u2100-\u2bff\u3001-\u3004\u3008-\u3020\u30fb\u060c\u061b\u061f\u0964\u0965"
#: Marks that end a token wherever they stand.
_HARD = '\\s"()\\[\\]{}<>|;,!?*=^`\u2013-\u2015\u2018-\u201f\u2026\xab\xbb\u3001\u3002\u3008-\u3011\u30fb\u0964\u0965'
_HARD += "\u060c\u061b\u061f\u2190-\u2bff"

_IGNORED = re.compile("[\xad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff\ud800-\udfff\x00]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'"})
_BARE = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
_ACCENTS = re.compile("[\u0300-\u036f]")
_SCAN = re.compile(
    f'(?P<url>(?:[a-z][a-z0-9+.-]*://|www\\.)[^\\s<>"{_RUN}]+)'
    r"|(?P<email>[a-z0-9_][\w.+-]*@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<number>(?<![\w.,])[$€£¥]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w|,\d))"
    f"|(?P<emoji>[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI}])"
    f"|(?P<run>[{_RUN}]+)"
    f"|(?P<word>[^{_HARD}{_RUN}{_EMOJI}]+)"
)
_CORE = re.compile(f"[^{_MARKS}].*[^{_MARKS}]|[^{_MARKS}]")
_HEAD = re.compile(r"(?:[@#]|(?<![./])\.|(?:~|\.{1,2})?/)$")
_TAIL = re.compile(r"\+{1,2}")
_SPLIT = re.compile(f"[{_MARKS}]+")
_OUTER = re.compile(r"[/\\?&=#:@,;~]+")
_PATH = re.compile(r"[/\\?&=#:,;~]+")  # as _OUTER, but keeps an address such as a@b.c
_MIXED = re.compile(r"([^\W\d_]+)(\d+)|(\d+)([^\W\d_]+)")
_FILE = re.compile(
    r"(?<=\w)\.(?:py|js|ts|tsx|go|rs|java|c|h|cpp|rb|md|txt|pdf|docx?|xlsx?|pptx?|csv|jsonl?|ya?ml|toml|ini|html?|css|png|jpe?g"
    r"|svg|zip|gz|sh|sql|log|com|org|net|io|dev|ai|app)$"
)
#: Ordinary ways to write with digits: 5pm, 2nd, 10-minute, 24/7, 12:30, 3.5, 10-15.
_PLAIN = re.compile(r"\d+(?:\.\d+)?[^\W\d_]{1,2}|\d+-[^\W\d_]+|\d+(?:[.:/]\d+)?|[\d-]{1,5}|[^\W_]{1,3}")

_stemmer = snowballstemmer.stemmer("english")
_stemming = threading.Lock()  # the stemmer keeps the word it works on


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text.

    `whole` and `inner` (whole forms inside it, such as the host of a URL) belong to the field ``exact``; `stems` (its
    parts), `joined` (its parts written as one word) and `loose` (single ideographs) to the field ``stem``. `whole` and
    `joined` may be empty.
    """

    whole: str
    stems: tuple[str, ...]
    form: Form = "word"
    inner: tuple[str, ...] = ()
    joined: str = ""
    loose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fields:
    """The tokens of a text, for each indexed field, in the order of the text. No token contains a space."""

    exact: tuple[str, ...]
    stem: tuple[str, ...]


def analyse(text: str) -> Fields:
    """What to index of a text. Every word counts, stop words too; equal texts give equal fields."""
    exact: list[str] = []
    stems: list[str] = []
    for token in tokens(text):
        exact.extend(form for form in (token.whole, *token.inner) if form)
        stems.extend(form for form in (*token.stems, token.joined, *token.loose) if form)
    return Fields(tuple(exact), tuple(stems))


def tokens(text: str) -> list[Token]:
    """The tokens of a text. Any text is fine; one without a letter, digit or emoji has none."""
    found: list[Token] = []
    for match in _SCAN.finditer(fold(text)):
        token = _token(match.lastgroup or "word", match.group())
        if token is not None and token.stems:
            found.append(token)
    return found


def fold(text: str) -> str:
    """NFKC and case-folded, without characters that are invisible or only style an emoji."""
    plain = _IGNORED.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTES)
    return unicodedata.normalize("NFKC", plain.casefold()).translate(_QUOTES)


@lru_cache(maxsize=65_536)
def stem(part: str) -> str:
    """The English stem of a word without accents. What is not a word of ASCII letters comes back without accents."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", part)).translate(_BARE)
    bare = unicodedata.normalize("NFC", bare)
    if not (bare.isascii() and bare.isalpha()):
        return bare
    with _stemming:
        return str(_stemmer.stemWord(bare))


def _token(group: str, raw: str) -> Token | None:
    if group == "run":
        return _run(raw)
    if group == "emoji":
        return Token(raw, (raw,), "emoji")
    if group == "number":
        return _compound(_short(raw.replace(",", "").lstrip("$€£¥")), "word")
    core = _trim(raw)
    if not core:
        return None
    return _compound(core, "id" if group in ("url", "email") else _form(core))


def _run(raw: str) -> Token:
    pairs = tuple(raw[at : at + 2] for at in range(len(raw) - 1)) or (raw,)
    loose = tuple(raw) if len(raw) > 1 else ()
    return Token(raw if len(raw) <= MAX_WHOLE_RUN else "", pairs, "run", loose=loose)


def _trim(raw: str) -> str:
    """A token without the punctuation around it, but with the signs that belong to it: C++, C#, .NET, @bob, ~/a."""
    match = _CORE.search(raw)
    if match is None:
        return ""
    core, before, after = match.group(), raw[: match.start()], raw[match.end() :]
    head, tail = _HEAD.search(before), _TAIL.match(after)
    if core.endswith("'s"):
        core = core[:-2]
    if tail:
        core += tail.group()
    elif after.startswith("#") and len(core) <= 2:
        core += "#"
    if head and not (head.group() == "." and core[0].isdigit()):
        core = head.group() + core
    return core


def _form(core: str) -> Form:
    if _is_id(core):
        return "id"
    signs = core[0] in "@#./~" or core[-1] in "+#" or "&" in core or "_" in core
    return "mark" if signs or _FILE.search(core) else "word"


def _is_id(core: str) -> bool:
    slashes = core.count("/") + core.count("\\")
    if "\\" in core or slashes > 2 or (slashes and (core[0] in "/~." or _FILE.search(core))):
        return True
    return any(char.isdigit() for char in core) and _PLAIN.fullmatch(core) is None and core[0] != "#"


def _compound(core: str, form: Form) -> Token:
    pieces = [piece for piece in _SPLIT.split(core) if piece]
    parts: list[str] = []
    for piece in pieces:
        mixed = _MIXED.fullmatch(piece)
        parts.extend(part for part in (mixed.groups() if mixed else (piece,)) if part)
    joined = ""
    if (
        len(pieces) > 1
        and form != "id"
        and (set(_SPLIT.findall(core)) <= {"-", "'"} or all(len(piece) == 1 for piece in pieces))
    ):
        joined = stem("".join(pieces))
    stems = tuple(_short(bare) for part in parts if (bare := stem(part)))
    return Token(_short(core), stems, form, tuple(_short(form) for form in _inner(core)), _short(joined))


def _inner(core: str) -> tuple[str, ...]:
    """Whole forms that a compound contains: the ticket in a URL, the name in a path, the number in v2.3."""
    forms = [_trim(form) for form in (*_OUTER.split(core), *_PATH.split(core))]
    forms.append(core.lstrip("@#.~/"))
    if core[0] == "v" and core[1:2].isdigit():
        forms.append(core[1:])
    return tuple(dict.fromkeys(form for form in forms if form and form != core))


def _short(form: str) -> str:
    return form if len(form) <= MAX_TOKEN_CHARS else hashlib.sha256(form.encode("utf-8")).hexdigest()

"""The rules behind the extractor: which clauses assert a statement."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from contracts.memory import Statement, StatementKind
from contracts.names import normalise
from workers.extract_words import CALENDAR

CONFIDENCE = 0.7
MOST_STATEMENTS = 32
LONGEST_OBJECT = 8  #: words
LONGEST_SENTENCE = 600  #: characters; what runs on further is no plain assertion


@dataclass(frozen=True, slots=True)
class Span:
    """A mention of an entity in a text."""

    start: int
    end: int
    name: str
    type: str


#: Any of these in a sentence and nothing in it is asserted as so now: negation, condition, doubt, report, past, future.
_HEDGE = re.compile(
    r"\b(?:not|no|never|none|nobody|nor|neither|without|cannot|\w+n['\u2019]t|stopped|quit|left|leaves|leaving|wrong|false"
    r"|if|unless|whether|when|whenever|until|till|otherwise|except"
    r"|would|could|should|might|(?-i:may)|maybe|perhaps|possibly|probably|supposedly|allegedly|apparently|likely|seems?"
    r"|think(?:s|ing)?|thought|believe[sd]?|guess|suppose|assum\w+|imagine|pretend|wish(?:es)?|hope[sd]?|wonder\w*|doubt\w*"
    r"|says?|said|tells?|told|asks?|asked|claim\w*|mention\w*|heard|hear|rumou?rs?|according|example|e\.g|instance|like\sif"
    r"|used\sto|formerly|previously|originally|once|earlier|before|ago|back\s(?:then|in)|at\sthe\stime|in\s(?:19|20)\d\d"
    r"|last\syear|years?|(?-i:will)|won['\u2019]t|going\sto|plans?\sto|wants?\sto|soon|starting|from\snext|next|joke"
    r"|jk|kidding|hypothetical\w*|unclear|unsure|sure|confirm|check|verify|correct\sthat|incorrect|mistak\w+)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\s*(?:who|what|where|which|why|how|is|are|was|does|do|did|has|have|can)\b", re.IGNORECASE)
_RETRACTS = re.compile(r"\s*(?:not|no\b|nope|wrong|false|jk|kidding|just kidding|scratch that)", re.IGNORECASE)
_QUOTES = re.compile("[\"`\u201c\u201d\u00ab\u00bb\u201e]|^\\s*>|(?:^|\\s)'\\w")
_SENTENCE = re.compile(
    r"[^.!?\n;\u3002\uff01\uff1f]+(?:[.](?=\w)[^.!?\n;\u3002\uff01\uff1f]*)*[.!?;\u3002\uff01\uff1f]*"
)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)

#: What may stand before a subject: nothing, the end of another clause, or a remark. "The fix for X is" must not pass.
_BEFORE = re.compile(
    r"(?:^|[,:\u2013\u2014]|\s-|\b(?:and|but|so|also|now|today|fyi|btw|update|note|because))"
    r"[\s*\u2022#>-]*(?:the |our )?$",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[,;:.!?()\[\]\n\u2013\u2014]|\s-\s|\s(?:but|because|since|from|as|who|which|that|while|so|after|where|although|though"
    r"|effective|now|again|today|these|this|every|per|instead|thanks|and\s(?:he|she|it|they|we|I|the|has|is|was))\b"
)
_PRONOUN = re.compile(
    r"(?:i|me|my|mine|you|your|he|him|his|she|her|it|its|we|us|our|they|them|their|this|that|these|those|what|how|everyone"
    r"|everything|nothing|something|anyone|someone|by|in|on|at|for|with|from|to|into|up|down|being)\b",
    re.IGNORECASE,
)
_ROLE = (
    r"(?:[\w-]+ ){0,3}?(?:head|lead|leader|manager|owner|director|engineer|developer|designer|analyst|administrator"
    r"|architect|maintainer|coordinator|contact|ceo|cto|cfo|coo|president|chair|captain|editor|coach|teacher|nurse|doctor)"
)
_STATUS = (
    r"(open|reopened|closed|resolved|fixed|done|merged|shipped|blocked|pending|cancelled|canceled|in progress|on hold)"
)
_TAIL = r"(?=\s*(?:$|[,;.!)\u2013\u2014]|(?:again|today|now|as of|since|and|but|after|with|thanks|by|on)\b))"
_DATE = re.compile(
    r"(?:\d|\b(?:end of|" + "|".join(sorted(word for word in CALENDAR if len(word) > 2)) + r")\b)", re.IGNORECASE
)
_FORMS = {"Id", "Url", "Email", "Path"}
_OF = re.compile(r"\s+(?:of|for)\s+", re.IGNORECASE)
_NOT_A_PLACE = re.compile(
    r"\b(?:team|squad|group|department|dept|room|channel|backlog|board|sprint|floor|desk|folder|repo|branch|queue|phase|stage"
    r"|plan|tier|version|postgres\w*|kafka|aws|azure|gcp|kubernetes|github|gitlab|slack|jira|linux|windows|v?\d[\d.]*)\b",
    re.IGNORECASE,
)


_ARTICLE = re.compile(r"(?:the |our )?", re.IGNORECASE)
_NAME_ENDS = re.compile(
    r"\s*(?:$|[^\w\s]|\n|(?:in|on|at|as|for|from|since|with|and|but|now|again|today|because|who|which|after)\b)"
)


@dataclass(frozen=True, slots=True)
class _Clause:
    """A subject and what follows it, up to the end of the sentence."""

    text: str
    end: int
    subject: Span
    spans: Sequence[Span]

    def mention(self, at: int) -> Span | None:
        """The entity at a place in the text, an article aside."""
        article = _ARTICLE.match(self.text, at)
        starts = {at, article.end() if article else at}
        return next((span for span in self.spans if span.start in starts), None)

    def named(self, at: int) -> str | None:
        """The name of the entity at a place, with what else belongs to it: "Globex", "Berlin office"."""
        target = self.mention(at)
        if target is None or self.text.startswith(("'s", "\u2019s"), target.end):
            return None
        return target.name if _NAME_ENDS.match(self.text, target.end) else self.phrase(target.start)

    def phrase(self, at: int) -> str | None:
        """The words from a place to the end of the clause, or None: a pronoun, nothing, or too long to be an object."""
        rest = self.text[at : self.end]
        end = _CLAUSE_END.search(rest)
        phrase = (rest[: end.start()] if end else rest).strip()
        fits = 0 < len(phrase.split()) <= LONGEST_OBJECT and len(phrase) <= 200 and bool(normalise(phrase))
        return phrase if fits and not _PRONOUN.match(phrase) else None


#: From a clause and the match of a rule's verb to (subject, object), or None where the rule does not hold after all.
_Reading = Callable[[_Clause, re.Match[str]], tuple[str, str] | None]


def _to_entity(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    name = clause.named(verb.end())
    return (clause.subject.name, name) if name and clause.subject.type not in _FORMS else None


def _to_party(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    """A person or an organisation: what an id or a path cannot be."""
    target = clause.mention(verb.end())
    return None if target is None or target.type in _FORMS else _to_entity(clause, verb)


def _to_place(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    pair = _to_party(clause, verb)
    return None if pair is None or _NOT_A_PLACE.search(pair[1]) else pair


def _to_phrase(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    phrase = clause.phrase(verb.end())
    return (clause.subject.name, phrase) if phrase and clause.subject.type not in _FORMS else None


def _to_holding(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    """What somebody owns: an entity, or something definite."""
    definite = clause.text[verb.end() :].lower().startswith(("the ", "our ", "all "))
    return _to_entity(clause, verb) or (_to_phrase(clause, verb) if definite else None)


def _assigned(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    """Whichever side is the ticket is the subject."""
    other = clause.mention(verb.end())
    if other is None or (clause.subject.type == "Id") == (other.type == "Id"):
        return None
    ticket, person = (clause.subject, other) if clause.subject.type == "Id" else (other, clause.subject)
    return (ticket.name, person.name) if person.type not in _FORMS - {"Email"} else None


def _status(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    asserted = clause.subject.type == "Id" or verb["now"]
    return (clause.subject.name, verb["status"].lower()) if asserted else None


def _due(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    phrase = clause.phrase(verb.end())
    return (clause.subject.name, phrase) if phrase and _DATE.search(phrase) else None


def _role(clause: _Clause, verb: re.Match[str]) -> tuple[str, str] | None:
    """A role that no entity is the whole of; the others see `_offices`."""
    phrase = clause.phrase(verb.start("role"))
    of = _OF.match(clause.text, verb.end("role"))
    if clause.subject.type in _FORMS or (of and clause.mention(of.end())):
        return None
    return (clause.subject.name, phrase) if phrase and (of or verb["now"]) else None


def _rule(
    verb: str, predicate: str, kind: StatementKind, reading: _Reading
) -> tuple[re.Pattern[str], str, StatementKind, _Reading]:
    return re.compile(verb, re.IGNORECASE), predicate, kind, reading


_IS_ROLE = rf"\s+is\s+(?:(?P<now>now)\s+(?:an?\s+|the\s+|our\s+)?|(?:the|our)\s+)(?P<role>{_ROLE})\b"
_NOW = r"\s+(?:(?:now|currently)\s+)?"
_RULES = (
    _rule(_NOW + r"works\s+(?:at|for)\s+", "works_at", StatementKind.ATTRIBUTE, _to_party),
    _rule(r"\s+(?:(?:has|just)\s+)?moved\s+to\s+", "lives_in", StatementKind.ATTRIBUTE, _to_place),
    _rule(_NOW + r"lives\s+in\s+", "lives_in", StatementKind.ATTRIBUTE, _to_place),
    _rule(_NOW + r"reports\s+to\s+", "reports_to", StatementKind.ATTRIBUTE, _to_party),
    _rule(
        r"\s+(?:is|was|has been)\s+(?:now\s+)?(?:re)?assigned\s+to\s+",
        "assigned_to",
        StatementKind.ATTRIBUTE,
        _assigned,
    ),
    _rule(rf"\s+is\s+(?P<now>now\s+)?(?P<status>{_STATUS}){_TAIL}", "status", StatementKind.ATTRIBUTE, _status),
    _rule(r"\s+is\s+(?:now\s+)?due\s+(?:on|by)\s+", "due", StatementKind.ATTRIBUTE, _due),
    _rule(_IS_ROLE, "role", StatementKind.ATTRIBUTE, _role),
    _rule(_NOW + r"owns\s+", "owns", StatementKind.RELATION, _to_holding),
    _rule(_NOW + r"manages\s+", "manages", StatementKind.RELATION, _to_holding),
    _rule(_NOW + r"leads\s+", "leads", StatementKind.RELATION, _to_holding),
    _rule(_NOW + r"(?:really\s+)?likes\s+", "likes", StatementKind.PREFERENCE, _to_phrase),
    _rule(_NOW + r"prefers\s+", "prefers", StatementKind.PREFERENCE, _to_phrase),
    _rule(_NOW + r"(?:really\s+)?loves\s+", "loves", StatementKind.PREFERENCE, _to_phrase),
)


def statements(text: str, spans: Sequence[Span]) -> tuple[Statement, ...]:
    """What the sentences of a text assert of the entities in it (spans in text order), each once, at most 32."""
    found: dict[tuple[str, str, str], Statement] = {}
    blank = _FENCED.sub(lambda block: "\n" * len(block[0]), text)
    sentences = list(_SENTENCE.finditer(blank))
    starts = [span.start for span in spans]
    for at, sentence in enumerate(sentences):
        follows = sentences[at + 1][0][:40] if at + 1 < len(sentences) else ""
        if not _asserts(sentence[0]) or _RETRACTS.match(follows):
            continue
        inside = spans[bisect_left(starts, sentence.start()) : bisect_left(starts, sentence.end())]
        for statement in _read(blank, sentence, inside):
            key = (normalise(statement.subject), statement.predicate, normalise(statement.object))
            if len(found) < MOST_STATEMENTS and key[0] != key[2]:
                found.setdefault(key, statement)
    return tuple(found.values())


def _asserts(sentence: str) -> bool:
    if len(sentence) > LONGEST_SENTENCE:
        return False
    ends = sentence.rstrip()
    asked = ends.endswith(("?", "\uff1f")) or "?!" in ends or bool(_ASKS.match(sentence))
    return not (asked or _HEDGE.search(sentence) or _QUOTES.search(sentence))


def _read(text: str, sentence: re.Match[str], spans: Sequence[Span]) -> Iterator[Statement]:
    for span in spans:
        before = text[sentence.start() : span.start]
        clause = _Clause(text, sentence.end(), span, spans)
        yield from _offices(clause, before)
        if _BEFORE.search(before):
            for verb, predicate, kind, reading in _RULES:
                match = verb.match(text, span.end, sentence.end())
                pair = reading(clause, match) if match else None
                if pair:
                    yield _statement(pair[0], predicate, pair[1], kind)


def _offices(clause: _Clause, before: str) -> Iterator[Statement]:
    """What is said of an entity from the other side: "status of X is open", "Y is the lead of X"."""
    if _STATUS_OF.search(before) and (match := _IS_STATUS.match(clause.text, clause.subject.end, clause.end)):
        yield _statement(clause.subject.name, "status", match["status"].lower())
    role = _IS_ROLE_AT.match(clause.text, clause.subject.end, clause.end) if _BEFORE.search(before) else None
    of = _OF.match(clause.text, role.end()) if role else None
    if role and of and clause.subject.type not in _FORMS and (held := clause.named(of.end())):
        # One holder a role, not one role a holder: Ana may own two tickets, and a ticket has one owner.
        yield _statement(held, "_".join(role["role"].lower().split()), clause.subject.name)


def _statement(subject: str, predicate: str, value: str, kind: StatementKind = StatementKind.ATTRIBUTE) -> Statement:
    return Statement(subject=subject, predicate=predicate, object=value, kind=kind, confidence=CONFIDENCE)


_STATUS_OF = re.compile(r"^\W*(?:the\s+)?status\s+of\s+(?:the\s+)?$", re.IGNORECASE)
_IS_STATUS = re.compile(rf"\s+is\s+(?:now\s+)?(?P<status>{_STATUS}){_TAIL}", re.IGNORECASE)
_IS_ROLE_AT = re.compile(_IS_ROLE, re.IGNORECASE)

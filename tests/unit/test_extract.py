from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.memory import StatementKind
from contracts.names import normalise
from workers.extract import MOST_ENTITIES, Extraction, RuleExtractor

KNOWN = {
    "billing team": ("Billing Team", "Team"),
    "ana": ("Ana Ruiz", "Person"),
    "ana ruiz": ("Ana Ruiz", "Person"),
    "will": ("Will Park", "Person"),
    "osaka harbour depot": ("Osaka Harbour Depot", "Place"),
}


def extract(text: str, known: dict[str, tuple[str, str]] | None = None) -> Extraction:
    return RuleExtractor().extract(text, KNOWN if known is None else known)


ENTITIES = [
    ("ids", "see ACME-1247 and INV-2026-0113.", [("ACME-1247", "Id"), ("INV-2026-0113", "Id")]),
    ("an id beside punctuation", "(ACME-1/ACME-2)", [("ACME-1", "Id"), ("ACME-2", "Id")]),
    ("no ids", "UTF-8 and SHA-256, acme-3", []),
    ("no id in a longer word", "the ACME-12-beta", [("ACME-12-beta", "Name")]),
    ("handles", "ping @bob, then @mei-lin.", [("@bob", "Handle"), ("@mei-lin", "Handle")]),
    ("broadcasts", "@here @channel look", []),
    ("emails", "write to ana.ruiz+x@globex.example.", [("ana.ruiz+x@globex.example", "Email")]),
    ("urls", "at https://a.example/b?c=d#e.", [("https://a.example/b?c=d#e", "Url")]),
    ("paths", "in /etc/app/x.toml and src/a.py", [("/etc/app/x.toml", "Path"), ("src/a.py", "Path")]),
    ("a bare file name", "edit config.yaml now", [("config.yaml", "Path")]),
    ("a windows path", r"open C:\temp\a.log", [(r"C:\temp\a.log", "Path")]),
    ("no paths", "and/or 24/7 he/she", []),
    ("a name of two words", "we met Mei Lin there", [("Mei Lin", "Name")]),
    ("a name at the start", "Mei Lin was there", [("Mei Lin", "Name")]),
    ("a single name inside", "we asked Globex", [("Globex", "Name")]),
    ("a single name at the start", "Globex was slow", [("Globex", "Name")]),
    ("an ordinary word at the start", "Customers were slow. Please wait! Restarting helps", []),
    ("a verb before a name", "Ask Mei about it", [("Mei", "Name")]),
    ("a start seen inside too", "Billing broke. We called Billing", [("Billing", "Name")]),
    ("calendar words", "On Monday in May, Friday and December", []),
    ("a weekday beside a name", "On Friday Mei left", [("Mei", "Name")]),
    ("the pronoun", "Then I and I'm sure I'd go", []),
    ("a possessive", "we used Mei Lin's desk", [("Mei Lin", "Name")]),
    ("a typographic possessive", "we used Globex\u2019s desk", [("Globex", "Name")]),
    ("particles", "by Maria de la Cruz", [("Maria de la Cruz", "Name")]),
    ("accents", "in Zürich with Óscar Núñez", [("Zürich", "Name"), ("Óscar Núñez", "Name")]),
    ("a known name in lower case", "ask the billing team", [("Billing Team", "Team")]),
    ("a known name in capitals", "ask the BILLING TEAM", [("Billing Team", "Team")]),
    ("the longest known name", "at osaka harbour depot", [("Osaka Harbour Depot", "Place")]),
    ("a known name across a comma", "the billing, team", []),
    ("a known name within a word", "banana analysis", []),
    ("a known alias", "ana called", [("Ana Ruiz", "Person")]),
    ("a known possessive", "ana's ticket", [("Ana Ruiz", "Person")]),
    ("a known name that is a word too", "he will call", []),
    ("the same, capitalised", "Ask Will now", [("Will Park", "Person")]),
    ("twice the same", "Globex, GLOBEX and globex's", [("Globex", "Name")]),
    ("a speaker", "Mei: hello there", [("Mei", "Name")]),
    ("a label, no speaker", "Note: hello there", []),
    ("a line in capitals", "PLEASE HELP ME RIGHT NOW", []),
    ("abbreviations", "FYI the API is down ASAP", []),
    ("the order of the text", "Globex wrote ACME-9 to Mei", [("Globex", "Name"), ("ACME-9", "Id"), ("Mei", "Name")]),
    ("emoji", "🎉 we love Globex 🎉", [("Globex", "Name")]),
    ("japanese", "荷物が届きません", []),
    ("nothing", "", []),
    ("blanks", " \n\t ", []),
    ("NUL and a surrogate", "a\x00b \ud800 Globex", [("Globex", "Name")]),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in ENTITIES], ids=[row[0] for row in ENTITIES])
def test_entities(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(entity.name, entity.type) for entity in extract(text).entities] == expected


ASSERTED = [
    ("Mei Lin works at Globex.", ("Mei Lin", "works_at", "Globex")),
    ("Mei Lin now works for Globex, finally", ("Mei Lin", "works_at", "Globex")),
    ("Ana works for the billing team", ("Ana Ruiz", "works_at", "Billing Team")),
    ("Mei works at the Berlin office", ("Mei", "works_at", "Berlin office")),
    ("Bob: Mei works at Globex", ("Mei", "works_at", "Globex")),
    ("Mei moved to Berlin.", ("Mei", "lives_in", "Berlin")),
    ("Mei lives in Berlin and has a dog", ("Mei", "lives_in", "Berlin")),
    ("Mei reports to Bob Larsen", ("Mei", "reports_to", "Bob Larsen")),
    ("ACME-7 is assigned to Mei.", ("ACME-7", "assigned_to", "Mei")),
    ("ACME-7 was reassigned to Ana", ("ACME-7", "assigned_to", "Ana Ruiz")),
    ("Mei was assigned to ACME-7", ("ACME-7", "assigned_to", "Mei")),
    ("ACME-7 is now closed.", ("ACME-7", "status", "closed")),
    ("The status of ACME-7 is in progress", ("ACME-7", "status", "in progress")),
    ("ACME-7 is resolved, thanks", ("ACME-7", "status", "resolved")),
    ("INV-2026-01 is due on 5 May.", ("INV-2026-01", "due", "5 May")),
    ("Mei is now head of support", ("Mei", "role", "head of support")),
    ("Mei is now a team lead", ("Mei", "role", "team lead")),
    ("Mei is the director of operations", ("Mei", "role", "director of operations")),
    ("Mei is the lead of the billing team", ("Billing Team", "lead", "Mei")),
    ("Mei is now the owner of ACME-7", ("ACME-7", "owner", "Mei")),
    ("Mei owns ACME-7", ("Mei", "owns", "ACME-7")),
    ("Mei manages the deploy script", ("Mei", "manages", "the deploy script")),
    ("Mei leads the billing team", ("Mei", "leads", "Billing Team")),
    ("Mei prefers email over phone.", ("Mei", "prefers", "email over phone")),
    ("Mei likes green tea because it is mild", ("Mei", "likes", "green tea")),
    ("Will likes tea", ("Will Park", "likes", "tea")),
    ("Óscar loves ramen 🍜", ("Óscar", "loves", "ramen 🍜")),
]


@pytest.mark.parametrize(("text", "expected"), ASSERTED)
def test_what_is_asserted_becomes_a_statement(text: str, expected: tuple[str, str, str]) -> None:
    [found] = extract(text).statements
    assert (found.subject, found.predicate, found.object) == expected
    assert found.confidence == 0.7


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Mei works at Globex", StatementKind.ATTRIBUTE),
        ("Mei owns ACME-7", StatementKind.RELATION),
        ("Mei likes tea", StatementKind.PREFERENCE),
    ],
)
def test_the_kind_decides_what_a_newer_statement_retires(text: str, kind: StatementKind) -> None:
    assert [found.kind for found in extract(text).statements] == [kind]


SILENT = [
    "Does Mei work at Globex?",
    "Mei works at Globex?",
    "Is it so that Mei works at Globex",
    "If Mei works at Globex, call her",
    "When Mei works at Globex she is happy",
    "Mei no longer works at Globex",
    "Mei works at Globex, not at Northwind",
    "Mei never works at Globex",
    "Mei doesn't think Bob works at Globex",
    "Mei might say Bob works at Globex",
    "I think Mei works at Globex",
    "Bob said Mei works at Globex",
    "Allegedly Mei works at Globex",
    "Mei works at Globex. Not!",
    'The form shows "Mei works at Globex" as a sample',
    "> Mei works at Globex",
    "```\nMei works at Globex\n```",
    "A friend of Mei works at Globex",
    "Mei's brother works at Globex",
    "He works at Globex",
    "She works at Globex and likes tea",
    "Mei works for me",
    "Mei works for now",
    "Mei works at Ana's",
    "Mei used to live in Berlin",
    "Mei moved to Berlin in 2019",
    "Mei moved to Berlin ten years ago",
    "Globex moved to Postgres",
    "ACME-7 moved to Backlog",
    "Mei moved to the Billing team",
    "Mei moved to the next point",
    "The fix for ACME-7 is closed",
    "ACME-7 is open in my browser",
    "ACME-7 is closed?",
    "ACME-7 is not closed",
    "Please check whether ACME-7 is now closed",
    "Status of ACME-7 is unclear",
    "We discussed ACME-7, Mei and Globex at length",
    "ACME-7 is assigned to ACME-8",
    "Mei was assigned to the billing team",
    "INV-2026-01 is due on request",
    "Mei is the best of friends",
    "Mei is now on holiday",
    "Berlin is the capital of Germany",
    "Mei leads by example",
    "Mei likes it",
    "Mei likes a very long list of things in a shop",
    "Mei will manage the shop and Bob would like tea",
    "Mei likes Mei",
    "Say hello to Mei who likes tea",
]


@pytest.mark.parametrize("text", SILENT)
def test_what_is_not_plainly_asserted_stays_silent(text: str) -> None:
    assert extract(text).statements == ()


def test_a_statement_is_given_once() -> None:
    assert len(extract("Mei likes tea. Mei likes tea! mei likes tea", {"mei": ("Mei", "Person")}).statements) == 1


def test_entities_are_bounded_and_the_first_ones_stay() -> None:
    found = extract(" ".join(f"ACME-{n}" for n in range(500))).entities
    assert [entity.name for entity in found] == [f"ACME-{n}" for n in range(MOST_ENTITIES)]


@pytest.mark.parametrize(
    "text",
    [
        "A likes B " * 30_000,
        "/a" * 130_000,
        "a.b@" * 60_000,
        "(" * 260_000,
        "Ana " * 60_000,
        "A. " * 80_000,
        "x.y/" * 60_000,
    ],
)
def test_hostile_text_costs_little(text: str) -> None:
    began = time.perf_counter()
    extract(text)
    assert time.perf_counter() - began < 3


WORDS = st.sampled_from(
    [
        "Mei",
        "ana",
        "works at",
        "is",
        "now",
        "the",
        "lead of",
        "ACME-7",
        "likes",
        "@bob",
        "a@b.io",
        "moved to",
        "due on",
        "5 May",
        ".",
        "?",
        "\n",
        "```",
        "'s",
        "\x00",
        "\ud800",
        "ﬁ",
        "İ",
        "status of",
        "closed",
        "x/y.py",
        ":",
        "\u0301",
        "\u212a",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=300), st.lists(WORDS, max_size=40).map(" ".join), st.lists(WORDS, max_size=40).map("".join)
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.dictionaries(st.text(max_size=8), st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4))
def test_never_raises_and_keeps_its_bounds(text: str, known: dict[str, tuple[str, str]]) -> None:
    found = extract(text, {**KNOWN, **known})
    names = [normalise(entity.name) for entity in found.entities]
    assert len(names) == len(set(names)) <= MOST_ENTITIES
    assert len(found.statements) <= 64
    assert found == extract(text, {**KNOWN, **known})

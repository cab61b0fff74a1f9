"""What a text becomes before it is indexed, and a cue before it is searched."""

from __future__ import annotations

import pytest

from workers.analysis import analyse, tokens
from workers.lexical.cue import MAX_UNITS, Term, read_cue
from workers.lexical.statistics import Statistics


@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        ("ACME-1247's done.", ["acme-1247", "done"]),
        ("(see https://x.example/a?b=1).", ["see", "https://x.example/a?b=1"]),
        ("mail <diego@corp.example>;", ["mail", "diego@corp.example"]),
        ("'C++', C# & .NET.", ["c++", "c#", ".net"]),
        ("AT&T, O’Brien", ["at&t", "o'brien"]),
        ("@bob: #tag!", ["@bob", "#tag"]),
        ("~/src/app.py and /etc/hosts,", ["~/src/app.py", "and", "/etc/hosts"]),
        ("v2.3.1 10.0.0.1:8080.", ["v2.3.1", "10.0.0.1:8080"]),
        ("$1,250.50 or 1,247, .5", ["1250.50", "or", "1247", "5"]),
        ("...end... wait—what", ["end", "wait", "what"]),
        ("👩🏽‍💻🇩🇪❤️", ["👩", "💻", "🇩🇪", "❤"]),
        ("ＡＢＣ x\u00adyz", ["abc", "xyz"]),
        ("成语 오늘 オ", ["成语", "오늘", "オ"]),
        ("今日はACME-9", ["今日は", "acme-9"]),
        ("हिन्दी текст", ["हिन्दी", "текст"]),
        ("* ( ) \\ -- \u0301", []),
        ("", []),
    ],
)
def test_whole_forms(text: str, wholes: list[str]) -> None:
    assert [token.whole for token in tokens(text)] == wholes


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("meetings", ["meet"]),
        ("café", ["cafe"]),
        ("cafe\u0301", ["cafe"]),
        ("İstanbul", ["istanbul"]),
        ("ACME-1247", ["acm", "1247"]),
        ("gpt4", ["gpt", "4"]),
        ("O'Brien", ["o", "brien", "obrien"]),
        ("e-mail", ["e", "mail", "email"]),
        ("U.S.A.", ["u", "s", "a", "usa"]),
        ("成语接", ["成语", "语接", "成", "语", "接"]),
        ("语", ["语"]),
    ],
)
def test_stems_of_parts(text: str, stems: list[str]) -> None:
    assert list(analyse(text).stem) == stems


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("https://jira.corp/browse/ACME-1247", "acme-1247"),
        ("mailto:a@b.example", "a@b.example"),
        ("diego@corp.example", "corp.example"),
        ("src/main/app.py", "app.py"),
        ("v2.3.1", "2.3.1"),
        ("@bob", "bob"),
    ],
)
def test_whole_forms_inside_a_compound(text: str, inner: str) -> None:
    assert inner in analyse(text).exact


@pytest.mark.parametrize("text", ["acme-1247", "v2.3.1", "a@b.example", "/etc/hosts", "10.0.0.1", "inc00123", "gpt4"])
def test_exact_ids(text: str) -> None:
    assert read_cue(text).ids == (text,)


@pytest.mark.parametrize("text", ["long-term", "5pm", "2nd", "24/7", "12:30", "1247", "10-minute", "@bob", "c++", "q3"])
def test_not_exact_ids(text: str) -> None:
    assert read_cue(text).ids == ()


def test_stop_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert [unit.text for unit in read_cue("What's the budget of it?").units] == ["budget"]
    assert [unit.text for unit in read_cue("to be or not to be").units] == ["to", "be", "or", "not"]
    assert read_cue("?!").units == ()


def test_no_token_is_long_or_contains_a_space() -> None:
    fields = analyse("x" * 5000 + " \u3000\u2003\x1c\x85 " + "y-" * 5000 + " 成" * 3)
    assert all(len(token) <= 200 and not any(char.isspace() for char in token) for token in fields.exact + fields.stem)


def test_a_long_cue_is_cut() -> None:
    assert len(read_cue(" ".join(f"word{number}" for number in range(1000))).units) == MAX_UNITS


def test_idf_falls_as_a_term_becomes_common_and_stays_positive() -> None:
    term = Term("stem", "tea")
    values = [Statistics(10, {}, {term: df}).idf(term) for df in range(11)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0
    assert Statistics(3, {}, {term: 5}).idf(term) > 0  # a df may count documents that are already gone

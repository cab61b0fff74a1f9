from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ErrorCode, InvalidRequest
from infra.readers import MAX_LINE_BYTES, Format, Item, detect, project_name, read, read_each, split


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(path: Path, form: str | None = None) -> list[str]:
    return [item.request.text for item in read(path, form)]


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("a.jsonl", None, Format.JSONL),
        ("a.NDJSON", None, Format.JSONL),
        ("a.md", None, Format.MARKDOWN),
        ("a.markdown", None, Format.MARKDOWN),
        ("a.txt", None, Format.TEXT),
        ("a.json", None, Format.LOCOMO),
        ("a.txt", "markdown", Format.MARKDOWN),
        ("noend", "jsonl", Format.JSONL),
    ],
)
def test_the_suffix_or_the_override_decides_the_format(name: str, form: str | None, expected: Format) -> None:
    assert detect(Path(name), form) is expected


@pytest.mark.parametrize(
    ("name", "content", "form", "words"),
    [
        ("a.pdf", b"x", None, "cannot tell the format"),
        ("a.txt", b"x", "pdf", "unknown format 'pdf'"),
        ("a.txt", b"", None, "is empty"),
        ("a.json", b"{oops", None, "not UTF-8 JSON"),
        ("a.json", b"[1]", None, "not LoCoMo"),
        ("a.json", b'{"a": 1}', None, "not LoCoMo"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_at_once(
    tmp_path: Path, name: str, content: bytes, form: str | None, words: str
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(InvalidRequest) as caught:
        read(path, form)
    assert words in caught.value.message


def test_a_missing_file_and_a_directory_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no such file"):
        read(tmp_path / "absent.jsonl")
    with pytest.raises(InvalidRequest, match="directory"):
        read(tmp_path, "text")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.jsonl"])
def test_a_file_of_blanks_is_refused_when_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match="holds no text"):
        list(read(write(tmp_path, name, " \n\n \n")))


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as caught:
        list(read(write(tmp_path, "a.txt", b"caf\xe9")))
    assert caught.value.code == ErrorCode.INVALID_ENCODING


def test_jsonl_gives_a_request_a_line_and_its_project(tmp_path: Path) -> None:
    lines = b'\xef\xbb\xbf{"text": "one"}\r\n\n{"text": "zw\xc3\xb6lf", "project": "ops", "tags": ["a"]}'
    items = list(read(write(tmp_path, "a.jsonl", lines)))
    assert [(item.project, item.request.text) for item in items] == [(None, "one"), ("ops", "zwölf")]
    assert items[1].request.tags == ("a",)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", ErrorCode.INVALID_ENCODING),
        (b'{"text": "\xff"}', ErrorCode.INVALID_ENCODING),
        (b"[]", ErrorCode.INVALID_REQUEST),
        (b"{}", ErrorCode.INVALID_REQUEST),
        (b'{"text": "a", "tset": 1}', ErrorCode.UNKNOWN_FIELD),
        (b'{"text": " "}', ErrorCode.TEXT_EMPTY),
        (b'{"text": "a", "importance": 2}', ErrorCode.OUT_OF_RANGE),
        (b'{"text": "a", "project": "a.b"}', ErrorCode.INVALID_PROJECT),
        (b'{"text": "a", "project": 7}', ErrorCode.INVALID_PROJECT),
        (b'{"text": "a", "occurred_at": "2026-01-01T00:00:00"}', ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_bad_line_is_named_and_the_rest_goes_on(tmp_path: Path, line: bytes, code: ErrorCode) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "one"}\n' + line + b'\n{"text": "three"}\n')
    pairs = list(read_each(path))
    assert [number for number, _ in pairs] == [1, 2, 3]
    error = pairs[1][1]
    assert isinstance(error, InvalidRequest)
    assert error.code == code
    assert error.details["line"] == 2
    assert isinstance(pairs[2][1], Item)
    items = read(path)
    assert next(items).request.text == "one"
    with pytest.raises(InvalidRequest, match="line 2"):
        next(items)


def test_a_line_without_end_is_an_error_not_a_memory_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b"x" * (2 * MAX_LINE_BYTES + 5) + b'\n{"text": "two"}\n')
    first, second = read_each(path)
    assert isinstance(first[1], InvalidRequest)
    assert first[1].code == ErrorCode.PAYLOAD_TOO_LARGE
    assert isinstance(second[1], Item)
    assert second[0] == 2


def test_jsonl_is_lazy(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "one"}\nrubbish\n')
    assert next(read(path)).request.text == "one"


MARKDOWN = """# Guide

Intro line one
and line two.

## Setup ##

Install it.
```sh
make all

make test
```
After.

### Deep
Under deep.
---
# Second
* item
"""


def test_markdown_becomes_paragraphs_under_their_headings(tmp_path: Path) -> None:
    items = list(read(write(tmp_path, "guide.md", MARKDOWN)))
    assert [(item.request.metadata.get("heading"), item.request.text) for item in items] == [
        (["Guide"], "Intro line one\nand line two."),
        (["Guide", "Setup"], "Install it."),
        (["Guide", "Setup"], "```sh\nmake all\n\nmake test\n```"),
        (["Guide", "Setup"], "After."),
        (["Guide", "Setup", "Deep"], "Under deep."),
        (["Second"], "* item"),
    ]
    assert {item.request.source for item in items} == {"guide.md"}
    assert {item.project for item in items} == {None}


def test_a_long_code_block_stays_whole_and_an_open_one_ends_with_the_file(tmp_path: Path) -> None:
    code = "```\n" + "# not a heading. \n\n" * 300
    [text] = texts(write(tmp_path, "a.md", code))
    assert text == code.strip("\n")


def test_plain_text_knows_no_headings(tmp_path: Path) -> None:
    items = list(read(write(tmp_path, "x" * 90 + ".txt", "# one\n\n\ntwo\n")))
    assert [(item.request.text, item.request.metadata) for item in items] == [("# one", {}), ("two", {})]
    assert items[0].request.source == "x" * 64


def test_pairs_of_text_carry_the_line_of_the_paragraph(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "one\n\nbad\x00\n\nthree\nmore\n")
    pairs = list(read_each(path))
    assert [number for number, _ in pairs] == [1, 3, 5]
    assert isinstance(pairs[1][1], InvalidRequest)


def test_long_paragraphs_are_cut_at_sentence_ends(tmp_path: Path) -> None:
    paragraph = " ".join(f"This is sentence number {n} of the paragraph." for n in range(120))
    pieces = texts(write(tmp_path, "a.txt", paragraph))
    assert len(pieces) > 2
    assert all(len(piece) <= 2000 and piece.endswith(".") for piece in pieces)
    assert " ".join(pieces) == paragraph


@given(st.text(max_size=400), st.integers(1, 60))
def test_split_keeps_every_word_character_within_the_limit(text: str, limit: int) -> None:
    pieces = split(text, limit)
    if len(text) > limit:
        assert all(0 < len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def turn(speaker: str, dia_id: str, text: str, **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **more}


def conversation() -> list[dict[str, Any]]:
    talk = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_10_date_time": "whenever",
        "session_10": [turn("Ada", "D10:1", "late")],
        "session_2_date_time": "12:05 am on 9 June, 2024",
        "session_2": [turn("Ben", "D2:1", "look", blip_caption="a red kite"), turn("Ada", "D2:2", "nice")],
        "session_3_date_time": "1:00 pm on 10 June, 2024",
    }
    return [{"sample_id": "conv 1/ä", "conversation": talk}]


def test_locomo_gives_a_memory_a_turn_in_session_order(tmp_path: Path) -> None:
    items = list(read(write(tmp_path, "l.json", json.dumps(conversation()))))
    assert {item.project for item in items} == {"conv-1"}
    first, second, third = (item.request for item in items)
    assert first.text == "Ben: look [image: a red kite]"
    assert first.occurred_at == datetime(2024, 6, 9, 0, 5, 0, tzinfo=UTC)
    assert second.occurred_at == datetime(2024, 6, 9, 0, 5, 1, tzinfo=UTC)
    assert (first.session, first.source, first.metadata) == ("session_2", "locomo", {"dia_id": "D2:1"})
    assert first.request_id == "conv 1/ä:D2:1"
    assert [(entity.name, entity.type) for entity in first.entities] == [("Ben", "Person")]
    assert (third.text, third.session, third.occurred_at) == ("Ada: late", "session_10", None)


def test_a_bad_turn_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    samples = conversation()
    samples[0]["conversation"]["session_2"][0] = {"speaker": "Ben"}
    pairs = list(read_each(write(tmp_path, "l.json", json.dumps(samples))))
    assert [isinstance(item, Item) for _, item in pairs] == [False, True, True]
    assert isinstance(pairs[0][1], InvalidRequest)
    assert pairs[0][1].details["turn"] == 1


@pytest.mark.parametrize(
    ("name", "project"), [("conv-26", "conv-26"), ("a b.c", "a-b-c"), ("__", "locomo"), ("é", "locomo")]
)
def test_project_names_are_made_valid(name: str, project: str) -> None:
    assert project_name(name) == project


def test_the_real_locomo_file_reads_whole() -> None:
    folder = os.environ.get("MEMLANE_DATA")
    path = Path(folder or ".") / "locomo-dev.json"
    if not folder or not path.is_file():
        pytest.skip("MEMLANE_DATA does not name a folder with locomo-dev.json")
    items = list(read(path))
    turns = [
        turn
        for sample in json.loads(path.read_bytes())
        for key, turns in sample["conversation"].items()
        if key.startswith("session_") and isinstance(turns, list)
        for turn in turns
    ]
    assert len(items) == len(turns)
    assert len({item.request.request_id for item in items}) == len(items)
    assert all(item.request.occurred_at is not None for item in items)

"""Memories as they move: as Markdown and back, and out of what other services give out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import InvalidRequest, MemlaneError
from infra.moving.inward import Inward
from infra.moving.markdown import from_markdown, has_fields, to_markdown
from infra.readers import Item

words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words, lambda one: st.lists(one, max_size=3)
)


@given(words, st.dictionaries(st.sampled_from(["tags", "source", "metadata", "kind"]), values))
def test_markdown_and_back(text: str, more: dict[str, Any]) -> None:
    fields = {"ref": "r", **more, "text": text}
    data = to_markdown(fields)
    assert has_fields(data)
    assert from_markdown(data) == fields


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"---\nref: 1\n", 3),
        (b"---\nref: {\n---\nx\n", 2),
        (b"---\nref\n---\nx\n", 2),
        (b"---\nref: 1\n---\n\xff\n", 4),
    ],
)
def test_front_matter_that_is_none(data: bytes, line: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        from_markdown(data)
    assert refused.value.details["line"] == line


def read(path: Path, form: str) -> tuple[list[Item], list[MemlaneError]]:
    inward = Inward(path, form, "p")
    found = [item for _, item in inward.items(inward.check())]
    return [one for one in found if isinstance(one, Item)], [one for one in found if isinstance(one, MemlaneError)]


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def said(role: str, text: str, **more: object) -> dict[str, object]:
    return {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}, **more}


def test_chatgpt_follows_the_branch_that_was_last_shown(tmp_path: Path) -> None:
    nodes = {
        "root": {"message": None, "parent": None, "children": ["s"]},
        "s": {"message": said("system", "be kind"), "parent": "root", "children": ["u"]},
        "u": {
            "message": said("user", "My bike is red", create_time=1_700_000_000.5),
            "parent": "s",
            "children": ["a", "b"],
        },
        "a": {"message": said("assistant", "The first answer"), "parent": "u", "children": []},
        "b": {"message": said("assistant", "The second answer"), "parent": "u", "children": []},
    }
    talk = {"title": "Bikes", "conversation_id": "c1", "mapping": nodes, "current_node": "b"}
    good, bad = read(written(tmp_path / "conversations.json", [talk, {"title": "odd"}]), "chatgpt")
    assert [one.request.text for one in good] == ["My bike is red", "The second answer"]
    first = good[0].request
    assert (first.session, first.source, first.tags) == ("c1", "chatgpt", ("user", "Bikes"))
    assert first.occurred_at is not None
    assert first.occurred_at.isoformat() == "2023-11-14T22:13:20.500000+00:00"
    [error] = bad
    assert "conversation 2" in error.message
    assert "is it a ChatGPT export?" in error.message


def test_claude_reads_blocks_and_texts(tmp_path: Path) -> None:
    messages = [
        {"sender": "human", "text": "Plain words", "created_at": "2025-02-03T04:05:06.000Z"},
        {"sender": "assistant", "text": "", "content": [{"type": "text", "text": "In a block"}, {"type": "tool_use"}]},
        {"sender": "human", "text": "  "},
        {"text": "nobody says it"},
    ]
    folder = tmp_path / "export"
    folder.mkdir()
    written(folder / "conversations.json", [{"uuid": "u1", "name": "Talk", "chat_messages": messages}])
    good, bad = read(folder, "claude")
    assert [(one.request.text, one.request.tags[0]) for one in good] == [
        ("Plain words", "user"),
        ("In a block", "assistant"),
    ]
    assert "message 4" in bad[0].message


def test_mem0_keeps_whose_memory_it_is(tmp_path: Path) -> None:
    entry = {
        "id": "m1", "memory": "Likes tea", "user_id": "ana", "created_at": "2025-01-01T00:00:00Z", "categories": ["food"],
        "metadata": {"mood": "good"},
    }  # fmt: skip
    good, bad = read(written(tmp_path / "mem0.json", {"results": [entry, {"id": "m2"}]}), "mem0")
    request = good[0].request
    assert (request.text, request.tags, request.source) == ("Likes tea", ("food",), "mem0")
    assert request.metadata == {"mood": "good", "user_id": "ana", "mem0_id": "m1"}
    assert "memory 2" in bad[0].message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "line 1: must be a JSON object"),
        ('{"text": ""}', "line 1"),
        ('{"text": "a", "colour": "red"}', "line 1"),
        ('{"text": "a", "edges": [{"kind": "CAUSED", "target": "nobody"}]}', "'nobody' is the ref of no memory here"),
        ("{", "line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(line + "\n", "utf-8")
    good, bad = read(path, "jsonl")
    assert good == []
    assert said in bad[0].message


@pytest.mark.parametrize("form", ["jsonl", "markdown", "mem0", "chatgpt", "claude"])
def test_nothing_there(tmp_path: Path, form: str) -> None:
    with pytest.raises(InvalidRequest, match="there is nothing"):
        Inward(tmp_path / "absent", form, "p")
    with pytest.raises(InvalidRequest, match="no format"):
        Inward(tmp_path, "docx", "p")

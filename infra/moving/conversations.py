"""What other services give out: the memories of mem0, the conversations of ChatGPT and of Claude.

Each of them is a JSON file that is read as a whole. What is found comes as fields of an encode request, or as an error,
with its place in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from contracts.base import MAX_NAME_CHARS, MAX_TAGS
from contracts.errors import ErrorCode, InvalidRequest, MemlaneError
from infra.readers import split

#: Who speaks, under the names that these services have for them. Others (system, tool) say nothing worth remembering.
SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant"}


class Found(NamedTuple):
    """What stands at a place: a line, a message, a file."""

    place: str
    what: dict[str, Any] | MemlaneError


def mem0(path: Path) -> Iterator[Found]:
    """A list of memories, alone or under ``results`` or ``memories``."""
    value = read_json(path)
    if isinstance(value, dict):
        value = next((value[key] for key in ("results", "memories") if key in value), value)
    for number, entry in enumerate(_list(value, path, "mem0 memories"), start=1):
        yield _attempt(f"{path}: memory {number}", _mem0, entry)


def chatgpt(path: Path) -> Iterator[Found]:
    """``conversations.json``, or the folder that it is in. Of a conversation that branches, the branch last shown."""
    for place, talk in _talks(path, "ChatGPT"):
        nodes = talk.get("mapping")
        if not isinstance(nodes, dict):
            yield Found(place, _bad("has no mapping of messages: is it a ChatGPT export?"))
            continue
        session = str(talk.get("conversation_id") or talk.get("id") or place)
        messages = [node["message"] for node in _branch(nodes, talk.get("current_node"))]
        yield from _messages(place, session, talk.get("title"), "chatgpt", messages, _chatgpt)


def claude(path: Path) -> Iterator[Found]:
    """``conversations.json``, or the folder that it is in."""
    for place, talk in _talks(path, "Claude"):
        messages = talk.get("chat_messages")
        if not isinstance(messages, list):
            yield Found(place, _bad("has no chat_messages: is it a Claude export?"))
            continue
        yield from _messages(place, str(talk.get("uuid") or place), talk.get("name"), "claude", messages, _claude)


def read_json(path: Path) -> Any:
    """Raises InvalidRequest that names file, line and column."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _bad(f"cannot read {path}: {(error.strerror or 'unknown error').lower()}") from None
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        message = f"{path}: line {error.lineno}, column {error.colno}: not UTF-8 JSON: {error.msg}"
        raise InvalidRequest(ErrorCode.INVALID_ENCODING, message, path=str(path), line=error.lineno) from None


class _Said(NamedTuple):
    speaker: str | None
    text: str
    at: datetime | None


def _talks(path: Path, service: str) -> Iterator[tuple[str, dict[str, Any]]]:
    file = path / "conversations.json" if path.is_dir() else path
    for number, talk in enumerate(_list(read_json(file), file, f"{service} conversations"), start=1):
        if not isinstance(talk, dict):
            raise _bad(f"{file}: conversation {number} is no object")
        yield f"{file}: conversation {number}", talk


def _messages(
    place: str, session: str, title: Any, source: str, messages: list[Any], read: Callable[[Any], _Said]
) -> Iterator[Found]:
    about = [str(title)[:MAX_NAME_CHARS]] if title else []  # a tag: a new title makes no new memories
    for number, message in enumerate(messages, start=1):
        here = f"{place}, message {number}"
        try:
            said = read(message)
        except (TypeError, KeyError, AttributeError, ValueError, OverflowError, OSError):
            yield Found(here, _bad("is not as messages are there"))
            continue
        if said.speaker is None or not said.text.strip():
            continue
        for part, text in enumerate(split(said.text.strip())):
            fields = {
                "text": text,
                "session": session[:MAX_NAME_CHARS],
                "source": source,
                "tags": [said.speaker, *about],
                "metadata": {"message": number} | ({"part": part} if part else {}),
            }
            yield Found(here, fields | ({"occurred_at": said.at.isoformat()} if said.at else {}))


def _branch(nodes: dict[str, Any], leaf: Any) -> list[dict[str, Any]]:
    """From the root to the leaf; without one that is there, to the end of the newest branches. Nodes without a message
    stand for the root and for what was taken out."""
    if leaf not in nodes:
        leaf = next((key for key, node in nodes.items() if isinstance(node, dict) and not node.get("parent")), None)
        seen = set()
        while leaf in nodes and leaf not in seen and nodes[leaf].get("children"):
            seen.add(leaf)
            leaf = nodes[leaf]["children"][-1]
    path: list[dict[str, Any]] = []
    taken = set()
    while isinstance(leaf, str) and leaf not in taken and isinstance(node := nodes.get(leaf), dict):
        taken.add(leaf)
        path.append(node)
        leaf = node.get("parent")
    return [node for node in reversed(path) if node.get("message") is not None]


def _chatgpt(message: Any) -> _Said:
    content = message["content"]
    parts = content.get("parts") or [content.get("text")]
    at = message.get("create_time")
    return _Said(
        SPEAKERS.get(message["author"]["role"]) if content.get("content_type") in _SPOKEN else None,
        "\n".join(part for part in parts if isinstance(part, str)),  # others are images and files
        None if at is None else datetime.fromtimestamp(float(at), UTC),
    )


_SPOKEN = {"text", "multimodal_text", None}


def _claude(message: Any) -> _Said:
    blocks = message.get("content") or []
    spoken = [block["text"] for block in blocks if block.get("type") == "text" and block.get("text")]
    at = message.get("created_at")
    return _Said(
        SPEAKERS.get(message["sender"]),
        "\n\n".join(spoken) or message.get("text") or "",
        None if at is None else datetime.fromisoformat(at).astimezone(UTC),
    )


def _mem0(entry: Any) -> dict[str, Any]:
    text = entry.get("memory") if isinstance(entry, dict) else None
    if not isinstance(text, str):
        raise _bad("has no text under 'memory'")
    of = {key: entry[key] for key in ("id", "user_id", "agent_id", "app_id") if entry.get(key)}
    more = entry.get("metadata") or {}
    categories = entry.get("categories") or []
    if not isinstance(more, dict) or not isinstance(categories, list):
        raise _bad("metadata must be an object, categories a list")
    fields: dict[str, Any] = {
        "text": text,
        "source": "mem0",
        "metadata": more | {f"mem0_{key}" if key == "id" else key: value for key, value in of.items()},
        "tags": categories[:MAX_TAGS],
    }
    if entry.get("run_id"):
        fields["session"] = entry["run_id"]
    if entry.get("created_at"):
        fields["occurred_at"] = entry["created_at"]
    return fields


def _list(value: Any, path: Path, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _bad(f"{path}: expected a list of {what}")
    return value


def _attempt(place: str, make: Callable[[Any], dict[str, Any]], value: Any) -> Found:
    try:
        return Found(place, make(value))
    except MemlaneError as error:
        return Found(place, error)


def _bad(message: str) -> InvalidRequest:
    return InvalidRequest(ErrorCode.INVALID_REQUEST, message)

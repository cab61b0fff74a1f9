"""A reply as a few lines that a language model reads: what it needs to go on, without the numbers."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from contracts import wire
from contracts.encode import EncodeReply
from contracts.query import QueryReply
from contracts.recall import RecallReply

NOTHING = "None: nothing that is remembered answers this."


def readable(reply: BaseModel) -> str:
    """Lines for the replies that are read most; JSON for the others."""
    if isinstance(reply, EncodeReply):
        return f"{'already remembered' if reply.deduplicated else 'remembered'} as {reply.id}"
    if isinstance(reply, RecallReply):
        lines = [_line(one.id, one.text, one.occurred_at or one.created_at) for one in reply.members]
        lines = [f"{reply.answer_kind}:", *lines] if lines else [NOTHING]
        return "\n".join([*lines, *_caveat(reply.degraded)])
    if isinstance(reply, QueryReply):
        lines = [_line(one.id, one.text, one.occurred_at or one.created_at) for one in reply.memories]
        return "\n".join([*(lines or ["nothing found"]), *_caveat(reply.degraded)])
    return wire.encode(reply).decode()


def _line(memory_id: str, text: str, when: datetime) -> str:
    return f"- [{memory_id}] {when:%Y-%m-%d}: {text}"


def _caveat(degraded: bool) -> list[str]:
    return ["(part of the memory did not answer: this may be incomplete)"] if degraded else []

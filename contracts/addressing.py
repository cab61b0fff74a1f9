"""Headers of messages, and whose memory one is for: the project in its subject, or the one in its header."""

from __future__ import annotations

from collections.abc import Mapping

from contracts import wire
from contracts.errors import ErrorCode, InvalidRequest

PROJECT_HEADER = "X-Project-ID"
#: On the reply of a verb whose quota is spent in silent mode, with the value 1; a true empty answer does not have it.
SILENT_HEADER = "X-Memlane-Silent"
#: The context of the caller's trace (W3C). Baggage is not handed on: nobody knows what is in it.
TRACE_HEADERS = ("traceparent", "tracestate")
#: Stands in a subject for the project that the header names. No project can be called that.
NO_PROJECT = "_"


def addressed(subject: str, headers: Mapping[str, str], default: str) -> str:
    """The subject with the project in it: the one it names, else the header's, else `default`. Subjects of verbs and of
    the ingest queue have a project; others are returned as they are.

    Raises INVALID_PROJECT for a header that no project can be called, or that contradicts the subject: which of the
    two was meant is not ours to guess.
    """
    tokens = subject.split(".")
    place = 2 if tokens[:2] == ["memlane", "v1"] else 3 if tokens[:3] == ["memlane", "ingest", "v1"] else 0
    if not 0 < place < len(tokens):
        return subject
    named = header(headers, PROJECT_HEADER)
    if named is not None:
        wire.check_project(named)
        if tokens[place] not in (NO_PROJECT, named):
            raise InvalidRequest(
                ErrorCode.INVALID_PROJECT, f"{PROJECT_HEADER} and the subject name two projects", field=PROJECT_HEADER
            )
    if tokens[place] == NO_PROJECT:
        tokens[place] = default if named is None else named
    return ".".join(tokens)


def header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value, its name in any case: they pass through HTTP."""
    if name in headers:
        return headers[name]
    wanted = name.lower()
    return next((value for key, value in headers.items() if key.lower() == wanted), None)

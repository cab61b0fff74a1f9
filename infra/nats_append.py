"""Appending to a stream on the condition that its subject has not moved: one message at its last position, or none."""

from __future__ import annotations

import nats.errors
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError

from contracts.base import Position
from contracts.errors import ErrorCode, InvalidRequest, Unavailable
from contracts.ports import PayloadTooLarge, WrongPosition
from infra.nats_bus import NatsBus

WRONG_LAST_SEQUENCE = 10071


def expecting(bus: NatsBus, data: bytes, expected: Position) -> dict[str, str]:
    """The headers of the condition. Raises InvalidRequest (PAYLOAD_TOO_LARGE) for what the server does not take."""
    headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
    try:
        bus.check_size(data, headers)
    except PayloadTooLarge as error:
        raise InvalidRequest(ErrorCode.PAYLOAD_TOO_LARGE, f"the memory is too large: {error}") from None
    return headers


async def append(
    js: JetStreamContext, stream: str, name: str, subject: str, data: bytes, headers: dict[str, str]
) -> Position:
    """The position of the message. Raises WrongPosition when the condition does not hold, Unavailable when the stream
    refused or did not acknowledge it; `name` is what errors call it."""
    try:
        ack = await js.publish(subject, data, stream=stream, headers=headers)
    except APIError as error:
        if error.err_code == WRONG_LAST_SEQUENCE:
            raise WrongPosition from None
        raise Unavailable(ErrorCode.UNAVAILABLE, f"{name} refused the record", reason=error.description) from None
    except (TimeoutError, nats.errors.Error, NoStreamResponseError) as error:
        raise Unavailable(ErrorCode.UNAVAILABLE, f"{name} did not acknowledge", reason=str(error)) from None
    return ack.seq

"""How encode is counted, and what it answers when the quota is spent in silent mode."""

from __future__ import annotations

from contracts import wire
from contracts.encode import EncodeReply, EncodeRequest
from contracts.identity import memory_id
from contracts.usage import Charge, Kind, Tariff

CHARGE: Charge = {Kind.ENCODE: 1}


def _encode(_: bytes) -> Charge:
    return CHARGE


def _silent_encode(project: str, data: bytes) -> bytes:
    """The id that the memory would have, at position 0 as of what is in no log: nothing is embedded or stored, and
    encoding it again tomorrow gives the same id."""
    request = wire.decode(EncodeRequest, data)
    wire.check_text(request.text, "text")
    return wire.encode(EncodeReply(id=memory_id(project, request), position=0))


TARIFFS: dict[str, Tariff] = {"encode": Tariff(_encode, _silent_encode)}

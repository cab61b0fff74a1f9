"""A coverage-guided fuzz of the decoders, with atheris: `python -m benches.fuzz_decoders -max_total_time=60`.

The first byte chooses the message, the rest is what comes over the wire. Anything but a message or an error of ours
stops it, and libFuzzer writes down the bytes. What the tests check every time is in tests/unit/test_fuzz_decoders.py.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["contracts", "infra", "orchestrator"]):
    from contracts import wire
    from contracts.errors import Garbled, InvalidRequest, MemlaneError
    from contracts.lanes import LaneReply
    from contracts.memory import MemoryRecord
    from contracts.verbs import VERBS
    from infra.nats_ledger import counts_of
    from orchestrator.cursor import unseal

REQUESTS = [verb.request for verb in VERBS.values()]
STORED = [verb.reply for verb in VERBS.values()] + [MemoryRecord, LaneReply]


def one(data: bytes) -> None:
    kind, data = data[:1] or b"\0", data[1:]
    number = kind[0]
    try:
        request = wire.decode(REQUESTS[number % len(REQUESTS)], data)
        if wire.decode(type(request), wire.encode_request(request)) != request:
            raise AssertionError("what was accepted reads otherwise once it was written down")
    except InvalidRequest as error:
        wire.encode_error(error)
    for decode in (wire.decode_reply, wire.decode_stored):
        try:
            wire.encode(decode(STORED[number % len(STORED)], data))
        except MemlaneError as error:
            wire.encode_error(error)
    try:
        counts_of(data)
    except Garbled:
        pass
    try:
        unseal(data.decode("latin-1"), "b")
    except InvalidRequest:
        pass


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()

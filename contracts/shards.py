"""Shards: which part of a project's memories a process holds, and how the log's subjects tell it.

The number of shards is a power of two, and a memory's shard is the lowest bits of its id's hash. Those bits stand in
the memory's log subject, lowest first, a token each: so shard 1 of 4 is the one filter ``1.0.*.*.…``, whatever number
of shards there was when a record was written. To double the shards moves nothing in the log.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic_core import PydanticCustomError

from contracts.base import MemoryId

#: Bits of the hash that are in a log subject.
BITS = 8
MOST_SHARDS = 2**BITS


class Shard(NamedTuple):
    """One of `of` shards. As text ``1of4``: a token of subjects and a part of folders' and durables' names."""

    number: int = 0
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}of{self.of}"

    @property
    def filter(self) -> str:
        """The bits of its memories' log subjects, those that may be either as ``*``."""
        fixed = self.of.bit_length() - 1
        return ".".join(str(self.number >> bit & 1) if bit < fixed else "*" for bit in range(BITS))

    def holds(self, memory_id: MemoryId) -> bool:
        return shard_of(memory_id, self.of) == self.number

    @property
    def slots(self) -> list[int]:
        """The slots of its memories: see `slot_of_id`."""
        return list(range(self.number, MOST_SHARDS, self.of))


#: All memories: the only shard of one.
WHOLE = Shard()


def shard_named(text: str) -> Shard | None:
    """The shard that is written so, if it is one."""
    number, _, of = text.partition("of")
    shard = Shard(int(number), int(of)) if number.isdecimal() and of.isdecimal() else None
    return shard if shard and is_number_of_shards(shard.of) and shard.number < shard.of else None


def is_number_of_shards(number: int) -> bool:
    return 1 <= number <= MOST_SHARDS and number.bit_count() == 1


def check_number_of_shards(number: int) -> int:
    """The number. Raises the pydantic error for one that is no power of two."""
    if not is_number_of_shards(number):
        raise PydanticCustomError("shards", "Input should be a power of two")
    return number


def slot_of_id(memory_id: MemoryId) -> int:
    """The shard of a memory among the most that there may be; among S it is that modulo S."""
    padded = memory_id.upper() + "=" * (-len(memory_id) % 8)
    return base64.b32decode(padded)[7]


def shard_of(memory_id: MemoryId, shards: int) -> int:
    """The shard of a memory among `shards`. Ids are uniform, so some of their bits are a fair hash; going from S to 2S
    shards sends shard i to i or i + S."""
    return slot_of_id(memory_id) % shards


def bits_of(memory_id: MemoryId) -> str:
    """The bits in a memory's log subject."""
    slot = slot_of_id(memory_id)
    return ".".join(str(slot >> bit & 1) for bit in range(BITS))


def by_shard(ids: Iterable[MemoryId], shards: int) -> dict[Shard, list[MemoryId]]:
    """The ids of each shard that has any, in their order."""
    parts: dict[Shard, list[MemoryId]] = {}
    for memory_id in ids:
        parts.setdefault(Shard(shard_of(memory_id, shards), shards), []).append(memory_id)
    return parts


def all_shards(shards: int) -> Sequence[Shard]:
    return [Shard(number, shards) for number in range(shards)]

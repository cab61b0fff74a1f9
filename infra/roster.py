"""Which processes there should be, and what to start and to stop for it: plain values, no process is touched here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from contracts.shards import Shard, all_shards

PER_SHARD = ("catalog", "semantic", "lexical", "graph")
ONCE = ("embed", "encode", "orchestrator", "rerank", "upkeep")


class Post(NamedTuple):
    """The place of one process. Its number names its data folder and its durable consumers: two processes never hold
    one post at once."""

    role: str
    shard: Shard  #: the whole, for a role that holds none
    number: int

    def replica(self, base: str) -> str:
        return base if self.number == 0 else f"{base}{self.number + 1}"


class Change(NamedTuple):
    start: tuple[Post, ...]
    stop: tuple[Post, ...]


def shards_of(role: str, shards: int) -> Sequence[Shard]:
    return all_shards(shards if role in PER_SHARD else 1)


def posts(role: str, shards: int, replicas: int) -> list[Post]:
    return [Post(role, shard, number) for shard in shards_of(role, shards) for number in range(replicas)]


def change(present: Sequence[Post], leaving: Collection[Post], role: str, shards: int, replicas: int) -> Change:
    """What brings each shard of a role to so many replicas. The highest numbers go first; a post whose process is still
    leaving is not filled again, the next number is."""
    start: list[Post] = []
    stop: list[Post] = []
    for shard in shards_of(role, shards):
        held = sorted(post for post in present if (post.role, post.shard) == (role, shard))
        stop += held[replicas:]
        number = 0
        for _ in range(replicas - len(held)):
            while (post := Post(role, shard, number)) in held or post in leaving or post in start:
                number += 1
            start.append(post)
    return Change(tuple(start), tuple(stop))


def renewal(present: Sequence[Post]) -> list[Post]:
    """As many posts again, none of which is filled: for processes that take over from those present."""
    first = max((post.number for post in present), default=-1) + 1
    shift = 0 if all(post.number >= len(present) for post in present) else first  # low numbers once they are free
    return [post._replace(number=number + shift) for number, post in enumerate(sorted(present))]

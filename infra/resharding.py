"""From S shards to another number of them while recalls go on: new indexes beside the old, then a change of guard.

The log stays as it is (`contracts.shards`). Lanes and catalogs of the new shards build themselves from it and answer on
subjects of their own. Once all have caught up, the processes that ask them are replaced by the next generation; then
the old lanes and catalogs end, and their folders go.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import structlog
from nats.aio.client import Client

from contracts.ops import ReshardReply
from contracts.shards import Shard, shard_named
from infra.discovery import Process, discover
from infra.roster import PER_SHARD, Post, posts, renewal

logger = structlog.get_logger()

#: Roles that ask lanes and catalogs by shard, and so must know how many there are.
ASKERS = ("orchestrator", "encode", "upkeep")
LAYOUT = "shards"


class Stage(StrEnum):
    BUILDING = "building"
    SWITCHING = "switching"
    DONE = "done"


class Crew(Protocol):
    """The processes of one machine."""

    shards: int

    def posts(self) -> list[Post]: ...
    def start_posts(self, posts: Sequence[Post]) -> None: ...
    async def stop_posts(self, posts: Collection[Post]) -> None:
        """Tell them to stop, and wait until they have ended."""
        ...


class Resharding:
    """One change of the number of shards. `run` may be cancelled: the old shards are complete until it is done."""

    def __init__(self, crew: Crew, data: Path, base: str, to: int) -> None:
        """`base` is the name of the first replica of a role."""
        self._crew, self._data, self._base = crew, data, base
        self.before, self.to, self.stage = crew.shards, to, Stage.BUILDING
        self._ready = self._wanted = 0

    def reply(self) -> ReshardReply:
        return ReshardReply(
            before=self.before, shards=self.to, stage=self.stage.value, ready=self._ready, wanted=self._wanted
        )

    async def run(self, client: Client) -> None:
        present = self._crew.posts()
        old = [post for post in present if post.role in PER_SHARD]
        new = [
            post
            for role in PER_SHARD
            for post in posts(role, self.to, sum(one.role == role and one.shard.number == 0 for one in old))
        ]
        logger.info("resharding", action="reshard", before=self.before, to=self.to)
        await self._replace(client, old=(), new=new)
        self.stage = Stage.SWITCHING
        self._crew.shards = self.to
        remember(self._data, self.to)
        for role in ASKERS:
            those = [post for post in present if post.role == role]
            await self._replace(client, those, renewal(those))
        await self._crew.stop_posts(old)
        remove_others(self._data, self.to)
        self.stage = Stage.DONE
        logger.info("resharded", action="resharded", before=self.before, to=self.to)

    async def _replace(self, client: Client, old: Collection[Post], new: Sequence[Post]) -> None:
        """Start new ones, wait until each answers, stop the old ones."""
        self._crew.start_posts(new)
        self._ready, self._wanted = 0, len(new)
        while self._ready < self._wanted:
            answering = await discover(client)
            self._ready = sum(any(self._is(post, process) for process in answering) for post in new)
        await self._crew.stop_posts(old)

    def _is(self, post: Post, process: Process) -> bool:
        name = process.facts.get("replica")
        mine = process.shard in (post.shard, None) if post.role in PER_SHARD else True
        return process.role == post.role and name == post.replica(self._base) and mine


def remember(data: Path, shards: int) -> None:
    """Write down how many shards the indexes in a data folder have."""
    written = data / f"{LAYOUT}.new"
    written.write_text(f"{shards}\n", "ascii")
    written.replace(data / LAYOUT)


def remembered(data: Path) -> int | None:
    """How many shards the indexes in a data folder have; None where nothing tells."""
    try:
        return int((data / LAYOUT).read_text("ascii"))
    except (OSError, ValueError):
        return None


def remove_others(data: Path, shards: int, remove: Callable[[Path], None] = shutil.rmtree) -> list[str]:
    """Remove the folders of indexes of another number of shards: they can be built again. Returns their names."""
    gone = []
    for folder in sorted(data.glob("*-*of*-*")):
        shard = shard_of_folder(folder.name)
        if shard is not None and shard.of != shards and folder.is_dir():
            remove(folder)
            gone.append(folder.name)
    return gone


def shard_of_folder(name: str) -> Shard | None:
    """The shard of a folder that `Settings.folder` names so; None for any other."""
    role, _, rest = name.partition("-")
    return shard_named(rest.partition("-")[0]) if role in PER_SHARD else None

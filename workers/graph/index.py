"""The graph lane's index over Bolt: the same driver and texts for Neo4j 5 and the embedded store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import anyio
from neo4j import AsyncManagedTransaction

from contracts.base import Position
from contracts.lanes import EdgesQuery, EdgesReply, LaneQuery, LaneReply, ScoreQuery, ScoreReply
from contracts.ports import Entry
from contracts.shards import Shard
from workers.graph import cypher, ranking, rows, store
from workers.graph.bolt import PATIENCE_S, Bolt, rows_of
from workers.graph.facts import key_of
from workers.graph.ranking import Anchors, Ranking, Walk


class GraphIndex:
    """A LaneIndex of one shard in a graph database that other shards may share.

    Effect and position are stored in one transaction, and entries up to the stored position are skipped, so replicas
    that share a database may all apply the same log. A log that starts anew needs `wipe`. Searches answer out of
    the whole database, within the query's project.
    """

    def __init__(self, bolt: Bolt, shard: Shard) -> None:
        self._bolt, self._shard = bolt, shard
        self._position: Position = 0
        self._turn = anyio.Lock()  # entries are applied in the order in which they were handed over

    @classmethod
    async def open(cls, uri: str, user: str, password: str, database: str, shard: Shard, wipe: bool = False) -> Self:
        """Connect, make the schema, and read the shard's position; with `wipe`, first remove all of the shard.

        Raises what the driver raises when the server is away or refuses the password.
        """
        bolt = await Bolt.connect(uri, user, password, database)
        index = cls(bolt, shard)
        try:
            await index._prepare(wipe)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await bolt.close()
            raise
        return index

    @property
    def position(self) -> Position:
        return self._position

    async def apply(self, entries: Sequence[Entry]) -> None:
        """Store the entries' effect and position together. Raises what the driver raises after bounded retries."""
        if not entries:
            return
        async with self._turn:
            stored = await self._bolt.write(lambda tx: store.apply_entries(tx, self._shard, entries))
            self._position = max(self._position, stored)

    async def search(self, query: LaneQuery) -> LaneReply:
        """The best items. Raises TimeoutError when the query's time is up."""
        limit_s = query.remaining_ms / 1000
        with anyio.fail_after(limit_s):
            anchors = await self._anchors(query.project, query.cue, query.subject, limit_s)
            if not anchors.nodes:
                return ranking.NO_ANCHOR.model_copy(update={"position": self._position})
            walk = await self._walk(query.project, anchors, limit_s)
        reply = Ranking(anchors).add(walk).reply(query.top_n)
        return reply.model_copy(update={"position": self._position})

    async def score(self, query: ScoreQuery) -> ScoreReply:
        """Evidence for the given memories by the same rule. Raises TimeoutError when the query's time is up."""
        limit_s = query.remaining_ms / 1000
        with anyio.fail_after(limit_s):
            anchors = await self._anchors(query.project, query.cue, None, limit_s)
            memories = [key_of(query.project, memory) for memory in dict.fromkeys(query.ids)]
            found = await self._bolt.read(
                cypher.SCORE, limit_s, anchors=anchors.keys, memories=memories, **ranking.BOUNDS
            )
        mentioned, beside = rows.keys_by_memory(found, "mentioned"), rows.keys_by_memory(found, "beside")
        return ranking.scores(query.ids, anchors, rows.walk_of(found).steps, mentioned, beside)

    async def edges(self, query: EdgesQuery) -> EdgesReply:
        """Edges that memories of this shard assert. Raises TimeoutError when the query's time is up."""
        limit_s = query.remaining_ms / 1000
        with anyio.fail_after(limit_s):
            found = await self._bolt.read(
                cypher.EDGES_OUT if query.direction == "out" else cypher.EDGES_IN,
                limit_s,
                keys=[key_of(query.project, memory) for memory in dict.fromkeys(query.ids)],
                kinds=[str(kind) for kind in query.kinds],
                number=self._shard.number,
                of=self._shard.of,
                most=query.most + 1,
            )
        return rows.edges_of(found, query.most).model_copy(update={"position": self._position})

    async def close(self) -> None:
        await self._bolt.close()

    async def _anchors(self, project: str, cue: str, subject: str | None, limit_s: float) -> Anchors:
        keys = [key_of(project, form) for form in ranking.forms_in(cue, subject)]
        return rows.anchors_of(await self._bolt.read(cypher.ANCHORS, limit_s, keys=keys), subject)

    async def _walk(self, project: str, anchors: Anchors, limit_s: float) -> Walk:
        parameters = {"anchors": anchors.keys, **ranking.BOUNDS}
        found = await self._bolt.read(
            cypher.WALK,
            limit_s,
            rarer=anchors.rarer,
            checked=[key_of(project, memory) for memory in anchors.checked],
            memories=[key_of(project, memory) for memory in anchors.memories],
            **parameters,
        )
        walk = rows.walk_of(found)
        if through := anchors.through(walk.steps):
            found = await self._bolt.read(cypher.FAR, limit_s, through=[list(pair) for pair in through], **parameters)
            walk.steps += rows.walk_of(found).steps
        return walk

    async def _prepare(self, wipe: bool) -> None:
        for statement in cypher.SCHEMA:
            await self._bolt.write(lambda tx, text=statement: rows_of(tx, text))  # type: ignore[misc]
        while wipe and await self._bolt.write(self._wipe_some):
            pass
        found = await self._bolt.read(cypher.POSITIONS, PATIENCE_S)
        self._position = store.position_of(self._shard, {row["key"]: row["applied"] for row in found})

    async def _wipe_some(self, tx: AsyncManagedTransaction) -> bool:
        return await store.wipe_some(tx, self._shard)

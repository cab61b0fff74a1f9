"""Publication lag: from the log's ack to findable, lane by lane, beside the time that a search takes anyway.

After each encode every lane is asked to answer at that position; what that takes beyond the same search right after it
is the lag.

    python -m benches.lag --memories 200 --engine tantivy
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import anyio

from benches.speed import PROJECT, texts
from contracts import subjects, wire
from contracts.client import MemoryClient
from contracts.lanes import Lane, LaneQuery, LaneReply
from contracts.memory import pack_vector
from contracts.shards import WHOLE
from infra.demo import running
from workers.models import PACKAGED, SentenceEmbedder


async def run(url: str, memories: int) -> None:
    embedder = SentenceEmbedder(PACKAGED, 1)
    lags: dict[Lane, list[float]] = defaultdict(list)
    searches: dict[Lane, list[float]] = defaultdict(list)
    async with MemoryClient(url, project=PROJECT, timeout_s=60) as memory:
        client = await memory.connection()
        for text in texts(memories):
            vector = pack_vector(embedder.embed([text])[0])
            reply = await memory.encode(text)
            acked = time.perf_counter()
            for lane in Lane:  # one after another would count the wait for the first to the second: all at once
                lags[lane].append(0.0)

            async def ask(lane: Lane, acked: float = acked, vector: str = vector, at: int = reply.position) -> None:
                query = LaneQuery(
                    project=PROJECT,
                    cue=text,  # noqa: B023
                    vector=vector if lane is Lane.SEMANTIC else "",
                    top_n=10,
                    min_position=at,
                    remaining_ms=10_000,
                )
                subject = subjects.lane(lane, WHOLE, "search")
                found = wire.decode_reply(LaneReply, (await client.request(subject, wire.encode(query), 10)).data)
                first = time.perf_counter()
                assert found.position >= at
                await client.request(subject, wire.encode(query), 10)
                again = time.perf_counter() - first
                searches[lane].append(again * 1000)
                lags[lane][-1] = max(0.0, first - acked - again) * 1000

            async with anyio.create_task_group() as tasks:
                for lane in Lane:
                    tasks.start_soon(ask, lane)
    for lane in Lane:
        p50, p95 = (statistics.quantiles(lags[lane], n=100)[at] for at in (49, 94))
        print(
            f"{lane:9} lag p50 {p50:6.1f}  p95 {p95:6.1f} ms   (a search takes {statistics.median(searches[lane]):.1f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--engine", choices=("whoosh", "tantivy"), default="whoosh")
    options = parser.parse_args()
    settings = {"MEMLANE_LEXICAL__ENGINE": options.engine}
    with tempfile.TemporaryDirectory(prefix="memlane-lag-") as name, running(Path(name), **settings) as url:
        anyio.run(run, url, options.memories)


if __name__ == "__main__":
    main()

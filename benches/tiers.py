"""What the three tiers of a query cost, beside their floor, in the same run.

The floor is one process that embeds the query and walks hnswlib, without a bus. Queries are the whole service as
processes over NATS. All over the same texts, the queries in turn: floor, low, medium, high, floor, ...

    python -m benches.tiers --memories 10000 --engine tantivy
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import anyio

from benches.record import keep, spread
from benches.speed import PROJECT, Floor, cues_of, fill, texts
from contracts.client import MemoryClient
from contracts.lanes import LaneQuery
from contracts.memory import pack_vector
from infra.demo import running

TIERS = ("low", "medium", "high")


class VectorFloor(Floor):
    """Embed and hnswlib in this process."""

    async def ask(self, cue: str) -> None:
        vector = pack_vector(self._embedder.embed([cue])[0])
        await self._semantic.search(LaneQuery(project=PROJECT, cue=cue, vector=vector))


async def run(url: str, folder: Path, memories: int, engine: str, cues: int) -> None:
    corpus = texts(memories)
    floor = VectorFloor(folder / "floor", engine)
    await floor.fill(corpus)
    asked = cues_of(corpus, cues)
    times: dict[str, list[float]] = defaultdict(list)
    async with MemoryClient(url, project=PROJECT, timeout_s=60) as memory:
        await fill(memory, corpus)
        for tier in TIERS:
            await memory.query("warm up", computation_tier=tier, consistency="ReadAfterWrite", deadline_ms=60_000)
        for cue in asked:
            started = time.perf_counter()
            await floor.ask(cue)
            times["floor"].append((time.perf_counter() - started) * 1000)
            for tier in TIERS:
                started = time.perf_counter()
                reply = await memory.query(cue, computation_tier=tier, deadline_ms=10_000)
                times[tier].append((time.perf_counter() - started) * 1000)
                for name, lane in reply.lanes.items():
                    times[f"  {tier}, lane {name}"].append(lane.took_ms)
    print(f"{memories} memories, {engine}, {cues} queries, k = 5; ms")
    for name, values in times.items():
        at = spread(values)
        print(f"{name:24} p50 {at['p50_ms']:6.1f}  p95 {at['p95_ms']:6.1f}")
    ratios = {tier: statistics.median(times[tier]) / statistics.median(times["floor"]) for tier in TIERS}
    for tier, ratio in ratios.items():
        print(f"{tier} / floor, medians: {ratio:.2f}")
    keep(
        "tiers",
        {"memories": memories, "engine": engine},
        {
            "queries": cues,
            "times": {name.strip(): spread(values) for name, values in times.items()},
            "over_floor": {tier: round(ratio, 2) for tier, ratio in ratios.items()},
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--cues", type=int, default=120)
    parser.add_argument("--engine", choices=("whoosh", "tantivy"), default="whoosh")
    options = parser.parse_args()
    # The tiers are asked the same cues: none may live off a vector that another has paid for.
    settings = {"MEMLANE_LEXICAL__ENGINE": options.engine, "MEMLANE_EMBED__CACHE": "0"}
    with tempfile.TemporaryDirectory(prefix="memlane-tiers-") as name, running(Path(name) / "stack", **settings) as url:
        anyio.run(run, url, Path(name), options.memories, options.engine, options.cues)


if __name__ == "__main__":
    main()

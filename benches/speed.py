"""Recall speed beside its floor, in the same run.

The floor is one process that embeds the cue, walks hnswlib and asks the lexical engine, one after the other, without a
bus. Recall is the whole service as processes over NATS. Both over the same texts, the cues in turn, A B A B.

    python -m benches.speed --memories 10000 --engine tantivy
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import anyio

from contracts.base import now
from contracts.client import MemoryClient
from contracts.lanes import LaneQuery
from contracts.memory import MemoryRecord, derive_id, pack_vector
from infra.demo import running
from workers.lexical.index import LexicalIndex
from workers.models import PACKAGED, SentenceEmbedder
from workers.semantic import SemanticIndex

PROJECT = "speed"
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


def texts(count: int, seed: int = 7) -> list[str]:
    """Sentences over a Zipf-like vocabulary: 15 words each, the same for the same seed."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYLLABLES, k=rng.choice((2, 3)))) for _ in range(6000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=15)) + f" note {number}" for number in range(count)]


class Floor:
    """Embed, hnswlib and one lexical engine in this process."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._embedder = SentenceEmbedder(PACKAGED, 2)
        self._semantic = SemanticIndex(folder / "semantic")
        self._lexical = LexicalIndex(folder / "lexical", engine)  # type: ignore[arg-type]

    async def fill(self, corpus: list[str]) -> float:
        """Index all. Returns what the embedder does alone, in texts a second."""
        at = now()
        embedding_s = 0.0
        for start in range(0, len(corpus), 256):
            part = corpus[start : start + 256]
            started = time.monotonic()
            vectors = self._embedder.embed(part)
            embedding_s += time.monotonic() - started
            entries = [
                (
                    start + number + 1,
                    MemoryRecord(
                        id=derive_id(text), project=PROJECT, text=text, created_at=at, changed_at=at,
                        vector=pack_vector(vector),
                    ),
                )
                for number, (text, vector) in enumerate(zip(part, vectors, strict=True))
            ]  # fmt: skip
            await self._semantic.apply(entries)
            await self._lexical.apply(entries)
        return len(corpus) / embedding_s

    async def ask(self, cue: str) -> None:
        vector = pack_vector(self._embedder.embed([cue])[0])
        await self._semantic.search(LaneQuery(project=PROJECT, cue=cue, vector=vector))
        await self._lexical.search(LaneQuery(project=PROJECT, cue=cue))


def cues_of(corpus: list[str], count: int, seed: int = 11) -> list[str]:
    """Seven words out of the middle of a text, the same for the same seed."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(corpus).split()[3:10]) for _ in range(count)]


async def fill(memory: MemoryClient, corpus: list[str]) -> float:
    """Encode all texts through the service, 48 at once. Returns texts a second."""
    limiter = anyio.CapacityLimiter(48)

    async def encode(text: str) -> None:
        async with limiter:
            await memory.encode(text)

    started = time.monotonic()
    async with anyio.create_task_group() as tasks:
        for text in corpus:
            tasks.start_soon(encode, text)
    return len(corpus) / (time.monotonic() - started)


async def run(url: str, folder: Path, memories: int, engine: str, cues: int) -> None:
    corpus = texts(memories)
    floor = Floor(folder / "floor", engine)
    raw = await floor.fill(corpus)
    asked = cues_of(corpus, cues)
    times: dict[str, list[float]] = defaultdict(list)
    async with MemoryClient(url, project=PROJECT, timeout_s=60) as memory:
        rate = await fill(memory, corpus)
        await memory.recall("warm up", consistency="ReadAfterWrite", deadline_ms=60_000)
        for cue in asked:
            started = time.perf_counter()
            await floor.ask(cue)
            times["floor"].append((time.perf_counter() - started) * 1000)
            started = time.perf_counter()
            reply = await memory.recall(cue, deadline_ms=10_000, trace=True)
            took = (time.perf_counter() - started) * 1000
            assert reply.trace is not None
            times["recall"].append(took)
            times["overhead"].append(took - max(lane.took_ms for lane in reply.lanes.values()))
            for name, lane in reply.lanes.items():
                times[f"  lane {name}"].append(lane.took_ms)
            for name, spent in reply.trace.timings_ms.items():
                times[f"  stage {name}"].append(spent)
            times["  way there and back"].append(took - reply.took_ms)
    print(f"{memories} memories, {engine}, {cues} cues; ingest {rate:.0f}/s, the embedder alone {raw:.0f}/s; ms")
    for name, values in times.items():
        p99 = statistics.quantiles(values, n=100)[98]
        print(f"{name:22} p50 {statistics.median(values):6.1f}  p99 {p99:6.1f}")
    print(f"recall / floor, medians: {statistics.median(times['recall']) / statistics.median(times['floor']):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--cues", type=int, default=200)
    parser.add_argument("--engine", choices=("whoosh", "tantivy"), default="whoosh")
    options = parser.parse_args()
    settings = {"MEMLANE_LEXICAL__ENGINE": options.engine}
    with tempfile.TemporaryDirectory(prefix="memlane-speed-") as name, running(Path(name) / "stack", **settings) as url:
        anyio.run(run, url, Path(name), options.memories, options.engine, options.cues)


if __name__ == "__main__":
    main()

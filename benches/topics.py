"""Which bars make good topics: clusters of a file's memories at several of them, in this process, without a service.

    python -m benches.topics infra/sample/helpdesk.jsonl
    python -m benches.topics locomo-dev.json --labels

Purity is the share of memories in topics whose session is the commonest of their topic. Topics cut across sessions, so
it is no goal by itself: what is looked for is many memories in topics, none of which swallows a project.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from pathlib import Path

from contracts.memory import Vector
from infra.readers import read
from infra.settings import Upkeep
from workers.analysis import stem
from workers.models import PACKAGED, SentenceEmbedder
from workers.upkeep.clusters import Clusters
from workers.upkeep.labels import label_of, words_of

BATCH = 64
BARS = ((0.35, 0.45), (0.40, 0.50), (0.45, 0.45), (0.45, 0.55), (0.50, 0.60), (0.55, 0.65))

#: A memory: its text, its session and its vector.
Told = tuple[str, str | None, Vector]


def tell(file: Path) -> dict[str, list[Told]]:
    """The memories of each project of a file."""
    embedder = SentenceEmbedder(PACKAGED, 2)
    items = list(read(file))
    projects: dict[str, list[Told]] = defaultdict(list)
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        vectors = embedder.embed([item.request.text for item in part])
        for item, vector in zip(part, vectors, strict=True):
            projects[item.project or "default"].append((item.request.text, item.request.session, vector))
    return projects


def cluster(told: list[Told], join: float, merge: float) -> Clusters:
    clusters = Clusters(len(told[0][2]), join, merge)
    for number, (_, _, vector) in enumerate(told):
        clusters.add(str(number), vector)
    return clusters


def topics_of(clusters: Clusters) -> list[list[int]]:
    """The members of each topic, the largest first."""
    found = [[int(one) for one in clusters.members(name)] for name in clusters]
    return sorted((one for one in found if len(one) >= Upkeep().min_members), key=lambda one: -len(one))


def show_labels(told: list[Told], topics: list[list[int]], clusters: int) -> None:
    words = [words_of(text) for text, _, _ in told]
    project = Counter(name for one in words for name in {stem(word) for word in one})
    for topic in topics[:12]:
        print(f"    {len(topic):4} {label_of([words[one] for one in topic], project, clusters)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--labels", action="store_true")
    options = parser.parse_args()
    projects = tell(options.file)
    count = sum(map(len, projects.values()))
    print(f"{count} memories in {len(projects)} projects")
    for join, merge in BARS:
        started, covered, pure, largest, topics = time.perf_counter(), 0, 0, 0, 0
        for told in projects.values():
            for topic in topics_of(cluster(told, join, merge)):
                sessions = Counter(told[one][1] for one in topic)
                covered, pure = covered + len(topic), pure + sessions.most_common(1)[0][1]
                largest, topics = max(largest, len(topic)), topics + 1
        print(
            f"join {join:.2f} merge {merge:.2f}: {topics} topics, {covered / count:.2f} of the memories in them, "
            f"largest {largest}, purity {pure / max(1, covered):.2f}, {time.perf_counter() - started:.2f} s"
        )
    if options.labels:
        for name, told in projects.items():
            clusters = cluster(told, Upkeep().join, Upkeep().merge)
            print(f"  {name}")
            show_labels(told, topics_of(clusters), len(clusters))


if __name__ == "__main__":
    main()

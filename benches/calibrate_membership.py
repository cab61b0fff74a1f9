"""Calibrate membership on LoCoMo: which floor and band keep the evidence in and foreign questions out.

Run against a stack that holds the file (`memlane eval locomo FILE` puts it there):

    python -m benches.calibrate_membership FILE --nats nats://127.0.0.1:4222

Every question is asked once of its own conversation and once of the next one; the thresholds are then tried on what
the lanes said. Conversations are split in two halves: choose on one, report both.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import anyio

from contracts.recall import RecallRequest
from infra.evaluation.datasets import Question, load
from infra.nats_bus import NatsBus, connect
from infra.settings import Nats
from orchestrator.catalog import Catalog
from orchestrator.context import blend, lift, neighbours_of, strongest
from orchestrator.evidence import collect_evidence
from orchestrator.fusion import reciprocal_rank_fusion
from orchestrator.gather import Question as LaneQuestion
from orchestrator.gather import gather
from orchestrator.grounding import ground
from orchestrator.membership import decide
from orchestrator.profiles import PROFILES, Profile
from orchestrator.recall import POOL
from orchestrator.router import route

DEADLINE_S = 10.0


async def observe(bus: NatsBus, catalog: Catalog, project: str, question: Question):
    """Everything `decide` needs for one question, and the turn id of every candidate."""
    request = RecallRequest(cue=question.text)
    way = route(request)
    asked = LaneQuestion(project, question.text, None, way.top_n, [0])
    deadline = time.monotonic() + DEADLINE_S
    gathered = await gather(bus, asked, deadline)
    grounding = await ground(bus, project, request, [0], deadline)
    own = blend(gathered.lists)
    context = lift(own, await neighbours_of(bus, project, strongest(own), deadline))
    fused = reciprocal_rank_fusion(gathered.lists, way.weights, context=context)[:POOL]
    pool = [candidate for part in grounding.windows(fused, POOL) for candidate in part]
    rows = await catalog.hydrate(project, [candidate.id for candidate in pool], [0], deadline)
    evidence = await collect_evidence(bus, asked, gathered, pool, deadline)
    turns = {candidate.id: rows[candidate.id].metadata["dia_id"] for candidate in pool}
    return pool, evidence, turns, grounding


async def run(file: Path, url: str, every: int) -> None:
    client = await connect(Nats(url=url), "bench")
    bus = NatsBus(client)
    catalog = Catalog(bus, 1)
    questions = load("locomo", file).questions[::every]
    projects = sorted({question.project for question in questions})
    own, foreign = [], []
    for question in questions:
        other = projects[(projects.index(question.project) + 1) % len(projects)]
        own.append((question, *await observe(bus, catalog, question.project, question)))
        foreign.append((question, *await observe(bus, catalog, other, question)))
    halves = {"first": set(projects[::2]), "second": set(projects[1::2])}
    recall10 = {half: fused_recall([x for x in own if x[0].project in names], 10) for half, names in halves.items()}
    print(f"{len(questions)} questions; fused recall@10 by half: {recall10}")
    print("alone floor band | half: hit members none_foreign")
    for alone, floor, band in itertools.product((0.15, 0.2, 0.25, 1.0), (0.35, 0.4), (0.7, 0.8)):
        profile = Profile(0.5, alone, floor, band, 0.3, 0.5)
        print(
            f"{alone:.2f} {floor:.2f} {band:.2f} |", *(line(own, foreign, names, profile) for names in halves.values())
        )
    present = PROFILES["minilm"]
    print("present", present, *(line(own, foreign, names, present) for names in halves.values()))
    await client.close()


def fused_recall(observed, k: int) -> float:
    parts = []
    for question, pool, _, turns, _ in observed:
        top = {turns[candidate.id] for candidate in pool[:k]}
        parts.append(len(question.relevant.keys() & top) / len(question.relevant.keys()))
    return round(sum(parts) / len(parts), 4)


def line(own, foreign, projects: set[str], profile: Profile) -> str:
    hits, members, refused, asked, strangers = 0, 0, 0, 0, 0
    for question, pool, evidence, turns, grounding in own:
        if question.project in projects:
            answer = decide(pool, evidence, profile, 1000, grounding)
            found = {turns[member.candidate.id] for member in answer.members}
            hits += bool(question.relevant.keys() & found)
            members += len(found)
            asked += 1
    for question, pool, evidence, _, grounding in foreign:
        if question.project in projects:
            refused += decide(pool, evidence, profile, 1000, grounding).kind == "None"
            strangers += 1
    return f"{hits / asked:.3f} {members / asked:5.1f} {refused / strangers:.3f};"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    options = parser.parse_args()
    anyio.run(run, options.file, options.nats, options.every)


if __name__ == "__main__":
    main()

"""Calibrate membership on LoCoMo: which floor and band keep the evidence in and foreign questions out.

Run against a stack that holds the file (`memlane eval locomo FILE` puts it there):

    python -m benches.calibrate_membership FILE --nats nats://127.0.0.1:4222

Every question is asked of its own conversation, and of the next one, as it stands and with the names swapped; the
thresholds are then tried on what the lanes said. Conversations are split in two halves: choose on one, report both.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import anyio

from contracts.recall import RecallRequest
from infra.evaluation.datasets import Question, Stranger, load
from infra.nats_bus import NatsBus, connect
from infra.settings import Nats
from orchestrator.catalog import Catalog
from orchestrator.context import look_around
from orchestrator.evidence import collect_evidence
from orchestrator.fusion import Candidate, reciprocal_rank_fusion
from orchestrator.gather import Question as LaneQuestion
from orchestrator.gather import gather
from orchestrator.grounding import Grounding, ground
from orchestrator.membership import Answer, decide
from orchestrator.profiles import PROFILES, Profile
from orchestrator.recall import POOL
from orchestrator.relevance import Evidence, judge
from orchestrator.router import route

DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that membership needs for one question, and the turn id of every candidate."""

    question: Question | Stranger
    pool: list[Candidate]
    evidence: dict[str, Evidence]
    context: Mapping[str, float]
    grounding: Grounding
    turns: dict[str, str]

    def answer(self, profile: Profile) -> Answer:
        band = judge([one.id for one in self.pool], self.evidence, profile, self.context)
        return decide(self.pool, self.evidence, band, 1000, self.grounding)


async def observe(bus: NatsBus, catalog: Catalog, question: Question | Stranger) -> Observed:
    project, request = question.project, RecallRequest(cue=question.text)
    way = route(request)
    asked = LaneQuestion(project, question.text, None, way.top_n, [0])
    deadline = time.monotonic() + DEADLINE_S
    gathered = await gather(bus, asked, deadline)
    grounding = await ground(bus, project, request, [0], deadline)
    view, context = await look_around(bus, project, gathered.lists, deadline)
    fused = reciprocal_rank_fusion(gathered.lists, way.weights, view=view)[:POOL]
    pool = [candidate for part in grounding.windows(fused, POOL) for candidate in part]
    rows = await catalog.hydrate(project, [candidate.id for candidate in pool], [0], deadline)
    pool = [candidate for candidate in pool if "dia_id" in rows[candidate.id].metadata]  # a turn, not a summary
    evidence = await collect_evidence(bus, asked, gathered, pool, deadline)
    turns = {candidate.id: str(rows[candidate.id].metadata["dia_id"]) for candidate in pool}
    return Observed(question, pool, evidence, context, grounding, turns)


async def run(file: Path, url: str, every: int) -> None:
    client = await connect(Nats(url=url), "bench")
    bus = NatsBus(client)
    catalog = Catalog(bus, 1)
    questions = load("locomo", file)
    strangers = [one for number, one in enumerate(questions.strangers) if number // 2 % every == 0]
    own = [await observe(bus, catalog, question) for question in questions.questions[::every]]
    foreign = [await observe(bus, catalog, stranger) for stranger in strangers]
    print(f"{len(own)} questions, {len(foreign)} to strangers")
    print("floor band | by half: hit, members, none on foreign, none with names swapped")
    for floor, band in itertools.product((0.38, 0.40, 0.41, 0.42, 0.44), (0.45, 0.5, 0.55)):
        profile = replace(PROFILES["minilm"], context_floor=floor, context_band=band)
        print(f"{floor:.2f} {band:.2f} |", *(line(own, foreign, half, profile) for half in questions.halves()))
    print("present  ", *(line(own, foreign, half, PROFILES["minilm"]) for half in questions.halves()))
    await client.close()


def line(own: list[Observed], foreign: list[Observed], half: set[str], profile: Profile) -> str:
    hits, members, refused = [], [], {False: [], True: []}
    for one in own:
        if isinstance(one.question, Question) and one.question.project in half:
            found = {one.turns[member.candidate.id] for member in one.answer(profile).members}
            hits.append(bool(one.question.relevant.keys() & found))
            members.append(len(found))
    for one in foreign:
        if isinstance(one.question, Stranger) and one.question.project in half:
            refused[one.question.named].append(one.answer(profile).kind == "None")
    return f"{mean(hits):.3f} {mean(members):5.1f} {mean(refused[False]):.3f} {mean(refused[True]):.3f};"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    options = parser.parse_args()
    anyio.run(run, options.file, options.nats, options.every)


if __name__ == "__main__":
    main()

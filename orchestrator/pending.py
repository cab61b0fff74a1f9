"""Read your own writes: what a transaction has pending, laid over what recall found, before membership."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts import subjects, wire
from contracts.base import MemoryId, epoch_ms
from contracts.catalog import Claim, Row
from contracts.encode import ForgetRequest
from contracts.errors import MemlaneError
from contracts.lanes import Lane, ScoreQuery, ScoreReply
from contracts.memory import MemoryRecord, unpack_vector
from contracts.names import normalise
from contracts.ports import Bus, BusFault
from contracts.shards import Shard
from contracts.stores import Transactions
from contracts.txn import txn_not_found
from orchestrator.fusion import RRF_K, Candidate
from orchestrator.gather import Gathered, Question
from orchestrator.grounding import Grounding
from orchestrator.relevance import Evidence


@dataclass(frozen=True, slots=True)
class Pending:
    """The memories that a transaction would add, and the ids that it would take away. `values` are the single-valued
    slots that it fills, with their object, in normal form."""

    records: Mapping[MemoryId, MemoryRecord] = field(default_factory=dict)
    hidden: frozenset[MemoryId] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> dict[MemoryId, Row]:
        """The pending memories as the catalog would hold them; position 0, for they have none."""
        return {memory_id: as_row(record) for memory_id, record in self.records.items()}

    def hides(self, row: Row) -> bool:
        """Whether a committed memory is gone in this transaction: forgotten, superseded by name, or all it states is
        single-valued and has a pending value."""
        if row.id in self.hidden:
            return True
        replaced = [one.kind.single_valued and self.replaces(one.slot, one.object) for one in row.statements]
        return bool(replaced) and all(replaced)

    def replaces(self, slot: str, value: str) -> bool:
        pending = self.values.get(slot)
        return pending is not None and pending != normalise(value)

    def ground(self, grounding: Grounding) -> Grounding:
        """The grounding once this is committed: pending values of the slots asked for stand in place of others."""
        asked = {claim.slot for claims in grounding.claims.values() for claim in claims}
        claims: dict[MemoryId, tuple[Claim, ...]] = {}
        stale = set(grounding.stale)
        for memory_id, held in grounding.claims.items():
            claims[memory_id] = tuple(claim for claim in held if not self.replaces(claim.slot, claim.object))
            if not claims[memory_id]:
                del claims[memory_id]
                stale.add(memory_id)
        for record in self.records.values():
            own = tuple(claim for claim in _claims(record) if claim.slot in asked)
            if own:
                claims[record.id] = own
        return Grounding(claims, frozenset(stale))


NOTHING = Pending()


async def read_pending(transactions: Transactions, project: str, txn_id: str) -> Pending:
    """What an open transaction has pending. Raises NotFound (TXN_NOT_FOUND), Conflict (TXN_CLOSED, TXN_TIMEOUT)."""
    found = await transactions.last(project, txn_id)
    if found is None:
        raise txn_not_found(txn_id)
    _, last = found
    last.check_open(txn_id)
    steps = await transactions.steps(project, txn_id) if last.number else []
    return fold([step.record or step.forget for step in steps if step.record or step.forget])


def fold(operations: Sequence[MemoryRecord | ForgetRequest | None]) -> Pending:
    """The end of a sequence of operations."""
    records: dict[MemoryId, MemoryRecord] = {}
    hidden: set[MemoryId] = set()
    for operation in operations:
        if isinstance(operation, MemoryRecord):
            records[operation.id] = operation
            hidden.discard(operation.id)
        elif operation is not None:
            records.pop(operation.id, None)
            hidden.add(operation.id)
    for record in records.values():
        hidden.update(record.supersedes)
    values = {
        statement.slot: statement.triple[2]
        for record in records.values()
        for statement in record.statements
        if statement.kind.single_valued
    }
    return Pending(records, frozenset(hidden), values)


async def pending_evidence(
    bus: Bus, question: Question, pending: Pending, gathered: Gathered, deadline: float
) -> dict[MemoryId, Evidence]:
    """What each pending memory's evidence would be once committed: cosine to the cue of its best vector, and what the
    lexical lane says of its text. Without the cue's vector, or the lane, that part is 0."""
    texts = tuple(record.text for record in pending.records.values())
    verdicts = dict.fromkeys(pending.records, (0.0, False))
    left = deadline - time.monotonic()
    query = ScoreQuery(
        project=question.project,
        cue=question.cue,
        texts=texts,
        remaining_ms=left * 1000,
        statistics=gathered.statistics,
    )
    try:
        data = await bus.request(
            subjects.lane(Lane.LEXICAL, Shard(0, len(question.positions)), "score"), wire.encode(query), left
        )
        reply = wire.decode_reply(ScoreReply, data)
        verdicts |= zip(pending.records, zip(reply.evidence, reply.confirmed, strict=True), strict=True)
    except (BusFault, MemlaneError, ValueError):
        pass  # as with any evidence: what is not known admits nobody
    return {
        memory_id: Evidence(_cosine(gathered.vector, pending.records[memory_id]), coverage, exact)
        for memory_id, (coverage, exact) in verdicts.items()
    }


def pending_candidates(
    pending: Pending, evidence: Mapping[MemoryId, Evidence], gathered: Gathered, weight: float
) -> list[Candidate]:
    """Each pending memory with the score that the semantic lane and the context would have given it: where its cosine
    ranks."""
    cosines = [hit.score for hit in gathered.lists.get(Lane.SEMANTIC, [])]
    return [
        Candidate(one, weight / (RRF_K + 1 + sum(score > evidence[one].cosine for score in cosines)))
        for one in pending.records
    ]


def as_row(record: MemoryRecord) -> Row:
    return Row(position=0, **{name: getattr(record, name) for name in Row.model_fields if hasattr(record, name)})


def _claims(record: MemoryRecord) -> Iterator[Claim]:
    for number, one in enumerate(record.statements):
        subject, predicate, value = one.triple
        yield Claim(
            memory=record.id,
            number=number,
            subject=subject,
            predicate=predicate,
            object=value,
            since=epoch_ms(one.valid_from or record.event_time),
        )


def _cosine(packed: str, record: MemoryRecord) -> float:
    if not packed or not record.vector:
        return 0.0
    cue = unpack_vector(packed)
    vectors = [unpack_vector(vector) for vector in (record.vector, *record.statement_vectors)]
    return max(0.0, *(float(np.dot(cue, vector)) for vector in vectors if vector.shape == cue.shape))

"""The graph verbs: link and unlink write edges between memories; plan and reason walk them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from contracts.base import MAX_DEADLINE_MS, Consistency, LaxMessage, MemoryId, Message, Name, Position, Text, Unit
from contracts.memory import EdgeKind, check_weight

MAX_STEPS = 10
MAX_BRANCHES = 256
MAX_PATHS = 100
MAX_EVIDENCE = 50
DEFAULT_BUDGET_MS = 5000

#: The kinds of edge that lead from one state to a later one, or from a part to its whole.
PLAN_KINDS = (EdgeKind.CAUSED, EdgeKind.FOLLOWED_BY, EdgeKind.DERIVED_FROM, EdgeKind.PART_OF)

BudgetMs = Annotated[int, Field(ge=1, le=MAX_DEADLINE_MS)]


class LinkRequest(Message):
    """Assert an edge from one memory to another. The same (source, kind, target) again overwrites the weight.

    `weight` is in [0, 1]; that of CONTRADICTS in [-1, 1], where the sign carries no strength. Edges are kept as they
    are asserted: none is made in the other direction.
    """

    source: MemoryId
    target: MemoryId
    kind: EdgeKind
    weight: float = 1.0

    @field_validator("weight")
    @classmethod
    def _weight_suits_the_kind(cls, weight: float, info: ValidationInfo) -> float:
        kind = info.data.get("kind")
        return weight if kind is None else check_weight(kind, weight)


class UnlinkRequest(Message):
    """Take back an edge that `link` or `encode` asserted."""

    source: MemoryId
    target: MemoryId
    kind: EdgeKind


class LinkReply(LaxMessage):
    """The edge after a link or unlink, at which log position, and whether anything was changed. Where nothing was,
    `position` is that of the source memory's present state. `weight` is absent where there is no edge now."""

    source: MemoryId
    target: MemoryId
    kind: EdgeKind
    weight: float | None = None
    position: Position
    changed: bool


class Place(Message):
    """Where a walk begins or ends: one memory by `id`, or the 5 memories nearest to `text`. Exactly one is given."""

    id: MemoryId | None = None
    text: Text | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.id is None) == (self.text is None):
            raise ValueError("give exactly one of id and text")
        return self


class PlanRequest(Message):
    """How does one get from `start` to `goal` along edges, each followed from its source to its target?

    `max_steps` is the most edges of a path, `max_branches` the most memories whose edges are read at one level of the
    search, `max_paths` the most paths in the reply. After `budget_ms` the answer is made of what was seen. With a
    `session` every memory on a path is of it. FOLLOWED_BY also joins a memory to the next one of its session when
    that happened within 300 s. `consistency` as in recall.
    """

    start: Place
    goal: Place
    edge_kinds: Annotated[tuple[EdgeKind, ...], Field(min_length=1)] = PLAN_KINDS
    max_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = 8
    max_branches: Annotated[int, Field(ge=1, le=MAX_BRANCHES)] = 32
    max_paths: Annotated[int, Field(ge=1, le=MAX_PATHS)] = 5
    budget_ms: BudgetMs = DEFAULT_BUDGET_MS
    session: Name | None = None
    consistency: Consistency = "Eventual"


class PlanStep(LaxMessage):
    """A memory on a path. `transition` is the kind of the edge that leads to it, of weight `weight`, and Initial for
    the first; `derived` says that nobody asserted that edge: the two memories follow each other in a session.
    `distance_to_goal` counts the edges that are left of the path."""

    id: MemoryId
    text: str
    transition: EdgeKind | Literal["Initial"]
    weight: float = 1.0
    derived: bool = False
    distance_to_goal: int


class PlanPath(LaxMessage):
    """`score` in [0, 1]: 1 / (1 + edges) x geometric mean of |weights| x geometric mean of the memories' salience, and
    for an end that was given as a text also x its cosine to that text."""

    score: float
    steps: tuple[PlanStep, ...]


class PlanReply(LaxMessage):
    """The best paths first, ties by length, then by ids; two paths never have the same memories in the same order.

    No path is an answer and no error: NoPathFound when there is none, BudgetExhausted when time or `max_branches` ran
    out before one was found. `complete` says that no better path within `max_steps` was left unseen.
    """

    status: Literal["GoalReached", "NoPathFound", "BudgetExhausted"]
    paths: tuple[PlanPath, ...] = ()
    complete: bool
    took_ms: float


class ReasonRequest(Message):
    """What speaks for a claim, and what against it?

    `depth` is the most edges between the claim and a piece of evidence, `threshold` the least score of one, and
    `max_evidence` how many each side lists. `budget_ms`, `session` and `consistency` as in `PlanRequest`.
    """

    claim: Place
    depth: Annotated[int, Field(ge=1, le=MAX_STEPS)] = 3
    threshold: Unit = 0.2
    max_evidence: Annotated[int, Field(ge=1, le=MAX_EVIDENCE)] = 5
    budget_ms: BudgetMs = DEFAULT_BUDGET_MS
    session: Name | None = None
    consistency: Consistency = "Eventual"


class Basis(LaxMessage):
    """A memory that the claim was found to speak of: the one named, or one near the text, with its cosine."""

    id: MemoryId
    text: str
    similarity: float


class Evidence(LaxMessage):
    """`score` in [0, 1]: similarity of the basis `from_id` x 1 / (1 + distance) x product of |weights| along `path`,
    the kinds of the edges from the basis outward. `via` are the memories in between."""

    id: MemoryId
    text: str
    score: float
    distance: int
    path: tuple[EdgeKind, ...]
    from_id: MemoryId
    via: tuple[MemoryId, ...] = ()


class ReasonReply(LaxMessage):
    """Both sides, best first, ties by distance, then by id; empty sides are an answer and no error.

    `confidence` in [-1, 1] is (S - C) / (S + C) over the scores listed, and 0 when nothing is. A memory that both
    supports and contradicts is listed once, where its score is higher (the same: as supporting). Being near the claim
    is no evidence: a basis is listed only where another basis leads to it.
    """

    status: Literal["Complete", "BudgetExhausted", "DepthLimitReached"]
    basis: tuple[Basis, ...] = ()
    supporting: tuple[Evidence, ...] = ()
    contradicting: tuple[Evidence, ...] = ()
    confidence: float = 0.0
    took_ms: float

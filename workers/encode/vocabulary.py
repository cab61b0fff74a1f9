"""A project's schema as encode applies it: what callers give is checked, what extraction found is sifted."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property

from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest
from contracts.memory import Entity, Statement
from contracts.schema import DEFAULT_ENTITY_TYPE, Predicate, Schema, key_of
from contracts.stores import Schemas

#: What extraction calls the type of a plain name, about which it knows nothing else.
UNTYPED = "Name"
#: A schema is looked at afresh when what is known of it is older than this.
FRESH_S = 0.5
#: Projects whose vocabulary is kept.
MOST_PROJECTS = 10_000


class Vocabulary:
    """A section that declares nothing accepts everything."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def check(self, request: EncodeRequest) -> tuple[Statement, ...]:
        """The request's statements, each with the kind that holds: the declared one where the caller named none.

        Raises InvalidRequest for the first entity type (Thing always passes), predicate, kind or relation type that
        is not declared, with `field` and `name` in its details.
        """
        for number, entity in enumerate(request.entities):
            if not self._has_entity_type(entity.type):
                raise _unknown(ErrorCode.ENTITY_TYPE_NOT_IN_SCHEMA, f"entities.{number}.type", entity.type)
        statements = tuple(self._checked(number, statement) for number, statement in enumerate(request.statements))
        for number, relation in enumerate(request.relations):
            if self._relation_types and key_of(relation.type) not in self._relation_types:
                raise _unknown(ErrorCode.RELATION_TYPE_NOT_IN_SCHEMA, f"relations.{number}.type", relation.type)
        return statements

    def known_entities(self, found: Iterable[Entity]) -> list[Entity]:
        """Those of a type that may be. A name of a type that nobody could tell is a Thing: to drop it would cut every
        memory off from the names it mentions as soon as a first type is declared."""
        known = []
        for entity in found:
            if self._has_entity_type(entity.type):
                known.append(entity)
            elif entity.type == UNTYPED:
                known.append(entity.model_copy(update={"type": DEFAULT_ENTITY_TYPE}))
        return known

    def known_statements(self, found: Sequence[Statement]) -> tuple[Statement, ...]:
        """Those of a declared predicate, and of its kind: the rules guessed theirs, the schema says it."""
        if not self._predicates:
            return tuple(found)
        pairs = ((statement, self._predicates.get(key_of(statement.predicate))) for statement in found)
        return tuple(_of_kind(statement, declared) for statement, declared in pairs if declared)

    def _checked(self, number: int, statement: Statement) -> Statement:
        if not self._predicates:
            return statement
        declared = self._predicates.get(key_of(statement.predicate))
        if declared is None:
            raise _unknown(ErrorCode.PREDICATE_NOT_IN_SCHEMA, f"statements.{number}.predicate", statement.predicate)
        if "kind" in statement.model_fields_set and statement.kind is not declared.kind:
            raise InvalidRequest(
                ErrorCode.KIND_NOT_IN_SCHEMA,
                f"{statement.predicate!r} is declared as {declared.kind}, not {statement.kind}",
                field=f"statements.{number}.kind",
                name=statement.predicate,
                declared=str(declared.kind),
            )
        return _of_kind(statement, declared)

    def _has_entity_type(self, name: str) -> bool:
        return not self._schema.entity_types or key_of(name) in self._entity_types

    @cached_property
    def _entity_types(self) -> frozenset[str]:
        return frozenset(map(key_of, (DEFAULT_ENTITY_TYPE, *(item.name for item in self._schema.entity_types))))

    @cached_property
    def _predicates(self) -> dict[str, Predicate]:
        return {key_of(item.name): item for item in self._schema.predicates}

    @cached_property
    def _relation_types(self) -> frozenset[str]:
        return frozenset(key_of(item.name) for item in self._schema.relation_types)


class Vocabularies:
    """The vocabularies of all projects, each read again once it is half a second old.

    Reading costs a round trip to the bus, which a busy project pays twice a second; a watch would save it, and would
    have to be told lost from quiet. So an encode that arrives later than that after a declare was answered is checked
    against what it declared, on every worker.
    """

    def __init__(self, schemas: Schemas, fresh_s: float = FRESH_S) -> None:
        self._schemas, self._fresh_s = schemas, fresh_s
        self._kept: OrderedDict[str, tuple[float, int, Vocabulary]] = OrderedDict()

    async def of(self, project: str) -> Vocabulary:
        """Raises Unavailable when the schema cannot be read: an encode must not slip past it."""
        at = time.monotonic()
        kept = self._kept.get(project)
        if kept and at - kept[0] < self._fresh_s:
            return kept[2]
        found, revision = await self._schemas.read(project)
        vocabulary = kept[2] if kept and kept[1] == revision else Vocabulary(found.declared)
        self._kept[project] = (at, revision, vocabulary)
        self._kept.move_to_end(project)
        while len(self._kept) > MOST_PROJECTS:
            self._kept.popitem(last=False)
        return vocabulary


def _of_kind(statement: Statement, declared: Predicate) -> Statement:
    if statement.kind is declared.kind:
        return statement
    return statement.model_copy(update={"kind": declared.kind})


def _unknown(code: ErrorCode, field: str, name: str) -> InvalidRequest:
    return InvalidRequest(code, f"{name!r} is not in the project's schema", field=field, name=name)

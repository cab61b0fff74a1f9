"""A project's declared vocabulary: which entity types, predicates and relation types it knows.

Open before declaration, strict after, section by section: an empty section accepts every name; one with items refuses
an encode that names others. No read is ever gated by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from contracts.base import LaxMessage, Message, Name
from contracts.memory import StatementKind
from contracts.names import normalise

MAX_ITEMS = 500  #: of one section, what was declared before included
MAX_SCHEMA_BYTES = 512 * 1024  #: a whole schema as JSON, well under what one message carries
DEFAULT_ENTITY_TYPE = "Thing"  #: what an entity is without a type; no schema refuses it


class RelationCardinality(StrEnum):
    ONE_TO_ONE = "one-to-one"
    ONE_TO_MANY = "one-to-many"
    MANY_TO_ONE = "many-to-one"
    MANY_TO_MANY = "many-to-many"


def key_of(name: str) -> str:
    """When two declared names are the same: ``Works_At``, ``works at`` and ``works_at`` are."""
    return normalise(name.replace("_", " "))


def _has_key(name: str) -> str:
    if not key_of(name):
        raise ValueError("must hold a letter or a digit")  # it would be the same name as any other such one
    return name


DeclaredName = Annotated[Name, AfterValidator(_has_key)]
Description = Annotated[str, Field(max_length=512)]


class EntityType(Message):
    name: DeclaredName
    description: Description | None = None


class Predicate(Message):
    """What statements may say. `cardinality` is how many current values one subject may have: it follows from the kind
    (Attribute and Directive one, the others many), and only Custom may choose; naming another is refused."""

    name: DeclaredName
    kind: StatementKind
    cardinality: Literal["one", "many"] | None = None
    symmetric: bool = False
    description: Description | None = None

    @model_validator(mode="after")
    def _cardinality_follows_kind(self) -> Predicate:
        if self.kind is not StatementKind.CUSTOM and self.cardinality not in (None, self.current_values):
            raise ValueError(f"{self.name!r}: {self.kind} means {self.current_values}, not {self.cardinality}")
        return self

    @property
    def current_values(self) -> Literal["one", "many"]:
        if self.kind is StatementKind.CUSTOM:
            return self.cardinality or "many"
        return "one" if self.kind.single_valued else "many"


class RelationType(Message):
    """How entities may be linked. End types and cardinality are kept and shown; encode checks the type's name only,
    and no relation supersedes another."""

    name: DeclaredName
    from_type: DeclaredName | None = None
    to_type: DeclaredName | None = None
    cardinality: RelationCardinality = RelationCardinality.MANY_TO_MANY
    symmetric: bool = False

    @model_validator(mode="after")
    def _symmetric_is_even(self) -> RelationType:
        if self.symmetric and self.cardinality in (RelationCardinality.ONE_TO_MANY, RelationCardinality.MANY_TO_ONE):
            raise ValueError(f"relation type {self.name!r} is symmetric and so cannot be {self.cardinality}")
        return self


class Schema(Message):
    """Every section may be left out; a name appears once in its section."""

    entity_types: Annotated[tuple[EntityType, ...], Field(max_length=MAX_ITEMS)] = ()
    predicates: Annotated[tuple[Predicate, ...], Field(max_length=MAX_ITEMS)] = ()
    relation_types: Annotated[tuple[RelationType, ...], Field(max_length=MAX_ITEMS)] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Schema:
        for section in (self.entity_types, self.predicates, self.relation_types):
            twice = _repeated(item.name for item in section)
            if twice:
                raise ValueError(f"{twice!r} is declared twice")
        return self


def _repeated(names: Iterable[str]) -> str | None:
    return next((key for key, count in Counter(map(key_of, names)).items() if count > 1), None)


class VersionedSchema(LaxMessage):
    """A project's schema. Version 0 is the empty one of a project that declared nothing; each declare that adds
    something adds 1."""

    version: int = 0
    declared: Schema = Field(default=Schema(), alias="schema")


class DeclareRequest(Message):
    """Add to a project's schema. `dry_run` reports and changes nothing."""

    declared: Schema = Field(alias="schema")
    dry_run: bool = False


class DeclaredItem(LaxMessage):
    """One item's fate. `item` is ``entity_type Person``, ``predicate works_at`` or ``relation_type reports_to``.

    matched: it is there already (a description or a spelling that differs does not count; the first one stays);
    inserted: it is new; conflict: it is there and says something else, which `detail` tells.
    """

    item: str
    outcome: Literal["matched", "inserted", "conflict"]
    detail: str = ""


class DeclareReply(LaxMessage):
    """`applied` says that all of the request is in force at `version`. One conflict and nothing is applied, which is no
    error: the report tells why. A dry run is never applied.

    Cardinalities of relation types are kept, not enforced: a newer relation does not supersede an older one.
    """

    version: int
    report: tuple[DeclaredItem, ...]
    applied: bool


class SchemaRequest(Message):
    """Ask for the current schema; the reply is a `VersionedSchema`."""

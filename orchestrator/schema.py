"""Declaring a project's schema: an all-or-nothing merge into what was declared before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import structlog
from pydantic import BaseModel

from contracts import wire
from contracts.errors import ErrorCode, InvalidRequest, Unavailable
from contracts.schema import (
    MAX_ITEMS,
    MAX_SCHEMA_BYTES,
    DeclaredItem,
    DeclareReply,
    DeclareRequest,
    EntityType,
    Predicate,
    RelationType,
    Schema,
    VersionedSchema,
    key_of,
)
from contracts.stores import Schemas, WrongRevision

logger = structlog.get_logger()

#: Times to try again when another declare was faster.
ATTEMPTS = 16

Item = TypeVar("Item", EntityType, Predicate, RelationType)


class SchemaService:
    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    async def get(self, project: str) -> VersionedSchema:
        """The current schema; the empty one, version 0, where none was declared."""
        return (await self._schemas.read(project))[0]

    async def declare(self, project: str, request: DeclareRequest) -> DeclareReply:
        """Merge and store. Of declares at the same time each is merged into what the one before left.

        Raises InvalidRequest when the whole would be too large, Unavailable when others declare without pause.
        """
        for _ in range(ATTEMPTS):
            current, revision = await self._schemas.read(project)
            merged, report = merge(current.declared, request.declared)
            applied = merged is not None and not request.dry_run
            if merged is None or request.dry_run or all(item.outcome == "matched" for item in report):
                return DeclareReply(version=current.version, report=report, applied=applied)
            successor = VersionedSchema(version=current.version + 1, schema=merged)
            try:
                await self._schemas.write(project, successor, revision)
            except WrongRevision:
                continue
            logger.info("schema declared", action="schema_declared", project=project, version=successor.version)
            return DeclareReply(version=successor.version, report=report, applied=True)
        raise Unavailable(ErrorCode.UNAVAILABLE, "the schema changes too fast; try again", project=project)


def merge(current: Schema, new: Schema) -> tuple[Schema | None, tuple[DeclaredItem, ...]]:
    """The schema with both, sections in the order of names, or None when an item of `new` contradicts one of `current`;
    and each new item's fate, in the order of the request. Raises InvalidRequest when both together are too many or too
    large."""
    entity_types, first = _section("entity_type", current.entity_types, new.entity_types)
    predicates, second = _section("predicate", current.predicates, new.predicates)
    relation_types, third = _section("relation_type", current.relation_types, new.relation_types)
    report = (*first, *second, *third)
    if any(item.outcome == "conflict" for item in report):
        return None, report
    merged = Schema.model_construct(
        entity_types=entity_types, predicates=predicates, relation_types=relation_types
    )  # of checked items without a repeated name: nothing is left to validate
    _check_size(merged)
    return merged, report


def _section(section: str, current: Sequence[Item], new: Sequence[Item]) -> tuple[tuple[Item, ...], list[DeclaredItem]]:
    present = {key_of(item.name): item for item in current}
    merged, report = list(current), []
    for item in new:
        name, known = f"{section} {item.name}", present.get(key_of(item.name))
        if known is None:
            merged.append(item)
            report.append(DeclaredItem(item=name, outcome="inserted"))
        elif differences := _differences(known, item):
            report.append(DeclaredItem(item=name, outcome="conflict", detail="; ".join(differences)))
        else:
            report.append(DeclaredItem(item=name, outcome="matched"))
    return tuple(sorted(merged, key=lambda item: key_of(item.name))), report


def _differences(known: BaseModel, item: BaseModel) -> list[str]:
    """What they disagree on: everything but spelling and descriptions."""
    before, after = _meaning(known), _meaning(item)
    return [
        f"{field} is {before[field] or 'any'}, not {after[field] or 'any'}"
        for field in before
        if before[field] != after[field]
    ]


def _meaning(item: BaseModel) -> dict[str, str]:
    match item:
        case Predicate():
            return {
                "kind": str(item.kind),
                "cardinality": item.current_values,
                "symmetric": str(item.symmetric).lower(),
            }
        case RelationType():
            return {
                "from_type": key_of(item.from_type or ""),
                "to_type": key_of(item.to_type or ""),
                "cardinality": str(item.cardinality),
                "symmetric": str(item.symmetric).lower(),
            }
        case _:
            return {}


def _check_size(merged: Schema) -> None:
    for section in ("entity_types", "predicates", "relation_types"):
        count = len(getattr(merged, section))
        if count > MAX_ITEMS:
            raise InvalidRequest(
                ErrorCode.OUT_OF_RANGE, f"{section}: {count} in all, at most {MAX_ITEMS}", field=f"schema.{section}"
            )
    size = len(wire.encode(merged))
    if size > MAX_SCHEMA_BYTES:
        raise InvalidRequest(
            ErrorCode.PAYLOAD_TOO_LARGE, f"the whole schema is {size} bytes", field="schema", limit=MAX_SCHEMA_BYTES
        )

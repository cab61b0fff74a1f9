"""Declaring a schema (merge) and applying it (strictness): pure, so stated as laws and a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import wire
from contracts.encode import EncodeRequest
from contracts.errors import ErrorCode, InvalidRequest
from contracts.memory import Entity, Statement, StatementKind
from contracts.schema import MAX_ITEMS, DeclareRequest, EntityType, Predicate, Schema, VersionedSchema, key_of
from orchestrator.schema import merge
from workers.encode.vocabulary import Vocabularies, Vocabulary
from workers.extract import RuleExtractor

NAMES = st.sampled_from(["Person", "person", "Team", "works_at", "works at", "owns", "reports_to", "Ort", "é", "x1"])
CARDINALITIES = st.sampled_from(["one-to-one", "one-to-many", "many-to-one", "many-to-many"])
NOTES = st.sampled_from([None, "a note", "another"])


def unique(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({key_of(item["name"]): item for item in items}.values())


def section(**fields: Any) -> Any:
    return st.lists(st.fixed_dictionaries({"name": NAMES, **fields}), max_size=6).map(unique)


SCHEMAS = st.fixed_dictionaries({
    "entity_types": section(description=NOTES),
    "predicates": section(kind=st.sampled_from(list(StatementKind)), symmetric=st.booleans(), description=NOTES),
    "relation_types": section(
        cardinality=CARDINALITIES, symmetric=st.just(False), from_type=st.sampled_from([None, "Person", "Team"])
    ),
}).map(Schema.model_validate)  # fmt: skip


def names(schema: Schema) -> set[tuple[str, str]]:
    return {
        (section, key_of(item.name))
        for section in ("entity_types", "predicates", "relation_types")
        for item in getattr(schema, section)
    }


def merged(*parts: Schema) -> Schema:
    whole = Schema()
    for part in parts:
        after, _ = merge(whole, part)
        assert after is not None
        whole = after
    return whole


class TestMerge:
    @given(SCHEMAS)
    def test_again_changes_nothing_and_says_so(self, schema: Schema) -> None:
        once, first = merge(Schema(), schema)
        assert once is not None
        assert {item.outcome for item in first} <= {"inserted"}
        twice, again = merge(once, schema)
        assert twice == once
        assert {item.outcome for item in again} <= {"matched"}

    @given(SCHEMAS, SCHEMAS)
    def test_all_or_nothing(self, current: Schema, new: Schema) -> None:
        after, report = merge(current, new)
        conflicts = [item for item in report if item.outcome == "conflict"]
        assert (after is None) == bool(conflicts)
        assert all(item.detail for item in conflicts)
        assert len(report) == len(new.entity_types) + len(new.predicates) + len(new.relation_types)
        if after is not None:
            assert names(after) == names(current) | names(new)
            assert Schema.model_validate(after.model_dump()) == after
        inserted = {item.item for item in report if item.outcome == "inserted"}
        assert len(inserted) == len(names(new) - names(current))

    @given(SCHEMAS, SCHEMAS)
    def test_the_order_of_disjoint_declares_does_not_matter(self, one: Schema, other: Schema) -> None:
        known = names(one)
        apart = Schema(**{
            section: tuple(item for item in getattr(other, section) if (section, key_of(item.name)) not in known)
            for section in ("entity_types", "predicates", "relation_types")
        })  # fmt: skip
        assert merged(one, apart) == merged(apart, one)

    def test_a_spelling_and_a_description_are_no_conflict(self) -> None:
        first = Schema(predicates=(Predicate(name="works_at", kind=StatementKind.ATTRIBUTE, description="a"),))
        other = Predicate(name="Works At", kind=StatementKind.ATTRIBUTE, cardinality="one", description="b")
        after, [item] = merge(first, Schema(predicates=(other,)))
        assert after == first
        assert item.outcome == "matched"

    def test_a_conflict_says_on_what(self) -> None:
        first = Schema(predicates=(Predicate(name="works_at", kind=StatementKind.ATTRIBUTE),))
        new = Schema(
            entity_types=(EntityType(name="Person"),),
            predicates=(Predicate(name="works_at", kind=StatementKind.FACT),),
        )
        after, report = merge(first, new)
        assert after is None
        assert [(item.item, item.outcome) for item in report] == [
            ("entity_type Person", "inserted"), ("predicate works_at", "conflict"),
        ]  # fmt: skip
        assert report[1].detail == "kind is Attribute, not Fact; cardinality is one, not many"

    def test_a_schema_that_grows_too_large_is_refused(self) -> None:
        full = Schema(entity_types=tuple(EntityType(name=f"t{i}") for i in range(MAX_ITEMS)))
        with pytest.raises(InvalidRequest) as caught:
            merge(full, Schema(entity_types=(EntityType(name="more"),)))
        assert caught.value.code is ErrorCode.OUT_OF_RANGE
        wordy = Schema(predicates=tuple(
            Predicate(name=f"p{i} " + "é" * 250, kind=StatementKind.FACT, description="é" * 512)
            for i in range(MAX_ITEMS)
        ))  # fmt: skip
        with pytest.raises(InvalidRequest) as caught:
            merge(Schema(), wordy)
        assert caught.value.code is ErrorCode.PAYLOAD_TOO_LARGE


@pytest.mark.parametrize(
    ("section", "items", "says"),
    [
        ("relation_types", [{"name": "sibling_of", "symmetric": True, "cardinality": "one-to-many"}], "symmetric"),
        ("relation_types", [{"name": "sibling_of", "symmetric": True, "cardinality": "many-to-one"}], "symmetric"),
        ("relation_types", [{"name": "x", "cardinality": "some-to-some"}], "one-to-one"),
        ("predicates", [{"name": "likes", "kind": "Fact", "cardinality": "one"}], "means many"),
        ("predicates", [{"name": "likes", "kind": "Attribute", "cardinality": "many"}], "means one"),
        ("predicates", [{"name": "likes", "kind": "Wish"}], "Fact"),
        ("predicates", [{"name": "likes"}], "required"),
        ("entity_types", [{"name": "Person"}, {"name": " person "}], "declared twice"),
        ("entity_types", [{"name": "?!"}], "letter or a digit"),
    ],
)
def test_a_schema_that_cannot_be(section: str, items: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        wire.validate(DeclareRequest, {"schema": {section: items}})
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert "schema" in caught.value.details["field"]
    assert says in caught.value.message


def test_what_a_schema_may_say() -> None:
    schema = Schema.model_validate({
        "predicates": [
            {"name": "a", "kind": "Attribute"}, {"name": "b", "kind": "Event"},
            {"name": "c", "kind": "Custom"}, {"name": "d", "kind": "Custom", "cardinality": "one"},
        ],
        "relation_types": [{"name": "sibling_of", "symmetric": True, "cardinality": "one-to-one"}, {"name": "r"}],
    })  # fmt: skip
    assert [item.current_values for item in schema.predicates] == ["one", "many", "many", "one"]
    assert schema.relation_types[1].cardinality == "many-to-many"


DECLARED = Schema.model_validate({
    "entity_types": [{"name": "Person"}],
    "predicates": [{"name": "works_at", "kind": "Attribute"}, {"name": "met", "kind": "Event"}],
    "relation_types": [{"name": "reports_to"}],
})  # fmt: skip
OPEN = Schema()


def request(**fields: Any) -> EncodeRequest:
    return wire.validate(EncodeRequest, {"text": "t", **fields})


def says(predicate: str, **fields: Any) -> dict[str, Any]:
    return {"subject": "Ana", "predicate": predicate, "object": "Globex", **fields}


@pytest.mark.parametrize(
    ("fields", "code", "field", "name"),
    [
        ({"entities": [{"name": "Ana", "type": "Person"}, {"name": "R2", "type": "Robot"}]},
         "ENTITY_TYPE_NOT_IN_SCHEMA", "entities.1.type", "Robot"),
        ({"statements": [says("works_at"), says("likes")]}, "PREDICATE_NOT_IN_SCHEMA", "statements.1.predicate", "likes"),
        ({"statements": [says("works_at", kind="Fact")]}, "KIND_NOT_IN_SCHEMA", "statements.0.kind", "works_at"),
        ({"relations": [{"from": "Ana", "type": "knows", "to": "Bo"}]},
         "RELATION_TYPE_NOT_IN_SCHEMA", "relations.0.type", "knows"),
        ({"entities": [{"name": "Ana", "type": "PERSON"}, {"name": "Globex"}]}, None, "", ""),
        ({"statements": [says("Works At"), says("works_at", kind="Attribute"), says("met")]}, None, "", ""),
        ({"relations": [{"from": "Ana", "type": "Reports_To", "to": "Bo"}]}, None, "", ""),
        ({}, None, "", ""),
    ],
)  # fmt: skip
def test_strict_after_declaration_and_open_before(
    fields: dict[str, Any], code: str | None, field: str, name: str
) -> None:
    asked = request(**fields)
    assert Vocabulary(OPEN).check(asked) == asked.statements
    if code is None:
        Vocabulary(DECLARED).check(asked)
        return
    with pytest.raises(InvalidRequest) as caught:
        Vocabulary(DECLARED).check(asked)
    assert caught.value.code == code
    assert (caught.value.details["field"], caught.value.details["name"]) == (field, name)


@pytest.mark.parametrize("section", ["entity_types", "predicates", "relation_types"])
def test_a_section_that_declares_nothing_stays_open(section: str) -> None:
    only = Schema(**{section: getattr(DECLARED, section)})
    foreign: dict[str, dict[str, Any]] = {
        "entity_types": {"entities": [{"name": "R2", "type": "Robot"}]},
        "predicates": {"statements": [says("likes")]},
        "relation_types": {"relations": [{"from": "Ana", "type": "knows", "to": "Bo"}]},
    }
    for other, fields in foreign.items():
        if other == section:
            with pytest.raises(InvalidRequest):
                Vocabulary(only).check(request(**fields))
        else:
            Vocabulary(only).check(request(**fields))


def test_a_kind_that_the_caller_left_out_is_the_declared_one() -> None:
    checked = Vocabulary(DECLARED).check(request(statements=[says("works_at"), says("met")]))
    assert [statement.kind for statement in checked] == [StatementKind.ATTRIBUTE, StatementKind.EVENT]


def test_what_the_caller_left_out_is_left_out_on_the_wire() -> None:
    asked = request(statements=[says("works_at"), says("met", kind="Fact")])
    sent = wire.decode(EncodeRequest, wire.encode_request(asked))
    assert sent == asked
    assert ["kind" in statement.model_fields_set for statement in sent.statements] == [False, True]


def test_what_extraction_found_is_sifted_and_never_refused() -> None:
    entities = [Entity(name="Ana", type="Person"), Entity(name="R2", type="Robot"), Entity(name="it")]
    statements = [
        Statement(subject="Ana", predicate="works_at", object="x"),
        Statement(subject="a", predicate="likes", object="b"),
    ]
    strict, open_ = Vocabulary(DECLARED), Vocabulary(OPEN)
    assert [entity.name for entity in strict.known_entities(entities)] == ["Ana", "it"]
    [kept] = strict.known_statements(statements)
    assert (kept.predicate, kept.kind) == ("works_at", StatementKind.ATTRIBUTE)
    assert open_.known_entities(entities) == entities
    assert open_.known_statements(statements) == tuple(statements)


class StoredSchemas:
    """One project's schema, and how often it was read."""

    def __init__(self) -> None:
        self.schema, self.reads = VersionedSchema(), 0

    async def read(self, project: str) -> tuple[VersionedSchema, int]:
        self.reads += 1
        return self.schema, self.schema.version

    async def write(self, project: str, schema: VersionedSchema, revision: int) -> None:
        self.schema = schema


async def test_a_vocabulary_is_read_again_when_it_is_no_longer_fresh() -> None:
    schemas = StoredSchemas()
    patient, eager = Vocabularies(schemas, fresh_s=3600), Vocabularies(schemas, fresh_s=0)
    unknown = request(statements=[says("likes")])
    for vocabularies in (patient, patient, eager):
        (await vocabularies.of("p")).check(unknown)
    assert schemas.reads == 2
    unchanged = await eager.of("p")
    assert await eager.of("p") is unchanged
    await schemas.write("p", VersionedSchema(version=1, schema=DECLARED), 0)
    (await patient.of("p")).check(unknown)
    with pytest.raises(InvalidRequest):
        (await eager.of("p")).check(unknown)


def test_plain_names_stay_as_things_once_types_are_declared() -> None:
    found = RuleExtractor().extract("Zora Quill works at Globex. Mail zora@example.org", {})
    kept = Vocabulary(DECLARED).known_entities(found.entities)
    assert [(entity.name, entity.type) for entity in kept] == [("Zora Quill", "Thing"), ("Globex", "Thing")]
    named = Vocabulary(Schema(entity_types=(EntityType(name="Email"),))).known_entities(found.entities)
    assert [entity.type for entity in named] == ["Thing", "Thing", "Email"]

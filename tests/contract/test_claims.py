"""Which statements answer a cue, on a real catalog."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.catalog import ClaimsRequest
from contracts.encode import ForgetRequest
from contracts.memory import Entity, MemoryRecord, Relation, Statement, StatementKind, derive_id
from contracts.shards import WHOLE, Shard, shard_of
from tests.contract.test_catalog import ATTRIBUTE, DAY, FACT, WHEN, put, record, says, stating
from workers.catalog import CatalogStore
from workers.encode.writer import tombstoned

NAMES = {derive_id(letter): letter for letter in "abcdefgh"}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = CatalogStore(tmp_path / "catalog", WHOLE)
    yield store
    store.close()


def ask(store: CatalogStore, cue: str, **fields: Any) -> tuple[list[str], str]:
    """The claims that stand, as ``memory: object``, and the stale memories."""
    claims, stale = store.claims(ClaimsRequest(project="p", cue=cue, **fields))
    return [f"{NAMES[one.memory]}: {one.object}" for one in claims], "".join(sorted(NAMES[one] for one in stale))


def linked(name: str, source: str, kind: str, target: str, **fields: Any) -> MemoryRecord:
    return record(name, relations=(Relation(**{"from": source, "type": kind, "to": target}),), **fields)


class TestSubjectAndPredicate:
    @pytest.fixture(autouse=True)
    def fill(self, store: CatalogStore) -> None:
        put(
            store,
            stating("a", 0, says("Ana Ruiz", "works_at", "Acme")),
            stating("b", 1, says("Ana Ruiz", "works_at", "Globex")),
            stating("c", 2, says("Ana Ruiz", "likes", "tea", StatementKind.PREFERENCE)),
            stating("d", 3, says("Ana Ruiz", "likes", "rowing", StatementKind.PREFERENCE)),
            stating("e", 4, says("Bo", "works_at", "Initech")),
        )

    @pytest.mark.parametrize(
        ("cue", "claims", "stale"),
        [
            ("Where does Ana Ruiz work?", ["b: globex"], "a"),
            ("where is ana ruiz WORKING now", ["b: globex"], "a"),
            ("What does Ana Ruiz like?", ["d: rowing", "c: tea"], ""),
            ("Who works at Globex?", ["b: globex"], ""),
            ("Who works at Acme?", [], "a"),
            ("Tell me about Ana Ruiz", [], ""),
            ("Where does Zoe work?", [], ""),
            ("Where does Ana work?", [], ""),
            ("work", [], ""),
            ("", [], ""),
        ],
    )
    def test_cues(self, store: CatalogStore, cue: str, claims: list[str], stale: str) -> None:
        assert ask(store, cue) == (claims, stale)

    def test_a_subject_given_by_the_caller(self, store: CatalogStore) -> None:
        assert ask(store, "which employer, where does she work?", subject="Ana Ruiz") == (["b: globex"], "a")

    def test_another_project(self, store: CatalogStore) -> None:
        assert store.claims(ClaimsRequest(project="q", cue="Where does Ana Ruiz work?")) == ([], set())

    def test_as_of(self, store: CatalogStore) -> None:
        assert ask(store, "Where does Ana Ruiz work?", as_of=WHEN + DAY / 2) == (["a: acme"], "")
        assert ask(store, "Where does Ana Ruiz work?", as_of=WHEN - DAY) == ([], "")


def test_what_was_believed(store: CatalogStore) -> None:
    """Written on day 9, true since day 1: on day 5 the old value was believed, of day 5 the new one is true."""
    told_late = stating("b", 9, says("Ana", "lives_in", "Oslo"), occurred_at=WHEN + DAY)
    put(store, stating("a", 0, says("Ana", "lives_in", "Rome")), told_late)
    cue, day = "Where does Ana live?", WHEN + 5 * DAY
    assert ask(store, cue, believed_at=day) == (["a: rome"], "")
    assert ask(store, cue, as_of=day) == (["b: oslo"], "a")


class TestStanding:
    def test_two_values_from_the_same_instant_both_stand(self, store: CatalogStore) -> None:
        for name, place in (("a", "Rome"), ("b", "Oslo")):
            put(store, stating(name, 0, says("Ana", "lives_in", place, valid_from=WHEN)))
        assert ask(store, "Where does Ana live?") == (["b: oslo", "a: rome"], "")

    def test_facts_accumulate(self, store: CatalogStore) -> None:
        put(
            store, *(stating(name, 0, says("Ana", "lives_in", place, FACT)) for name, place in (("a", "x"), ("b", "y")))
        )
        assert sorted(ask(store, "Where does Ana live?")[0]) == ["a: x", "b: y"]

    def test_what_has_ended_does_not_stand(self, store: CatalogStore) -> None:
        put(store, stating("a", 0, says("Ana", "lives_in", "Rome", FACT, valid_to=WHEN + DAY)))
        assert ask(store, "Where does Ana live?") == ([], "")
        assert ask(store, "Where does Ana live?", as_of=WHEN + DAY / 2) == (["a: rome"], "")

    def test_what_has_not_begun_replaces_nothing_yet(self, store: CatalogStore) -> None:
        put(
            store,
            stating("a", 0, says("Ana", "lives_in", "Rome")),
            stating("b", 0, says("Ana", "lives_in", "Oslo", valid_from=WHEN + timedelta(days=36500))),
        )
        assert ask(store, "Where does Ana live?") == (["a: rome"], "")

    def test_one_of_two_statements_replaced(self, store: CatalogStore) -> None:
        """The memory stands, but not as an answer to what was replaced."""
        put(
            store,
            stating("a", 0, says("Ana", "lives_in", "Rome"), says("Ana", "owns", "a boat")),
            stating("b", 1, says("Ana", "lives_in", "Oslo")),
        )
        assert ask(store, "Where does Ana live?") == (["b: oslo"], "a")
        assert ask(store, "What does Ana own?") == (["a: a boat"], "")

    @pytest.mark.parametrize("mode", ["soft", "hard"])
    def test_forgetting_the_head(self, store: CatalogStore, mode: Any) -> None:
        """The old value stays outdated; a hard forget leaves no trace of the new one."""
        old, new = (stating(name, day, says("Ana", "lives_in", at)) for name, day, at in (("a", 0, "x"), ("b", 1, "y")))
        put(store, old, new, tombstoned(new, ForgetRequest(id=new.id, mode=mode)))
        claims, stale = ask(store, "Where does Ana live?")
        assert stale == "a"
        assert claims == []


class TestConfidence:
    def ask(self, store: CatalogStore) -> list[tuple[str, float, int]]:
        claims, _ = store.claims(ClaimsRequest(project="p", cue="Where does Ana live?"))
        return sorted((NAMES[one.memory], one.confidence, one.evidence) for one in claims)

    def test_it_grows_with_the_evidence_and_falls_when_some_is_forgotten(self, store: CatalogStore) -> None:
        """1 - (1 - 0.8) (1 - 0.5)"""
        one = stating("a", 0, says("Ana", "lives_in", "Rome", FACT, confidence=0.8))
        other = stating("b", 1, says("Ana", "lives_in", "Rome", FACT), confidence=0.5)
        put(store, one)
        assert self.ask(store) == [("a", 0.8, 1)]
        put(store, other)
        assert self.ask(store) == [("a", 0.9, 2), ("b", 0.9, 2)]
        put(store, tombstoned(one, ForgetRequest(id=one.id)))
        assert self.ask(store) == [("b", 0.5, 1)]
        put(store, tombstoned(other, ForgetRequest(id=other.id)))
        assert self.ask(store) == []

    def test_a_memory_is_evidence_once(self, store: CatalogStore) -> None:
        said = says("Ana", "lives_in", "Rome", FACT, confidence=0.5)
        put(store, stating("a", 0, said, said))
        assert self.ask(store) == [("a", 0.5, 1), ("a", 0.5, 1)]


class TestRelations:
    def test_both_ends(self, store: CatalogStore) -> None:
        put(store, linked("a", "Bob", "reports_to", "Mei Lin"), linked("b", "Omar", "reports_to", "Mei Lin"))
        assert sorted(ask(store, "Who reports to Mei Lin?")[0]) == ["a: mei lin", "b: mei lin"]
        assert ask(store, "Whom does Bob report to?")[0] == ["a: mei lin"]

    def test_they_neither_retire_nor_keep_a_memory(self, store: CatalogStore) -> None:
        old = stating("a", 0, says("Ana", "lives_in", "Rome"))
        put(store, old.model_copy(update={"relations": linked("x", "Ana", "lives_in", "Rome").relations}))
        put(store, stating("b", 1, says("Ana", "lives_in", "Oslo")))
        assert store.hydrate("p", [old.id])[0]["superseded_by"] == derive_id("b")

    def test_two_hops(self, store: CatalogStore) -> None:
        put(
            store,
            linked("a", "Diego", "works_at", "platform team"),
            linked("b", "Mei Lin", "leads", "platform team"),
            linked("c", "Eva", "leads", "billing team"),
            linked("d", "Mei Lin", "likes", "tea"),
        )
        assert ask(store, "Who leads the team that Diego works in?")[0] == ["a: platform team", "b: platform team"]


def test_aliases_and_other_shards(tmp_path: Path) -> None:
    ana, elsewhere = Entity(name="Ana Ruiz", aliases=("Anita",)), 1 - shard_of(derive_id("a"), 2)
    store = CatalogStore(tmp_path / "catalog", Shard(elsewhere, 2))
    said = Statement(subject="Ana Ruiz", predicate="email", object="a@x.io", kind=ATTRIBUTE)
    put(store, stating("a", 0, said, entities=(ana,)))
    assert ask(store, "What is Anita's email address?")[0] == ["a: a@x.io"]


def test_a_hub_is_bounded(store: CatalogStore) -> None:
    put(store, *(stating(f"m{number}", 0, says("Ana", "met", f"guest {number}", FACT)) for number in range(900)))
    claims, _ = store.claims(ClaimsRequest(project="p", cue="Whom has Ana met?"))
    assert len(claims) == 200

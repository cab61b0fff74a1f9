"""What the catalog guarantees: text, tombstones, supersession and listing, on a real SQLite file."""

from __future__ import annotations

import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts import subjects, wire
from contracts.catalog import HydrateReply, HydrateRequest, ListPage, ListRequest, NamesReply, NamesRequest, Row
from contracts.encode import ForgetRequest
from contracts.errors import ErrorCode, Unavailable
from contracts.memory import (
    Edge,
    EdgeKind,
    Entity,
    MemoryKind,
    MemoryRecord,
    Relation,
    Statement,
    StatementKind,
    Tombstone,
    derive_id,
)
from contracts.ports import Call, Entry
from contracts.shards import MOST_SHARDS, WHOLE, Shard, slot_of_id
from workers.catalog import CatalogStore, CatalogWorker
from workers.catalog.worker import MOST_REPLY_BYTES, _page
from workers.encode.writer import tombstoned

WHEN = datetime(2024, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ATTRIBUTE, FACT = StatementKind.ATTRIBUTE, StatementKind.FACT
DIRECTIVE = StatementKind.DIRECTIVE


def record(name: str, day: int = 0, **fields: Any) -> MemoryRecord:
    at = WHEN + day * DAY
    return MemoryRecord(**{
        "id": derive_id(name), "project": "p", "text": name, "created_at": at, "changed_at": at,
    } | fields)  # fmt: skip


TWO_HOMES = (("a", 0, "Rome"), ("b", 2, "Oslo"))


def says(subject: str, predicate: str, value: str, kind: StatementKind = ATTRIBUTE, **fields: Any) -> Statement:
    return Statement(subject=subject, predicate=predicate, object=value, kind=kind, **fields)


def stating(name: str, day: int, *statements: Statement, **fields: Any) -> MemoryRecord:
    return record(name, day, statements=statements, **fields)


def forgotten(name: str, day: int = 50, **fields: Any) -> MemoryRecord:
    return record(name, day, text="", version=2, tombstone=Tombstone(at=WHEN + day * DAY), **fields)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = CatalogStore(tmp_path / "catalog", WHOLE)
    yield store
    store.close()


@pytest.fixture
def of_a(tmp_path: Path) -> Any:
    """A store whose shard holds the memory `a` and, of those that these tests name, no other."""
    store = CatalogStore(tmp_path / "of-a", Shard(slot_of_id(derive_id("a")), MOST_SHARDS))
    yield store
    store.close()


def put(store: CatalogStore, *records: MemoryRecord) -> None:
    store.apply([(store.position + number, one) for number, one in enumerate(records, 1)])


def row(store: CatalogStore, name: str, project: str = "p") -> Row | None:
    rows = store.hydrate(project, [derive_id(name)])
    return Row.model_validate(rows[0]) if rows else None


def successor(store: CatalogStore, name: str) -> str | None:
    """The name of the memory that took its place."""
    found = row(store, name)
    assert found is not None
    names = {derive_id(letter): letter for letter in "abcdef"}
    return names[found.superseded_by] if found.superseded_by else None


class TestHydrate:
    def test_everything_but_vectors(self, store: CatalogStore) -> None:
        full = record(
            "a", kind=MemoryKind.SEMANTIC, occurred_at=WHEN - DAY, session="s", source="chat", tags=("x", "y"),
            importance=0.1, salience=0.2, confidence=0.3, quality=0.4, expires_at=WHEN + DAY, version=3,
            metadata={"k": [1, None, "é"]}, entities=(Entity(name="Ana", aliases=("A",)),),
            statements=(says("Ana", "lives_in", "Rome"),), supersedes=(derive_id("z"),), vector="AAAA",
            relations=(Relation(**{"from": "Ana", "type": "knows", "to": "Bo"}),),
            edges=(Edge(kind=EdgeKind.CAUSED, target=derive_id("y"), weight=-0.5),),
        )  # fmt: skip
        put(store, full)
        found = row(store, "a")
        for name in set(Row.model_fields) & set(MemoryRecord.model_fields):
            assert getattr(found, name) == getattr(full, name), name
        assert (found.position, found.event_time, found.uses, found.last_used) == (1, WHEN - DAY, 0, None)

    def test_what_an_older_release_stored_is_read(self, tmp_path: Path, store: CatalogStore) -> None:
        put(store, record("a", edges=(Edge(kind=EdgeKind.CAUSED, target=derive_id("y")),)))
        with sqlite3.connect(tmp_path / "catalog" / "catalog.sqlite") as db:
            db.execute("UPDATE memory SET doc = CAST(json_remove(doc, '$.edges') AS BLOB)")
        db.close()
        found = row(store, "a")
        assert found is not None
        assert found.edges == ()

    def test_the_order_asked_without_the_unknown(self, store: CatalogStore) -> None:
        put(store, record("a"), record("b"), record("c"))
        asked = [derive_id(name) for name in ("c", "nobody", "a")]
        assert [found["text"] for found in store.hydrate("p", asked)] == ["c", "a"]
        assert store.hydrate("p", []) == []

    def test_more_ids_than_one_query_takes(self, store: CatalogStore) -> None:
        names = [f"n{number}" for number in range(1203)]
        put(store, *(record(name) for name in names))
        assert [found["text"] for found in store.hydrate("p", [derive_id(name) for name in names])] == names

    def test_projects_and_shards(self, of_a: CatalogStore) -> None:
        put(of_a, record("a", project="q"), record("b"))
        assert row(of_a, "a") is None
        assert row(of_a, "a", "q").text == "a"
        assert row(of_a, "b") is None
        assert (of_a.position, of_a.live) == (2, 1)

    def test_tombstone(self, store: CatalogStore) -> None:
        put(store, record("a"), record("b"))
        assert store.live == 2
        put(store, forgotten("a"))
        found = row(store, "a")
        assert (found.text, found.tombstone.mode, found.version) == ("", "soft", 2)
        assert store.live == 1

    def test_a_hard_forget_leaves_no_text_in_the_files(self, tmp_path: Path) -> None:
        secret = "a-secret-that-must-go"
        store = CatalogStore(tmp_path / "catalog", WHOLE)
        put(store, record("a", text=secret), forgotten("a"))
        store.close()
        assert not [path for path in (tmp_path / "catalog").iterdir() if secret.encode() in path.read_bytes()]


class TestSupersessionByName:
    def test_named(self, store: CatalogStore) -> None:
        put(store, record("a"), record("b", 3, supersedes=(derive_id("a"),)))
        assert successor(store, "a") == "b"
        assert row(store, "a").superseded_at == WHEN + 3 * DAY
        assert successor(store, "b") is None

    def test_before_the_target_is_known_and_from_another_shard(self, of_a: CatalogStore) -> None:
        put(of_a, record("b", 3, supersedes=(derive_id("a"),)), record("a"))
        assert row(of_a, "a").superseded_by == derive_id("b")

    def test_of_another_project(self, store: CatalogStore) -> None:
        put(store, record("a"), record("b", 3, supersedes=(derive_id("a"),), project="q"))
        assert successor(store, "a") is None

    def test_the_latest_of_two(self, store: CatalogStore) -> None:
        named = (derive_id("a"),)
        put(store, record("a"), record("c", 5, supersedes=named), record("b", 3, supersedes=named))
        assert successor(store, "a") == "c"

    def test_forgetting_the_successor_does_not_revive(self, store: CatalogStore) -> None:
        named = record("b", 3, supersedes=(derive_id("a"),))
        put(store, record("a"), named, tombstoned(named, ForgetRequest(id=named.id, mode="hard")))
        assert successor(store, "a") == "b"

    def test_a_claim_withdrawn_by_a_later_version(self, store: CatalogStore) -> None:
        put(store, record("a"), record("b", 3, supersedes=(derive_id("a"),)), record("b", 3, version=2))
        assert successor(store, "a") is None


class TestSupersessionByStatements:
    def test_a_newer_value(self, store: CatalogStore) -> None:
        put(store, stating("a", 0, says("Ana", "lives_in", "Rome")), stating("b", 2, says("Ana", "lives_in", "Oslo")))
        assert successor(store, "a") == "b"
        assert row(store, "a").superseded_at == WHEN + 2 * DAY
        assert successor(store, "b") is None

    def test_a_later_state_of_a_memory_is_no_newer_value(self, store: CatalogStore) -> None:
        old = stating("a", 0, says("Ana", "lives_in", "Rome"), occurred_at=WHEN)
        put(store, old, stating("b", 1, says("Ana", "lives_in", "Oslo"), occurred_at=WHEN))
        assert successor(store, "a") == "b"
        put(store, old.model_copy(update={"version": 2}))
        assert (successor(store, "a"), successor(store, "b")) == ("b", None)

    def test_names_are_compared_in_normal_form(self, store: CatalogStore) -> None:
        put(
            store, stating("a", 0, says("Ana", "lives_in", "Rome")), stating("b", 2, says(" ANA ", "Lives in", "Oslo")),
            stating("c", 1, says("Ana", "lives in", "Rome.")),
        )  # fmt: skip
        assert [successor(store, name) for name in "abc"] == ["b", None, "b"]

    @pytest.mark.parametrize("kind", [ATTRIBUTE, DIRECTIVE])
    def test_single_valued_kinds(self, store: CatalogStore, kind: StatementKind) -> None:
        put(store, stating("a", 0, says("x", "y", "1", kind)), stating("b", 1, says("x", "y", "2", kind)))
        assert successor(store, "a") == "b"

    @pytest.mark.parametrize("kind", [kind for kind in StatementKind if not kind.single_valued])
    def test_other_kinds_accumulate(self, store: CatalogStore, kind: StatementKind) -> None:
        put(store, stating("a", 0, says("x", "y", "1", kind)), stating("b", 1, says("x", "y", "2", kind)))
        assert successor(store, "a") is None

    def test_all_of_them_and_by_several(self, store: CatalogStore) -> None:
        both = (says("Ana", "lives_in", "Rome"), says("Ana", "age", "30"))
        put(store, stating("a", 0, *both), stating("b", 1, says("Ana", "lives_in", "Oslo")))
        assert successor(store, "a") is None
        put(store, stating("c", 2, says("Ana", "age", "31")))
        assert successor(store, "a") == "c"
        assert row(store, "a").superseded_at == WHEN + 2 * DAY

    def test_mixed_kinds_do_not(self, store: CatalogStore) -> None:
        mixed = (says("Ana", "lives_in", "Rome"), says("Ana", "met", "Bo", FACT))
        put(store, stating("a", 0, *mixed), stating("b", 1, says("Ana", "lives_in", "Oslo")))
        assert successor(store, "a") is None

    def test_a_single_value_is_not_retired_by_a_fact(self, store: CatalogStore) -> None:
        put(store, stating("a", 0, says("x", "y", "1")), stating("b", 1, says("x", "y", "2", FACT)))
        assert successor(store, "a") is None

    def test_a_mere_mention_retires_nothing(self, store: CatalogStore) -> None:
        put(
            store, stating("a", 0, says("Ana", "lives_in", "Rome")), record("b", 1, entities=(Entity(name="Ana"),)),
            stating("c", 2, says("Ana", "age", "31")), stating("d", 3, says("Bo", "lives_in", "Oslo")),
        )  # fmt: skip
        assert [successor(store, name) for name in "abcd"] == [None] * 4

    def test_the_same_object_is_no_other_value(self, store: CatalogStore) -> None:
        put(store, stating("a", 0, says("Ana", "lives_in", "Rome")), stating("b", 1, says("Ana", "lives_in", "rome")))
        assert successor(store, "a") is None

    def test_newer_by_validity_then_by_event_then_by_position(self, store: CatalogStore) -> None:
        put(store, stating("a", 5, says("x", "y", "1")), stating("b", 3, says("x", "y", "2")))
        assert [successor(store, name) for name in "ab"] == [None, "a"]
        put(store, stating("c", 0, says("x", "y", "3", valid_from=WHEN + 9 * DAY)))
        assert [successor(store, name) for name in "abc"] == ["c", "c", None]
        put(store, stating("d", 9, says("x", "y", "4")))
        assert [successor(store, name) for name in "abcd"] == ["d", "d", "d", None]

    @pytest.mark.parametrize("mode", ["soft", "hard"])
    @pytest.mark.parametrize("seen", [True, False], ids=["forgotten later", "known forgotten only"])
    def test_forgetting_the_newest_does_not_revive(self, store: CatalogStore, mode: Any, seen: bool) -> None:
        """Nor does a catalog that is built when the log has nothing left of it but its tombstone."""
        old, new = (stating(name, day, says("Ana", "lives_in", place)) for name, day, place in TWO_HOMES)
        after = tombstoned(new, ForgetRequest(id=new.id, mode=mode))
        put(store, old, *([new] if seen else []), after)
        assert successor(store, "a") == "b"

    def test_forgetting_does_not_make_newer(self, store: CatalogStore) -> None:
        old, new = (stating(name, 0, says("Ana", "lives_in", place)) for name, _, place in TWO_HOMES)
        new = new.model_copy(update={"created_at": WHEN + DAY, "occurred_at": WHEN})
        put(store, old, new, tombstoned(old, ForgetRequest(id=old.id)))
        assert [successor(store, name) for name in "ab"] == ["b", None]

    def test_superseded_since_the_first_of_several(self, store: CatalogStore) -> None:
        """As of day 5 it had long been replaced, though not yet by the newest."""
        put(store, *(stating(name, day, says("x", "y", str(day))) for name, day in (("a", 0), ("b", 3), ("c", 9))))
        found = row(store, "a")
        assert (found.superseded_by, found.superseded_at) == (derive_id("c"), WHEN + 3 * DAY)

    def test_when_it_was_so_and_when_it_was_written(self, store: CatalogStore) -> None:
        told_late = stating("b", 9, says("x", "y", "2"), occurred_at=WHEN + DAY)
        put(store, stating("a", 0, says("x", "y", "1")), told_late)
        found = row(store, "a")
        assert (found.superseded_at, found.superseded_written) == (WHEN + DAY, WHEN + 9 * DAY)

    def test_two_values_from_the_same_instant_contradict(self, store: CatalogStore) -> None:
        for name, place in (("a", "Rome"), ("b", "Oslo")):
            put(store, stating(name, 0, says("Ana", "lives_in", place, valid_from=WHEN)))
        assert [successor(store, name) for name in "ab"] == [None, None]

    def test_projects_do_not_mix(self, store: CatalogStore) -> None:
        put(store, stating("a", 0, says("x", "y", "1")), stating("b", 1, says("x", "y", "2"), project="q"))
        assert successor(store, "a") is None

    def test_of_another_shard(self, of_a: CatalogStore) -> None:
        put(of_a, stating("a", 0, says("x", "y", "1")), stating("b", 1, says("x", "y", "2")))
        assert row(of_a, "a").superseded_by == derive_id("b")


HISTORY: list[Entry] = [
    (1, stating("a", 0, says("Ana", "lives_in", "Rome"), entities=(Entity(name="Ana"),))),
    (3, stating("b", 2, says("Ana", "lives_in", "Oslo"))),
    (4, record("c", 3, supersedes=(derive_id("b"),))),
    (7, forgotten("c")),
]


def picture(store: CatalogStore) -> object:
    return store.hydrate("p", [derive_id(name) for name in "abcdef"]), store.known_names("p", ["ana"]), store.position


def test_what_is_past_its_grace(store: CatalogStore) -> None:
    """Of all projects of the shard; neither live memories, nor hard-forgotten ones, nor those forgotten since."""
    soft, hard = record("a"), record("b", project="q")
    put(store, soft, hard, record("c"), forgotten("a", 3), forgotten("b", 9, project="q"))
    put(store, tombstoned(record("d"), ForgetRequest(id=derive_id("d"), mode="hard")))
    assert store.overdue(WHEN + 2 * DAY, 10) == []
    assert store.overdue(WHEN + 5 * DAY, 10) == [("p", derive_id("a"))]
    assert store.overdue(WHEN + 999 * DAY, 1) == [("p", derive_id("a"))]
    assert len(store.overdue(WHEN + 20 * DAY, 10)) == 2


class TestPosition:
    def test_survives_reopening(self, tmp_path: Path) -> None:
        store = CatalogStore(tmp_path, WHOLE)
        assert store.position == 0
        store.apply(HISTORY)
        before = picture(store)
        store.close()
        again = CatalogStore(tmp_path, WHOLE)
        assert again.position == 7
        assert picture(again) == before
        again.close()

    def test_replay_is_idempotent(self, store: CatalogStore) -> None:
        store.apply(HISTORY)
        before = picture(store)
        store.apply(HISTORY)
        assert picture(store) == before
        for entry in HISTORY:
            store.apply([entry])
        assert picture(store) == before

    def test_a_failed_batch_leaves_nothing(self, store: CatalogStore) -> None:
        store.apply(HISTORY[:1])
        broken = record("e").model_copy(update={"created_at": None})
        with pytest.raises(AttributeError):
            store.apply([HISTORY[1], (9, broken)])
        assert (store.position, row(store, "b")) == (1, None)
        store.apply(HISTORY[1:])
        assert store.position == 7

    @pytest.mark.parametrize("size", [200, 40_000])
    def test_a_damaged_file_starts_afresh(self, tmp_path: Path, size: int) -> None:
        store = CatalogStore(tmp_path, WHOLE)
        store.apply(HISTORY)
        store.close()
        (tmp_path / "catalog.sqlite").write_bytes(b"junk" * (size // 4))
        again = CatalogStore(tmp_path, WHOLE)
        assert (again.position, row(again, "a")) == (0, None)
        again.apply(HISTORY)
        assert row(again, "a").text == "a"
        again.close()

    def test_a_file_of_another_version_starts_afresh(self, tmp_path: Path) -> None:
        store = CatalogStore(tmp_path, WHOLE)
        store.apply(HISTORY)
        store.close()
        with sqlite3.connect(tmp_path / "catalog.sqlite") as db:
            db.execute("DROP TABLE statement")  # as an older release may have had another one
            db.execute("PRAGMA user_version = 1")
        db.close()
        again = CatalogStore(tmp_path, WHOLE)
        assert again.position == 0
        again.apply(HISTORY)
        again.close()

    def test_a_file_in_use_is_not_a_damaged_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = CatalogStore(tmp_path, WHOLE)
        store.apply(HISTORY)
        store.close()
        holder = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None)
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda file, **options: connect(file, timeout=0.05, **options))
        try:
            with pytest.raises(sqlite3.OperationalError):
                CatalogStore(tmp_path, WHOLE).close()
        finally:
            holder.close()


def listed(store: CatalogStore, after: tuple[int, str] | None = None, **fields: Any) -> list[str]:
    return [found["text"] for found in store.page("p", ListRequest(**fields), after)]


class TestPages:
    @pytest.fixture(autouse=True)
    def _fill(self, store: CatalogStore) -> None:
        put(
            store, record("a", 1, tags=("x",), session="s"), record("b", 2, tags=("x", "y")),
            record("c", 3, kind=MemoryKind.SEMANTIC), record("d", 4, session="s"), record("e", 5), forgotten("e", 5),
            record("f", 6, project="q"),
        )  # fmt: skip

    def test_order(self, store: CatalogStore) -> None:
        assert listed(store) == ["d", "c", "b", "a"]
        assert listed(store, order="oldest") == ["a", "b", "c", "d"]

    @pytest.mark.parametrize(
        ("fields", "names"),
        [
            ({"tags": ("x",)}, "ba"),
            ({"tags": ("x", "y")}, "b"),
            ({"tags": ("z",)}, ""),
            ({"session": "s"}, "da"),
            ({"kinds": (MemoryKind.SEMANTIC,)}, "c"),
            ({"kinds": (MemoryKind.SEMANTIC, MemoryKind.EPISODIC)}, "dcba"),
            ({"since": WHEN + 2 * DAY, "until": WHEN + 3 * DAY}, "cb"),
            ({"session": "s", "since": WHEN + 2 * DAY}, "d"),
        ],
    )
    def test_filters(self, store: CatalogStore, fields: dict[str, Any], names: str) -> None:
        assert listed(store, **fields) == list(names)

    def test_tombstoned_on_demand(self, store: CatalogStore) -> None:
        assert listed(store, include_tombstoned=True) == ["", "d", "c", "b", "a"]

    def test_one_more_than_the_limit(self, store: CatalogStore) -> None:
        assert listed(store, limit=2) == ["d", "c", "b"]
        assert len(listed(store, limit=4)) == 4

    @pytest.mark.parametrize("order", ["newest", "oldest"])
    def test_the_keyset_visits_each_once_even_at_one_instant(self, store: CatalogStore, order: str) -> None:
        put(store, *(record(f"same {number}", 9) for number in range(7)))
        seen: list[str] = []
        after: tuple[int, str] | None = None
        while True:
            rows = store.page("p", ListRequest(limit=2, order=order), after)
            seen += [found["text"] for found in rows[:2]]
            if len(rows) < 3:
                break
            last = Row.model_validate(rows[1])
            after = (int(last.created_at.timestamp() * 1000), last.id)
        assert len(seen) == len(set(seen)) == 11


class TestNames:
    def test_known_by_normal_form_and_alias(self, store: CatalogStore) -> None:
        put(store, record("a", entities=(Entity(name="Ana Maria", type="Person", aliases=("Annie",)),)))
        known = store.known_names("p", ["ana maria", "annie", "bo"])
        assert known == {"ana maria": ("Ana Maria", "Person"), "annie": ("Ana Maria", "Person")}
        assert store.known_names("q", ["annie"]) == {}
        assert store.known_names("p", []) == {}

    def test_only_live_memories_count(self, store: CatalogStore) -> None:
        put(store, record("a", entities=(Entity(name="Ana"),)), record("b", entities=(Entity(name="ANA"),)))
        put(store, forgotten("a", entities=(Entity(name="Ana"),)))
        assert store.known_names("p", ["ana"]) == {"ana": ("ANA", "Thing")}
        put(store, forgotten("b"))
        assert store.known_names("p", ["ana"]) == {}

    def test_of_all_shards_and_many(self, of_a: CatalogStore) -> None:
        put(of_a, *(record(f"n{n}", entities=(Entity(name=f"Name {n}"),)) for n in range(1100)))
        assert len(of_a.known_names("p", [f"name {number}" for number in range(1200)])) == 1100

    @pytest.mark.parametrize(
        "order",
        ["ab", "ba"],
    )
    def test_the_oldest_mention_decides_the_form(self, store: CatalogStore, order: str) -> None:
        forms = {"a": "ACME", "b": "Acme"}
        put(store, *(record(name, day, entities=(Entity(name=forms[name]),)) for day, name in enumerate(order)))
        assert store.known_names("p", ["acme"])["acme"][0] == forms[order[0]]


class NoLog:
    """A log that is never followed: these tests ask the worker's endpoints alone."""


async def call(store: CatalogStore, op: str, request: Any) -> bytes:
    worker = CatalogWorker(WHOLE, "a", store, NoLog())  # type: ignore[arg-type]
    endpoint = next(one for one in worker.endpoints() if one.name == op)
    shard = None if op in ("claims", "names", "beside") else WHOLE
    queue = "catalog-0of1" if shard else "catalog"
    assert (endpoint.subject, endpoint.queue) == (subjects.catalog(shard, op), queue)
    return await endpoint.handle(Call(endpoint.subject, wire.encode(request), time.monotonic()))


class TestWorker:
    @pytest.mark.parametrize("types", [False, True])
    async def test_lean_rows_hold_what_filters_look_at(self, store: CatalogStore, types: bool) -> None:
        says_so = says("Ana", "lives_in", "Rome")
        put(store, record("a", session="s", salience=0.2, metadata={"k": 1}, statements=(says_so,)), forgotten("b"))
        ids = (derive_id("a"), derive_id("b"))
        data = await call(store, "hydrate", HydrateRequest(project="p", ids=ids, lean=True, types=types))
        held, gone = wire.decode_reply(HydrateReply, data).rows
        assert (held.session, held.salience, held.created_at, held.position) == ("s", 0.2, WHEN, 1)
        assert held.statements == ((says_so,) if types else ())
        assert (held.text, held.metadata) == ("", {})
        assert gone.tombstone is not None

    async def test_hydrate(self, store: CatalogStore) -> None:
        store.apply(HISTORY)
        data = await call(store, "hydrate", HydrateRequest(project="p", ids=(derive_id("b"), derive_id("x"))))
        reply = wire.decode_reply(HydrateReply, data)
        assert ([found.text for found in reply.rows], reply.position, reply.more) == (["b"], 7, False)

    async def test_behind(self, store: CatalogStore) -> None:
        store.apply(HISTORY)
        request = HydrateRequest(project="p", ids=(derive_id("b"),), min_position=8, remaining_ms=20.0)
        with pytest.raises(Unavailable) as caught:
            await call(store, "hydrate", request)
        assert caught.value.code is ErrorCode.CONSISTENCY_TIMEOUT
        assert caught.value.details == {"lane": "catalog", "position": 7}

    async def test_names_and_list(self, store: CatalogStore) -> None:
        store.apply(HISTORY)
        names = wire.decode_reply(NamesReply, await call(store, "names", NamesRequest(project="p", names=("ana",))))
        assert names.known == {"ana": ("Ana", "Thing")}
        page = ListPage(project="p", request=ListRequest(limit=1))
        reply = wire.decode_reply(HydrateReply, await call(store, "list", page))
        assert [found.text for found in reply.rows] == ["b", "a"]

    def test_big_replies_are_split(self) -> None:
        rows: list[dict[str, object]] = [{"id": str(number), "text": "é" * 50_000} for number in range(20)]
        seen: list[object] = []
        while len(seen) < len(rows):
            data = _page(rows[len(seen) :], 5)
            assert len(data) < MOST_REPLY_BYTES + 100
            reply = wire.parse(data)
            assert reply["position"] == 5
            seen += reply["rows"]
            assert reply["more"] is (len(seen) < len(rows))
        assert seen == rows

    def test_one_row_always_fits_and_none_is_a_page(self) -> None:
        big: list[dict[str, object]] = [{"text": "x" * (MOST_REPLY_BYTES + 1)}, {"text": "y"}]
        reply = wire.parse(_page(big, 1))
        assert (reply["rows"], reply["more"]) == (big[:1], True)
        assert wire.parse(_page([], 1)) == {"rows": [], "position": 1, "more": False}


class TestBeside:
    """Who stands beside whom in a session, of whichever shard."""

    @pytest.fixture
    def talk(self, of_a: CatalogStore) -> CatalogStore:
        turns = [record(f"t{day}", day, session="s") for day in range(6)]
        put(of_a, *reversed(turns), record("x", 2, session="other"), record("alone", 2))
        return of_a

    def names(self, store: CatalogStore, name: str, reach: int = 2) -> dict[str, int]:
        known = {derive_id(one): one for one in ("t0", "t1", "t2", "t3", "t4", "t5", "x", "alone")}
        [found] = store.beside("p", [derive_id(name)], reach)
        return {known[memory_id]: distance for memory_id, distance in found}

    def test_by_event_time_and_not_by_order_of_arrival(self, talk: CatalogStore) -> None:
        assert self.names(talk, "t2") == {"t3": 1, "t4": 2, "t1": -1, "t0": -2}
        assert self.names(talk, "t5", reach=1) == {"t4": -1}

    def test_only_within_the_session(self, talk: CatalogStore) -> None:
        assert self.names(talk, "x") == {}
        assert self.names(talk, "alone") == {}
        assert talk.beside("q", [derive_id("t2")], 2) == [[]]

    def test_what_is_forgotten_leaves_its_place(self, talk: CatalogStore) -> None:
        put(talk, forgotten("t3", session="s"))
        assert self.names(talk, "t2") == {"t4": 1, "t5": 2, "t1": -1, "t0": -2}
        assert self.names(talk, "t3") == {}

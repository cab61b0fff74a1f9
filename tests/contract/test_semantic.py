"""What the semantic lane guarantees, on real hnswlib."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from contracts.lanes import LaneQuery, ScoreQuery
from contracts.memory import MemoryRecord, Statement, Tombstone, Vector, derive_id, pack_vector
from contracts.ports import Entry
from workers.semantic import SemanticIndex
from workers.semantic.vectors import EXACT_BELOW, FIRST_CAPACITY, BadVector, VectorIndex

WHEN = datetime(2024, 5, 1, tzinfo=UTC)
DIMENSION = 16


def vectors(count: int, seed: int = 7, dimension: int = DIMENSION) -> Vector:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(rows: Vector) -> VectorIndex:
    index = VectorIndex(rows.shape[1])
    index.put([(f"k{number:05}", row) for number, row in enumerate(rows)])
    return index


def exact(rows: Vector, query: Vector, count: int) -> list[str]:
    return [f"k{number:05}" for number in np.argsort(-(rows @ query), kind="stable")[:count]]


class TestVectorIndex:
    def test_empty(self) -> None:
        index = VectorIndex(DIMENSION)
        assert index.search(vectors(1)[0], 5) == []
        assert index.cosines(vectors(1)[0], ["a"]) == [0.0]
        index.remove(["a"])
        index.put([])
        assert (len(index), index.keys(), index.rows) == (0, [], 0)

    def test_k_over_the_size(self) -> None:
        rows = vectors(3)
        found = filled(rows).search(rows[1], 100)
        assert len(found) == 3
        assert found[0] == ("k00001", pytest.approx(1.0, abs=1e-5))

    def test_cosine_whatever_the_length(self) -> None:
        rows = vectors(20)
        index = VectorIndex(DIMENSION)
        index.put([(f"k{number:05}", row * (number + 1)) for number, row in enumerate(rows)])
        found = dict(index.search(rows[3] * 9, 20))
        for number, row in enumerate(rows):
            assert found[f"k{number:05}"] == pytest.approx(float(row @ rows[3]), abs=1e-5)

    def test_ties_by_key(self) -> None:
        row = vectors(1)[0]
        index = VectorIndex(DIMENSION)
        index.put([(key, row) for key in "cab"])
        assert [key for key, _ in index.search(row, 2)] == ["a", "b"]

    def test_one_past_the_capacity(self) -> None:
        rows = vectors(FIRST_CAPACITY + 1)
        index = filled(rows[:-1])
        index.put([("last", rows[-1])])
        assert len(index) == FIRST_CAPACITY + 1
        assert index.search(rows[-1], 1)[0][0] == "last"
        assert index.search(rows[5], 1)[0][0] == "k00005"

    def test_more_at_once_than_twice_the_capacity(self) -> None:
        assert len(filled(vectors(2 * FIRST_CAPACITY + 5))) == 2 * FIRST_CAPACITY + 5

    def test_most_deleted(self) -> None:
        rows = vectors(20)
        index = filled(rows)
        index.remove([f"k{number:05}" for number in range(17)])
        assert {key for key, _ in index.search(rows[0], 20)} == {"k00017", "k00018", "k00019"}

    def test_delete_twice_and_add_again(self) -> None:
        rows = vectors(5)
        index = filled(rows)
        index.remove(["k00002", "k00002"])
        index.remove(["k00002"])
        assert len(index) == 4
        assert "k00002" not in index
        assert index.cosines(rows[2], ["k00002"]) == [0.0]
        index.put([("k00002", rows[0])])
        assert len(index) == 5
        assert [key for key, _ in index.search(rows[0], 2)] == ["k00000", "k00002"]

    def test_replace(self) -> None:
        rows = vectors(2)
        index = VectorIndex(DIMENSION)
        index.put([("a", rows[0])])
        index.put([("a", rows[1]), ("a", rows[1])])
        assert index.search(rows[1], 5) == [("a", pytest.approx(1.0, abs=1e-5))]

    @pytest.mark.parametrize(
        "bad",
        [
            np.ones(DIMENSION + 1), np.ones(0), np.ones((1, DIMENSION)), np.zeros(DIMENSION),
            np.full(DIMENSION, np.nan), np.array([np.inf] + [0.0] * (DIMENSION - 1)),
        ],
        ids=["long", "none", "matrix", "zero", "nan", "inf"],
    )  # fmt: skip
    def test_bad_vectors_are_refused_whole(self, bad: Vector) -> None:
        rows = vectors(2)
        index = filled(rows)
        with pytest.raises(BadVector):
            index.put([("good", rows[0]), ("bad", bad.astype(np.float32))])
        with pytest.raises(BadVector):
            index.search(bad.astype(np.float32), 1)
        with pytest.raises(BadVector):
            index.cosines(bad.astype(np.float32), ["k00000"])
        assert index.keys() == ["k00000", "k00001"]

    def test_rebuilt_after_many_deletes(self) -> None:
        rows = vectors(2200)
        index = filled(rows)
        index.remove([f"k{number:05}" for number in range(1500)])
        assert (len(index), index.rows) == (700, 700)
        for number in (1500, 1800, 2199):
            assert index.search(rows[number], 1)[0] == (f"k{number:05}", pytest.approx(1.0, abs=1e-5))
        index.put([("new", rows[0])])
        assert index.search(rows[0], 1)[0][0] == "new"

    def test_all_deleted(self) -> None:
        rows = vectors(1100)
        index = filled(rows)
        index.remove(index.keys())
        assert (len(index), index.search(rows[0], 3)) == (0, [])
        index.put([("new", rows[0])])
        assert index.search(rows[0], 3) == [("new", pytest.approx(1.0, abs=1e-5))]

    def test_the_walk_agrees_with_the_scan(self) -> None:
        rows, queries = vectors(3000), vectors(50, seed=8)
        index = filled(rows)
        assert len(index) >= EXACT_BELOW
        shared = sum(
            len({key for key, _ in index.search(query, 10)} & set(exact(rows, query, 10))) for query in queries
        )
        assert shared / 500 >= 0.95

    def test_the_walk_past_deleted_items(self) -> None:
        rows = vectors(3000)
        index = filled(rows)
        gone = {f"k{number:05}" for number in range(0, 3000, 3)}
        index.remove(sorted(gone))
        assert index.rows == 3000
        found = index.search(rows[0], 1900)
        assert len(found) == 1900
        assert not gone & {key for key, _ in found}

    def test_the_same_items_give_the_same_answers(self) -> None:
        rows = vectors(1500)
        assert filled(rows).search(rows[0], 50) == filled(rows).search(rows[0], 50)

    def test_save_and_load(self, tmp_path: Path) -> None:
        rows = vectors(1200)
        index = filled(rows)
        index.remove(["k00003", "k00004"])
        keys, labels = index.save(tmp_path / "graph")
        back = VectorIndex.load(tmp_path / "graph", DIMENSION, keys, labels, index.rows)
        assert (back.keys(), back.rows) == (index.keys(), index.rows)
        assert back.search(rows[3], 20) == index.search(rows[3], 20)
        back.put([(f"n{number}", row) for number, row in enumerate(vectors(900, seed=9))])
        assert len(back) == 1198 + 900
        with pytest.raises(BadVector):
            VectorIndex.load(tmp_path / "graph", DIMENSION, keys, labels, index.rows + 1)


ROWS = vectors(40, seed=3)


def record(name: str, row: int | Vector, *, stated: tuple[int, ...] = (), **fields: object) -> MemoryRecord:
    vector = ROWS[row] if isinstance(row, int) else row
    return MemoryRecord(**{
        "id": derive_id(name), "project": "p", "text": name, "created_at": WHEN, "changed_at": WHEN,
        "vector": pack_vector(vector), "statement_vectors": tuple(pack_vector(ROWS[number]) for number in stated),
        "statements": tuple(Statement(subject=name, predicate="likes_no", object=str(number)) for number in stated),
    } | fields)  # fmt: skip


def forgotten(name: str) -> MemoryRecord:
    return record(name, 0, vector="", text="", tombstone=Tombstone(at=WHEN))


def query(row: int, top_n: int = 10, project: str = "p") -> LaneQuery:
    return LaneQuery(project=project, cue="c", vector=pack_vector(ROWS[row]), top_n=top_n)


ENTRIES: list[Entry] = [
    (1, record("a", 1, stated=(11, 12))),
    (2, record("b", 2)),
    (4, record("c", 3, stated=(13,))),
    (5, record("other", 1, project="q")),
]


async def items(index: SemanticIndex, row: int, top_n: int = 10, project: str = "p") -> list[str]:
    return list((await index.search(query(row, top_n, project))).items)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "semantic"


class TestSemanticIndex:
    async def test_empty(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        assert index.position == 0
        assert await items(index, 1) == []
        scored = await index.score(ScoreQuery(project="p", cue="c", vector=pack_vector(ROWS[1]), ids=(derive_id("a"),)))
        assert (scored.evidence, scored.confirmed) == ((0.0,), (False,))
        await index.save()
        assert SemanticIndex(folder).position == 0

    async def test_memories_and_statements(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        assert index.position == 5
        reply = await index.search(query(12))
        a = derive_id("a")
        assert (reply.items[0], reply.kinds[0], reply.labels[0], reply.sources[0]) == (
            f"{a}#s1", "statement", "a likes no 12", (a,),
        )  # fmt: skip
        assert len(reply.items) == 6
        assert reply.evidence[0] == pytest.approx(1.0, abs=1e-5)
        assert all(0.0 <= value <= 1.0 for value in reply.evidence)
        assert list(reply.scores) == sorted(reply.scores, reverse=True)
        assert dict(zip(reply.items, reply.kinds, strict=True))[a] == "memory"
        assert len(await items(index, 12, top_n=2)) == 2

    async def test_projects_do_not_mix(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        assert await items(index, 1, project="q") == [derive_id("other")]
        assert await items(index, 1, project="none") == []
        assert derive_id("other") not in await items(index, 1)

    async def test_without_a_vector(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        assert (await index.search(LaneQuery(project="p", cue="c"))).items == ()
        assert (await index.score(ScoreQuery(project="p", cue="c", ids=(derive_id("a"),)))).evidence == (0.0,)

    async def test_score_is_the_best_of_a_memory_and_its_statements(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        ids = (derive_id("nobody"), derive_id("c"), derive_id("b"))
        scored = await index.score(ScoreQuery(project="p", cue="c", vector=pack_vector(ROWS[13]), ids=ids))
        assert scored.evidence[0] == 0.0
        assert scored.evidence[1] == pytest.approx(1.0, abs=1e-5)
        assert scored.evidence[2] == pytest.approx(max(0.0, float(ROWS[13] @ ROWS[2])), abs=1e-5)

    async def test_forget_takes_statements_along(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        await index.apply([(6, forgotten("a"))])
        for row in (1, 11, 12):
            assert not [item for item in await items(index, row, 100) if item.startswith(derive_id("a"))]
        await index.save()
        assert len(await items(SemanticIndex(folder), 1, 100)) == 3

    async def test_forget_in_the_same_batch_and_of_the_unknown(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply([(1, record("a", 1)), (2, forgotten("a")), (3, forgotten("nobody"))])
        assert (await items(index, 1), index.position) == ([], 3)

    async def test_a_change_replaces(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        await index.apply([(6, record("a", 20, stated=(21,), version=2))])
        held = await items(index, 20, 100)
        assert held[0] == derive_id("a")
        assert sorted(item for item in held if derive_id("a") in item) == [derive_id("a"), f"{derive_id('a')}#s0"]

    async def test_replay_is_idempotent(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        once = await index.search(query(1, 100))
        await index.apply(ENTRIES)
        for entry in ENTRIES:
            await index.apply([entry])
        assert await index.search(query(1, 100)) == once
        assert index.position == 5

    @pytest.mark.parametrize(
        "bad", [np.ones(DIMENSION + 2), np.zeros(DIMENSION), np.full(DIMENSION, np.nan)], ids=["long", "zero", "nan"]
    )
    async def test_a_bad_record_stops_nothing(self, folder: Path, bad: Vector) -> None:
        index = SemanticIndex(folder)
        await index.apply([ENTRIES[0], (2, record("bad", bad.astype(np.float32))), (3, record("b", 2))])
        assert index.position == 3
        assert derive_id("b") in await items(index, 2)
        assert derive_id("bad") not in await items(index, 2, 100)

    @pytest.mark.parametrize("packed", ["AAA", "AAAA"], ids=["not-base64", "three-bytes"])
    async def test_nor_does_a_vector_that_is_none(self, folder: Path, packed: str) -> None:
        index = SemanticIndex(folder)
        await index.apply([(1, record("bad", 1, vector=packed)), (2, record("b", 2))])
        assert await items(index, 2) == [derive_id("b")]

    async def test_snapshot_round_trip(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        await index.close()
        back = SemanticIndex(folder)
        assert back.position == 5
        for row in range(20):
            assert await back.search(query(row)) == await index.search(query(row))
        await back.apply([(6, record("d", 4)), (7, forgotten("a"))])
        assert (await items(back, 4))[0] == derive_id("d")

    async def test_a_kill_before_a_save_is_at_the_last_snapshot(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES[:2])
        await index.save()
        await index.apply(ENTRIES[2:])
        back = SemanticIndex(folder)
        assert back.position == 2
        await back.apply(ENTRIES[2:])
        assert await back.search(query(1, 100)) == await index.search(query(1, 100))

    @pytest.mark.parametrize("damage", ["graph", "short", "manifest", "gone", "format"])
    async def test_a_damaged_snapshot_is_ignored(self, folder: Path, damage: str) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        await index.close()
        graph, manifest = folder / "current" / "p.hnsw", folder / "current" / "manifest.json"
        data = graph.read_bytes()
        if damage == "graph":
            graph.write_bytes(data[:200] + bytes([data[200] ^ 255]) + data[201:])
        elif damage == "short":
            graph.write_bytes(data[: len(data) // 2])
        elif damage == "manifest":
            manifest.write_bytes(manifest.read_bytes()[:-20])
        elif damage == "gone":
            graph.unlink()
        else:
            manifest.write_bytes(manifest.read_bytes().replace(b'"format":1', b'"format":99'))
        back = SemanticIndex(folder)
        assert back.position == 0
        assert await items(back, 1) == []
        await back.apply(ENTRIES)
        await back.close()
        assert SemanticIndex(folder).position == 5

    async def test_a_kill_between_the_two_renames(self, folder: Path) -> None:
        index = SemanticIndex(folder)
        await index.apply(ENTRIES)
        await index.close()
        shutil.move(folder / "current", folder / "old")
        assert SemanticIndex(folder).position == 5

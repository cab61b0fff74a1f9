"""A project's topics follow its records; which summaries are due follows from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from contracts.memory import Edge, EdgeKind, MemoryKind, MemoryRecord, Tombstone, derive_id, pack_vector
from contracts.topics import TopicsQuery, summary_id
from workers.upkeep.due import Due, asked_of, due
from workers.upkeep.index import TopicIndex
from workers.upkeep.topics import ProjectTopics

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(angle: float) -> str:
    return pack_vector(np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))], dtype=np.float32))


def record(name: str, angle: float = 0.0, **fields: Any) -> MemoryRecord:
    return MemoryRecord(**{
        "id": derive_id(name), "project": "p", "text": f"login {name}", "created_at": NOW, "changed_at": NOW,
        "vector": at(angle),
    } | fields)  # fmt: skip


def gone(name: str, mode: str = "soft") -> MemoryRecord:
    return record(name, text="", vector="", tombstone=Tombstone(at=NOW, mode=mode))


def summary(topic: str, *parents: str, size: int | None = None, **fields: Any) -> MemoryRecord:
    metadata = {"topic_id": derive_id(topic), "topic_size": size or len(parents), "topic": "login"}
    edges = tuple(Edge(kind=EdgeKind.DERIVED_FROM, target=derive_id(one)) for one in parents)
    return record(topic, **{
        "id": summary_id("p", derive_id(topic)), "kind": MemoryKind.CONSOLIDATED, "metadata": metadata, "edges": edges,
    } | fields)  # fmt: skip


class Case:
    def __init__(self, *records: MemoryRecord) -> None:
        self.index = TopicIndex(3, 0.9, 0.95)
        self.position = 0
        self.put(*records)

    def put(self, *records: MemoryRecord) -> None:
        self.index._apply([(self.position + number, one) for number, one in enumerate(records, 1)])
        self.position += len(records)

    @property
    def topics(self) -> ProjectTopics:
        found = self.index.of("p")
        assert found is not None
        return found

    def due(self) -> Due:
        return due(self.topics, 3, NOW)

    def parents(self) -> list[set[str]]:
        return [{name for name in "abcdefg" if derive_id(name) in one.parents} for one in self.due().writings]


THREE = (record("a"), record("b", 1), record("c", 2))


class TestMembers:
    def test_a_topic_counts_from_three_members_on(self) -> None:
        case = Case(*THREE[:2])
        assert case.parents() == []
        case.put(THREE[2], record("d", 90))
        assert case.parents() == [{"a", "b", "c"}]

    @pytest.mark.parametrize("mode", ["soft", "hard"])
    def test_what_is_forgotten_leaves(self, mode: str) -> None:
        assert Case(*THREE, gone("b", mode)).parents() == []

    def test_what_is_superseded_by_name_leaves_and_does_not_come_back(self) -> None:
        case = Case(*THREE, record("d", 90, supersedes=(derive_id("b"),)))
        assert case.parents() == []
        case.put(record("b", 1, version=2))
        assert case.parents() == []

    def test_what_the_catalog_says_is_retired_and_what_has_expired_do_not_count(self) -> None:
        case = Case(*THREE, record("d", 1, expires_at=NOW - HOUR), record("e", 1, expires_at=NOW + HOUR))
        assert case.parents() == [{"a", "b", "c", "e"}]
        case.topics.retire([derive_id("a"), derive_id("b")])
        assert case.parents() == []

    def test_another_vector_is_another_place_and_a_link_is_not(self) -> None:
        case = Case(*THREE)
        stamp = case.topics.clusters.stamp(derive_id("a"))
        case.put(record("b", 1, version=2, edges=(Edge(kind=EdgeKind.CAUSED, target=derive_id("a")),)))
        assert case.topics.clusters.stamp(derive_id("a")) == stamp
        case.put(record("b", 90, version=3))
        assert case.parents() == []

    def test_what_cannot_be_clustered_is_skipped(self) -> None:
        case = Case(*THREE, record("d", vector=""), record("e", vector=pack_vector(np.ones(3, dtype=np.float32))))
        assert case.parents() == [{"a", "b", "c"}]

    def test_the_words_of_what_left_are_in_no_label(self) -> None:
        case = Case(
            *(record(name, text="zanzibar login") for name in "ab"), *(record(name, text="login") for name in "cde")
        )
        assert case.topics.label(derive_id("a"), NOW) == "login, zanzibar"
        case.put(gone("a", "hard"), gone("b", "hard"))
        assert case.topics.label(derive_id("a"), NOW) == "login"
        assert "zanzibar" not in str(case.topics._texts)

    def test_a_replay_gives_the_same(self) -> None:
        records = [*THREE, record("d", 90), gone("b"), record("e", 91), record("b", 1, version=3), record("f", 92)]
        one, other = Case(*records), Case()
        for record_ in records:
            other.put(record_)
        assert one.index.listing("p", 10) == other.index.listing("p", 10)


class TestDue:
    def test_nothing_once_it_is_written(self) -> None:
        assert Case(*THREE, summary("a", "a", "b", "c")).due() == Due([], [])

    def test_a_summary_is_no_member_and_what_is_consolidated_by_others_is_not_ours(self) -> None:
        case = Case(*THREE, summary("a", "a", "b", "c"), summary("z", "a", metadata={}))
        assert asked_of(case.topics, 3) == [derive_id(name) for name in "abc"]
        assert case.due() == Due([], [])

    def test_after_a_parent_left_though_others_came(self) -> None:
        case = Case(*THREE, summary("a", "a", "b", "c"), record("d", 3), gone("b"))
        assert [(one.replaces, one.size) for one in case.due().writings] == [(True, 3)]

    def test_after_it_grew_by_a_third(self) -> None:
        many = [record(name, number) for number, name in enumerate("abcdef")]
        case = Case(*many, summary("a", *"abcdef"), record("g", 3))
        assert case.due() == Due([], [])
        case.put(record("h", 4))
        assert len(case.due().writings) == 1

    def test_taken_away_when_the_topic_is_too_small(self) -> None:
        case = Case(*THREE, summary("a", "a", "b", "c"), gone("b"))
        assert case.due() == Due([], [summary_id("p", derive_id("a"))])

    def test_a_forgotten_summary_of_a_topic_is_written_again(self) -> None:
        done = summary("a", "a", "b", "c")
        case = Case(*THREE, done, done.model_copy(update={"tombstone": Tombstone(at=NOW, mode="hard"), "edges": ()}))
        assert [one.replaces for one in case.due().writings] == [False]

    def test_what_erases_words_of_a_summary_is_told_at_once(self) -> None:
        case = Case(*THREE, summary("a", "a", "b", "c"), record("z", 90), gone("z", "hard"), gone("a", "soft"))
        assert not case.index.erased()
        case.put(gone("b", "hard"))
        assert case.index.erased()


class TestReplies:
    def test_columns(self) -> None:
        case = Case(*THREE, record("d", 90))
        found = case.index.find(TopicsQuery(project="p", ids=tuple(derive_id(one) for one in "dbx"), vector=at(3)))
        assert (found.topics, found.sizes, found.of) == ((derive_id("a"),), (3,), (-1, 0, -1))
        assert (found.nearest, found.joins, found.labels) == (0, True, ("login",))
        assert found.position == 4

    def test_a_query_that_is_about_something_else(self) -> None:
        found = Case(*THREE).index.find(TopicsQuery(project="p", vector=at(80)))
        assert (found.nearest, found.joins) == (0, False)

    def test_another_project_has_other_topics(self) -> None:
        case = Case(*THREE)
        assert case.index.find(TopicsQuery(project="q", ids=(derive_id("a"),), vector=at(0))).of == (-1,)
        assert case.index.listing("q", 5).topics == ()

    def test_the_listing(self) -> None:
        more = [record(name, 90) for name in "defg"]
        case = Case(*THREE, *more, summary("a", "a", "b", "c"))
        listed = case.index.listing("p", 1)
        assert (listed.total, [one.size for one in listed.topics]) == (2, [4])
        assert case.index.listing("p", 5).topics[1].summary == summary_id("p", derive_id("a"))
        assert case.index.counts() == {"projects": 1, "topics": 2, "summaries": 1}

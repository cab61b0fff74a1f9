"""A shard's filter takes exactly its memories, out of a log that was written before the shards were as many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contracts import subjects
from contracts.memory import derive_id
from contracts.shards import MOST_SHARDS, WHOLE, Shard, all_shards, shard_named, shard_of, slot_of_id

numbers = st.integers(0, 8).map(lambda power: 2**power)


def taken(subject: str, pattern: str) -> bool:
    pairs = zip(subject.split("."), pattern.split("."), strict=True)
    return all(wanted in ("*", token) for token, wanted in pairs)


@given(st.text(max_size=8), numbers)
def test_one_shard_takes_a_memory_and_no_other_does(name: str, shards: int) -> None:
    memory_id = derive_id(name)
    takers = [shard for shard in all_shards(shards) if taken(subjects.log("p", memory_id), subjects.logs("*", shard))]
    assert takers == [Shard(shard_of(memory_id, shards), shards)]
    assert [shard for shard in all_shards(shards) if shard.holds(memory_id)] == takers
    assert slot_of_id(memory_id) in takers[0].slots


@given(st.text(max_size=8))
def test_the_stream_takes_every_log_subject(name: str) -> None:
    assert taken(subjects.log("p", derive_id(name)), subjects.LOG_SUBJECTS)
    assert subjects.logs("p") == subjects.logs("p", WHOLE)
    assert subjects.project_of(subjects.log("p", derive_id(name))) == "p"


@given(numbers, st.integers(0, MOST_SHARDS))
def test_written_and_read(shards: int, number: int) -> None:
    shard = Shard(number, shards)
    assert shard_named(str(shard)) == (shard if number < shards else None)
    assert shard_named(f"{number}") is None
    assert shard_named("1of3") is None

"""Which processes to start and to stop, how busy one is, and how far behind."""

from __future__ import annotations

import pytest

from contracts import wire
from contracts.errors import InvalidRequest
from contracts.ops import ScaleRequest
from contracts.shards import WHOLE, Shard
from infra.discovery import Process, lag
from infra.pulse import WINDOW_S, Pulse
from infra.roster import Post, change, posts, renewal
from infra.settings import Replicas, load


def test_a_role_with_shards_has_its_replicas_of_each() -> None:
    assert posts("lexical", 2, 2) == [Post("lexical", Shard(shard, 2), number) for shard in (0, 1) for number in (0, 1)]
    assert posts("embed", 2, 2) == [Post("embed", WHOLE, 0), Post("embed", WHOLE, 1)]


def test_the_first_replica_keeps_its_name() -> None:
    assert [post.replica("a") for post in posts("embed", 1, 3)] == ["a", "a2", "a3"]


def test_more_and_fewer() -> None:
    one, two = posts("semantic", 2, 1), posts("semantic", 2, 2)
    assert change(one, (), "semantic", 2, 2) == (
        (Post("semantic", Shard(0, 2), 1), Post("semantic", Shard(1, 2), 1)),
        (),
    )
    assert change(two, (), "semantic", 2, 1) == (
        (),
        (Post("semantic", Shard(0, 2), 1), Post("semantic", Shard(1, 2), 1)),
    )
    assert change(two, (), "semantic", 2, 2) == ((), ())


def test_other_roles_are_left_alone() -> None:
    present = [*posts("semantic", 1, 1), *posts("lexical", 1, 3)]
    assert change(present, (), "semantic", 1, 1) == ((), ())


def test_a_post_that_is_being_left_is_not_filled_again() -> None:
    leaving = {Post("semantic", WHOLE, 1)}
    assert change(posts("semantic", 1, 1), leaving, "semantic", 1, 3).start == (
        Post("semantic", WHOLE, 2),
        Post("semantic", WHOLE, 3),
    )


def test_a_next_generation_takes_posts_that_are_free() -> None:
    first = posts("encode", 1, 2)
    second = renewal(first)
    assert [post.number for post in second] == [2, 3]
    assert [post.number for post in renewal(second)] == [0, 1]
    assert renewal([]) == []


@pytest.mark.parametrize(
    "bad",
    [
        b'{"role": "semantic", "replicas": 0}',
        b'{"role": "semantic", "replicas": 17}',
        b'{"role": "upkeep", "replicas": 2}',
        b'{"role": "semantic"}',
        b'{"role": "semantic", "replicas": 2, "shards": 2}',
    ],
)
def test_what_no_stack_is_asked_for(bad: bytes) -> None:
    with pytest.raises(InvalidRequest):
        wire.decode(ScaleRequest, bad)


def test_replicas_are_settings() -> None:
    replicas = load(environ={"MEMLANE_REPLICAS__SEMANTIC": "3"}).replicas
    assert (replicas.of("semantic"), replicas.of("lexical"), replicas.of("upkeep")) == (3, 1, 1)
    assert Replicas() == load(environ={}).replicas


def test_a_pulse_is_of_the_last_seconds() -> None:
    present = 100.0
    pulse = Pulse(lambda: present)
    assert pulse.facts() == {"per_s": 0.0}
    for took in (0.001, 0.002, 0.009):
        pulse.beat(took)
    present += 2
    assert pulse.facts() == {"per_s": 1.5, "median_ms": 2.0}
    present += WINDOW_S
    assert pulse.facts() == {"per_s": 0.0}


@pytest.mark.parametrize(
    ("role", "facts", "behind"),
    [
        ("semantic", {"shard": "1of2", "position": 5}, 2),
        ("semantic", {"shard": "1of2", "position": 8}, 0),
        ("catalog", {"shard": "1of2", "position": 5}, 4),
        ("embed", {}, None),
    ],
)
def test_a_lane_is_behind_its_shard_and_a_catalog_behind_all(
    role: str, facts: dict[str, object], behind: int | None
) -> None:
    assert lag(Process(role, "id", facts, 0, 0), {WHOLE: 9, Shard(1, 2): 7}) == behind

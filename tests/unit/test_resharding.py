"""What a change of the number of shards leaves in the data folder, and where a shard of the graph begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts import wire
from contracts.errors import InvalidRequest
from contracts.ops import ReshardRequest
from contracts.shards import Shard
from infra.resharding import remember, remembered, remove_others, shard_of_folder
from workers.graph.store import position_key, position_of


def test_only_indexes_of_another_number_go(tmp_path: Path) -> None:
    kept = ("semantic-0of2-a", "catalog-1of2-a2", "nats", "logs", "mine-0of1-a", "graph", "lexical-xof1-a")
    gone = ("catalog-0of1-a", "lexical-3of4-b", "semantic-0of1-a2")
    for name in (*kept, *gone):
        (tmp_path / name).mkdir()
    (tmp_path / "lexical-0of1-file").write_text("not a folder")
    assert remove_others(tmp_path, 2) == sorted(gone)
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "lexical-0of1-file"}


@pytest.mark.parametrize("name", ["semantic", "semantic-0-a", "embed-0of1-a", "semantic-1of1-a", "semantic-0of3-a"])
def test_no_folder_of_a_shard(name: str) -> None:
    assert shard_of_folder(name) is None


def test_the_number_is_written_down(tmp_path: Path) -> None:
    assert remembered(tmp_path) is None
    remember(tmp_path, 4)
    remember(tmp_path, 8)
    assert remembered(tmp_path) == 8
    (tmp_path / "shards").write_text("junk")
    assert remembered(tmp_path) is None


@pytest.mark.parametrize("bad", [b"{}", b'{"shards": 0}', b'{"shards": 3}', b'{"shards": 512}', b'{"shards": "two"}'])
def test_no_number_of_shards(bad: bytes) -> None:
    with pytest.raises(InvalidRequest):
        wire.decode(ReshardRequest, bad)


@pytest.mark.parametrize(
    ("shard", "known", "position"),
    [
        (Shard(0, 1), {}, 0),
        (Shard(0, 1), {"0of1": 7}, 7),
        (Shard(1, 2), {"0of1": 7}, 7),
        (Shard(1, 2), {"0of1": 7, "1of2": 3}, 3),  # what it has itself stands
        (Shard(0, 1), {"0of2": 7, "1of2": 5}, 5),
        (Shard(0, 1), {"1of2": 5}, 0),  # half of its memories may be missing
        (Shard(1, 4), {"1of2": 5, "0of2": 9}, 5),
        (Shard(1, 2), {"1of4": 5, "3of4": 4, "0of4": 1}, 4),
        (Shard(1, 2), {"0of1": 7, "1of4": 9, "3of4": 8}, 8),
    ],
)
def test_where_a_shard_of_the_graph_begins(shard: Shard, known: dict[str, int], position: int) -> None:
    keys = {position_key(Shard(*map(int, name.split("of")))): at for name, at in known.items()}
    assert position_of(shard, {**keys, "graph/none": 99, "other": 98}) == position

"""A snapshot of the semantic index on disk: whole, or ignored."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import structlog

from contracts.base import Position
from workers.semantic.vectors import VectorIndex

logger = structlog.get_logger()

FORMAT = 1


@dataclass
class Snapshot:
    position: Position = 0
    projects: dict[str, VectorIndex] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write beside the old one, then swap: a kill at any point leaves one whole snapshot."""
    path.mkdir(parents=True, exist_ok=True)
    fresh, current, old = path / "fresh", path / "current", path / "old"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    manifest = {"format": FORMAT, "position": snapshot.position, "sentences": snapshot.sentences, "projects": {}}
    for project, index in snapshot.projects.items():
        file = fresh / f"{project}.hnsw"
        keys, labels = index.save(file)
        manifest["projects"][project] = {  # type: ignore[index]
            "dimension": index.dimension,
            "rows": index.rows,
            "crc": zlib.crc32(file.read_bytes()),
            "keys": keys,
            "labels": labels,
        }
    (fresh / "manifest.json").write_bytes(orjson.dumps(manifest))
    shutil.rmtree(old, ignore_errors=True)
    if current.exists():
        current.rename(old)
    fresh.rename(current)
    shutil.rmtree(old, ignore_errors=True)


def load_snapshot(path: Path) -> Snapshot:
    """The newest whole snapshot, or an empty one at position 0: the log then rebuilds everything."""
    for name in ("current", "old"):
        folder = path / name
        if not folder.exists():
            continue
        try:
            return _load(folder)
        except Exception as error:  # whatever is wrong with it, the log has it all
            logger.warning("snapshot ignored", action="snapshot_ignored", folder=str(folder), error=str(error))
    return Snapshot()


def _load(folder: Path) -> Snapshot:
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    if manifest["format"] != FORMAT:
        raise ValueError(f"format {manifest['format']}, expected {FORMAT}")
    snapshot = Snapshot(manifest["position"], {}, manifest["sentences"])
    for project, part in manifest["projects"].items():
        file = folder / f"{project}.hnsw"
        if zlib.crc32(file.read_bytes()) != part["crc"]:
            raise ValueError(f"{file.name} is damaged")
        snapshot.projects[project] = VectorIndex.load(
            file, part["dimension"], part["keys"], part["labels"], part["rows"]
        )
    return snapshot

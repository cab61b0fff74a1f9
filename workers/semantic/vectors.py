"""One project's vectors in an HNSW graph. Everything hnswlib answers with a crash or junk is refused before it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import hnswlib
import numpy as np

from contracts.memory import Vector

M = 16
EF_CONSTRUCTION = 200
EF_SEARCH = 96
FIRST_CAPACITY = 1024
#: Below this many live items an exact scan costs less than the graph walk it replaces, and misses nothing.
EXACT_BELOW = 1000
#: Share of deleted items at which the graph is built anew: they cost memory, and time in every search.
REBUILD_AT = 0.5


#: A cosine's: what float vectors are good for.
DECIMALS = 6


class BadVector(ValueError):
    """A vector of another dimension, or with NaN, infinity or zero length."""


class VectorIndex:
    """Items by key, with cosine search. Safe for use from several threads."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._lock = threading.Lock()
        self._labels: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._next = 0
        self._deleted = 0
        self._graph = self._new_graph(FIRST_CAPACITY)

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, key: str) -> bool:
        return key in self._labels

    def keys(self) -> list[str]:
        return sorted(self._labels)

    def check(self, vector: Vector) -> Vector:
        """The vector at unit length. Raises BadVector."""
        if vector.shape != (self.dimension,):
            raise BadVector(f"vector has shape {vector.shape}, the index holds dimension {self.dimension}")
        norm = float(np.linalg.norm(vector))
        if not np.isfinite(norm) or norm == 0.0:
            raise BadVector("vector has no direction: NaN, infinite or zero")
        return np.asarray(vector / norm, dtype=np.float32)

    def put(self, items: Sequence[tuple[str, Vector]]) -> None:
        """Add or replace. All vectors are checked before any is added. Raises BadVector."""
        latest = {key: self.check(vector) for key, vector in items}
        if not latest:
            return
        with self._lock:
            for key in latest:
                self._drop(key)
            self._make_room(len(latest))
            labels = range(self._next, self._next + len(latest))
            self._graph.add_items(np.stack(list(latest.values())), np.array(labels))
            self._next += len(latest)
            for key, label in zip(latest, labels, strict=True):
                self._labels[key], self._keys[label] = label, key

    def remove(self, keys: Sequence[str]) -> None:
        """Remove those that are there."""
        with self._lock:
            for key in keys:
                self._drop(key)
            if self._deleted > FIRST_CAPACITY and self._deleted > REBUILD_AT * self._next:
                self._rebuild()

    def search(self, vector: Vector, top_n: int) -> list[tuple[str, float]]:
        """The `top_n` nearest items with their cosine, best first, ties by key; fewer when there are fewer."""
        unit = self.check(vector)
        with self._lock:
            count = min(top_n, len(self._labels))
            if count == 0:
                return []
            keys = list(self._labels) if len(self._labels) < EXACT_BELOW else self._walk(unit, count)
            found = zip(keys, self._cosines(unit, keys), strict=True)
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:count]

    def cosines(self, vector: Vector, keys: Sequence[str]) -> list[float]:
        """The cosine of each key that is held, 0 for those that are not."""
        unit = self.check(vector)
        with self._lock:
            held = [key for key in keys if key in self._labels]
            if not held:
                return [0.0] * len(keys)
            by_key = dict(zip(held, self._cosines(unit, held), strict=True))
        return [by_key.get(key, 0.0) for key in keys]

    def save(self, path: Path) -> tuple[list[str], list[int]]:
        """Write the graph; returns keys and labels, which `load` takes back."""
        with self._lock:
            self._graph.save_index(str(path))
            return list(self._labels), list(self._labels.values())

    @classmethod
    def load(cls, path: Path, dimension: int, keys: Sequence[str], labels: Sequence[int], rows: int) -> VectorIndex:
        """Raises BadVector when the file does not hold what is expected of it."""
        index = cls(dimension)
        graph = hnswlib.Index(space="cosine", dim=dimension)
        graph.load_index(str(path), max_elements=max(rows, FIRST_CAPACITY))
        if graph.get_current_count() != rows or len(keys) != len(labels):
            raise BadVector(f"{path.name} holds {graph.get_current_count()} items, expected {rows}")
        graph.set_ef(EF_SEARCH)
        graph.set_num_threads(1)
        index._graph, index._next = graph, rows
        index._labels = dict(zip(keys, labels, strict=True))
        index._keys = dict(zip(labels, keys, strict=True))
        index._deleted = rows - len(keys)
        return index

    @property
    def rows(self) -> int:
        """Items in the graph, deleted ones included."""
        return self._next

    def _new_graph(self, capacity: int) -> hnswlib.Index:
        graph = hnswlib.Index(space="cosine", dim=self.dimension)
        # A fixed seed: the same log gives the same graph, so replicas agree.
        graph.init_index(max_elements=capacity, ef_construction=EF_CONSTRUCTION, M=M, random_seed=100)
        graph.set_ef(EF_SEARCH)
        graph.set_num_threads(1)
        return graph

    def _make_room(self, more: int) -> None:
        capacity = self._graph.get_max_elements()
        if self._next + more > capacity:
            self._graph.resize_index(max(capacity * 2, self._next + more))

    def _drop(self, key: str) -> None:
        label = self._labels.pop(key, None)
        if label is not None:
            self._keys.pop(label)
            self._graph.mark_deleted(label)
            self._deleted += 1

    def _cosines(self, unit: Vector, keys: Sequence[str]) -> list[float]:
        """Rounded from twice the precision: a product of floats is not the same to the last bit beside other rows, and
        an answer must not depend on which items share an index."""
        rows = np.asarray(self._graph.get_items([self._labels[key] for key in keys]), dtype=np.float64)
        cosines: list[float] = np.round(rows @ unit.astype(np.float64), DECIMALS).tolist()
        return cosines

    def _walk(self, unit: Vector, count: int) -> list[str]:
        self._graph.set_ef(max(EF_SEARCH, count + 16))
        try:
            labels, _ = self._graph.knn_query(unit.reshape(1, -1), k=count)
        except RuntimeError:
            # The walk met too many deleted items to find `count`: look at all of them instead.
            return list(self._labels)
        return [self._keys[int(label)] for label in labels[0]]

    def _rebuild(self) -> None:
        keys = list(self._labels)
        rows = np.asarray(self._graph.get_items(list(self._labels.values())), dtype=np.float32) if keys else None
        self._graph = self._new_graph(max(FIRST_CAPACITY, len(keys) * 2))
        self._labels = {key: label for label, key in enumerate(keys)}
        self._keys = dict(enumerate(keys))
        self._next, self._deleted = len(keys), 0
        if rows is not None:
            self._graph.add_items(rows, np.arange(len(keys)))

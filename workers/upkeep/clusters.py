"""Clusters of unit vectors, kept in step one vector at a time: leader clustering with running means.

A centroid is the plain mean of its members, so its product with a unit vector is that vector's mean cosine to them. At
unit length it would be a hub: that of a large mixed cluster is near everything (measured: half a conversation in one).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from contracts.base import MemoryId
from contracts.memory import Vector, derive_id

#: Joins after which clusters are compared with each other. Counted, not timed, so that a replay merges alike.
MERGE_EVERY = 64

_ROWS = 64


@dataclass(frozen=True, slots=True)
class Near:
    """The nearest cluster to a vector, and the vector's mean cosine to its members."""

    cluster: MemoryId
    likeness: float


@dataclass(slots=True)
class Clusters:
    """The clusters of one project. A vector joins the nearest one where its mean cosine to the members is at least
    `join_at`; two become one from a mean cosine of `merge_at` between their members on. A cluster is called by the id
    of the memory that founded it, also after that has left.

    Deterministic: the same calls in the same order give the same clusters. Not safe for several threads at once.
    """

    dimension: int
    join_at: float
    merge_at: float
    _members: dict[MemoryId, dict[MemoryId, Vector]] = field(default_factory=dict)
    _of: dict[MemoryId, MemoryId] = field(default_factory=dict)
    _row: dict[MemoryId, int] = field(default_factory=dict)
    _names: list[MemoryId] = field(default_factory=list)
    _sums: Vector = field(init=False)
    _means: Vector = field(init=False)
    _changed: set[MemoryId] = field(default_factory=set)
    _stamps: dict[MemoryId, int] = field(default_factory=dict)
    _shifts: int = 0
    _joins: int = 0

    def __post_init__(self) -> None:
        self._sums = np.zeros((_ROWS, self.dimension), dtype=np.float32)
        self._means = np.zeros((_ROWS, self.dimension), dtype=np.float32)

    def __len__(self) -> int:
        """How many clusters there are, those of one member too."""
        return len(self._names)

    def __iter__(self) -> Iterator[MemoryId]:
        return iter(self._names)

    def __contains__(self, cluster: MemoryId) -> bool:
        return cluster in self._row

    def of(self, memory_id: MemoryId) -> MemoryId | None:
        """The cluster of a memory."""
        return self._of.get(memory_id)

    def members(self, cluster: MemoryId) -> Mapping[MemoryId, Vector]:
        """Its members and their vectors, in the order in which they came."""
        return self._members[cluster]

    def centroid(self, cluster: MemoryId) -> Vector:
        """The mean of its members, shape (d,), at most of unit length."""
        mean: Vector = self._means[self._row[cluster]]
        return mean

    def stamp(self, cluster: MemoryId) -> int:
        """Another number after every change of its members."""
        return self._stamps[cluster]

    def vector(self, memory_id: MemoryId) -> Vector | None:
        cluster = self._of.get(memory_id)
        return None if cluster is None else self._members[cluster][memory_id]

    def nearest(self, vector: Vector, least: int = 1) -> Near | None:
        """The cluster of at least `least` members that is nearest to a unit vector of shape (d,); ties go to the older
        one. None where there is none."""
        if not self._names:
            return None
        likeness = self._means[: len(self._names)] @ vector
        if least > 1:
            small = [len(self._members[name]) < least for name in self._names]
            likeness = np.where(small, -2.0, likeness)
        best = int(np.argmax(likeness))
        return Near(self._names[best], float(likeness[best])) if likeness[best] > -2.0 else None

    def add(self, memory_id: MemoryId, vector: Vector) -> None:
        """Put a unit vector of shape (d,) into the nearest cluster, or into one of its own. A memory that is there is
        taken out first. Raises ValueError for another shape."""
        if vector.shape != (self.dimension,):
            raise ValueError(f"a vector of shape {vector.shape}, not ({self.dimension},)")
        self.remove(memory_id)
        near = self.nearest(vector)
        cluster = near.cluster if near and near.likeness >= self.join_at else self._found(memory_id)
        self._members[cluster][memory_id] = vector
        self._of[memory_id] = cluster
        self._shift(cluster, vector)
        self._joins += 1
        if self._joins % MERGE_EVERY == 0:
            self.merge()

    def remove(self, memory_id: MemoryId) -> None:
        """Take a memory out; an empty cluster ends. One that is not there is no error."""
        cluster = self._of.pop(memory_id, None)
        if cluster is None:
            return
        vector = self._members[cluster].pop(memory_id)
        if self._members[cluster]:
            self._shift(cluster, -vector)
        else:
            self._end(cluster)

    def merge(self) -> None:
        """Let a cluster that changed since the last time and another close to it become one: the smaller goes over into
        the larger, of equals the younger into the older. The larger keeps its name, and is compared again."""
        while self._changed:
            cluster = min(self._changed, key=self._row.__getitem__)
            self._changed.remove(cluster)
            row = self._row[cluster]
            likeness = self._means[: len(self._names)] @ self._means[row]
            likeness[row] = -2.0
            other = int(np.argmax(likeness))
            if likeness[other] < self.merge_at:
                continue
            kept, gone = (self._names[one] for one in sorted((row, other)))
            if len(self._members[gone]) > len(self._members[kept]):
                kept, gone = gone, kept
            self._join(kept, gone)

    def _join(self, kept: MemoryId, gone: MemoryId) -> None:
        moved = self._members[gone]
        self._members[kept].update(moved)
        self._of.update(dict.fromkeys(moved, kept))
        self._shift(kept, self._sums[self._row[gone]].copy())
        self._end(gone)

    def _found(self, founder: MemoryId) -> MemoryId:
        """A new cluster. A founder that left one behind, and is back elsewhere, gives its name derived."""
        name = founder
        while name in self._row:
            name = derive_id("cluster", name)
        row = len(self._names)
        if row == len(self._sums):
            grown = np.zeros((row, self.dimension), dtype=np.float32)
            self._sums, self._means = np.vstack((self._sums, grown)), np.vstack((self._means, grown))
        self._names.append(name)
        self._row[name] = row
        self._members[name] = {}
        return name

    def _shift(self, cluster: MemoryId, by: Vector) -> None:
        """Called after its members have changed."""
        self._changed.add(cluster)
        self._shifts += 1
        self._stamps[cluster] = self._shifts
        row = self._row[cluster]
        self._sums[row] += by
        self._means[row] = self._sums[row] / len(self._members[cluster])

    def _end(self, cluster: MemoryId) -> None:
        """The rows behind move up, so that order stays that of founding."""
        self._changed.discard(cluster)
        row = self._row.pop(cluster)
        del self._names[row], self._members[cluster], self._stamps[cluster]
        last = len(self._names)
        for rows in (self._sums, self._means):
            rows[row:last] = rows[row + 1 : last + 1]
            rows[last] = 0.0
        for name in self._names[row:]:
            self._row[name] -= 1

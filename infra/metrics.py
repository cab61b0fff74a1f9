"""Every series of a process, in one place. What a request costs is observed as it is handled; what a process knows of
itself anyway (positions, queues, counts) is read when somebody scrapes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from contracts.errors import ErrorCode
from contracts.lanes import Lane
from contracts.ports import Call
from contracts.recall import LaneOutcome

disable_created_metrics()  # type: ignore[no-untyped-call]

#: A lane answers in a few ms, a deadline is 1 s by default and 60 s at most.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class Series(NamedTuple):
    """How a fact of a process (`Role.stats` and what the service adds) is called here; one that counts up is a counter,
    to whose name `_total` is added."""

    name: str
    help: str
    counts: bool = False


FACTS: dict[str, Series] = {
    "position": Series("memlane_position", "last position of the log that is applied"),
    "lag": Series("memlane_lag_positions", "positions of the log that are not applied yet"),
    "waiting": Series("memlane_waiting", "texts that wait to be embedded, or requests that wait to be reranked"),
    "in_hand": Series("memlane_requests_in_hand", "requests that are being handled"),
    "refused": Series("memlane_requests_refused", "requests refused because too many were in hand", counts=True),
    "overloaded": Series("memlane_searches_refused", "searches refused as they could not end in time", counts=True),
    "memories": Series("memlane_memories", "memories that stand"),
    "encoded": Series("memlane_encoded_memories", "memories stored by the verb", counts=True),
    "ingested": Series("memlane_ingested_memories", "memories stored from the ingest queue", counts=True),
    "text_bytes": Series("memlane_stored_text_bytes", "UTF-8 bytes of the texts of stored memories", counts=True),
    "dead_letters": Series("memlane_dead_letters", "queued memories that could not be stored", counts=True),
    "reclaimed": Series("memlane_reclaimed_memories", "memories erased after their grace", counts=True),
    "embedded": Series("memlane_embedded_texts", "texts that went through the model", counts=True),
    "batches": Series("memlane_batches", "batches: of texts at the model, of queued memories at encode", counts=True),
    "afterwards_lost": Series("memlane_afterwards_lost", "writes after a reply that were lost", counts=True),
}
_LABELS = ("role", "shard", "replica")


class Metrics(Collector):
    """The registry of one process. As an `infra.observer.Watcher` it times requests."""

    def __init__(self, role: str) -> None:
        self.registry = CollectorRegistry()
        self.role = role
        #: What the process knows of itself, as of this scrape.
        self.facts: Mapping[str, object] = {}
        self.requests = Histogram(
            "memlane_request_seconds",
            "from a request's arrival to its reply; outcome is ok or the error's code",
            ("role", "endpoint", "outcome"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.received = Counter("memlane_received_bytes", "of requests", ("role", "endpoint"), registry=self.registry)
        self.sent = Counter("memlane_sent_bytes", "of replies", ("role", "endpoint"), registry=self.registry)
        self.stages = Histogram(
            "memlane_stage_seconds",
            "of one stage of a verb",
            ("verb", "stage"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.lanes = Histogram(
            "memlane_lane_seconds",
            "a lane as a verb sees it, all shards and the way there and back; status as in the reply",
            ("lane", "status"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.overhead = Histogram(
            "memlane_overhead_seconds",
            "what a verb took beyond its slowest lane",
            ("verb",),
            buckets=SECONDS,
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def begin(self, endpoint: str, call: Call) -> Timed:
        self.received.labels(self.role, endpoint).inc(len(call.data))
        return Timed(self, endpoint, call.arrived)

    def collect(self) -> Iterator[Metric]:
        """The facts, as series."""
        labels = [self.role, *(str(self.facts.get(name, "")) for name in _LABELS[1:])]
        for name, series in FACTS.items():
            value = self.facts.get(name)
            if isinstance(value, int | float):
                family = (CounterMetricFamily if series.counts else GaugeMetricFamily)(
                    series.name, series.help, labels=_LABELS
                )
                family.add_metric(labels, float(value))
                yield family
        faults = self.facts.get("faults")
        if isinstance(faults, Mapping):
            family = CounterMetricFamily("memlane_link_faults", "errors of the link", labels=(*_LABELS, "kind"))
            for kind, count in faults.items():
                family.add_metric([*labels, str(kind)], float(count))
            yield family


class Timed:
    """One request, as `infra.observer.Handling`."""

    def __init__(self, metrics: Metrics, endpoint: str, arrived: float) -> None:
        self._metrics, self._endpoint, self._arrived = metrics, endpoint, arrived
        self._stage, self._began = "", arrived
        self._slowest_s = 0.0

    def stage(self, name: str) -> None:
        present = time.monotonic()
        if self._stage:
            self._metrics.stages.labels(self._endpoint, self._stage).observe(present - self._began)
        self._stage, self._began = name, present

    def lane(self, lane: Lane, outcome: LaneOutcome) -> None:
        took_s = outcome.took_ms / 1000
        self._metrics.lanes.labels(str(lane), str(outcome.status)).observe(took_s)
        self._slowest_s = max(self._slowest_s, took_s)

    def answered(self, reply: bytes, code: ErrorCode | None) -> None:
        self.stage("")
        metrics, took_s = self._metrics, time.monotonic() - self._arrived
        metrics.requests.labels(metrics.role, self._endpoint, str(code or "ok")).observe(took_s)
        metrics.sent.labels(metrics.role, self._endpoint).inc(len(reply))
        if self._slowest_s:
            metrics.overhead.labels(self._endpoint).observe(max(0.0, took_s - self._slowest_s))

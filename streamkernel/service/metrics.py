"""Metrics for Prometheus: requests, their duration, rows, generations of models.

With several processes, each keeps its counts in a file in the folder PROMETHEUS_MULTIPROC_DIR, which `server` sets
before they start. The process that answers /metrics adds them up.
"""

from __future__ import annotations

import os
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The metrics of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        # Of several processes: the sum, or the highest or lowest value, of those that live.
        total = partial(Gauge, registry=self._registry, multiprocess_mode="livesum")
        highest = partial(Gauge, registry=self._registry, multiprocess_mode="livemax")
        lowest = partial(Gauge, registry=self._registry, multiprocess_mode="livemin")
        self._requests = counter("streamkernel_requests", "requests answered", ["route", "status"])
        self._seconds = histogram(
            "streamkernel_request_seconds", "from the headers of a request to the last byte of its answer", ["route"],
            buckets=_SECONDS,
        )  # fmt: skip
        self._rows = counter("streamkernel_rows_predicted", "rows predicted", ["model"])
        self.batches = histogram(
            "streamkernel_batch_rows", "rows of a batch: single rows that were predicted together", buckets=_BATCH
        )
        self.waiting = total("streamkernel_queue_depth", "single rows that wait for their batch")
        self.streams = total("streamkernel_streams", "large bodies (NPY, Arrow) that are read, or wait to be read")
        self._generation = highest(
            "streamkernel_model_generation", "generations of the model served so far; 0 when it is removed", ["model"]
        )  # fmt: skip
        self._broken = highest("streamkernel_model_error", "1 while the newest generation cannot be used", ["model"])
        self._stale = highest(
            "streamkernel_models_stale",
            "1 while the folder or URL of the models cannot be read; they are served as they last were",
        )
        self._last_scan = lowest(
            "streamkernel_models_seen_timestamp_seconds", "time of the last successful scan of the models"
        )
        self._changes = counter(
            "streamkernel_model_changes", "events of models: loaded, reloaded, removed, failed, recovered", ["event"]
        )
        # Looking up the labels costs more than counting, so their counters are kept.
        self._by_answer: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._by_model: dict[str, Counter] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        metrics = self._by_answer.get((route, status))
        if metrics is None:
            metrics = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._by_answer[route, status] = metrics
        metrics[0].inc()
        metrics[1].observe(seconds)

    def predicted(self, model: str, rows: int) -> None:
        """Count rows that a model predicted."""
        counter = self._by_model.get(model)
        if counter is None:
            counter = self._by_model[model] = self._rows.labels(model)
        counter.inc(rows)

    def changed(self, event: str, model: str, generation: int, *, broken: bool) -> None:
        """Count an event of a model: "loaded", "reloaded", "removed", "failed" or "recovered"."""
        self._changes.labels(event).inc()
        self._generation.labels(model).set(0 if event == "removed" else generation)
        self._broken.labels(model).set(int(broken))

    def scanned(self, last_success: float, *, stale: bool) -> None:
        """Record the end of a scan; `last_success` is the time of the last scan that succeeded."""
        self._stale.set(int(stale))
        self._last_scan.set(last_success)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

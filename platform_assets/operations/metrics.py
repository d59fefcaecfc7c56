"""Metrics of a platform for Prometheus: a page for scrapes, a textfile for cron; counts and times, never values."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from datetime import time as midnight
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from platform_assets.engine.circuits import circuits
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.opening import open_platform_to_look
from platform_assets.operations.status import look
from platform_assets.records.manifest import platform_version
from platform_assets.settings import Settings

_KEPT_S = 5.0
_PREFIX = "platform_assets_"


def platform_metrics(platform: Platform) -> Iterator[Metric]:
    """Yield all metrics, of one moment, without Spark. Labels are declared tables, gates and targets."""
    known, newest, states = look(platform, with_metrics=False), platform.ledger.newest(), circuits(platform)
    names, release = platform.catalogue.names, newest.release if newest else -1
    yield _gauge("build_info", "Version of the platform.", ["version"], {(platform_version(),): 1})
    yield CounterMetricFamily(f"{_PREFIX}releases", "Releases so far.", value=release + 1)
    if newest:
        at = newest.created_at.timestamp()
        yield _gauge("release_timestamp_seconds", "When the newest release was published.", [], {(): at})
    for name, (attribute, text) in _COUNTS.items():
        yield _by_table(f"table_{name}", text, {one.table: getattr(one, attribute) for one in known.tables})
    days = {one.table: _seconds(one.newest) for one in known.tables if one.newest}
    yield _by_table("table_newest_day_timestamp_seconds", "Beginning of the newest loaded day.", days)
    took = {one.table: one.seconds for one in platform.ledger.counts.timings(names)}
    yield _by_table("table_last_run_duration_seconds", "Time of the last recomputation, without Spark's start.", took)
    held = Counter((day.hold.table, day.hold.gate) for day in known.held)
    yield _gauge("held_partitions", "Held days, by what holds them.", ["table", "gate"], held)
    warned = Counter((day.table, gate) for day in known.warned for gate in {each.gate for each in day.warnings})
    yield _gauge("warned_partitions", "Published days with a warning, by gate.", ["table", "gate"], warned)
    opened = {name: float(name in states and states[name].stops) for name in names}
    yield _by_table("circuit_open", "1 if the circuit of the table is open.", opened)
    late = {table: counts.waiting for table, counts in known.late.items()}
    yield _by_table("late_rows", "Late rows that wait for a decision.", late)
    ahead = {table: counts.ahead for table, counts in known.late.items()}
    yield _by_table("ahead_rows", "Rows that wait for their day.", ahead)
    yield _by_table("source_pending_files", "Delivered files that were not ingested yet.", known.pending)
    arrived = ((table, platform.ledger.newest_arrival_date(table, at=release)) for table in known.pending)
    dates = {table: _seconds(on) for table, on in arrived if on}
    yield _by_table("source_newest_arrival_timestamp_seconds", "Date of the newest ingested arrival.", dates)
    refused, left = known.acknowledged.without(known.refused.there), known.acknowledged.without(known.landing)
    files = {("refused",): len(refused), ("not_taken",): len(left)}
    yield _gauge("unusable_files", "Files that are in no table and that no person acknowledged.", ["reason"], files)
    messages = Counter(
        (one.target, "failing" if one.state == "waiting" and one.problem else one.state.replace(" ", "_"))
        for one in platform.ledger.outbox.messages(["waiting", "given up"])
    )
    yield _gauge("outbox_messages", "Messages that were not delivered yet.", ["target", "state"], messages)


_COUNTS = {
    "partitions": ("days", "Loaded days."),
    "missing_partitions": ("missing", "Days that should be loaded and are not."),
    "stale_partitions": ("stale", "Days that would change if they were computed again."),
    "blocked_partitions": ("blocked", "Days that wait for days that they read."),
    "quarantined_rows": ("quarantined", "Rows in quarantine."),
    "refused_rows": ("refused", "Rows that were refused."),
}
"""The field of a table's status, and what it says, by the end of a metric's name.

Days are partitions there: Prometheus takes a metric that ends in `_days` for a duration."""


def _by_table(name: str, text: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    return _gauge(name, text, ["table"], {(table,): value for table, value in values.items()})


def _gauge(name: str, text: str, labels: Sequence[str], values: Mapping[Any, float]) -> GaugeMetricFamily:
    """Return a gauge with values by label values."""
    metric = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=labels)
    for of, value in sorted(values.items()):
        metric.add_metric(of, value)
    return metric


def _seconds(day: date) -> float:
    return datetime.combine(day, midnight(), UTC).timestamp()


class _Found(Collector):
    """Serve metrics that were read before, so that errors are raised while reading."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def write_metrics(platform: Platform, file: Path) -> None:
    """Write the metrics as a textfile, at once or not at all, readable for every user who may enter its folder.

    Raises:
        PlatformError: the file cannot be written.
    """
    found = _Found(platform_metrics(platform))
    try:
        write_to_textfile(str(file), found)
        file.chmod(0o644)  # what is written is private otherwise, and node_exporter is another user
    except OSError as error:
        what = f"The metrics cannot be written to {file}: {error.strerror}."
        raise PlatformError(what, "Name a file in a folder that this user may write.") from error


@dataclass
class MetricsPage:
    """Cache the metrics page for a few seconds: several scrapes cost one look."""

    settings: Settings
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _text: bytes = b""
    _until: float = 0.0

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format.

        Raises:
            PlatformError: the platform cannot be opened or read.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                with open_platform_to_look(self.settings) as platform:
                    self._text = generate_latest(_Found(platform_metrics(platform)))
                self._until = time.monotonic() + _KEPT_S
            return self._text

"""Metrics of this process, as a snapshot, for OpenTelemetry and for Prometheus.

All instruments are declared in this module. docs/reference/metrics.md is generated from them, and the dashboard is
checked against them. Names follow OpenTelemetry's conventions for messaging where they exist, and otherwise begin with
``pravega.``.

Numbers are for the whole process, regardless of its number of clients. A forked process starts from 0. The code counts
per batch, block or call, never per event. Numbers are stored here and read on request, so counting costs the same with
and without an exporter. Only durations are passed to OpenTelemetry one by one.
"""

from __future__ import annotations

import bisect
import os
import sys
import threading
import weakref
from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from pravega_connector.errors import ConfigError
from pravega_connector.tcp_ports import check_port_number
from pravega_serde.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

__all__ = [
    "INSTRUMENTS",
    "Instrument",
    "MetricsServer",
    "PrometheusCollector",
    "attach_if_loaded",
    "export_to_opentelemetry",
    "serve_metrics",
    "snapshot",
]

#: Most combinations of attributes in an instrument. All others share one more, of this name.
MAX_SERIES: Final = 2000
OTHERS: Final = "(others)"
#: Upper bounds of the duration buckets in seconds: OpenTelemetry's convention, and more up to a failover.
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0, 300.0)
_METER: Final = "pravega_serde"
_SYSTEM: Final = ("messaging.system", "pravega")

Kind = Literal["counter", "up-down counter", "gauge", "histogram"]
_Values = tuple[str, ...]
# Reentrant: garbage collection may end a counted object on any line that holds the lock.
_lock = threading.RLock()
# A separate lock: OpenTelemetry requests numbers while it holds its own locks.
_exporting = threading.Lock()


# ---- kinds of instruments ----


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations so far: the number in each bucket (and above the last one), and their sum in seconds."""

    buckets: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        """Number of durations."""
        return sum(self.buckets)

    def cumulated(self) -> list[tuple[float, int]]:
        """Return the number of durations up to each bound; infinity is the last."""
        total, found = 0, []
        for bound, count in zip((*BOUNDS, float("inf")), self.buckets, strict=True):
            total += count
            found.append((bound, total))
        return found


class Instrument(ABC):
    """Metric: its declaration, and its numbers by the values of its attributes. Thread safe."""

    kind: Kind

    def __init__(
        self,
        name: str,
        unit: str,
        text: str,
        attributes: tuple[str, ...] = (),
        *,
        fixed: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Declare the metric. ``fixed`` are attributes that always have the same value."""
        self.name, self.unit, self.text = name, unit, text
        self.attributes, self.fixed = attributes, fixed
        self._held: dict[_Values, Any] = {}
        INSTRUMENTS[name] = self

    def _key(self, values: _Values) -> _Values:
        assert len(values) == len(self.attributes)
        if values in self._held or len(self._held) < MAX_SERIES:
            return values
        return (OTHERS,) * len(values)

    def named(self, values: _Values) -> dict[str, str]:
        """Return the attributes of a series by name. Attributes without a value are left out."""
        return {**dict(self.fixed), **{n: v for n, v in zip(self.attributes, values, strict=True) if v}}

    def series(self) -> list[tuple[_Values, Any]]:
        """Return the current numbers. A metric without attributes always has one."""
        with _lock:
            found = list(self._held.items())
        if not found and not self.attributes:
            return [((), self._none())]
        return [(values, self._told(held)) for values, held in found]

    def reset(self) -> None:
        """Drop all numbers."""
        with _lock:
            self._held.clear()

    def _told(self, held: Any) -> Any:
        return held

    def _none(self) -> Any:
        return 0


class _Sum(Instrument):
    def add(self, amount: float, *values: str) -> None:
        """Add ``amount`` to the number for the attribute values."""
        with _lock:
            key = self._key(values)
            self._held[key] = self._held.get(key, 0) + amount


class Counter(_Sum):
    """Number that only grows."""

    kind = "counter"


class UpDownCounter(_Sum):
    """Number that grows and shrinks."""

    kind = "up-down counter"


class Outage(Protocol):
    """Operations that may be in an outage."""

    @property
    def goes_on(self) -> bool:
        """True if there is an outage now."""
        ...


class Outages(Instrument):
    """Number of current outages, determined on request. A dropped outage does not count."""

    kind = "up-down counter"

    def __init__(self, name: str, unit: str, text: str) -> None:
        super().__init__(name, unit, text)
        self._watched = weakref.WeakSet[Outage]()

    def watch(self, outage: Outage) -> None:
        """Count an outage as long as it lasts."""
        with _lock:
            self._watched.add(outage)

    def series(self) -> list[tuple[_Values, Any]]:
        """Return the current number."""
        with _lock:
            watched = list(self._watched)
        return [((), sum(each.goes_on for each in watched))]

    def reset(self) -> None:
        """Watch no outage any more."""
        with _lock:
            self._watched.clear()


class Gauge(Instrument):
    """Number as of the last measurement."""

    kind = "gauge"

    def set(self, value: float, *values: str) -> None:
        """Set the number for the attribute values."""
        with _lock:
            self._held[self._key(values)] = value

    def forget(self, *values: str) -> None:
        """Remove the number, because it is not known any more."""
        with _lock:
            self._held.pop(values, None)


class Histogram(Instrument):
    """Durations in seconds."""

    kind = "histogram"

    def record(self, seconds: float, *values: str) -> None:
        """Add a duration."""
        with _lock:
            key = self._key(values)
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = [[0] * (len(BOUNDS) + 1), 0.0]
            held[0][bisect.bisect_left(BOUNDS, seconds)] += 1
            held[1] += seconds
        for _, histograms in _exports:
            histograms[self.name].record(seconds, self.named(key))

    def _told(self, held: Any) -> Distribution:
        return Distribution(tuple(held[0]), held[1])

    def _none(self) -> Distribution:
        return Distribution((0,) * (len(BOUNDS) + 1), 0.0)


#: Table of all metrics by name, in the order of the declarations below.
INSTRUMENTS: Final[dict[str, Instrument]] = {}

# ---- the table ----

STREAM: Final = "messaging.destination.name"
READER: Final = "messaging.consumer.group.name"
OPERATION: Final = "messaging.operation.name"
OUTCOME: Final = "pravega.outcome"
COMPONENT: Final = "pravega.component"
QUERY: Final = "pravega.query"
PHASE: Final = "pravega.phase"
DIRECTION: Final = "pravega.direction"

SENT_EVENTS: Final = Counter(
    "messaging.client.sent.messages",
    "{message}",
    "Events that are durable, in a stream or in a transaction.",
    (STREAM,),
    fixed=(_SYSTEM, (OPERATION, "send")),
)
SENT_BYTES: Final = Counter(
    "pravega.client.sent.size", "By", "Bytes of these events in the stream, with 8 for each event.", (STREAM,)
)
CONSUMED_EVENTS: Final = Counter(
    "messaging.client.consumed.messages",
    "{message}",
    "Events that were received, including events that the reader then drops.",
    (STREAM,),
    fixed=(_SYSTEM, (OPERATION, "receive")),
)
CONSUMED_BYTES: Final = Counter(
    "pravega.client.consumed.size", "By", "Bytes of these events in the stream, with 8 for each event.", (STREAM,)
)
OPERATION_SECONDS: Final = Histogram(
    "messaging.client.operation.duration",
    "s",
    "Duration of successful calls: `flush` of a writer with unacknowledged events, and `commit` of a transaction "
    "without its flush.",
    (OPERATION, STREAM),
    fixed=(_SYSTEM,),
)
RETRIES: Final = Counter("pravega.client.retries", "{attempt}", "Failed attempts that were retried.")
RECONNECTS: Final = Counter(
    "pravega.client.reconnects", "{connection}", "Connections to segment stores that were lost and reopened."
)
SEGMENT_MOVES: Final = Counter(
    "pravega.client.segment_moves", "{segment}", "Segments that moved to another segment store."
)
TOKEN_REFRESHES: Final = Counter("pravega.client.token_refreshes", "{token}", "Tokens that were renewed.")
REPEATED_COMMITS: Final = Counter(
    "pravega.client.repeated_commits",
    "{commit}",
    "Commits that were requested again, because a committed transaction did not become visible.",
)
OUTAGES: Final = Counter("pravega.client.outages", "{outage}", "Outages of 10 s or more.")
OUTAGES_NOW: Final = Outages("pravega.client.outage.active", "{outage}", "Clients that have such an outage now.")
OUTAGE_SECONDS: Final = Counter("pravega.client.outage.time", "s", "Duration of completed outages.")
TRANSACTIONS: Final = Counter(
    "pravega.transactions",
    "{transaction}",
    "Transactions by outcome: `begun`, `committed`, `aborted`. A repeated commit counts again.",
    (OUTCOME, STREAM),
)
TRANSACTIONS_OPEN: Final = UpDownCounter(
    "pravega.transaction.open", "{transaction}", "Open transactions of this process.", (STREAM,)
)
LAG: Final = Gauge(
    "pravega.consumer.lag",
    "By",
    "Lag: bytes from a reader's position to the end of its stream, with 8 for each event.",
    (STREAM, READER),
)
MISSING: Final = Gauge(
    "pravega.consumer.missing",
    "By",
    "Data loss: unread bytes that were truncated, as far as known. It is 0 for a deleted stream, which has no lag.",
    (STREAM, READER),
)
LOSSES: Final = Counter(
    "pravega.losses", "{loss}", "Gaps that a Spark query has skipped (`fail_on_data_loss=false`).", (STREAM,)
)
LOST_BYTES: Final = Counter("pravega.loss.size", "By", "Bytes in these gaps, as far as known.", (STREAM,))
BAD_RECORDS: Final = Counter(
    "pravega.bad_records",
    "{record}",
    "Malformed records, by component: `client`, `source`, `ingest`, `write`.",
    (COMPONENT, STREAM),
)
INGESTED_EVENTS: Final = Counter("pravega.ingest.events", "{event}", "Committed events.", (STREAM,))
INGESTED_BYTES: Final = Counter("pravega.ingest.read.size", "By", "Bytes of the sources of these events.", (STREAM,))
INGESTED_SOURCES: Final = Counter(
    "pravega.ingest.sources", "{source}", "Sources that were read to their end.", (STREAM,)
)
INGEST_STEPS: Final = Counter(
    "pravega.ingest.steps",
    "{step}",
    "Steps by outcome: `committed`, `redone`, `recovered` from another run, `rewritten` for a part of a step.",
    (OUTCOME, STREAM),
)
INGEST_PENDING: Final = Gauge("pravega.ingest.pending", "{source}", "Sources with more records to ingest.", (STREAM,))
QUERY_ROWS: Final = Counter(
    "pravega.query.rows",
    "{row}",
    "Rows of a query: `read` from Pravega, and `written` to its sink, if Spark counts them.",
    (DIRECTION, QUERY),
)
QUERY_BATCHES: Final = Counter("pravega.query.batches", "{batch}", "Completed micro-batches.", (QUERY,))
QUERY_SECONDS: Final = Histogram(
    "pravega.query.batch.duration",
    "s",
    "Duration of a micro-batch by Spark's phase: `triggerExecution` is the whole batch, `addBatch` the tasks and the "
    "sink's commit.",
    (PHASE, QUERY),
)
QUERY_TROUBLE: Final = Gauge(
    "pravega.query.trouble", "{query}", "1 during an outage of the query's source, otherwise 0.", (QUERY,)
)
QUERIES: Final = UpDownCounter("pravega.query.active", "{query}", "Running queries.", (QUERY,))
QUERY_FAILURES: Final = Counter("pravega.query.failures", "{query}", "Queries that ended with an error.", (QUERY,))


def _begin_anew() -> None:
    """Start from 0 in a forked process. The parent continues with its own numbers."""
    global _lock, _exporting
    _lock, _exporting = threading.RLock(), threading.Lock()
    for each in INSTRUMENTS.values():
        each.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


# ---- a snapshot ----


def snapshot() -> dict[str, list[dict[str, Any]]]:
    """Return all current numbers by metric, in a form that can be written as JSON.

    Each metric has a list with ``attributes`` and ``value`` for each combination. A histogram has ``count``, ``sum``
    (seconds) and ``buckets`` (the number up to each bound) instead of ``value``.
    """
    return {name: [_point(each, *series) for series in each.series()] for name, each in INSTRUMENTS.items()}


def _point(each: Instrument, values: _Values, value: Any) -> dict[str, Any]:
    attributes = each.named(values)
    if not isinstance(value, Distribution):
        return {"attributes": attributes, "value": value}
    buckets = {str(bound): count for bound, count in value.cumulated()}
    return {"attributes": attributes, "count": value.count, "sum": value.sum, "buckets": buckets}


# ---- OpenTelemetry ----

# Providers that receive all numbers, and their histograms.
_exports: Final[list[tuple[Any, dict[str, Any]]]] = []


def export_to_opentelemetry(provider: MeterProvider | None = None) -> None:
    """Export all metrics of this process to OpenTelemetry, with ``provider`` or the global MeterProvider.

    Clients call this function by themselves if ``opentelemetry.metrics`` was imported before them. If you call it again
    for the same provider, it does nothing. Raises MissingExtraError.
    """
    try:
        from opentelemetry import metrics as api  # noqa: PLC0415 - loaded only if it is used
    except ImportError:
        raise MissingExtraError("opentelemetry-api", "metrics", purpose="the export to OpenTelemetry") from None
    # The global provider may be set later. Until then, its meter is a proxy.
    key = provider if provider is not None else api
    with _exporting:
        if any(known is key for known, _ in _exports):
            return
        histograms: dict[str, Any] = {}
        meter = api.get_meter(_METER) if provider is None else provider.get_meter(_METER)
        for each in INSTRUMENTS.values():
            if isinstance(each, Histogram):
                histograms[each.name] = _histogram(meter, each)
                continue
            make = {
                "counter": meter.create_observable_counter,
                "up-down counter": meter.create_observable_up_down_counter,
                "gauge": meter.create_observable_gauge,
            }[each.kind]
            make(each.name, [_observer(each, api.Observation)], each.unit, _plain(each.text))
        _exports.append((key, histograms))


def attach_if_loaded() -> None:
    """Export to OpenTelemetry if the program has imported its metrics."""
    if "opentelemetry.metrics" in sys.modules:
        export_to_opentelemetry()


def _histogram(meter: Any, each: Instrument) -> Any:
    try:
        return meter.create_histogram(
            each.name, each.unit, _plain(each.text), explicit_bucket_boundaries_advisory=list(BOUNDS)
        )
    except TypeError:  # an API before 1.30 accepts no bounds: the program must set them in a view
        return meter.create_histogram(each.name, each.unit, _plain(each.text))


def _observer(each: Instrument, observation: Any) -> Any:
    def observe(_options: Any) -> Iterator[Any]:
        for values, value in each.series():
            yield observation(value, each.named(values))

    return observe


def _plain(text: str) -> str:
    return text.replace("`", "")


# ---- Prometheus ----

_UNITS: Final = {"By": "bytes", "s": "seconds"}


def prometheus_name(each: Instrument) -> str:
    """Return the name of a metric in Prometheus, which OpenTelemetry's exporter uses too.

    The samples of a counter add ``_total``.
    """
    name, unit = each.name.replace(".", "_"), _UNITS.get(each.unit)
    return name if unit is None else f"{name}_{unit}"


class PrometheusCollector:
    """Collector for a registry of prometheus_client: ``REGISTRY.register(PrometheusCollector())``."""

    def __init__(self) -> None:
        """Create the collector. Raises MissingExtraError."""
        try:
            from prometheus_client import core  # noqa: PLC0415 - loaded only if it is used
        except ImportError:
            raise MissingExtraError("prometheus-client", "metrics", purpose="the Prometheus endpoint") from None
        self._families = {
            "counter": core.CounterMetricFamily,
            "up-down counter": core.GaugeMetricFamily,
            "gauge": core.GaugeMetricFamily,
            "histogram": core.HistogramMetricFamily,
        }

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics."""
        for each in INSTRUMENTS.values():
            labels = [*dict(each.fixed), *each.attributes]
            family = self._families[each.kind](
                prometheus_name(each), _plain(each.text), labels=[name.replace(".", "_") for name in labels]
            )
            for values, value in each.series():
                given = [*dict(each.fixed).values(), *values]
                if isinstance(value, Distribution):
                    buckets = [("+Inf" if bound == float("inf") else str(bound), n) for bound, n in value.cumulated()]
                    family.add_metric(given, buckets, value.sum)
                else:
                    family.add_metric(given, value)
            yield family


class MetricsServer:
    """Endpoint that Prometheus polls, in one thread of the process. A ``with`` block closes it at the end."""

    def __init__(self, server: Any, thread: threading.Thread, host: str) -> None:
        self._server, self._thread = server, thread
        self.host = host
        self.port: int = server.server_port

    @property
    def url(self) -> str:
        """Address of the metrics."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop the endpoint, and free its port. Idempotent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def serve_metrics(port: int = 9464, host: str = "127.0.0.1") -> MetricsServer:
    """Serve the metrics of this process to Prometheus at ``http://host:port/metrics``.

    Port 0 uses any free port. By default, only this machine can connect. For other machines, set ``host`` to another
    address of this machine, or to ``0.0.0.0`` for all its addresses. Raises ConfigError if the server cannot listen,
    MissingExtraError.
    """
    check_port_number(port)
    if not isinstance(host, str) or not host:
        raise ConfigError(f"the host of the metrics must be a name or an address, not {host!r}")
    collector = PrometheusCollector()
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - the collector has imported it

    registry = CollectorRegistry()
    registry.register(collector)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise ConfigError(
            f"the metrics cannot be served at {host}:{port}: {error.strerror or error}; choose another port"
        ) from None
    return MetricsServer(server, thread, host)

"""Metrics of Spark's streaming queries in the program that starts them, from a query listener.

Spark plans, reads, writes and commits in separate Python processes, and their counters are not accessible here. But
Spark reports the progress of a query to the program: rows, durations, and the lag that the source reports
(``pravega_connector.spark.source.progress``). So these numbers are Spark's, for each micro-batch.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
)

from pravega_connector import metrics

_log: Final = logging.getLogger(__name__)


class QueryMetrics(StreamingQueryListener):  # type: ignore[misc]
    """Listener that counts what the queries of a session report: ``spark.streams.addListener(QueryMetrics())``.

    The metrics belong to this process, and :func:`connector.serve_metrics` or OpenTelemetry exports them. A query is
    identified by its name, or by its id if it has none. If a query already runs, its earlier batches are not counted.
    """

    def __init__(self) -> None:
        metrics.attach_if_loaded()
        self._names: dict[str, str] = {}  # names of the running queries, by run id
        self._lags: dict[str, set[str]] = {}  # streams with a lag metric, by run id
        self._lost: dict[str, set[tuple[Any, ...]]] = {}  # losses of the last report, by run id

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Count a running query."""
        self._name(str(event.runId), event.name or str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Count a micro-batch, and show the lag of its sources."""
        progress = event.progress
        run = str(progress.runId)
        query = self._name(run, progress.name or str(progress.id))
        durations = progress.durationMs
        if "addBatch" in durations:  # otherwise Spark polled and found nothing to do
            metrics.QUERY_BATCHES.add(1, query)
            for phase, millis in durations.items():
                metrics.QUERY_SECONDS.record(millis / 1000, phase, query)
        if progress.sink.numOutputRows > 0:
            metrics.QUERY_ROWS.add(progress.sink.numOutputRows, "written", query)
        ours = [source for source in progress.sources if _is_ours(source)]
        if not ours:
            return
        metrics.QUERY_ROWS.add(sum(source.numInputRows for source in ours), "read", query)
        reports = [(source, report) for source in ours if (report := _object(source.latestOffset))]
        metrics.QUERY_TROUBLE.set(any("trouble" in report for _, report in reports), query)
        for source, report in reports:
            self._show_lag(run, query, report)
            if not _is_planned_here(source):  # otherwise the planner has counted its losses in this process
                self._count_losses(run, report)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: the values that were shown last are still valid."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Count the end of a query, and remove the values that were only valid while it ran."""
        run = str(event.runId)
        query = self._names.pop(run, None)
        if query is None:
            return
        metrics.QUERIES.add(-1, query)
        metrics.QUERY_TROUBLE.forget(query)
        for stream in self._lags.pop(run, ()):
            metrics.LAG.forget(stream, query)
        self._lost.pop(run, None)
        if event.exception is not None:
            metrics.QUERY_FAILURES.add(1, query)

    def _name(self, run: str, name: str) -> str:
        if run not in self._names:
            self._names[run] = name
            metrics.QUERIES.add(1, name)
        return self._names[run]

    def _show_lag(self, run: str, query: str, report: dict[str, Any]) -> None:
        shown = self._lags.setdefault(run, set())
        for stream, behind in report.get("behind", {}).get("streams", {}).items():
            metrics.LAG.set(behind["bytes"], stream, query)
            shown.add(stream)

    def _count_losses(self, run: str, report: dict[str, Any]) -> None:
        """Count the losses that are new in a report, which has all losses of the run."""
        known, losses = self._lost.get(run, set()), report.get("lost", {}).get("segments", ())
        for loss in losses:
            if tuple(loss.values()) not in known:
                metrics.LOSSES.add(1, loss["stream"])
                metrics.LOST_BYTES.add(loss["bytes"] or 0, loss["stream"])
        if losses:
            self._lost[run] = {tuple(loss.values()) for loss in losses}


def _is_ours(source: SourceProgress) -> bool:
    """Return True if the offsets are those of ``pravega_connector.rows.offsets``."""
    return {"streams", "version"} <= _object(source.endOffset).keys()


def _is_planned_here(source: SourceProgress) -> bool:
    """Return True if the JVM reads: then the planner is in the driver's process, as this listener is."""
    return bool((source.metrics or {}).get("reader") == "jvm")


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else None
    except ValueError:  # another source's offset
        return {}
    return value if isinstance(value, dict) else {}

"""Metrics of Spark's streaming queries in the program that starts them: a listener counts what Spark tells.

Spark runs Python sources and sinks in processes of its own, which plan, read, write and commit; what these count is out
of reach. But a query's progress comes to the program: rows, times, and in the source's own report how far it is behind
(``pravega_connector.spark.source.progress``). So these numbers are those of Spark, micro-batch by micro-batch.
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
    """Counts what Spark tells of the queries of a session: ``spark.streams.addListener(QueryMetrics())``.

    The metrics are those of this process, which :func:`connector.serve_metrics` or OpenTelemetry shows. A query is
    known by its name, or its id without one. Of a query that ran already some batches are not counted.
    """

    def __init__(self) -> None:
        metrics.attach_if_loaded()
        self._names: dict[str, str] = {}  # of the queries that run, by run
        self._lags: dict[str, set[str]] = {}  # the streams whose lag is shown, by run
        self._lost: dict[str, set[tuple[Any, ...]]] = {}  # the losses of the last report, by run

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Count a query that runs."""
        self._name(str(event.runId), event.name or str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Count a micro-batch, and show how far its sources are behind."""
        progress = event.progress
        run = str(progress.runId)
        query = self._name(run, progress.name or str(progress.id))
        durations = progress.durationMs
        if "addBatch" in durations:  # else Spark has looked, and there was nothing to do
            metrics.QUERY_BATCHES.add(1, query)
            for phase, millis in durations.items():
                metrics.QUERY_SECONDS.record(millis / 1000, phase, query)
        if progress.sink.numOutputRows > 0:
            metrics.QUERY_ROWS.add(progress.sink.numOutputRows, "written", query)
        ours = [source for source in progress.sources if _is_ours(source)]
        if not ours:
            return
        metrics.QUERY_ROWS.add(sum(source.numInputRows for source in ours), "read", query)
        reports = [report for source in ours if (report := _object(source.latestOffset))]
        metrics.QUERY_TROUBLE.set(any("trouble" in report for report in reports), query)
        for report in reports:
            self._show(run, query, report)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing: what was shown last still holds."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Count its end, and show nothing of it any more that was only true while it ran."""
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

    def _show(self, run: str, query: str, report: dict[str, Any]) -> None:
        """Take what a source reports: its lag, and what it has lost in this run so far."""
        shown = self._lags.setdefault(run, set())
        for stream, behind in report.get("behind", {}).get("streams", {}).items():
            metrics.LAG.set(behind["bytes"], stream, query)
            shown.add(stream)
        known, losses = self._lost.get(run, set()), report.get("lost", {}).get("segments", ())
        for loss in losses:
            if tuple(loss.values()) not in known:
                metrics.LOSSES.add(1, loss["stream"])
                metrics.LOST_BYTES.add(loss["bytes"] or 0, loss["stream"])
        if losses:
            self._lost[run] = {tuple(loss.values()) for loss in losses}


def _is_ours(source: SourceProgress) -> bool:
    """Whether offsets are those of ``pravega_connector.spark.source.offsets``."""
    return {"streams", "version"} <= _object(source.endOffset).keys()


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else None
    except ValueError:  # of another source
        return {}
    return value if isinstance(value, dict) else {}

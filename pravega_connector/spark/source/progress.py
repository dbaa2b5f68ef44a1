"""Progress of a run, reported to Spark's query progress and to the server's retention.

:class:`Progress` is what ``sources[i].latestOffset`` shows (Spark's reportLatestOffset)::

    {"behind": {"bytes": 20, "streams": {"scope/stream": {"bytes": 20, "segments": {"0.#epoch.0": 20}}}},
     "lost": {"bytes": 500, "segments": [{"stream": …, "segment": …, "offset": …, "bytes": 500, "reason": …}]},
     "streams": {"scope/stream": {"0.#epoch.0": 5678}},
     "trouble": "…"}

``behind`` is the lag: the distance from the end of the planned batch to the end of the streams. ``events`` is next to
``bytes`` only if the number is known without reading, which is the case for 0. ``lost`` is the data that the run has
skipped (``fail_on_data_loss=false``); it is left out if there is none. ``streams`` is the end of the streams.
``trouble`` is present while the servers do not answer. The other values are then those of the last measurement.

:class:`PublishedPosition` is option ``publish_position``: the server may truncate before the committed position of the
query, as the retention policy of the stream allows. A position is published when Spark has an entry for its batch in
the commit log. So data that a restart would read again is never truncated. A failure to publish never fails a query. An
unpublished position is published with the next batch, or a little later.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.io import of_each
from pravega_connector.errors import ConnectorError
from pravega_connector.lag import StreamLag, lost_bytes, stream_lag
from pravega_connector.reader_groups.subscriber import Subscriber
from pravega_connector.spark.source.data_loss import DataLoss
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import StreamCut, StreamName

_log: Final = logging.getLogger(__name__)
# Seconds between two measurements of an end that did not move. Spark asks every 10 ms in an idle query.
_FRESH: Final = 1.0
# Seconds until a failed publication is retried, unless a newer position replaces it.
_RETRY: Final = 5.0


class Progress:
    """Progress report of one run; it never fails a query."""

    def __init__(
        self,
        client: PravegaClient,
        losses: DataLoss,
        clock: Callable[[], float] = time.monotonic,
        *,
        key: float | None = None,
    ) -> None:
        """``key`` is the position on the key line of the only routing key that the run reads."""
        self._client, self._losses, self._clock, self._key = client, losses, clock, key
        self._lineages: dict[StreamName, Lineage] = {}
        self._at: Mapping[StreamName, StreamCut] = {}
        self._report: dict[str, Any] | None = None
        self._stale = 0.0

    def report(self, trouble: str | None = None) -> dict[str, Any] | None:
        """Return the last measurement, with the current outage in ``trouble`` if there is one.

        Return None until something was measured.
        """
        return self._report if trouble is None else {**(self._report or {}), "trouble": trouble}

    def measure(self, end: Mapping[StreamName, StreamCut]) -> None:
        """Measure the lag of the streams after ``end``, unless this was done in the last second."""
        if not end or (end == self._at and self._clock() < self._stale):
            return
        try:
            lags = of_each(self._lag, [end[stream] for stream in sorted(end)])
        except ConnectorError as error:
            _log.info("the lag of the streams is unknown: %s", error)
            self._at, self._stale = dict(end), self._clock() + _FRESH
            return
        self._at, self._report = dict(end), self._tell(lags)
        # The lag of sealed streams does not change.
        self._stale = math.inf if all(lag.is_final and lag.exists for lag in lags) else self._clock() + _FRESH

    def _lag(self, position: StreamCut) -> StreamLag:
        stream = position.stream
        if self._key is not None and stream not in self._lineages:
            self._lineages[stream] = Lineage(self._client.stores, stream, self._key)
        return stream_lag(self._client, position, reader="", lineage=self._lineages.get(stream))

    def _tell(self, lags: list[StreamLag]) -> dict[str, Any]:
        streams = {str(lag.stream): _without_losses(lag.to_json()) for lag in lags}
        behind: dict[str, Any] = {"bytes": sum(lag.bytes for lag in lags), "streams": streams}
        if not behind["bytes"]:
            behind["events"] = 0
        report: dict[str, Any] = {"behind": behind, "streams": {str(lag.stream): _ends(lag) for lag in lags}}
        losses = self._losses.losses
        if losses:
            report["lost"] = {"bytes": lost_bytes(list(losses)), "segments": [loss.to_json() for loss in losses]}
        return report


def _without_losses(value: dict[str, Any]) -> dict[str, Any]:
    """Remove the losses: the next batch finds them, and before that they are not losses of the query."""
    return {key: item for key, item in value.items() if key not in ("lost_bytes", "losses")}


def _ends(lag: StreamLag) -> dict[str, int]:
    """Return the end of a stream: its open segments, or all remaining segments of a sealed stream."""
    segments = [segment for segment in lag.segments if not segment.sealed] or lag.segments
    return {segment.name: segment.end for segment in segments}


class PublishedPosition:
    """Publisher of positions under a name, with a separate subscriber for each stream."""

    def __init__(self, client: PravegaClient, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._name, self._clock = client, name, clock
        self._subscribers: dict[StreamName, Subscriber] = {}
        self._tried: dict[StreamName, tuple[StreamCut, float]] = {}
        self._failures: dict[StreamName, str] = {}

    def publish(self, committed: Mapping[StreamName, StreamCut]) -> None:
        """Publish the positions that have changed since the last time. A failure is a warning."""
        of_each(self._publish_if_due, committed.values())

    def _publish_if_due(self, cut: StreamCut) -> None:
        tried, again = self._tried.get(cut.stream, (None, 0.0))
        if cut != tried or self._clock() >= again:
            self._tried[cut.stream] = cut, self._publish(cut.stream, cut)

    def _publish(self, stream: StreamName, cut: StreamCut) -> float:
        """Try to publish; return the time of the next attempt."""
        subscriber = self._subscribers.get(stream)
        if subscriber is None:
            subscriber = self._subscribers[stream] = self._client.subscriber(stream, self._name)
        try:
            subscriber.publish(cut)
        except ConnectorError as error:
            if self._failures.get(stream) != str(error):  # logged once, though it is retried
                _log.warning("the position in stream %s was not published for %r: %s", stream, self._name, error)
            self._failures[stream] = str(error)
            return self._clock() + _RETRY
        self._failures.pop(stream, None)
        return math.inf

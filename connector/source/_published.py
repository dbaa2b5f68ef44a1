"""The query's committed position, published to the server: option ``publish_position``.

The server may then truncate behind it, as the stream's retention policy says. A position is published when Spark has
an entry for its batch in the commit log, so what a restart would read again is never given up. Publishing never fails
a query: what could not be published is with the next batch, or a little later.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from connector.client import PravegaClient, StreamCut, StreamName, Subscriber
from connector.errors import ConnectorError

__all__ = ["PublishedPosition"]

_log: Final = logging.getLogger(__name__)
# A position that could not be published is tried again after so many seconds, if no other one came before.
_RETRY: Final = 5.0


class PublishedPosition:
    """Publishes positions under a name, for each stream by a subscriber of its own."""

    def __init__(self, client: PravegaClient, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._name, self._clock = client, name, clock
        self._subscribers: dict[StreamName, Subscriber] = {}
        self._tried: dict[StreamName, tuple[StreamCut, float]] = {}
        self._failures: dict[StreamName, str] = {}

    def publish(self, committed: Mapping[StreamName, StreamCut]) -> None:
        """Publish what has changed since the last time. A failure is a warning."""
        for stream, cut in committed.items():
            tried, again = self._tried.get(stream, (None, 0.0))
            if cut == tried and self._clock() < again:
                continue
            self._tried[stream] = cut, self._publish(stream, cut)

    def _publish(self, stream: StreamName, cut: StreamCut) -> float:
        """Try it; when to try again."""
        subscriber = self._subscribers.get(stream)
        if subscriber is None:
            subscriber = self._subscribers[stream] = self._client.subscriber(stream, self._name)
        try:
            subscriber.publish(cut)
        except ConnectorError as error:
            if self._failures.get(stream) != str(error):  # said once, though it is tried again
                _log.warning("the position in stream %s was not published for %r: %s", stream, self._name, error)
            self._failures[stream] = str(error)
            return self._clock() + _RETRY
        self._failures.pop(stream, None)
        return math.inf

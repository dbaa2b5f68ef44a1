"""Repeated view of a stream: its open segments, their lengths and their rates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ReaderGroupError
from pravega_connector.operations.monitoring.groups import GroupView, group_view
from pravega_connector.reader_groups.protocol import Segment
from pravega_connector.stream_cuts import segment_label
from pravega_connector.wire import SegmentRange, StreamName, segment_epoch


@dataclass(frozen=True, slots=True)
class SegmentView:
    """State of an open segment at one moment."""

    range: SegmentRange
    start: int
    """Bytes truncated away."""
    length: int
    """Bytes written."""
    rate: float | None
    """Bytes written per second since the last poll; None at the first poll."""
    reader: str | None = None
    """Reader in the group that owns the segment, if any."""
    behind: int | None = None
    """Bytes that the group has not read yet; None without a group."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """State of a stream's open segments at one moment; there are none if it is sealed."""

    stream: StreamName
    epoch: int
    """Latest epoch in which one of the segments was created."""
    segments: tuple[SegmentView, ...]
    readable: int
    """Bytes from head to tail of the open segments."""
    rate: float | None
    """Bytes written per second to the open segments since the last poll; None at the first poll."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the view."""
        segments: list[dict[str, Any]] = [
            {
                "segment": segment_label(self.stream, view.range.id),
                "segment_id": view.range.id,
                "keys": [view.range.low, view.range.high],
                "start": view.start,
                "length": view.length,
                "bytes_per_second": view.rate,
            }
            for view in self.segments
        ]
        for value, view in zip(segments, self.segments, strict=True):
            if view.behind is not None:
                value |= {"reader": view.reader, "bytes_behind": view.behind}
        return {
            "stream": str(self.stream),
            "sealed": not segments,
            "epoch": self.epoch,
            "bytes_per_second": self.rate,
            "segments": segments,
        }


class StreamWatch:
    """Poller of a stream that returns the rates since the last poll. A poll takes three calls to the servers.

    With a ``group``, it also returns the readers of the segments, as last reported. This takes four more calls.
    """

    def __init__(
        self,
        client: PravegaClient,
        stream: StreamName,
        clock: Callable[[], float] = time.monotonic,
        *,
        group: str | None = None,
    ) -> None:
        self._client, self._stream, self._clock, self._group = client, stream, clock, group
        self._lengths: Mapping[int, int] = {}
        self._at: float | None = None

    def look(self) -> StreamView:
        """Return the current view of the stream.

        Raises StreamNotFoundError, ReaderGroupNotFoundError, ReaderGroupError for a group that does not read the
        stream, and the errors of the calls.
        """
        ranges = self._client.controller.current_segments(self._stream)
        infos = self._client.stores.segment_infos(self._stream, [r.id for r in ranges])
        now = self._clock()
        seconds = None if self._at is None else max(now - self._at, 1e-6)
        views = tuple(
            SegmentView(
                r, infos[r.id].start_offset, infos[r.id].write_offset, self._rate(r, infos[r.id].write_offset, seconds)
            )
            for r in ranges
        )
        if self._group is not None:
            views = _with_readers(group_view(self._client, self._group), self._stream, views)
        self._lengths, self._at = {view.range.id: view.length for view in views}, now
        return StreamView(
            self._stream,
            max((segment_epoch(view.range.id) for view in views), default=0),
            views,
            sum(view.length - view.start for view in views),
            None if seconds is None else sum(view.rate or 0.0 for view in views),
        )

    def _rate(self, segment: SegmentRange, length: int, seconds: float | None) -> float | None:
        """Return the bytes per second of a segment; a new segment starts at 0 bytes."""
        return None if seconds is None else (length - self._lengths.get(segment.id, 0)) / seconds


def _with_readers(group: GroupView, stream: StreamName, views: tuple[SegmentView, ...]) -> tuple[SegmentView, ...]:
    """Return the views with the readers and lags of a group. A segment without a position is unread."""
    if stream not in group.config.start:
        raise ReaderGroupError(f"reader group {group} does not read {stream}")
    at = group.positions
    found = []
    for view in views:
        segment = Segment(stream, view.range.id)
        offset = at.get(segment, view.start)
        behind = 0 if offset < 0 else max(view.length - max(offset, view.start), 0)
        found.append(replace(view, reader=group.reader_of(segment), behind=behind))
    return tuple(found)

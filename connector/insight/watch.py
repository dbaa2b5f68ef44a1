"""Repeated view of a stream: its open segments, their lengths and their rates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..client import PravegaClient, StreamName
from ..wire import SegmentRange, segment_epoch
from .stream_cuts import segment_label

__all__ = ["SegmentView", "StreamView", "StreamWatch"]


@dataclass(frozen=True, slots=True)
class SegmentView:
    """An open segment at one moment."""

    range: SegmentRange
    start: int
    """Bytes truncated away."""
    length: int
    """Bytes written."""
    rate: float | None
    """Bytes written per second since the last look; None at the first one."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream's open segments at one moment; none if it is sealed."""

    stream: StreamName
    epoch: int
    """Latest epoch in which one of them was created."""
    segments: tuple[SegmentView, ...]
    readable: int
    """Bytes from head to tail of the open segments."""
    rate: float | None
    """Bytes per second written to the open segments since the last look; None at the first one."""

    def to_json(self) -> dict[str, Any]:
        """JSON of the view."""
        segments = [
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
        return {
            "stream": str(self.stream),
            "sealed": not segments,
            "epoch": self.epoch,
            "bytes_per_second": self.rate,
            "segments": segments,
        }


class StreamWatch:
    """Looks at a stream, with the rates since the look before; three calls to the servers each."""

    def __init__(self, client: PravegaClient, stream: StreamName, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._stream, self._clock = client, stream, clock
        self._lengths: Mapping[int, int] = {}
        self._at: float | None = None

    def look(self) -> StreamView:
        """View of the stream now. Raises StreamNotFoundError, and as the calls to the servers do."""
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
        self._lengths, self._at = {view.range.id: view.length for view in views}, now
        return StreamView(
            self._stream,
            max((segment_epoch(view.range.id) for view in views), default=0),
            views,
            sum(view.length - view.start for view in views),
            None if seconds is None else sum(view.rate or 0.0 for view in views),
        )

    def _rate(self, segment: SegmentRange, length: int, seconds: float | None) -> float | None:
        """Bytes per second of a segment; a new one has grown from nothing."""
        return None if seconds is None else (length - self._lengths.get(segment.id, 0)) / seconds

"""How a stream was scaled: which segments took events in which epoch, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from connector.client import PravegaClient, StreamName, sealed_lengths
from connector.errors import AuthenticationError, ControllerError, ControllerUnavailableError
from connector.insight._cut_text import segment_label
from connector.wire import SegmentRange

__all__ = ["History", "SegmentLife", "scaling_history"]

State = Literal["open", "sealed", "truncated"]


@dataclass(frozen=True, slots=True)
class SegmentLife:
    """A segment, and the epochs in which it took events: ``first`` to ``last``, both included."""

    range: SegmentRange
    first: int
    last: int
    state: State
    """``open`` takes events, ``sealed`` can still be read, of ``truncated`` nothing is left."""
    length: int | None
    """Bytes that were written to it; None if nobody tells any more."""
    start: int
    """Bytes of these that were truncated away."""


@dataclass(frozen=True, slots=True)
class History:
    """A stream's epochs from ``first`` to ``last``, and their segments by id."""

    stream: StreamName
    first: int
    last: int
    segments: tuple[SegmentLife, ...]

    def followers(self) -> Iterable[tuple[SegmentLife, SegmentLife]]:
        """Each segment with each that took over keys of it."""
        begun: dict[int, list[SegmentLife]] = {}
        for life in self.segments:
            begun.setdefault(life.first, []).append(life)
        for life in self.segments:
            for after in begun.get(life.last + 1, ()):
                if after.range.low < life.range.high and life.range.low < after.range.high:
                    yield life, after

    def to_json(self) -> dict[str, Any]:
        """The history as JSON."""
        segments = [
            {
                "segment": segment_label(self.stream, life.range.id),
                "segment_id": life.range.id,
                "keys": [life.range.low, life.range.high],
                "epochs": [life.first, life.last],
                "state": life.state,
                "bytes": life.length,
                "truncated_bytes": life.start,
            }
            for life in self.segments
        ]
        return {"stream": str(self.stream), "epochs": [self.first, self.last], "segments": segments}


def scaling_history(client: PravegaClient, stream: StreamName, *, last_epochs: int | None = None) -> History:
    """The history of a stream, or of its last epochs. One call to the controller for each epoch.

    Segments that lived before the first epoch asked for begin with it. Raises StreamNotFoundError.
    """
    client.require_stream(stream)
    epochs = _epochs(client, stream)
    if last_epochs is not None:
        epochs = dict(list(epochs.items())[-last_epochs:])
    ranges = {r.id: r for segments in epochs.values() for r in segments}
    infos = client.stores.segment_infos(stream, ranges)
    lengths = {i: info.write_offset for i, info in infos.items() if info.exists}
    lengths |= sealed_lengths(client.stores, stream, ranges.keys() - lengths.keys())
    lives = []
    for segment_id, found in sorted(ranges.items()):
        info = infos[segment_id]
        there = [epoch for epoch, segments in epochs.items() if any(r.id == segment_id for r in segments)]
        state: State = "truncated" if not info.exists else "sealed" if info.sealed else "open"
        length = lengths.get(segment_id)
        start = info.start_offset if info.exists else length or 0
        lives.append(SegmentLife(found, there[0], there[-1], state, length, start))
    return History(stream, next(iter(epochs)), next(reversed(epochs)), tuple(lives))


def _epochs(client: PravegaClient, stream: StreamName) -> dict[int, list[SegmentRange]]:
    """Epoch -> its segments, oldest first."""
    found: dict[int, list[SegmentRange]] = {}
    while True:
        try:
            found[len(found)] = client.controller.epoch_segments(stream, len(found))
        except (AuthenticationError, ControllerUnavailableError):
            raise
        except ControllerError:  # the one after the last; it has no code of its own
            if found:
                return found
            raise

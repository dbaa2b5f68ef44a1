"""How a stream was scaled: which segments took events in which epoch, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from connector.client import PravegaClient, SegmentInfo, StreamName, sealed_lengths
from connector.errors import AuthenticationError, ControllerError, ControllerUnavailableError, StreamNotFoundError
from connector.insight._cut_text import segment_label
from connector.wire import SegmentRange, segment_epoch

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
    """The history of a stream, or of its last epochs. One call to the controller for each epoch, and a few more.

    Segments that lived before the first epoch asked for begin with it. Raises StreamNotFoundError.
    """
    client.require_stream(stream)
    last = _last_epoch(client, stream)
    first = 0 if last_epochs is None else max(0, last + 1 - last_epochs)
    ranges: dict[int, SegmentRange] = {}
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    for epoch in range(first, last + 1):
        for found in client.controller.epoch_segments(stream, epoch):
            ranges[found.id] = found
            begun.setdefault(found.id, epoch)
            ended[found.id] = epoch
    infos = client.stores.segment_infos(stream, ranges)
    lengths = sealed_lengths(client.stores, stream, (i for i, info in infos.items() if not info.exists))
    lives = (_life(ranges[i], begun[i], ended[i], infos[i], lengths.get(i)) for i in sorted(ranges))
    return History(stream, first, last, tuple(lives))


def _life(found: SegmentRange, first: int, last: int, info: SegmentInfo, length: int | None) -> SegmentLife:
    if not info.exists:
        return SegmentLife(found, first, last, "truncated", length, length or 0)
    return SegmentLife(found, first, last, "sealed" if info.sealed else "open", info.write_offset, info.start_offset)


def _last_epoch(client: PravegaClient, stream: StreamName) -> int:
    """The number of the stream's latest epoch, which nobody tells: epochs are without gaps, so it is searched for."""
    known = max((segment_epoch(r.id) for r in client.controller.current_segments(stream)), default=0)
    step = 1
    while _has_epoch(client, stream, known + step):
        known += step
        step *= 2
    while step > 1:
        step //= 2
        if _has_epoch(client, stream, known + step):
            known += step
    return known


def _has_epoch(client: PravegaClient, stream: StreamName, epoch: int) -> bool:
    try:
        return bool(client.controller.epoch_segments(stream, epoch))
    except (AuthenticationError, ControllerUnavailableError, StreamNotFoundError):
        raise
    except ControllerError:  # there is no code of its own for an epoch that is not there
        return False

"""Scaling history of a stream: the epochs in which each segment accepted events, as data, JSON and picture.

In the picture (SVG), keys increase upwards and epochs to the right, and each segment is a rectangle. Between two
epochs, bands lead from a segment to the segments that took over its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal
from xml.sax.saxutils import escape

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.arguments import Stream
from pravega_connector.errors import (
    AuthenticationError,
    ControllerError,
    ControllerUnavailableError,
    StreamNotFoundError,
)
from pravega_connector.stores.segment_stores import SegmentInfo
from pravega_connector.stores.segments import sealed_lengths
from pravega_connector.stream_cuts import segment_label
from pravega_connector.wire import SegmentRange, StreamName, segment_epoch, segment_number

State = Literal["open", "sealed", "truncated"]


@dataclass(frozen=True, slots=True)
class SegmentLife:
    """Segment and the epochs in which it accepted events, from ``first`` to ``last`` inclusive."""

    range: SegmentRange
    first: int
    last: int
    state: State
    """``open`` accepts events, ``sealed`` can only be read, ``truncated`` was deleted."""
    length: int | None
    """Bytes written to it; None if the length is unknown."""
    start: int
    """Bytes of ``length`` that were truncated."""


@dataclass(frozen=True, slots=True)
class History:
    """Epochs of a stream from ``first`` to ``last``, and their segments by id."""

    stream: StreamName
    first: int
    last: int
    segments: tuple[SegmentLife, ...]

    def followers(self) -> Iterable[tuple[SegmentLife, SegmentLife]]:
        """Yield pairs of a segment and a segment that took over keys of it."""
        begun: dict[int, list[SegmentLife]] = {}
        for life in self.segments:
            begun.setdefault(life.first, []).append(life)
        for life in self.segments:
            for after in begun.get(life.last + 1, ()):
                if after.range.low < life.range.high and life.range.low < after.range.high:
                    yield life, after

    def _repr_svg_(self) -> str:
        return draw_history(self)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the history."""
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


def scaling_history(client: PravegaClient, stream: Stream, *, last_epochs: int | None = None) -> History:
    """Return the history of a stream, or of its last epochs.

    This takes some calls to the controller, and one for each epoch. Segments of earlier epochs begin with the first
    epoch of the history. Raises StreamNotFoundError.
    """
    name = client.require_stream(stream)
    last = _last_epoch(client, name)
    first = 0 if last_epochs is None else max(0, last + 1 - last_epochs)
    ranges: dict[int, SegmentRange] = {}
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    for epoch in range(first, last + 1):
        for found in client.controller.epoch_segments(name, epoch):
            ranges[found.id] = found
            begun.setdefault(found.id, epoch)
            ended[found.id] = epoch
    infos = client.stores.segment_infos(name, ranges)
    lengths = sealed_lengths(client.stores, name, (i for i, info in infos.items() if not info.exists))
    lives = (_life(ranges[i], begun[i], ended[i], infos[i], lengths.get(i)) for i in sorted(ranges))
    return History(name, first, last, tuple(lives))


def _life(found: SegmentRange, first: int, last: int, info: SegmentInfo, length: int | None) -> SegmentLife:
    if not info.exists:
        return SegmentLife(found, first, last, "truncated", length, length or 0)
    return SegmentLife(found, first, last, "sealed" if info.sealed else "open", info.write_offset, info.start_offset)


def _last_epoch(client: PravegaClient, stream: StreamName) -> int:
    """Return the number of the stream's latest epoch. No call returns it, so it is searched: epochs have no gaps."""
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
    except ControllerError:  # the controller has no separate code for a missing epoch
        return False


# ---- picture ----

_WIDTH: Final = 1200  # px for all epochs, unless they become too narrow
_NARROWEST, _WIDEST = 6.0, 110.0  # minimum and maximum px of an epoch
_HEIGHT: Final = 420  # px of the key space
_LEFT, _TOP, _RIGHT, _BELOW = 56, 52, 24, 78
_GAP: Final = 0.28  # part of an epoch's width for the bands to the next epoch
_MARGIN: Final = 1.0  # px between segments
_FILL: Final = {"open": "#2f9e6e", "sealed": "#4c7fc0", "truncated": "#c9ced6"}
_INK: Final = {"open": "#ffffff", "sealed": "#ffffff", "truncated": "#56606e"}
_TOLD: Final = {"open": "open", "sealed": "sealed, readable", "truncated": "truncated away"}
_BAND: Final = "#9fb4cf"
_FONT: Final = 'font-family="Helvetica, Arial, sans-serif"'
_CHARACTER: Final = 6.2  # approximate px of a character in a label


def draw_history(history: History) -> str:
    """Return a picture of the history as SVG text."""
    return _Picture(history).draw()


class _Picture:
    def __init__(self, history: History) -> None:
        self.history = history
        self.count = history.last - history.first + 1
        self.column = max(_NARROWEST, min(_WIDEST, _WIDTH / self.count))
        self.gap = self.column * _GAP
        self.width = _LEFT + max(self.count * self.column, 300) + _RIGHT
        self.height = _TOP + _HEIGHT + _BELOW

    def draw(self) -> str:
        size = f"{self.width:.0f} {self.height}"
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
                f'width="{self.width:.0f}" height="{self.height}" {_FONT} font-size="11">'
            ),
            f"<title>{escape(str(self.history.stream))}: scaling history</title>",
            f'<rect width="{self.width:.0f}" height="{self.height}" fill="#ffffff"/>',
            *self._heading(),
            *self._axes(),
            *(self._band(before, after) for before, after in self.history.followers()),
            *(part for life in self.history.segments for part in self._segment(life)),
            *self._legend(),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _heading(self) -> Iterator[str]:
        segments = len(self.history.segments)
        yield _text(_LEFT, 22, str(self.history.stream), 'font-size="15" font-weight="bold" fill="#1d2733"')
        epochs = "1 epoch" if self.count == 1 else f"{self.count:,} epochs"
        yield _text(_LEFT, 40, f"{epochs}, {segments:,} segments", 'fill="#56606e"')

    def _axes(self) -> Iterator[str]:
        right, bottom = _LEFT + self.count * self.column, _TOP + _HEIGHT
        for part in (0.0, 0.25, 0.5, 0.75, 1.0):
            y = self._y(part)
            yield f'<line x1="{_LEFT - 4}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#e4e8ee"/>'
            yield _text(_LEFT - 8, y + 4, f"{part:g}", 'text-anchor="end" fill="#56606e"')
        middle = _TOP + _HEIGHT / 2
        turned = f'text-anchor="middle" fill="#56606e" transform="rotate(-90 14 {middle})"'
        yield _text(14, middle, "routing keys (hashed)", turned)
        step = next(s for d in range(9) for s in (10**d, 2 * 10**d, 5 * 10**d) if s * self.column >= 34)
        for epoch in range(self.history.first, self.history.last + 1):
            if (epoch - self.history.first) % step == 0:
                x = self._x(epoch) + (self.column - self.gap) / 2
                yield _text(x, bottom + 16, str(epoch), 'text-anchor="middle" fill="#56606e"')
        yield _text(_LEFT, bottom + 34, "epoch", 'fill="#56606e"')

    def _legend(self) -> Iterator[str]:
        x, y = _LEFT, self.height - 14
        for state in ("open", "sealed", "truncated"):
            yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" rx="2" fill="{_FILL[state]}"/>'
            yield _text(x + 17, y, _TOLD[state], 'fill="#1d2733"')
            x += 32 + int(len(_TOLD[state]) * _CHARACTER)

    def _segment(self, life: SegmentLife) -> Iterator[str]:
        x, right = self._x(life.first), self._x(life.last) + self.column - self.gap
        y, bottom = self._y(life.range.high) + _MARGIN, self._y(life.range.low) - _MARGIN
        width, height = right - x, max(bottom - y, 0.5)
        number, size = str(segment_number(life.range.id)), "" if life.length is None else _bytes(life.length)
        told = (
            f"segment {number}, epochs {life.first} to {life.last}, keys {life.range.low:.4g} to {life.range.high:.4g}"
        )
        told += f", {size or 'length unknown'}, {_TOLD[life.state]}"
        radius = min(3.0, width / 4, height / 4)
        yield f'<g><title>{told}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        yield f'rx="{radius:.1f}" fill="{_FILL[life.state]}"/>'
        if life.state != "truncated" and life.start and life.length:
            gone = width * life.start / life.length
            yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{gone:.1f}" height="{height:.1f}" rx="{radius:.1f}" '
            yield f'fill="{_FILL["truncated"]}" fill-opacity="0.75"/>'
        lines = [line for line in (number, size) if line and len(line) * _CHARACTER <= width - 4]
        lines = lines[: int(height // 13)]
        for place, line in enumerate(lines):
            at = y + height / 2 + 4 + 13 * (place - (len(lines) - 1) / 2)
            weight = ' font-weight="bold"' if place == 0 else ""
            yield _text(x + width / 2, at, line, f'text-anchor="middle" fill="{_INK[life.state]}"{weight}')
        yield "</g>"

    def _band(self, before: SegmentLife, after: SegmentLife) -> str:
        low, high = max(before.range.low, after.range.low), min(before.range.high, after.range.high)
        x, y = self._x(after.first) - self.gap, self._y(high) + _MARGIN
        height = max(self._y(low) - _MARGIN - y, 0.5)
        place = f'x="{x:.1f}" y="{y:.1f}" width="{self.gap:.1f}" height="{height:.1f}"'
        return f'<rect {place} fill="{_BAND}" fill-opacity="0.45"/>'

    def _x(self, epoch: int) -> float:
        return _LEFT + (epoch - self.history.first) * self.column

    def _y(self, key: float) -> float:
        return _TOP + (1 - key) * _HEIGHT


def _text(x: float, y: float, text: str, attributes: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"

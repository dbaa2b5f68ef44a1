"""What the client checks itself, because the controller's bare FAILURE or UNKNOWN would not say what is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from connector.errors import ConfigError, MalformedStreamCutError, StreamSealedError
from connector.wire import SegmentRange, StreamCut, StreamName, segment_name

# The server allows as much between adjoining key ranges (StreamMetadataStore's check before a scaling).
KEY_TOLERANCE: Final = 1e-9


def check_order(start: StreamCut, end: StreamCut) -> None:
    """Raise MalformedStreamCutError when ``end`` certainly lies before ``start``.

    Ids grow from a segment to its successors, so a later cut has no smaller least and no smaller greatest id. That
    does not find every case; the controller finds the rest.
    """
    if start.stream != end.stream:
        raise MalformedStreamCutError(
            f"the start is a cut of {start.stream}, the end one of {end.stream}: give two of one stream"
        )
    if not start.positions or not end.positions:
        raise MalformedStreamCutError(
            f"a stream cut of {start.stream} without segments bounds nothing: take the head or tail"
        )
    for segment, offset in end.positions.items():
        if offset < start.positions.get(segment, offset):
            raise _reversed(start, f"in {segment_name(start.stream, segment)}, {offset} < {start.positions[segment]}")
    if max(end.positions) < max(start.positions) or min(end.positions) < min(start.positions):
        raise _reversed(start, "its segments come before those of the start")


def _reversed(start: StreamCut, where: str) -> MalformedStreamCutError:
    return MalformedStreamCutError(f"the end cut of {start.stream} lies before the start cut ({where}): swap them")


def check_scaling(
    stream: StreamName, current: Sequence[SegmentRange], seal: Sequence[int], ranges: Sequence[tuple[float, float]]
) -> None:
    """Raise ConfigError unless ``ranges`` cover exactly what the current segments ``seal`` cover."""
    if not current:
        raise StreamSealedError(f"cannot scale stream {stream}: it is sealed")
    by_id = {segment.id: segment for segment in current}
    if not seal or len(set(seal)) != len(seal):
        raise ConfigError(f"cannot scale stream {stream}: name the segments to replace, each of them once")
    for segment in seal:
        if segment not in by_id:
            raise ConfigError(
                f"cannot scale stream {stream}: {segment_name(stream, segment)} is not one of its current segments"
            )
    for low, high in ranges:
        if not 0.0 <= low < high <= 1.0:
            raise ConfigError(f"cannot scale stream {stream}: [{low}, {high}) is not a key range within [0, 1)")
    old = _merged([(by_id[segment].low, by_id[segment].high) for segment in seal])
    new = _merged(ranges)
    if not _covers_the_same(old, new) or _overlap(ranges):
        raise ConfigError(
            f"cannot scale stream {stream}: the new ranges must cover {_text(old)} once, as the replaced segments do; "
            f"they are {_text(sorted(ranges))}"
        )


def is_scaled(current: Sequence[SegmentRange], seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> bool:
    """Whether a stream looks as such a scaling leaves it."""
    if any(segment.id in seal for segment in current):
        return False
    return all(any(_same(wanted, (segment.low, segment.high)) for segment in current) for wanted in ranges)


def _merged(ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + KEY_TOLERANCE:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _covers_the_same(old: Sequence[tuple[float, float]], new: Sequence[tuple[float, float]]) -> bool:
    return len(old) == len(new) and all(map(_same, old, new))


def _overlap(ranges: Sequence[tuple[float, float]]) -> bool:
    ordered = sorted(ranges)
    return any(before[1] > after[0] + KEY_TOLERANCE for before, after in itertools.pairwise(ordered))


def _same(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) <= KEY_TOLERANCE and abs(one[1] - other[1]) <= KEY_TOLERANCE


def _text(ranges: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"[{low:g}, {high:g})" for low, high in ranges) or "none"

"""How much of a backlog one micro-batch takes.

A limit must end between two events, and the server cannot say where events begin: so the driver walks the frames of
what it admits, and only then. Without a limit nothing is read here.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from connector.client import SegmentSlice, SegmentStores, StreamName, read_chunks
from connector.wire import segment_name, walk_frames

__all__ = ["UNLIMITED", "Limits", "admit"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Most bytes (frames included) and most events of one micro-batch."""

    max_bytes: int | None = None
    max_rows: int | None = None


UNLIMITED: Final = Limits()
_NONE: Final = np.empty(0, np.int64)


def admit(
    stores: SegmentStores, stream: StreamName, starts: Mapping[int, int], ends: Mapping[int, int], limits: Limits
) -> dict[int, int]:
    """End offsets within the limits, each between two events; at least one event of the backlog is always admitted.

    Every segment with a backlog gets the same share; what one does not use goes to those after it.
    """
    admitted = dict(starts)
    waiting = sorted((i for i in ends if starts[i] < ends[i]), key=lambda i: ends[i] - starts[i])
    bytes_left, rows_left = limits.max_bytes, limits.max_rows
    for place, segment_id in enumerate(waiting):
        others = len(waiting) - place
        share = Limits(_share(bytes_left, others), _share(rows_left, others))
        start, end = starts[segment_id], ends[segment_id]
        if share.max_rows is None and share.max_bytes is not None and end - start <= share.max_bytes:
            stop, rows = end, 0
        else:
            stop, rows = _walk(stores, SegmentSlice(stream, segment_id, start, end), share)
        admitted[segment_id] = stop
        bytes_left = None if bytes_left is None else max(0, bytes_left - (stop - start))
        rows_left = None if rows_left is None else max(0, rows_left - rows)
        if bytes_left == 0 or rows_left == 0:
            break
    return admitted


def _share(left: int | None, among: int) -> int | None:
    return None if left is None else max(1, left // among)


def _walk(stores: SegmentStores, piece: SegmentSlice, share: Limits) -> tuple[int, int]:
    """Where the share ends in the slice, and how many events come before; the first event is always taken."""
    most_bytes = piece.end - piece.start if share.max_bytes is None else share.max_bytes
    stop, rows = piece.start, 0
    with closing(_ends(stores, piece)) as pieces:
        for ends in pieces:
            left = len(ends) if share.max_rows is None else share.max_rows - rows
            taken = min(left, int(ends.searchsorted(piece.start + most_bytes, side="right")))
            if not rows and not taken:
                taken = 1
            if taken:
                stop, rows = int(ends[taken - 1]), rows + taken
            if taken < len(ends):
                break
    return stop, rows


def _ends(stores: SegmentStores, piece: SegmentSlice) -> Generator[npt.NDArray[np.int64], None, None]:
    """Yield the offsets in the segment at which its events end, some at a time; at least one each time."""
    name = segment_name(piece.stream, piece.segment_id)
    begin, boundary, carry = piece.start, piece.start, b""
    with closing(read_chunks(stores, piece)) as chunks:
        for chunk in chunks:
            data = carry + chunk if carry else chunk
            known = max(boundary - begin, 0)
            bounds = walk_frames(data, known, offset=begin, segment=name) + begin if known < len(data) else _NONE
            if len(bounds) > 1:
                yield bounds[1:]
                boundary = int(bounds[-1])
            begin += len(data)
            # Part of the next event's header, if any.
            carry = bytes(data[boundary - begin :]) if boundary < begin else b""
            begin -= len(carry)

"""The columns ``event_time_low`` and ``event_time_high``: what the streams' watermarks say about each event.

Watermarks come some seconds after the events that they are about, so a batch that is read again would find more of
them. Therefore the offset of a batch of a stream query says how far the watermarks went when it was planned, and its
columns are made from those and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connector.client import PravegaClient, SegmentSlice, SegmentTimes, StreamName, Watermark
from connector.errors import StreamNotFoundError
from connector.source._options import EVENT_TIME_COLUMNS, SourceOptions

__all__ = ["EVENT_TIME", "NO_TIMES", "marks_end", "times_along", "timestamps", "wants_event_time"]

#: Type of the columns.
EVENT_TIME: Final = pa.timestamp("us", "UTC")
#: Where nothing is known.
NO_TIMES: Final = SegmentTimes(*[np.empty(0, np.int64)] * 3)
# Milliseconds that fit into it. Writers may count what they like; what is no such time is null.
_MOST: Final = (2**63 - 1) // 1000


def wants_event_time(options: SourceOptions) -> bool:
    """Whether the rows have one of the columns."""
    return not set(EVENT_TIME_COLUMNS).isdisjoint(options.metadata_columns)


def marks_end(client: PravegaClient, streams: Iterable[StreamName]) -> dict[StreamName, int]:
    """How far the watermarks of streams go at this moment."""
    found: dict[StreamName, int] = {}
    for stream in streams:
        with suppress(StreamNotFoundError):  # it was deleted just now, which is missed when it is read
            found[stream] = client.watermark_log(stream).end()
    return found


def times_along(
    client: PravegaClient, slices: Sequence[SegmentSlice], ends: Mapping[StreamName, int] | None = None
) -> Iterator[SegmentTimes]:
    """For each slice what watermarks say about its events: those up to the given ends, by default all of this moment.

    A stream that is not among the ends has none: its offset is of a query that did not ask for the columns then.
    """
    known: dict[StreamName, list[Watermark]] = {}
    for piece in slices:
        log = client.watermark_log(piece.stream)
        if piece.stream not in known:
            known[piece.stream] = log.read() if ends is None else log.read_until(ends.get(piece.stream, 0))
        yield log.along(piece, known[piece.stream])


def timestamps(millis: pa.Int64Array) -> pa.TimestampArray:
    """Milliseconds since 1970 as a column."""
    fits = pc.and_(pc.greater_equal(millis, -_MOST), pc.less_equal(millis, _MOST))
    return pc.if_else(fits, millis, None).cast(pa.timestamp("ms", "UTC")).cast(EVENT_TIME)

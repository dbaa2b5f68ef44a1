"""Parts of a range to read in parallel, and positions in a range from which a read resumes.

A range is a list of slices in an order in which they can be read. Its parts have consecutive slices: the events of one
part after the other are those of the range. A position is the segment and the offset of the next event:
``scope/stream/0.#epoch.0:1234``.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

import pyarrow as pa

from pravega_connector.errors import ConfigError, InvalidNameError
from pravega_connector.reader.boundaries import Boundaries, divide, divided
from pravega_connector.reader.slices import EventBatch, ReadRange, SegmentSlice
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamName, parse_segment_name, segment_name


def split_ranges(stores: SegmentStores, ranges: Sequence[ReadRange], count: int) -> list[list[ReadRange]]:
    """Divide ranges into at most ``count`` parts of similar size, in their order. An empty range has no parts.

    Slices stay whole if there are enough. Otherwise they are divided between events. Raises DataLossError.
    """
    slices = [piece for each in ranges for piece in each.slices]
    places = dict(divide(Boundaries(stores), slices, count))
    pieces = [
        (number, piece)
        for number, each in enumerate(ranges)
        for whole in each.slices
        for piece in divided(whole, places.get(whole, ()))
    ]
    return [_as_ranges(ranges, part) for part in _parts(pieces, count)]


def _parts(pieces: Sequence[tuple[int, SegmentSlice]], count: int) -> list[list[tuple[int, SegmentSlice]]]:
    """Return consecutive pieces in at most ``count`` parts of similar size. Each part has a piece."""
    total = sum(piece.end - piece.start for _, piece in pieces)
    parts: list[list[tuple[int, SegmentSlice]]] = []
    before = 0
    for place, (number, piece) in enumerate(pieces):
        size = piece.end - piece.start
        by_middle = (2 * before + size) * count // (2 * total)
        least = count - (len(pieces) - place)  # one piece for each of the parts that follow
        if max(by_middle, least) >= len(parts):
            parts.append([])
        parts[-1].append((number, piece))
        before += size
    return parts


def _as_ranges(ranges: Sequence[ReadRange], pieces: Sequence[tuple[int, SegmentSlice]]) -> list[ReadRange]:
    return [
        replace(ranges[number], slices=tuple(piece for _, piece in group))
        for number, group in itertools.groupby(pieces, key=lambda each: each[0])
    ]


def position_text(stream: StreamName, segment_id: int, offset: int) -> str:
    """Return the text of a position."""
    return f"{segment_name(stream, segment_id)}:{offset}"


def position_in(batch: EventBatch, rows: int) -> str:
    """Return the position after the first ``rows`` events of a batch."""
    offset = batch.end if rows == len(batch.offsets) else int(batch.offsets[rows])
    return position_text(batch.stream, batch.segment_id, offset)


def end_of(ranges: Sequence[ReadRange]) -> str | None:
    """Return the position at the end of ranges; None if they are empty."""
    last = next((each.slices[-1] for each in reversed(ranges) if each.slices), None)
    return None if last is None else position_text(last.stream, last.segment_id, last.end)


def ranges_after(ranges: Sequence[ReadRange], position: str) -> list[ReadRange]:
    """Return the ranges from a position on. Raises ConfigError for a text that is not a position in them."""
    name, _, number = position.rpartition(":")
    try:
        stream, segment_id = parse_segment_name(name)
        offset = int(number)
    except (InvalidNameError, ValueError):
        raise ConfigError(f"invalid position {position!r}: pass the position of record_batches()") from None
    for place, each in enumerate(ranges):
        for at, piece in enumerate(each.slices):
            if (piece.stream, piece.segment_id) == (stream, segment_id) and piece.start <= offset <= piece.end:
                rest = (replace(piece, start=offset), *each.slices[at + 1 :])
                left = tuple(slice_ for slice_ in rest if slice_.start < slice_.end)
                return [replace(each, slices=left), *ranges[place + 1 :]]
    raise ConfigError(
        f"the position {position} is not in this range: resume the range or split that it is from, and check that its "
        "stream was not truncated past it"
    )


class RecordBatches(Iterator[pa.RecordBatch]):
    """Iterator over the rows of a range, batch by batch, that a later iterator can resume.

    Closing it closes its connection. It can be used in a ``with`` statement.
    """

    def __init__(
        self, rows: Generator[tuple[pa.RecordBatch, str], None, None], start: str | None, end: str | None
    ) -> None:
        """``rows`` has batches with the position after each, and ``end`` is the position after all of them."""
        self._rows, self._end = rows, end
        self.position = start
        """Position after the returned rows, or None before the first one. Pass it as ``start`` to resume."""

    def __next__(self) -> pa.RecordBatch:
        """Return the next rows. If interrupted, the position stays before them."""
        before = self.position
        try:
            batch, self.position = next(self._rows)
            return batch
        except StopIteration:
            self.position = self._end
            raise
        except BaseException:
            self.position = before
            raise

    def close(self) -> None:
        """Close the connection. The position stays."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

"""Source of a mirror: the state of its segments at a position, and the frames of their next events."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from pravega_connector.controller.targets import is_deleted, target_of
from pravega_connector.core import io
from pravega_connector.errors import DataLossError, ProtocolError, StreamNotFoundError
from pravega_connector.reader.slices import SegmentSlice, read_chunks
from pravega_connector.stores.segment_stores import SegmentInfo, SegmentStores
from pravega_connector.stores.segments import Lineage, sealed_lengths
from pravega_connector.wire import EVENT_HEADER_SIZE, StreamName, segment_name, walk_frames

#: Position in a deleted segment of unknown length, after its lost events.
GONE: Final = 2**63 - 1
# Segments that are read at a time.
_MAX_READS: Final = 8
# Least bytes of one read, unless fewer are wanted in all: each read costs a round trip.
_LEAST_READ: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Frames:
    """Whole events of one segment, with the bytes that they have there."""

    segment_id: int
    start: int
    """Offset of the first event."""
    data: memoryview
    ends: npt.NDArray[np.int64]
    """End of each event in ``data``."""

    @property
    def end(self) -> int:
        """Offset after the last event."""
        return self.start + len(self.data)


@dataclass(slots=True)
class View:
    """State of the source after a position."""

    pieces: list[SegmentSlice] = field(default_factory=list)
    """Unread parts of the segments, after the lost parts."""
    finished: set[int] = field(default_factory=set)
    """Segments without unread bytes that do not grow any more."""
    skipped: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Positions before and after a lost part, by segment."""
    lag: int = 0
    """Unread bytes in these segments."""


class Source:
    """Segments of the source stream. Not thread safe."""

    def __init__(self, stores: SegmentStores, stream: StreamName, *, skip_lost: bool = False) -> None:
        """Set up. Raises StreamNotFoundError. With ``skip_lost``, truncated events are skipped."""
        self.stores, self.stream = stores, stream
        self.identity = target_of(stores.controller, stream)
        """Stream with its creation."""
        self.lineage = Lineage(stores, stream)
        self._skip_lost = skip_lost

    def view(self, positions: Mapping[int, int], limits: Mapping[int, int]) -> View:
        """Return the state after ``positions``. Segments are not read further than ``limits``.

        Raises DataLossError for truncated or deleted events, and StreamNotFoundError if the stream was deleted.
        """
        infos = self.stores.segment_infos(self.stream, positions)
        found = View()
        missing = {segment_id: positions[segment_id] for segment_id, info in infos.items() if not info.exists}
        if missing:
            self._add_missing(found, missing)
        for segment_id, info in infos.items():
            if info.exists:
                self._add(found, positions[segment_id], info, limits.get(segment_id, info.write_offset))
        return found

    def _add(self, found: View, position: int, info: SegmentInfo, limit: int) -> None:
        if position < info.start_offset:
            self._lose(found, info.id, (position, info.start_offset))
            position = info.start_offset
        found.lag += max(0, info.write_offset - position)
        if info.sealed and position >= info.write_offset:
            found.finished.add(info.id)
        end = min(limit, info.write_offset)
        if position < end:
            found.pieces.append(SegmentSlice(self.stream, info.id, position, end))

    def _add_missing(self, found: View, missing: Mapping[int, int]) -> None:
        """Add segments that were deleted. If such a segment was read to its end, nothing is lost."""
        if is_deleted(self.stores.controller, self.identity):
            raise StreamNotFoundError.deleted(self.stream)
        lengths = sealed_lengths(self.stores, self.stream, missing)
        for segment_id, position in missing.items():
            length = lengths.get(segment_id, GONE)
            if position < length:
                self._lose(found, segment_id, (position, length))
            found.finished.add(segment_id)

    def _lose(self, found: View, segment_id: int, part: tuple[int, int]) -> None:
        position, end = part
        if not self._skip_lost:
            lost = "events" if end == GONE else f"events before offset {end}"
            raise DataLossError(
                f"stream {self.stream}, segment {segment_id}, offset {position}: {lost} were truncated before they "
                "were mirrored; to continue without them, set skip_lost, or change the retention to keep events longer"
            )
        found.skipped[segment_id] = part

    def group(self, positions: Mapping[int, int], finished: set[int]) -> tuple[list[int], list[int]] | None:
        """Return the predecessors and successors of one scaling whose predecessors are all finished, or None."""
        for segment_id in sorted(finished):
            after = dict(positions)
            if started := self.lineage.advance(after, finished, among={segment_id}):
                return sorted(positions.keys() - after.keys()), started
        return None

    def is_sealed(self, finished: set[int]) -> bool:
        """Return True if the stream is sealed and these finished segments are its last ones."""
        if any(self.lineage.successors(segment_id) for segment_id in finished):
            return False
        return not self.stores.controller.current_segments(self.stream)

    def read(self, pieces: list[SegmentSlice], size: int) -> list[Frames]:
        """Return the next events of the pieces: about ``size`` bytes in all, and at least one event of each.

        If the pieces are too many, the last ones are left out. Raises DataLossError, ProtocolError.
        """
        share = max(min(_LEAST_READ, size), size // len(pieces))
        chosen = pieces[: max(1, size // share)]
        return io.side_by_side(lambda piece: self._read(piece, share), chosen, _MAX_READS)

    def _read(self, piece: SegmentSlice, size: int) -> Frames:
        data, name = bytearray(), segment_name(piece.stream, piece.segment_id)
        end = min(piece.end, piece.start + size)
        while True:
            rest = SegmentSlice(piece.stream, piece.segment_id, piece.start + len(data), end)
            with closing(read_chunks(self.stores, rest)) as chunks:
                for chunk in chunks:
                    data += chunk
            bounds = walk_frames(data, offset=piece.start, segment=name)
            whole = bounds[bounds <= len(data)]
            if len(whole) > 1:
                return Frames(piece.segment_id, piece.start, memoryview(data)[: int(whole[-1])], whole[1:])
            if end == piece.end:
                raise ProtocolError(f"segment {name}: the bytes up to {end} end inside the event at {piece.start}")
            end = min(piece.end, piece.start + max(int(bounds[-1]), len(data) + EVENT_HEADER_SIZE))

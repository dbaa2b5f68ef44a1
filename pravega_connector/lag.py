"""Lag of a reader: distance from the end of a stream, and losses: bytes deleted before it has read them.

Truncation and retention delete everything before a cut of the stream: whole segments, and the beginnings of others. A
deleted segment is not a loss if it was read to its end. Its length then comes from the tables of the controller
(``pravega_connector.client.sealed_lengths``). If they lack it, the size of the loss is unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import StreamNotFoundError
from pravega_connector.notebook import table
from pravega_connector.reader.slices import SegmentSlice, read_slice
from pravega_connector.stores.segment_stores import SegmentInfo, SegmentStores
from pravega_connector.stores.segments import Lineage, sealed_lengths
from pravega_connector.stream_cuts import segment_label
from pravega_connector.wire import StreamCut, StreamName


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes of one segment that were deleted before a reader has read them."""

    stream: StreamName
    segment_id: int
    offset: int
    """Position of the reader in the segment."""
    bytes: int | None
    """Number of lost bytes, 8 for each event included; None if the segment's length is unknown."""
    deleted: bool = False
    """True if the whole stream was deleted; otherwise it was truncated."""

    def __str__(self) -> str:
        amount = "an unknown number of bytes" if self.bytes is None else f"{self.bytes:,} bytes"
        how = "deleted with the stream" if self.deleted else "truncated away"
        be = "was" if self.bytes is None or self.bytes == 1 else "were"
        return f"segment {self.segment_id}, offset {self.offset}: {amount} from there on {be} {how} before being read"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the loss; ``bytes`` is null if unknown."""
        return {
            "stream": str(self.stream),
            "segment": segment_label(self.stream, self.segment_id),
            "segment_id": self.segment_id,
            "offset": self.offset,
            "bytes": self.bytes,
            "reason": "deleted" if self.deleted else "truncated",
        }


def lost_bytes(losses: tuple[Loss, ...] | list[Loss]) -> int:
    """Return the number of bytes known to be lost, a lower bound."""
    return sum(loss.bytes or 0 for loss in losses)


@dataclass(frozen=True, slots=True)
class Survey:
    """Remaining part of a stream for a reader at some position."""

    cut: StreamCut | None
    """Position to resume from: the reader's own if no data is lost, None if the stream was deleted."""
    losses: tuple[Loss, ...]
    """Losses up to ``cut``."""
    infos: Mapping[int, SegmentInfo]
    """States of the cut's segments."""


def survey(stores: SegmentStores, position: StreamCut, *, beyond: bool = False) -> Survey:
    """Find the position at which a reader at ``position`` can resume, and its losses.

    Deleted segments are replaced by their successors, level by level, until all remaining segments have bytes or may
    get some. Only segment stores are called if no segment of the position is damaged. With ``beyond``, the successors
    of finished segments are checked in any case. Raises the errors of its calls.
    """
    walk = _Walk(stores, position)
    return walk.run() if beyond or walk.is_damaged else Survey(position, (), walk.infos)


class _Walk:
    def __init__(self, stores: SegmentStores, position: StreamCut) -> None:
        self.stores, self.position, self.stream = stores, position, position.stream
        self.lineage = Lineage(stores, self.stream)
        self.positions = {i: max(at, 0) for i, at in position.positions.items()}
        self.infos = stores.segment_infos(self.stream, self.positions)
        self.losses: list[Loss] = []

    @property
    def is_damaged(self) -> bool:
        """True if a segment seen so far was deleted, or truncated past the position."""
        starts = self.position.positions
        return any(not info.exists or info.start_offset > max(starts.get(i, 0), 0) for i, info in self.infos.items())

    def run(self) -> Survey:
        if self.is_damaged and not self.stores.controller.stream_exists(self.stream):
            return self._deleted(None)
        try:
            self._skip()
        except StreamNotFoundError:
            return self._deleted(None)
        if not all(self.infos[i].exists for i in self.positions):
            # There are no successors: the stream is being deleted, segments first, or it was created again.
            known = self.stores.controller.is_cut_valid(self.position)
            return self._deleted(None if known else self.stores.controller.head_cut(self.stream))
        cut = StreamCut(self.stream, self.positions) if self.is_damaged else self.position
        return Survey(cut, tuple(self.losses), {i: self.infos[i] for i in cut.positions})

    def _deleted(self, cut: StreamCut | None) -> Survey:
        losses = (Loss(self.stream, i, max(at, 0), None, deleted=True) for i, at in self.position.positions.items())
        infos = self.stores.segment_infos(self.stream, cut.positions) if cut is not None else {}
        return Survey(cut, tuple(losses), infos)

    def _skip(self) -> None:
        finished: set[int] = set()
        entered = list(self.positions)
        while entered:
            self.infos |= self.stores.segment_infos(self.stream, set(entered) - self.infos.keys())
            lengths = sealed_lengths(self.stores, self.stream, (i for i in entered if not self.infos[i].exists))
            finished.update(i for i in entered if self._look(self.infos[i], lengths.get(i)))
            entered = self.lineage.advance(self.positions, finished)

    def _look(self, info: SegmentInfo, length: int | None) -> bool:
        """Record the loss in a segment. Return True if nothing of it is left to read."""
        at = self.positions[info.id]
        if not info.exists:
            if length is None or at < length:
                self.losses.append(Loss(self.stream, info.id, at, None if length is None else length - at))
            return True
        if at < info.start_offset:
            self.losses.append(Loss(self.stream, info.id, at, info.start_offset - at))
            self.positions[info.id] = at = info.start_offset
        return info.sealed and at >= info.write_offset


@dataclass(frozen=True, slots=True)
class SegmentLag:
    """Unread part of one segment."""

    stream: StreamName
    segment_id: int
    offset: int
    """Position of the reader, or its start position."""
    end: int
    """Length of the segment."""
    sealed: bool | None
    """True if the segment accepts no more events; None if unknown."""

    @property
    def bytes(self) -> int:
        """Lag in bytes, including 8 for each event."""
        return max(self.end - self.offset, 0)

    @property
    def slice(self) -> SegmentSlice:
        """Slice of the unread part."""
        return SegmentSlice(self.stream, self.segment_id, self.offset, max(self.end, self.offset))

    @property
    def name(self) -> str:
        """Short name of the segment: ``0.#epoch.0``."""
        return segment_label(self.stream, self.segment_id)


@dataclass(frozen=True, slots=True)
class StreamLag:
    """Unread part of a stream, segment by segment, predecessors first, and the losses so far."""

    stream: StreamName
    segments: tuple[SegmentLag, ...]
    losses: tuple[Loss, ...]
    exists: bool = True

    @property
    def is_final(self) -> bool:
        """True if nothing can be added: the stream is sealed, or was deleted."""
        return all(segment.sealed for segment in self.segments)

    @property
    def bytes(self) -> int:
        """Lag in bytes, all segments together."""
        return sum(segment.bytes for segment in self.segments)

    def _repr_html_(self) -> str:
        rows = [(each.name, each.offset, each.end, each.bytes, each.sealed) for each in self.segments]
        lost = f", {lost_bytes(self.losses):,} bytes lost" if self.losses else ""
        name = f"{self.stream}: {self.bytes:,} bytes of lag{lost}" if self.exists else f"{self.stream} was deleted"
        return table(name, ["segment", "at", "end", "behind", "sealed"], rows, len(rows))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the lag. It has the number of events only if it is 0, which is known without reading."""
        value: dict[str, Any] = {"bytes": self.bytes, "segments": {s.name: s.bytes for s in self.segments}}
        if not self.bytes:
            value["events"] = 0
        if self.losses:
            value["lost_bytes"] = lost_bytes(self.losses)
            value["losses"] = [loss.to_json() for loss in self.losses]
        return value if self.exists else value | {"deleted": True}


def stream_lag(
    client: PravegaClient, position: StreamCut, *, reader: str | None = None, lineage: Lineage | None = None
) -> StreamLag:
    """Return the lag of a reader at ``position``. For a deleted stream, ``exists`` is False; it raises no error.

    If all segments of the reader are open, the controller is not called. If you pass the name of a ``reader``, which
    may be empty, the lag is also a metric of this process. With the ``lineage`` of a routing key, the lag and
    the losses are those of its segments.
    """
    found = _stream_lag(client, position)
    if lineage is not None:
        segments = tuple(each for each in found.segments if lineage.includes(each.segment_id))
        losses = tuple(each for each in found.losses if each.deleted or lineage.includes(each.segment_id))
        found = replace(found, segments=segments, losses=losses)
    if reader is not None:
        note_lag(found, reader)
    return found


def note_lag(found: StreamLag, reader: str) -> None:
    """Record a lag as a metric of this process."""
    if found.exists:
        metrics.LAG.set(found.bytes, str(found.stream), reader)
    else:
        metrics.LAG.forget(str(found.stream), reader)
    metrics.MISSING.set(lost_bytes(found.losses), str(found.stream), reader)


def _stream_lag(client: PravegaClient, position: StreamCut) -> StreamLag:
    stream = position.stream
    found = survey(client.stores, position)
    if found.cut is None:
        return StreamLag(stream, (), found.losses, exists=False)
    if not any(info.sealed for info in found.infos.values()):
        segments = (
            SegmentLag(stream, i, at, found.infos[i].write_offset, False) for i, at in found.cut.positions.items()
        )
        return StreamLag(stream, tuple(segments), found.losses)
    return StreamLag(stream, tuple(_through_scaling(client, found.cut)), found.losses)


def _through_scaling(client: PravegaClient, position: StreamCut) -> Iterator[SegmentLag]:
    stream = position.stream
    if client.controller.current_segments(stream):
        ids = client.controller.segments_between(position, client.tail(stream))
    else:
        ids = _all_after(Lineage(client.stores, stream), position)  # sealed: its end follows only from its segments
    infos = client.stores.segment_infos(stream, ids)
    for segment_id in ids:
        info = infos[segment_id]
        if info.exists:
            # -1 in Java's cuts means that the segment has not begun.
            at = max(position.positions.get(segment_id, 0), info.start_offset)
            yield SegmentLag(stream, segment_id, at, info.write_offset, info.sealed)


def _all_after(lineage: Lineage, position: StreamCut) -> list[int]:
    """Return the segments of the position and all their successors."""
    found, frontier = set(position.positions), list(position.positions)
    while frontier:
        after = lineage.successors(frontier.pop()).keys() - found
        found |= after
        frontier += after
    return sorted(found)


def count_events(stores: SegmentStores, piece: SegmentSlice) -> int:
    """Count the events in a slice by reading all of it. Raises the errors of ``read_slice``."""
    return sum(len(column.offsets) for column in read_slice(stores, piece))

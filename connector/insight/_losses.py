"""What a reader at some position has lost: bytes that it did not read and that are gone.

Truncation and retention drop what lies before a cut of the stream: whole segments, and the beginnings of others. A
segment that is gone is no loss if it had been read to its end; its length then comes from the controller's tables
(``connector.client.sealed_lengths``). Where they do not tell, the loss is counted as unknown rather than as none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connector.client import Lineage, SegmentInfo, SegmentStores, StreamCut, StreamName, sealed_lengths
from connector.errors import StreamNotFoundError
from connector.wire import segment_name

__all__ = ["Loss", "Survey", "lost_bytes", "survey"]


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes of one segment that a reader did not read and that are gone."""

    stream: StreamName
    segment_id: int
    offset: int
    """Where the reader was in the segment."""
    bytes: int | None
    """How many are gone, 8 for each event included; None if nobody tells how long the segment was."""
    deleted: bool = False
    """Whether the whole stream was deleted, rather than truncated."""

    def __str__(self) -> str:
        amount = "an unknown number of bytes" if self.bytes is None else f"{self.bytes:,} bytes"
        how = "deleted with the stream" if self.deleted else "truncated away"
        be = "was" if self.bytes is None or self.bytes == 1 else "were"
        return f"segment {self.segment_id}, offset {self.offset}: {amount} from there on {be} {how} before being read"

    def to_json(self) -> dict[str, Any]:
        """The loss as JSON; ``bytes`` is null where nobody knows."""
        return {
            "stream": str(self.stream),
            "segment": segment_name(self.stream, self.segment_id).rsplit("/", 1)[1],
            "segment_id": self.segment_id,
            "offset": self.offset,
            "bytes": self.bytes,
            "reason": "deleted" if self.deleted else "truncated",
        }


def lost_bytes(losses: tuple[Loss, ...] | list[Loss]) -> int:
    """Bytes that are known to be lost: the least that there can be."""
    return sum(loss.bytes or 0 for loss in losses)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a stream still holds for a reader."""

    cut: StreamCut | None
    """Where the reader can go on; its own position if nothing of its segments is gone, None if the stream is."""
    losses: tuple[Loss, ...]
    """What it lost on the way there."""
    infos: Mapping[int, SegmentInfo]
    """State of the cut's segments."""


def survey(stores: SegmentStores, position: StreamCut, *, beyond: bool = False) -> Survey:
    """Where a reader at ``position`` can go on, and what it has lost.

    Segments that are gone are replaced by their successors, level by level, until all that are left have bytes or may
    get some. Asks segment stores only, as long as nothing of the position's segments is gone; ``beyond`` looks at the
    successors of finished ones all the same. Raises what its calls raise.
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
        """Whether anything that was looked at is gone, at the start or on the way."""
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
            # Nothing follows. Either the stream is being deleted, segments first, or it was made anew with others.
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
        """Note what is lost of a segment; whether nothing of it is left to read."""
        at = self.positions[info.id]
        if not info.exists:
            if length is None or at < length:
                self.losses.append(Loss(self.stream, info.id, at, None if length is None else length - at))
            return True
        if at < info.start_offset:
            self.losses.append(Loss(self.stream, info.id, at, info.start_offset - at))
            self.positions[info.id] = at = info.start_offset
        return info.sealed and at >= info.write_offset

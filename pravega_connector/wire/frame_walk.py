"""Boundaries of the event frames in a part of a segment.

A frame's length shows where the next frame begins, so the walk is a chain, about 100 ns per link in Python. Two
shortcuts are two to ten times faster. Each window uses one of them, by the sizes of its first events:

- Events of one size: compare all headers of the run at once.
- Events that are not large: their headers begin with six or seven zero bytes. Guess that every run of zeros is a
  header. Keep the chain of headers that lead to one another from a known boundary. Missed events (empty and larger
  ones) and wrong guesses (zeros in payloads) are bridged link by link. So the result never depends on the guess.

A frame is a type of four bytes (0), a length of four bytes, and the payload. So the header of an event below 256 bytes
has seven zeros, and that of one below 65,536 bytes has six::

    00 00 00 00 00 00 00 05  h  e  l  l  o | 00 00 00 00 00 00 00 02  h  i | 00 00 00 00 00 00 01 2C ...
    `---- type --' `- length' `- payload --'
      zero words of 4 or 2 bytes: candidates      next = start + 8 + length, a candidate too: a link of the chain
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pravega_connector.errors import ProtocolError

EVENT_HEADER_SIZE: Final = 8  # WireCommands.TYPE_PLUS_LENGTH_SIZE
# The Java reader has no limit. Writers limit events to 8 MiB unless they enable large events (LargeEventWriter.java).
# This limits the memory that one corrupt length can use.
MAX_READABLE_EVENT: Final = 128 * 1024 * 1024

_SAMPLE: Final = 16  # events walked one by one to sample a window
_WINDOW: Final = 1 << 20  # bytes; the temporary arrays of more do not fit into a second-level cache
_MIN_WINDOW: Final = 4096  # bytes; below it, numpy's overhead is larger than its gain
_MIN_RUN: Final = 64  # frames; after a shorter run of one size, searching for the next one does not pay
_SHORT: Final = 0xFF  # longest event with seven zero bytes in its header, which contain an aligned word of four
_MEDIUM: Final = 0xFFFF  # longest event with six zero bytes in its header, which contain two aligned words of two
_MAX_MEAN: Final = 400  # bytes; walking larger events is as fast as searching for zeros, because they are few
_MAX_ZEROS: Final = 3  # zero words for each expected event; with more of them, walking is as fast
_MAX_GAPS: Final = 1 / 32  # of the guessed headers; bridging a gap takes as long as about 30 links

Bytes: TypeAlias = bytes | bytearray | memoryview
Offsets: TypeAlias = npt.NDArray[np.int64]
_Guess: TypeAlias = Callable[[npt.NDArray[np.uint8], int], tuple[Offsets, Offsets] | None]
_HEADER: Final = struct.Struct(">Q")  # type 0 and length as one number


def walk_frames(
    chunk: Bytes, start: int = 0, *, offset: int = 0, segment: str = "", max_event_size: int = MAX_READABLE_EVENT
) -> Offsets:
    """Return the boundaries of the events in ``chunk`` after ``start``: the first start, then each end.

    The last boundary is after the chunk if the chunk has only a part of the last event, at least its header. Raises
    ProtocolError for an invalid header. The error names ``offset`` (of the chunk in its segment) and ``segment``.
    """
    walk = _Walk(chunk, start, offset, segment, max_event_size)
    walk.run()
    return walk.boundaries()


class _Walk:
    """Walk over one chunk: ``position`` is the current boundary, ``pieces`` the event starts before it."""

    def __init__(self, chunk: Bytes, start: int, offset: int, segment: str, limit: int) -> None:
        self.chunk, self.position, self.limit = chunk, start, limit
        self.offset, self.segment = offset, segment
        self.last = len(chunk) - EVENT_HEADER_SIZE
        self.pieces: list[Offsets | list[int]] = []

    def boundaries(self) -> Offsets:
        pieces = [*self.pieces, [self.position]]
        return np.concatenate([np.asarray(piece, np.int64) for piece in pieces])

    def run(self) -> None:
        while self.position <= self.last:
            lengths = self.step(self.last, _SAMPLE)
            end = min(self.position + _WINDOW, len(self.chunk))
            if end - self.position >= _MIN_WINDOW:
                longest, mean = max(lengths), sum(lengths) / len(lengths)
                if min(lengths) == longest and self.run_of(longest + EVENT_HEADER_SIZE, end) >= _MIN_RUN:
                    continue
                expected = (end - self.position) / (mean + EVENT_HEADER_SIZE)
                if longest <= _SHORT <= self.limit:
                    self.guess(end, expected, _guess_short)
                elif mean <= _MAX_MEAN and longest <= _MEDIUM <= self.limit:
                    self.guess(end, expected, _guess_medium)
            self.step(end - EVENT_HEADER_SIZE)

    def step(self, last: int, count: int | None = None) -> list[int]:
        """Walk ``count`` links, or all with a header at ``last`` or before it.

        Returns the lengths of the events.
        """
        lengths: list[int] = []
        # Lengths are unsigned: an invalid one leads out of the chunk and ends the loop, so the loop has no checks.
        unpack, found, position, chunk = _HEADER.unpack_from, lengths.append, self.position, self.chunk
        if last < self.last:
            chunk = memoryview(chunk)[: last + EVENT_HEADER_SIZE]
        try:
            for _ in repeat(None, len(chunk) // EVENT_HEADER_SIZE if count is None else count):
                (length,) = unpack(chunk, position)
                found(length)
                position += EVENT_HEADER_SIZE + length
        except (struct.error, OverflowError):
            pass
        if lengths:
            self.take_steps(lengths)
        return lengths

    def take_steps(self, lengths: list[int]) -> None:
        """Check the lengths of the next events and walk past them."""
        sizes = np.array(lengths[:-1], np.int64) + EVENT_HEADER_SIZE
        starts = np.cumsum(np.concatenate(([self.position], sizes)), dtype=np.int64)
        bad = sizes > self.limit + EVENT_HEADER_SIZE
        if bad.any():
            index = int(bad.argmax())
            raise self.bad_header(lengths[index], int(starts[index]))
        if lengths[-1] > self.limit:  # only the last one can exceed an int64
            raise self.bad_header(lengths[-1], int(starts[-1]))
        self.pieces.append(starts)
        self.position = int(starts[-1]) + EVENT_HEADER_SIZE + lengths[-1]

    def run_of(self, size: int, end: int) -> int:
        """Walk frames of one size up to another size or ``end``. Return their number."""
        count = (end - self.position) // size
        # A view with a stride of one frame: only the headers, each as a little-endian word.
        headers: npt.NDArray[np.uint64] = np.ndarray(count, "<u8", self.chunk, self.position, (size,))
        same = headers == int.from_bytes(_HEADER.pack(size - EVENT_HEADER_SIZE), "little")
        if not same.all():
            count = int(same.argmin())
        self.pieces.append(self.position + size * np.arange(count, dtype=np.int64))
        self.position += size * count
        return count

    def guess(self, end: int, expected: float, find: _Guess) -> None:
        """Walk along guessed headers up to ``end``. Do not move if the guess is bad."""
        base = self.position - EVENT_HEADER_SIZE  # finders read back from the zeros; a frame was walked before
        found = find(np.frombuffer(self.chunk, np.uint8, end - base, base), int(expected * _MAX_ZEROS))
        if found is None:
            return
        starts, lengths = found
        starts += base
        nexts = starts + lengths + EVENT_HEADER_SIZE
        starts, nexts = _drop_overleapt(starts, nexts)
        gaps = np.flatnonzero(nexts[:-1] != starts[1:])
        if len(gaps) >= len(starts) * _MAX_GAPS:
            return
        first = 0
        for link in (*gaps.tolist(), len(starts) - 1):
            self.follow(starts[first : link + 1], int(nexts[link]))
            first = link + 1

    def follow(self, chain: Offsets, behind: int) -> None:
        """Walk link by link to ``chain``, then along it to ``behind``. Walk past a false chain."""
        self.bridge(int(chain[0]))
        if self.position > chain[-1]:
            return
        index = int(chain.searchsorted(self.position))
        if chain[index] == self.position:
            self.pieces.append(chain[index:])
            self.position = behind

    def bridge(self, goal: int) -> None:
        """Walk a few links until ``goal`` is reached or passed, without :meth:`step`'s arrays."""
        starts: list[int] = []
        position = self.position
        while position < goal:
            (length,) = _HEADER.unpack_from(self.chunk, position)
            if length > self.limit:
                raise self.bad_header(length, position)
            starts.append(position)
            position += EVENT_HEADER_SIZE + length
        if starts:
            self.pieces.append(starts)
            self.position = position

    def bad_header(self, header: int, position: int) -> ProtocolError:
        """Return the error for eight bytes that cannot begin an event."""
        place = f"offset {self.offset + position}" + (f" of segment {self.segment}" if self.segment else "")
        kind, length = header >> 32, header & 0xFFFFFFFF
        kind -= kind >> 31 << 32  # Java's ints are signed: the top bit means negative
        if kind:
            return ProtocolError(
                f"no event begins at {place} (type {kind}, not 0): start at the boundary of an event, or read a byte "
                "stream (Java's ByteStreamClient) with client.byte_reader"
            )
        length -= length >> 31 << 32
        return ProtocolError(
            f"the event at {place} claims {length} bytes; the limit is {self.limit}. Read a byte stream (Java's "
            "ByteStreamClient) with client.byte_reader"
        )


def _guess_short(data: npt.NDArray[np.uint8], at_most: int) -> tuple[Offsets, Offsets] | None:
    """Return candidate starts and lengths of events of 1 to 255 bytes; None if there are too many.

    Eight bytes at each start can be a header. Only the chain shows if they are one.
    """
    words, skip = _aligned(data, 4)
    is_zero = words[1:-1] == 0
    if np.count_nonzero(is_zero) > at_most:
        return None
    zeros = np.flatnonzero(is_zero)
    before, after = words[zeros], words[2:][zeros]
    # The header's last byte, its length, is the first non-zero byte of the next word.
    tail = ((after & 0xFF) == 0).view(np.uint8) + ((after & 0xFFFF) == 0) + ((after & 0xFFFFFF) == 0)
    shift = tail.astype(np.uint32) << 3
    # It is ``tail`` bytes into the word after the zero word, and the header begins seven bytes before it.
    starts, lengths = zeros * 4 + tail + (skip + 1), (after >> shift) & 0xFF
    # The rest of its seven zero bytes must be the end of the previous word.
    sound = (before >> (shift + 8) == 0) & (after != 0)
    return (starts, lengths) if sound.all() else (starts[sound], lengths[sound])


def _guess_medium(data: npt.NDArray[np.uint8], at_most: int) -> tuple[Offsets, Offsets] | None:
    """Return candidates for events of 1 to 65,535 bytes, in twice the time of :func:`_guess_short`."""
    words, skip = _aligned(data, 2)
    is_zero = words[2:-2] == 0
    is_zero = is_zero[:-1] & is_zero[1:]
    if np.count_nonzero(is_zero) > 2 * at_most:  # a short event's header has two such places
        return None
    zeros = np.flatnonzero(is_zero)
    ends_run = np.ones(len(zeros), np.bool_)
    np.not_equal(zeros[1:], zeros[:-1] + 1, out=ends_run[:-1])
    # The byte after the zeros: the length of a short event, or the upper byte of a longer one's length.
    # The zeros may reach one byte into the next word.
    behind = zeros[ends_run] * 2 + (skip + 8)
    behind += data[behind] == 0
    head = data[behind].astype(np.int64)
    # Seven zeros come before a length of one byte, six before one of two.
    is_short = data[behind - 7] == 0
    lengths = np.where(is_short, head, head << 8 | data[behind + 1])
    starts = behind - 6 - is_short
    sound = (data[behind - 5] == 0) & (data[behind - 6] == 0)
    return (starts, lengths) if sound.all() else (starts[sound], lengths[sound])


def _aligned(data: npt.NDArray[np.uint8], width: int) -> tuple[npt.NDArray[np.unsignedinteger], int]:
    """Return aligned words of this width, and the offset of the first word.

    Comparing unaligned words is several times slower.
    """
    skip = -data.__array_interface__["data"][0] % width  # bytes up to the next address that the width divides
    return data[skip : skip + (len(data) - skip) // width * width].view(f"<u{width}"), skip


def _drop_overleapt(starts: Offsets, nexts: Offsets) -> tuple[Offsets, Offsets]:
    """Return the guessed headers without those inside the event of a header that leads to another one."""
    gaps = np.flatnonzero(nexts[:-1] != starts[1:])
    landing = np.searchsorted(starts, nexts[gaps])
    hits = starts.take(landing, mode="clip") == nexts[gaps]
    if not hits.any():
        return starts, nexts
    # Nesting depth: it grows after each header that leads to another one, and shrinks at the header that it leads to.
    depth = np.zeros(len(starts) + 1, np.int32)
    np.add.at(depth, gaps[hits] + 1, 1)
    np.add.at(depth, landing[hits], -1)
    keep = np.cumsum(depth[:-1]) == 0
    return starts[keep], nexts[keep]

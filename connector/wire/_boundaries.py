"""Where the event frames of a stretch of a segment begin and end."""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from connector.errors import ProtocolError

# The Java reader has no limit. Writers cap events at 8 MiB unless they opt into large events (LargeEventWriter.java);
# this bounds what one corrupt length makes a reader collect.
MAX_EVENT_SIZE: Final = 128 * 1024 * 1024

Bytes: TypeAlias = bytes | bytearray | memoryview
_HEADER: Final = struct.Struct(">q")  # type 0 and length as one number


def walk_frames(
    chunk: Bytes, start: int = 0, *, offset: int = 0, max_event_size: int = MAX_EVENT_SIZE
) -> npt.NDArray[np.int64]:
    """Boundaries of the events in ``chunk`` from ``start`` on: the start of the first one, then the end of each one.

    The last boundary may lie beyond the chunk, if the chunk holds no more than the header of the last event; whoever
    only looks for boundaries reads on from there. ``offset`` is the chunk's place in its segment, for the error.
    Raises ProtocolError for what is no event header.
    """
    positions = [start]
    position, last = start, len(chunk) - _HEADER.size
    unpack = _HEADER.unpack_from
    while position <= last:
        (length,) = unpack(chunk, position)
        if not 0 <= length <= max_event_size:
            raise bad_header(length, offset + position, max_event_size)
        position += 8 + length
        positions.append(position)
    return np.array(positions, dtype=np.int64)


def bad_header(header: int, offset: int, max_event_size: int) -> ProtocolError:
    """The error for eight bytes (as a signed number) that cannot begin an event at this offset of a segment."""
    kind, length = header >> 32, header & 0xFFFFFFFF
    if kind:
        return ProtocolError(
            f"no event begins at offset {offset}: type {kind} instead of 0; read from an event boundary of the segment"
        )
    return ProtocolError(
        f"the event at offset {offset} says it has {length - (length >> 31 << 32)} bytes; {max_event_size} are allowed"
    )

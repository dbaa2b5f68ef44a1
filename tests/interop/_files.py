"""The files in which events go to other clients' programs and come back; java/JavaPeer.java describes the format."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ReadEvent", "dump_events", "dump_read", "load_events", "load_read"]

_I32 = struct.Struct(">i")
_READ_HEAD = struct.Struct(">qqi")


class ReadEvent(NamedTuple):
    """An event that a client read: where from, as far as that client tells (-1 otherwise), and what."""

    segment: int
    offset: int
    payload: bytes


def dump_events(path: Path, events: Iterable[tuple[str | None, bytes]]) -> None:
    """Write (routing key, payload) pairs for a client to write."""
    with path.open("wb") as out:
        for key, payload in events:
            if key is None:
                out.write(_I32.pack(-1))
            else:
                # UTF-16 units and not UTF-8: Java strings may hold lone surrogates.
                units = key.encode("utf-16-be", "surrogatepass")
                out.write(_I32.pack(len(units) // 2) + units)
            out.write(_I32.pack(len(payload)) + payload)


def load_events(path: Path) -> Iterator[tuple[str | None, bytes]]:
    """Read what dump_events has written."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        (units,) = _I32.unpack_from(data, at)
        end = at + 4 + 2 * max(units, 0)
        key = None if units < 0 else data[at + 4 : end].decode("utf-16-be", "surrogatepass")
        (length,) = _I32.unpack_from(data, end)
        at = end + 4 + length
        yield key, data[end + 4 : at]


def dump_read(path: Path, events: Iterable[ReadEvent]) -> None:
    """Write events that were read."""
    with path.open("wb") as out:
        for event in events:
            out.write(_READ_HEAD.pack(event.segment, event.offset, len(event.payload)) + event.payload)


def load_read(path: Path) -> list[ReadEvent]:
    """The events that a client has read."""
    data, at, events = path.read_bytes(), 0, []
    while at < len(data):
        segment, offset, length = _READ_HEAD.unpack_from(data, at)
        at += _READ_HEAD.size + length
        events.append(ReadEvent(segment, offset, data[at - length : at]))
    return events

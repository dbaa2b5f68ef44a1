"""Where one event ends and the next begins in a flow of bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Protocol

from connector.errors import EventError, EventTooLargeError

__all__ = ["FRAMES", "Frames", "LengthFrames", "LineFrames"]

_LENGTH: Final = struct.Struct(">I")


class Frames(Protocol):
    """Cuts one source's bytes into events; holds at most one event that is not whole yet."""

    broken: EventError | None
    """Why no more events can be told apart: one that is too large."""

    def feed(self, data: bytes) -> list[bytes]:
        """The events that are whole with these bytes."""

    def finish(self) -> list[bytes]:
        """What the end of the source makes whole. Raises EventError for a frame that was cut short."""

    @property
    def pending(self) -> int:
        """Bytes that are no event yet."""


class LineFrames:
    """A line is an event, without its newline; so are an empty one, and a last one without newline."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._begun: list[bytes] = []  # pieces of the line that goes on
        self.pending = 0
        self.broken: EventError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in ``data``."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun, self.pending = [], 0
        self._begun.append(rest)
        self.pending += len(rest)
        if max(map(len, lines), default=0) > self._largest:
            first = next(i for i, line in enumerate(lines) if len(line) > self._largest)
            self.broken = _too_large(len(lines[first]), self._largest, "a line")
            return lines[:first]
        if self.pending > self._largest:
            self.broken = _too_large(self.pending, self._largest, "a line")
        return lines

    def finish(self) -> list[bytes]:
        """The last line, if it has no newline."""
        last = b"".join(self._begun)
        self._begun, self.pending = [], 0
        return [last] if last else []


class LengthFrames:
    """Each event comes after its length: four bytes, the highest first."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._data = bytearray()
        self.broken: EventError | None = None

    @property
    def pending(self) -> int:
        """Bytes that are no event yet."""
        return len(self._data)

    def feed(self, data: bytes) -> list[bytes]:
        """The events that end in ``data``."""
        self._data += data
        events, at, view = [], 0, bytes(self._data)
        while at + _LENGTH.size <= len(view):
            (size,) = _LENGTH.unpack_from(view, at)
            if size > self._largest:
                self.broken = _too_large(size, self._largest, "a frame")
                break
            end = at + _LENGTH.size + size
            if end > len(view):
                break
            events.append(view[at + _LENGTH.size : end])
            at = end
        del self._data[:at]
        return events

    def finish(self) -> list[bytes]:
        """Nothing: a frame tells itself when it is whole."""
        if self._data:
            raise EventError(f"the input ended {len(self._data)} bytes into a frame, which is no event")
        return []


def _too_large(size: int, largest: int, what: str) -> EventTooLargeError:
    return EventTooLargeError(
        f"{what} of {size} bytes or more is over the limit of {largest} bytes for an event; if that is no mistake in "
        "how the input is cut into events, raise max_event_size"
    )


#: Name -> what makes frames of it, with the largest event in bytes.
FRAMES: Final[dict[str, Callable[[int], Frames]]] = {"lines": LineFrames, "length": LengthFrames}

"""Places in a revisioned stream."""

from __future__ import annotations

from dataclasses import dataclass

from connector.errors import ConfigError, InvalidNameError
from connector.wire import StreamName, parse_segment_name, segment_name

__all__ = ["Revision"]


@dataclass(frozen=True, slots=True, order=True)
class Revision:
    """A place in a revisioned stream: after one entry, before the next. Later ones of a stream are greater.

    ``str()`` and :meth:`parse` are those of Java's ``RevisionImpl``.
    """

    stream: StreamName
    """The stream."""
    segment_id: int
    """Its only segment."""
    offset: int
    """Where in the segment the entry before ends, and the next begins."""
    update: int = 0
    """Number of the update inside an entry that holds several; only a state synchronizer has others than 0."""

    def __str__(self) -> str:
        return f"{segment_name(self.stream, self.segment_id)}:{self.offset}:{self.update}"

    @classmethod
    def parse(cls, text: str) -> Revision:
        """The revision called ``scope/stream/0.#epoch.0:offset:update``; ConfigError for anything else."""
        segment, *numbers = text.split(":")
        try:
            offset, update = map(int, numbers)
            return cls(*parse_segment_name(segment), offset, update)
        except (ValueError, InvalidNameError):
            raise ConfigError(f"{text[:200]!r} is no revision: write it as scope/stream/0.#epoch.0:offset:0") from None

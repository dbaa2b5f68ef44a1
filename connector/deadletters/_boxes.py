"""Where dead letters go: a stream, or a folder of files.

Both take the letters of one reading of a slice (see :class:`SliceReading`) from any number of attempts, one after the
other or at a time, and have each letter once: the stream by numbers that its segments remember, the folder by a name
that is the slice's own, which a whole file takes in one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from connector._whole_file import WholeFile
from connector.client import EventBatch, NumberedAppender, SegmentStores, StreamName
from connector.deadletters._letters import SliceReading, letters_of
from pravega_serde import DeserializationError

__all__ = ["FileLetters", "LetterBox", "StreamLetters"]


class LetterBox(Protocol):
    """Takes the letters of one reading of a slice; the ``with`` block is the reading."""

    def write(self, batch: EventBatch, errors: Sequence[DeserializationError]) -> None:
        """Take the bad events of a batch."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


class StreamLetters:
    """Letters as events of a stream, which must exist; durable when :meth:`write` returns."""

    def __init__(self, stores: SegmentStores, stream: StreamName, reading: SliceReading) -> None:
        self._appender = NumberedAppender(stores, stream, reading.key, reading.id.bytes)

    def write(self, batch: EventBatch, errors: Sequence[DeserializationError]) -> None:
        """Take the bad events of a batch. Raises StreamNotFoundError, StreamSealedError, and retriable errors."""
        self._appender.append(list(letters_of(batch, errors)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._appender.close()


class FileLetters:
    """Letters as lines of a file, which is there when the slice was read to its end; no file without letters."""

    def __init__(self, folder: Path, reading: SliceReading) -> None:
        piece = reading.slice
        self._path = folder / (
            f"{piece.stream.scope}.{piece.stream.stream}-{piece.segment_id}-{piece.start}-{piece.end}-{reading.id}.jsonl"
        )
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def write(self, batch: EventBatch, errors: Sequence[DeserializationError]) -> None:
        """Take the bad events of a batch. Raises OutputFileError."""
        if self._file is None:
            self._file = self._stack.enter_context(WholeFile(self._path))
        for _, letter in letters_of(batch, errors):
            self._file.write(letter + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        # A reader that stops early (LIMIT) leaves no file: a shorter one could replace a whole one.
        self._stack.__exit__(kind, error, tb)

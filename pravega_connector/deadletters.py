"""Dead-letter queue: malformed records with their position and error, in a stream or in files, each once.

:class:`StreamLetters` and :class:`FileLetters` store the dead letters of one reading of a slice
(:class:`SliceReading`). Any number of attempts may write them, one after the other or at the same time. Each letter is
stored once. The segments of the stream store the number of the last letter. The folder has one file name for each
slice, and a complete file gets this name in one step.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol, Self

from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.reader.slices import EventBatch, SegmentSlice
from pravega_connector.single_segment.conditional_append import NumberedAppender
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamName
from pravega_serde.atomic_file import WholeFile
from pravega_serde.errors import DeserializationError

__all__ = ["LETTER_SCHEMA", "FileLetters", "LetterBox", "SliceReading", "StreamLetters", "letters_of"]

#: Fields of a letter, for Spark's ``.schema(…)``.
LETTER_SCHEMA: Final = (
    "scope STRING, stream STRING, segment_id BIGINT, offset BIGINT, encoding_id INT, code STRING, error STRING, "
    "field STRING, size BIGINT, event BINARY"
)
# A random id for this purpose.
_NAMESPACE: Final = uuid.UUID("6f1d8e0e-3f0a-4f0e-9a53-6d0f6a1f8b57")


@dataclass(frozen=True, slots=True)
class SliceReading:
    """Part of a segment as one reader reads it. Equal readings find the same malformed records.

    ``reader`` identifies everything that decides which events are malformed, and the query, if it has an id.
    """

    slice: SegmentSlice
    reader: str

    @property
    def key(self) -> str:
        """Routing key of the letters. The letters of one segment stay in order."""
        return f"{self.slice.stream}/{self.slice.segment_id}"

    @property
    def id(self) -> uuid.UUID:
        """Id of the reading, the same for every repetition and for a reading that ends later."""
        return uuid.uuid5(_NAMESPACE, f"{self.key}/{self.slice.start}/{self.reader}")


def letters_of(batch: EventBatch, errors: Sequence[DeserializationError]) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of the event and the letter for each malformed record of a batch, in order.

    A letter is JSON text.
    """
    by_row = {error.row: error for error in reversed(errors) if error.row is not None}
    for row in sorted(by_row):
        offset = int(batch.offsets[row])
        yield offset, _letter(batch, offset, batch.events[row].as_py(), by_row[row])


def _letter(batch: EventBatch, offset: int, event: bytes, error: DeserializationError) -> bytes:
    fields: dict[str, Any] = {
        "scope": batch.stream.scope,
        "stream": batch.stream.stream,
        "segment_id": batch.segment_id,
        "offset": offset,
        "encoding_id": error.encoding_id,
        "code": error.code,
        "error": error.reason,
        "field": error.field_path,
        "size": len(event),
        "event": base64.b64encode(event).decode(),
    }
    letter = _text(fields)
    # A letter that is too large for a writer omits the event, which can be read at its offset.
    return letter if len(letter) <= MAX_EVENT_SIZE else _text(fields | {"event": None})


def _text(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


class LetterBox(Protocol):
    """Store of the letters of one reading of a slice; the ``with`` block is the reading."""

    def write(self, batch: EventBatch, errors: Sequence[DeserializationError]) -> None:
        """Store the malformed records of a batch."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


class StreamLetters:
    """Letters as events of a stream, which must exist. They are durable when :meth:`write` returns."""

    def __init__(self, stores: SegmentStores, stream: StreamName, reading: SliceReading) -> None:
        self._appender = NumberedAppender(stores, stream, reading.key, reading.id.bytes)

    def write(self, batch: EventBatch, errors: Sequence[DeserializationError]) -> None:
        """Store the malformed records of a batch.

        Raises StreamNotFoundError, StreamSealedError, retriable errors.
        """
        self._appender.append(list(letters_of(batch, errors)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._appender.close()


class FileLetters:
    """Letters as lines of a file, which appears when the slice was read to its end.

    Without letters, there is no file.
    """

    def __init__(self, folder: Path, reading: SliceReading) -> None:
        piece = reading.slice
        self._path = folder / (
            f"{piece.stream.scope}.{piece.stream.stream}-{piece.segment_id}-{piece.start}-{piece.end}-{reading.id}.jsonl"
        )
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def write(self, batch: EventBatch, errors: Sequence[DeserializationError]) -> None:
        """Store the malformed records of a batch. Raises OutputFileError."""
        if self._file is None:
            self._file = self._stack.enter_context(WholeFile(self._path))
        for _, letter in letters_of(batch, errors):
            self._file.write(letter + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        # A reader that stops early (LIMIT) leaves no file: a shorter file could replace a full one.
        self._stack.__exit__(kind, error, tb)

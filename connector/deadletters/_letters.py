"""Dead letters: what they say, and whose they are."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connector.client import MAX_EVENT_SIZE, EventBatch, SegmentSlice
from pravega_serde import DeserializationError

__all__ = ["LETTER_SCHEMA", "SliceReading", "letters_of"]

#: The fields of a letter as Spark's ``.schema(…)`` names them.
LETTER_SCHEMA: Final = (
    "scope STRING, stream STRING, segment_id BIGINT, offset BIGINT, encoding_id INT, code STRING, error STRING, "
    "field STRING, size BIGINT, event BINARY"
)
# Made once, for this purpose.
_NAMESPACE: Final = uuid.UUID("6f1d8e0e-3f0a-4f0e-9a53-6d0f6a1f8b57")


@dataclass(frozen=True, slots=True)
class SliceReading:
    """A part of a segment as one reader reads it: whoever reads the same one finds the same bad events.

    ``reader`` says how: all that decides which events are bad, and the query, where it has an id.
    """

    slice: SegmentSlice
    reader: str

    @property
    def key(self) -> str:
        """The routing key of its letters: those of one segment stay in order."""
        return f"{self.slice.stream}/{self.slice.segment_id}"

    @property
    def id(self) -> uuid.UUID:
        """The same for every repetition, also for one that reads further."""
        return uuid.uuid5(_NAMESPACE, f"{self.key}/{self.slice.start}/{self.reader}")


def letters_of(batch: EventBatch, errors: Sequence[DeserializationError]) -> Iterator[tuple[int, bytes]]:
    """(offset of the event, letter) for each bad row of a batch, in their order; a letter is JSON text."""
    by_row = {error.row: error for error in reversed(errors) if error.row is not None}
    for row in sorted(by_row):
        offset = int(batch.offsets[row])
        yield offset, _letter(batch, offset, batch.events[row].as_py(), by_row[row])


def _letter(batch: EventBatch, offset: int, event: bytes, error: DeserializationError) -> bytes:
    said: dict[str, Any] = {
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
    letter = _text(said)
    # One that no writer of Pravega's would write goes without the event, which can be read at its offset.
    return letter if len(letter) <= MAX_EVENT_SIZE else _text(said | {"event": None})


def _text(said: dict[str, Any]) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

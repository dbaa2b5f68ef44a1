"""Malformed records: the modes FAILFAST, PERMISSIVE and DROPMALFORMED, and the dead-letter queue of a query."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.deadletters import FileLetters, LetterBox, SliceReading, StreamLetters
from pravega_connector.errors import ConfigError, OutputFileError
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.spark.options import FormatOptions
from pravega_connector.spark.options.source import SourceOptions
from pravega_serde.columnar import nothing, number_column, select
from pravega_serde.errors import DeserializationError
from pravega_serde.serializer_interface import Serializer

#: Types of the two columns about a corrupt record: the record, and the decoding error.
CORRUPT_TYPES: Final = (pa.binary(), pa.string())

# Options that decide which events are malformed, in addition to the options of the format.
_DECIDING: Final = ("group", "namespace", "registry_type", "schema_evolution", "unknown_encoding_ids")

Locate = Callable[[DeserializationError], DeserializationError]
Check = Callable[["Decoded"], list[DeserializationError]]


def corrupt_names(record: str) -> tuple[str, str]:
    """Return the names of the two columns, derived from the name of the first."""
    return record, f"{record}_error"


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded column. Malformed rows are null in ``values`` and have one error each."""

    values: pa.Array
    errors: list[DeserializationError]

    def bad(self) -> npt.NDArray[np.bool_]:
        """Return the mask of the rows that could not be decoded."""
        bad = np.zeros(len(self.values), bool)
        bad[[error.row for error in self.errors if error.row is not None]] = True
        return bad

    def records(self, events: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events of the malformed rows; all other rows are null."""
        if not self.errors:
            return pa.nulls(len(events), CORRUPT_TYPES[0])
        return pc.if_else(number_column(self.bad()), events, nothing(CORRUPT_TYPES[0]))

    def reasons(self, tell: Callable[[DeserializationError], str] = str) -> pa.StringArray:
        """Return the texts of the errors; rows without an error are null."""
        if not self.errors:
            return pa.nulls(len(self.values), CORRUPT_TYPES[1])
        texts: list[str | None] = [None] * len(self.values)
        for error in self.errors:
            if error.row is not None:
                texts[error.row] = tell(error)
        return pa.array(texts, CORRUPT_TYPES[1])


def decode(
    serializer: Serializer[Any], events: pa.BinaryArray, mode: str, locate: Locate, check: Check | None = None
) -> Decoded:
    """Decode a column. In FAILFAST the first malformed row raises its error. ``locate`` adds the position of the event.

    ``check`` returns errors for rows that could be decoded. If the serializer cannot decode all events together, the
    values are those of the first events only.
    """
    read = getattr(serializer, "decode_first", serializer.decode_column)
    errors: list[DeserializationError] = []
    if mode == "FAILFAST":
        try:
            values = read(events)
        except DeserializationError as error:
            raise locate(error) from None
    else:
        values = read(events, on_error=lambda error: errors.append(locate(error)))
    found = Decoded(values, errors)
    return found if check is None else _checked(found, check(found), mode, locate)


def _checked(found: Decoded, more: list[DeserializationError], mode: str, locate: Locate) -> Decoded:
    """Return the column with the additional errors; the rows with these errors become null."""
    bad = found.bad()
    first = {error.row: error for error in reversed(more) if error.row is not None and not bad[error.row]}
    if not first:
        return found
    if mode == "FAILFAST":
        raise locate(first[min(first)])
    rows = np.arange(len(found.values))
    values = select(found.values, rows, valid=~np.isin(rows, list(first)))
    return Decoded(values, [*found.errors, *map(locate, first.values())])


# ---- dead-letter queue: malformed events are stored elsewhere, the query continues -----------------------------------


def check_letter_box(client: PravegaClient, options: SourceOptions) -> None:
    """Check, before the first event, that the dead-letter queue exists. A directory is created.

    Raises StreamNotFoundError, ConfigError, OutputFileError.
    """
    if options.dead_letter_stream is not None:
        letters = options.dead_letter_stream_name()
        if options.stream_pattern is None and letters in options.stream_names():
            raise ConfigError(f"the dead letters of stream {letters} cannot go to that stream: they would come again")
        client.require_stream(letters)
    if options.dead_letter_path is not None:
        try:
            Path(options.dead_letter_path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputFileError(
                f"the folder {options.dead_letter_path} for dead letters cannot be made: {error.strerror or error}"
            ) from error


def letter_box(
    client: PravegaClient, options: SourceOptions, schema: pa.Schema, piece: SegmentSlice, stop: int | None
) -> AbstractContextManager[LetterBox | None]:
    """Return the dead-letter writer of a slice up to ``stop``, for a ``with`` block.

    It is None if the options name no dead-letter queue.
    """
    if not options.has_dead_letters:
        return nullcontext()
    # A directory has a file for each range of a segment. A partial read must not replace the file of a full read.
    end = piece.end if stop is None else min(piece.end, stop)
    reading = SliceReading(replace(piece, end=end), _reader(options, schema))
    if options.dead_letter_path is not None:
        return FileLetters(Path(options.dead_letter_path), reading)
    return StreamLetters(client.stores, options.dead_letter_stream_name(), reading)


def _reader(options: SourceOptions, schema: pa.Schema) -> str:
    """Return the identity of a read: equal reads of the same query, if there is one, find the same malformed events.

    With another schema, other events may be malformed. If their dead letters had the same numbers, the server would
    treat some of them as duplicates. Limits, timeouts and addresses are not part of the identity, so a restarted query
    may change them.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - exports work without Spark

    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    names = [*(each.name for each in fields(FormatOptions)), *_DECIDING]
    given = [f"{name}={getattr(options, name)!r}" for name in names if getattr(options, name) is not None]
    return "\n".join([query or "", *given, str(schema.remove_metadata())])

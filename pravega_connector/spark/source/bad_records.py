"""Bad records: decoding in Spark's modes FAILFAST, PERMISSIVE and DROPMALFORMED, and the dead letters of a query."""

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

#: Types of the two columns that tell about a bad record: the record, and why it could not be decoded.
CORRUPT_TYPES: Final = (pa.binary(), pa.string())

# Beside the format's own options, what decides which events are bad.
_DECIDING: Final = ("group", "namespace", "registry_type", "schema_evolution", "unknown_encoding_ids")

Locate = Callable[[DeserializationError], DeserializationError]
Check = Callable[["Decoded"], list[DeserializationError]]


def corrupt_names(record: str) -> tuple[str, str]:
    """Names of the two columns, from the name of the first."""
    return record, f"{record}_error"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded column; bad rows are null in ``values`` and have an error each."""

    values: pa.Array
    errors: list[DeserializationError]

    def bad(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows that could not be decoded."""
        bad = np.zeros(len(self.values), bool)
        bad[[error.row for error in self.errors if error.row is not None]] = True
        return bad

    def records(self, events: pa.BinaryArray) -> pa.BinaryArray:
        """The events of the bad rows; null in all others."""
        if not self.errors:
            return pa.nulls(len(events), CORRUPT_TYPES[0])
        return pc.if_else(number_column(self.bad()), events, nothing(CORRUPT_TYPES[0]))

    def reasons(self, tell: Callable[[DeserializationError], str] = str) -> pa.StringArray:
        """The errors' texts; null in the rows that are good."""
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
    """Decode a column. In FAILFAST the first bad row raises its error; ``locate`` adds where the event is.

    ``check`` says what is bad about rows that could be decoded. The values are those of the first events only where
    the serializer decodes no more together.
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
    """The same, with the rows null that have errors only now."""
    bad = found.bad()
    first = {error.row: error for error in reversed(more) if error.row is not None and not bad[error.row]}
    if not first:
        return found
    if mode == "FAILFAST":
        raise locate(first[min(first)])
    rows = np.arange(len(found.values))
    values = select(found.values, rows, valid=~np.isin(rows, list(first)))
    return Decoded(values, [*found.errors, *map(locate, first.values())])


# ---- dead letters: bad events kept elsewhere while the query goes on -------------------------------------------------


def check_letter_box(client: PravegaClient, options: SourceOptions) -> None:
    """See, before the first event, that dead letters have a place to go to; a folder is made.

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
    """Box for the bad events of a slice up to ``stop``, for a ``with`` block; None where the options name none."""
    if not options.has_dead_letters:
        return nullcontext()
    # A folder has a file for each range of a segment: one that is read in part must not take the place of the whole.
    end = piece.end if stop is None else min(piece.end, stop)
    reading = SliceReading(replace(piece, end=end), _reader(options, schema))
    if options.dead_letter_path is not None:
        return FileLetters(Path(options.dead_letter_path), reading)
    return StreamLetters(client.stores, options.dead_letter_stream_name(), reading)


def _reader(options: SourceOptions, schema: pa.Schema) -> str:
    """Identity of a reading: two of the same find the same bad events, for the same query if there is one.

    Another schema may find other events bad: were its letters numbered with those of before, the server would take some
    for repetitions. Limits, timeouts and addresses change nothing, so a restarted query may have others.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - exports work without Spark

    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    names = [*(each.name for each in fields(FormatOptions)), *_DECIDING]
    given = [f"{name}={getattr(options, name)!r}" for name in names if getattr(options, name) is not None]
    return "\n".join([query or "", *given, str(schema.remove_metadata())])

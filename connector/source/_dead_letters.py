"""Events that cannot be decoded, kept elsewhere while a query goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from connector.client import PravegaClient, SegmentSlice, SegmentTimes
from connector.deadletters import FileLetters, LetterBox, SliceReading, StreamLetters
from connector.errors import ConfigError, OutputFileError
from connector.options import FormatOptions
from connector.source._columns import Decoder, RowBuilder, batches
from connector.source._data_loss import read_remaining
from connector.source._event_time import NO_TIMES
from connector.source._options import SourceOptions

__all__ = ["check_letter_box", "rows_with_letters"]

# Beside the format's own options, what decides which events are bad.
_DECIDING: Final = ("group", "namespace", "registry_type", "schema_evolution", "unknown_encoding_ids")


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
                f"the folder {options.dead_letter_path} for dead letters cannot be had: {error.strerror or error}"
            ) from error


def rows_with_letters(
    client: PravegaClient,
    options: SourceOptions,
    schema: pa.Schema,
    serializer: Decoder,
    piece: SegmentSlice,
    *,
    times: SegmentTimes = NO_TIMES,
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice. What could not be decoded of a batch is safe elsewhere before its rows are handed on."""
    with _letter_box(client, options, SliceReading(piece, _reader(options, schema))) as letters:
        builder = RowBuilder(schema, options, serializer, letters.write, times)
        with closing(read_remaining(client.stores, [piece], fail=options.fail_on_data_loss)) as events:
            yield from batches(builder, events)


def _letter_box(client: PravegaClient, options: SourceOptions, reading: SliceReading) -> LetterBox:
    if options.dead_letter_path is not None:
        return FileLetters(Path(options.dead_letter_path), reading)
    return StreamLetters(client.stores, options.dead_letter_stream_name(), reading)


def _reader(options: SourceOptions, schema: pa.Schema) -> str:
    """What makes two readings of a slice the same: they find the same bad events, for the same query if there is one.

    Another schema may find other events bad: were its letters numbered with those of before, the server would take some
    for repetitions. Limits, timeouts and addresses change nothing, so a restarted query may have others.
    """
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    names = [*(each.name for each in fields(FormatOptions)), *_DECIDING]
    given = [f"{name}={getattr(options, name)!r}" for name in names if getattr(options, name) is not None]
    return "\n".join([query or "", *given, str(schema.remove_metadata())])

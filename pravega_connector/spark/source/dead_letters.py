"""The dead-letter queue of a query: malformed events are stored elsewhere, and the query continues."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import check_target
from pravega_connector.deadletters import FileLetters, LetterBox, SliceReading, StreamLetters
from pravega_connector.errors import ConfigError, OutputFileError
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.rows.options import FormatOptions
from pravega_connector.rows.options.encryption import EncryptionOptions
from pravega_connector.rows.options.source import SourceOptions

# Options that decide which events are malformed, in addition to the options of the format.
_DECIDING: Final = (
    *("envelope", "unwrap", "group", "also_group", "namespace", "registry_type"),
    *("schema_version", "schema_evolution", "unknown_encoding_ids"),
)


def check_letter_box(client: PravegaClient, options: SourceOptions) -> None:
    """Check, before the first event, that the dead-letter queue exists. A directory is created.

    Raises StreamNotFoundError, ConfigError, OutputFileError, and InvalidNameError for a stream without events.
    """
    if options.dead_letter_stream is not None:
        letters = options.dead_letter_stream_name()
        if options.stream_pattern is None and letters in options.stream_names():
            raise ConfigError(
                f"stream {letters} cannot be its own dead-letter queue: its dead letters would be read "
                "again; set another stream"
            )
        client.require_stream(letters)
        check_target(client.controller, letters)
    if options.dead_letter_path is not None:
        try:
            Path(options.dead_letter_path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputFileError(
                f"the folder {options.dead_letter_path} for dead letters cannot be created: {error.strerror or error}"
            ) from error


def task_letter_box(
    client: PravegaClient, options: SourceOptions, schema: pa.Schema, piece: SegmentSlice, stop: int | None
) -> AbstractContextManager[LetterBox | None]:
    """Return the dead-letter writer of a slice up to ``stop`` in a task of Spark, for a ``with`` block.

    It is None if the options name no dead-letter queue.
    """
    if not options.has_dead_letters:
        return nullcontext()
    from pyspark import TaskContext  # noqa: PLC0415 - exports work without Spark

    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    # A directory has a file for each range of a segment. A partial read must not replace the file of a full read.
    end = piece.end if stop is None else min(piece.end, stop)
    return letter_box(client, options, schema, replace(piece, end=end), query)


def letter_box(
    client: PravegaClient, options: SourceOptions, schema: pa.Schema, piece: SegmentSlice, query: str | None
) -> LetterBox:
    """Return the dead-letter writer of a slice. ``query`` is the id of the streaming query, if there is one."""
    reading = SliceReading(piece, _reader(options, schema, query))
    if options.dead_letter_path is not None:
        return FileLetters(Path(options.dead_letter_path), reading)
    return StreamLetters(client.stores, options.dead_letter_stream_name(), reading)


def _reader(options: SourceOptions, schema: pa.Schema, query: str | None) -> str:
    """Return the identity of a read: equal reads of the same query, if there is one, find the same malformed events.

    With another schema, other events may be malformed. If their dead letters had the same numbers, the server would
    treat some of them as duplicates. Limits, timeouts and addresses are not part of the identity, so a restarted query
    may change them.
    """
    unused = set() if options.encrypted_fields is not None else {each.name for each in fields(EncryptionOptions)}
    names = [*(each.name for each in fields(FormatOptions) if each.name not in unused), *_DECIDING]
    given = [f"{name}={getattr(options, name)!r}" for name in names if getattr(options, name) is not None]
    return "\n".join([query or "", *given, str(schema.remove_metadata())])

"""Dead letters of the slices that the JVM of an executor reads: its Python process stores them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from pravega_connector.deadletters import LetterBox
from pravega_connector.reader.slices import EventBatch, SegmentSlice
from pravega_connector.spark.jvm.decoding import typed_rows
from pravega_connector.spark.known_clusters import client_of
from pravega_connector.spark.source.dead_letters import letter_box
from pravega_connector.wire import StreamName
from pravega_serde.errors import DeserializationError


class SliceLetters:
    """Dead letters of one reading of a slice. Thread safe: a slice has one request at a time, and may end during it."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """Prepare the dead letters of the slice of a request. Nothing is opened before the first of them."""
        self.in_file = 0
        """Letters in a file that is not complete."""
        self._read, self._query = typed_rows(request["rows"]), request["query"]
        stream = StreamName(request["scope"], request["stream"])
        self._slice = SegmentSlice(stream, request["segment_id"], request["start"], request["end"])
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._box: LetterBox | None = None
        self._closed = False

    def write(self, found: Sequence[tuple[EventBatch, Sequence[DeserializationError]]]) -> int:
        """Store malformed events. They are durable in a stream; for a file, return how many it has more.

        Raises StreamNotFoundError, StreamSealedError, OutputFileError, retriable errors.
        """
        with self._lock:
            if not found or self._closed:
                return 0
            if self._box is None:
                client = client_of(self._read.options, service=True)
                box = letter_box(client, self._read.options, self._read.schema, self._slice, self._query)
                self._box = self._stack.enter_context(box)
            for batch, errors in found:
                self._box.write(batch, errors)
        if self._read.options.dead_letter_path is None:
            return 0
        more = sum(len(errors) for _, errors in found)
        self.in_file += more
        return more

    def complete(self) -> None:
        """End a slice that was read to its end: a file appears under its name. Raises OutputFileError."""
        with self._lock:
            self._closed = True
            self._stack.close()

    def close(self) -> None:
        """End a slice that was given up: its file is removed. Without effect after :meth:`complete`."""
        with self._lock:
            self._closed = True
            self._stack.__exit__(GeneratorExit, GeneratorExit(), None)

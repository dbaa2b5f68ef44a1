"""The columns that all records of an ingestion have, as recorded in its state, and how they become events."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pyarrow as pa

from connector.ingest._encode import Encoding
from connector.ingest._source import ReplayableSource

__all__ = ["Columns", "recorded_schema"]


class Columns:
    """Keeps to the columns that are recorded, whoever has inferred them; to the source's until some are."""

    def __init__(self, source: ReplayableSource, make_encoding: Callable[[pa.Schema], Encoding]) -> None:
        self._source, self._make_encoding = source, make_encoding
        self._current: tuple[str, Encoding] | None = None

    def agree(self, recorded: str | None) -> tuple[str | None, Encoding]:
        """The columns, if they are still to be recorded, and their encoding.

        Raises SourceError, ColumnTypeError, ConfigError, RegistryErrors.
        """
        if self._current is None or recorded not in (None, self._current[0]):
            if recorded is not None:
                self._source.fix(recorded_schema(recorded))
            schema = self._source.schema
            self._current = base64.b64encode(schema.serialize()).decode(), self._make_encoding(schema)
        text, encoding = self._current
        return None if text == recorded else text, encoding


def recorded_schema(text: str) -> pa.Schema:
    """The columns that a state has."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))

"""Target streams of records: a column names the stream of each record, and each step has a transaction in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.rows.encoding import require_text
from pravega_connector.rows.target_streams import rows_by_stream
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction, TransactionalWriter

#: Maximum streams of a step: each has a transaction with a thread, and memory for unacknowledged events.
MAX_TARGETS: Final = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """Events of one stream, and their routing keys if they have any."""

    stream: StreamName
    events: pa.Array
    keys: pa.Array | None


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """Column with the stream of each record: ``scope/stream``, or a stream in the scope of ``default``."""

    name: str
    default: StreamName
    """Stream of the records that have no value in the column."""
    check: Callable[[StreamName], None]
    """Raises InvalidNameError for a stream that has no events."""

    def without(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of an event. Raises ColumnTypeError."""
        index = schema.get_field_index(self.name)
        if index < 0:
            names = ", ".join(schema.names)
            raise ColumnTypeError(f"the records have no column {self.name!r} for their stream; they have {names}")
        require_text(schema, self.name)
        return schema.remove(index)

    def split(self, column: pa.Array, events: pa.Array, keys: pa.Array | None) -> Iterator[Rows]:
        """Yield the events of each stream, in their order. Raises InvalidNameError for an invalid name."""
        for stream, rows in rows_by_stream(column, self.name, self._stream):
            if rows is None:
                yield Rows(stream, events, keys)
            else:
                yield Rows(stream, events.take(rows), None if keys is None else keys.take(rows))

    def _stream(self, text: str | None) -> StreamName:
        if not text:
            return self.default
        found = StreamName.parse(text) if "/" in text else StreamName(self.default.scope, text)
        self.check(found)
        return found


class Parts:
    """Transactions of a step in the streams that its records name. Not thread safe."""

    def __init__(
        self, client: PravegaClient, keeper: LeaseKeeper, lease: float, require: Callable[[StreamName], object]
    ) -> None:
        """``require`` creates a stream, if that is allowed, or raises StreamNotFoundError."""
        self._client, self._keeper, self._lease, self._require = client, keeper, lease, require
        self._writers: dict[StreamName, TransactionalWriter[bytes]] = {}
        self._open: dict[StreamName, OpenTransaction[bytes]] = {}

    @property
    def open(self) -> tuple[OpenTransaction[bytes], ...]:
        """Transactions of the current step."""
        return tuple(self._open.values())

    def of(self, stream: StreamName) -> OpenTransaction[bytes]:
        """Return the transaction of the current step in a stream. Raises ConfigError for too many streams."""
        if (found := self._open.get(stream)) is not None:
            return found
        if len(self._open) >= MAX_TARGETS:
            raise ConfigError(
                f"a transaction has records for more than {MAX_TARGETS} streams: make transactions smaller "
                "(variant=count with fewer records)"
            )
        begun = self._open[stream] = self.begin(stream)
        self._keeper.add(begun)
        return begun

    def begin(self, stream: StreamName) -> OpenTransaction[bytes]:
        """Begin a transaction that is not a part of the current step."""
        if stream not in self._writers:
            self._require(stream)
            self._writers[stream] = self._client.transactions(stream, lease=self._lease)
        return self._writers[stream].begin()

    def forget(self) -> None:
        """End the step."""
        self._open.clear()

"""Target streams of rows: the stream in the options, or the streams that ``target_stream`` names.

The column ``target_stream`` applies if neither an option nor ``save(…)`` names a stream. It is not part of the event.
The rows of one stream keep their order, so the events of a routing key do, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import check_target as check_events
from pravega_connector.controller.targets import has_state
from pravega_connector.errors import InvalidNameError
from pravega_connector.rows.encoding import EventEncoder
from pravega_connector.rows.options.sink import TARGET_STREAM
from pravega_connector.wire import StreamName


@dataclass(frozen=True, slots=True)
class Written:
    """Rows of a batch for one stream: events, routing keys or None, and the rows with their event times."""

    stream: StreamName
    events: pa.Array
    keys: pa.Array | None
    rows: pa.RecordBatch


def parts_of(
    batch: pa.RecordBatch, encoder: EventEncoder, named: Callable[[str | None], StreamName]
) -> Iterator[Written]:
    """Yield the rows of a batch, grouped by stream. ``named`` converts a text or None to a stream.

    Raises the errors of ``encode``, InvalidNameError for a row without a stream or with an invalid name.
    """
    events, keys = encoder.encode(batch)
    if encoder.target is None:
        yield Written(named(None), events, keys, batch)
        return
    times = [] if encoder.event_time is None else [encoder.event_time.column]
    column = batch.column(encoder.target)
    if column.null_count:
        row = pc.index(pc.is_null(column), value=True).as_py()
        raise InvalidNameError(f"row {row} of column {TARGET_STREAM!r} is null: set a stream in each row")
    for stream, rows in rows_by_stream(column, TARGET_STREAM, named):
        if rows is None:
            yield Written(stream, events, keys, batch)
        else:
            own = None if keys is None else keys.take(rows)
            yield Written(stream, events.take(rows), own, batch.select(times).take(rows))


def check_target(client: PravegaClient, stream: StreamName, state: StreamName | None = None) -> None:
    """Raise InvalidNameError for a stream that has no events: an event would damage the state in it.

    These are Pravega's internal streams, and streams with the state of exactly-once writes, such as ledgers. ``state``
    is such a stream that the writer uses itself.
    """
    if stream == state:
        raise has_state(stream)
    known = _with_events.setdefault(client, set())
    # A stream that does not exist is asked for again: a ledger of its name may be created.
    if stream not in known and check_events(client.controller, stream):
        known.add(stream)


#: Streams that have events, by client.
_with_events: Final = weakref.WeakKeyDictionary[PravegaClient, set[StreamName]]()


def checked(
    client: PravegaClient, named: Callable[[str | None], StreamName], state: StreamName | None = None
) -> Callable[[str | None], StreamName]:
    """Return ``named`` with :func:`check_target`. The stream of the options was checked before the first task."""

    def stream(text: str | None) -> StreamName:
        found = named(text)
        if text is not None:
            check_target(client, found, state)
        return found

    return stream


def rows_by_stream(
    column: pa.Array, name: str, named: Callable[[str | None], StreamName]
) -> Iterator[tuple[StreamName, pa.Array | None]]:
    """Yield each stream that a column names, and the indices of its rows in their order; None for all rows.

    ``named`` converts a value of the column to a stream. Its InvalidNameError is raised with the row.
    """
    encoded = column.dictionary_encode(null_encoding="encode")
    numbers: dict[StreamName, int] = {}
    meant: list[int] = []
    for text in encoded.dictionary.to_pylist():
        try:
            meant.append(numbers.setdefault(named(text), len(numbers)))
        except InvalidNameError as error:
            row = pc.index(encoded.indices, value=len(meant)).as_py()
            raise InvalidNameError(f"row {row} of column {name!r}: {error.message}") from None
    if len(numbers) == 1:
        yield next(iter(numbers)), None
        return
    of_rows = np.array(meant, np.int64)[encoded.indices.to_numpy()]
    order = np.argsort(of_rows, kind="stable")
    bounds = np.searchsorted(of_rows[order], np.arange(len(numbers) + 1)).tolist()
    for stream, first, last in zip(numbers, bounds, bounds[1:], strict=False):
        yield stream, pa.array(order[first:last])

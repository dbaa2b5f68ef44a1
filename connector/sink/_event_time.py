"""Event time of what is written: the latest of a column's times, noted when the rows can be read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from connector.client import PravegaClient
from connector.errors import ColumnTypeError, ConnectorError
from connector.sink._options import SinkOptions

__all__ = ["EventTime", "LatestTime", "check_aggregation", "event_time_of"]

_log: Final = logging.getLogger(__name__)
_MILLIS: Final = pa.timestamp("ms")


@dataclass(frozen=True, slots=True)
class EventTime:
    """Which column has the times of the rows. Can be pickled."""

    column: str
    delay_ms: int
    """How much earlier rows may still come than the latest one, as the delay of Spark's ``withWatermark``."""

    def latest(self, batch: pa.RecordBatch) -> int | None:
        """The latest time in a batch, in milliseconds since 1970; None if all are null."""
        value = pc.max(batch.column(self.column))
        if not pa.types.is_integer(value.type):
            # Of a part of a millisecond the lower whole: no later row may be before what is noted.
            zone = getattr(value.type, "tz", None)
            value = pc.floor_temporal(value.cast(pa.timestamp("us", zone)), unit="millisecond").cast(_MILLIS)
            value = value.cast(pa.int64())
        return None if (latest := value.as_py()) is None else int(latest)


class LatestTime:
    """The time that the rows of a task amount to; None without a column, and for rows without times."""

    def __init__(self, event_time: EventTime | None) -> None:
        self._event_time = event_time
        self._latest: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows into account."""
        latest = None if self._event_time is None else self._event_time.latest(batch)
        if latest is not None and (self._latest is None or latest > self._latest):
            self._latest = latest

    @property
    def millis(self) -> int | None:
        """What is to be noted."""
        if self._latest is None or self._event_time is None:
            return None
        return self._latest - self._event_time.delay_ms


def event_time_of(schema: pa.Schema, options: SinkOptions) -> EventTime | None:
    """The column that the options name. Raises ColumnTypeError."""
    name = options.event_time_column
    if name is None:
        return None
    if name not in schema.names:
        raise ColumnTypeError(
            f"the DataFrame has no column {name!r} for 'event_time_column' (it has: {', '.join(schema.names)})"
        )
    kind = schema.field(name).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_int64(kind)):
        raise ColumnTypeError(
            f"column {name!r} is {kind}, not a time: 'event_time_column' takes TIMESTAMP, TIMESTAMP_NTZ, DATE, and "
            "BIGINT (milliseconds since 1970)"
        )
    return EventTime(name, options.event_time_delay_ms)


def check_aggregation(client: PravegaClient, options: SinkOptions) -> None:
    """Warn of a stream whose watermarks wait for no writer: of several writers the fastest alone makes them then."""
    if options.event_time_column is None:
        return
    stream = options.stream_name()
    try:
        config = client.controller.stream_config(stream)
    except ConnectorError as error:  # times are advice to readers: they are no reason not to write
        _log.info("whether the watermarks of stream %s wait for slow writers is not known: %s", stream, error)
        return
    if config.timestamp_aggregation_timeout_ms == 0:
        _log.warning(
            "the watermarks of stream %s wait for no writer: where several note event time, the lower bounds that "
            "readers see (event_time_low) can be later than the rows. Set a timeout, longer than the pauses between "
            "their batches: client.controller.update_stream(stream, dataclasses.replace(client.controller."
            "stream_config(stream), timestamp_aggregation_timeout_ms=60_000))",
            stream,
        )

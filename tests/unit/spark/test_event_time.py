"""Event times of what is written, and as columns."""

import datetime
import pickle

import pyarrow as pa
import pytest

from pravega_connector.errors import ColumnTypeError
from pravega_connector.reader.rows import timestamps
from pravega_connector.rows.encoding import LatestTime, encoder_for
from pravega_connector.rows.offsets import Offset
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.wire import StreamCut, StreamName

UTC = datetime.UTC
NOON = datetime.datetime(2026, 11, 21, 12, tzinfo=UTC)
MILLIS = int(NOON.timestamp() * 1000)


def encoder(batch: pa.RecordBatch, **options: str):
    return encoder_for(batch.schema, parse_options(SinkOptions, {"path": "s/t", "event_time_column": "at", **options}))


def batch(times: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"event": pa.array([b"x"] * len(times), pa.binary()), "at": times})


@pytest.mark.parametrize(
    ("kind", "values", "latest"),
    [
        (pa.timestamp("us", "UTC"), [NOON, None, NOON - datetime.timedelta(days=1)], MILLIS),
        (pa.timestamp("us"), [NOON.replace(tzinfo=None)], MILLIS),
        # Events of the same millisecond must not be before the noted time.
        (pa.timestamp("us", "UTC"), [NOON + datetime.timedelta(microseconds=999)], MILLIS),
        (pa.timestamp("us"), [datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)], -1),
        (pa.timestamp("ns", "Europe/Berlin"), [NOON], MILLIS),
        # The hour that New York repeats.
        (
            pa.timestamp("us", "America/New_York"),
            [datetime.datetime(2026, 11, 1, 6, 30, tzinfo=UTC)],
            1_793_514_600_000,
        ),
        (pa.timestamp("us", "UTC"), [-(2**63)], -9_223_372_036_854_776),
        (pa.date32(), [datetime.date(1970, 1, 2), datetime.date(1970, 1, 1)], 86_400_000),
        (pa.date32(), [2**31 - 1], (2**31 - 1) * 86_400_000),
        (pa.date64(), [datetime.date(1970, 1, 2)], 86_400_000),
        (pa.int64(), [5, 7, None], 7),
        (pa.int64(), [None], None),
        (pa.timestamp("us", "UTC"), [], None),
    ],
)
def test_the_latest_time_of_the_rows_is_taken(kind, values, latest) -> None:
    rows = batch(pa.array(values, kind))
    found = pickle.loads(pickle.dumps(encoder(rows)))
    time = LatestTime(found.event_time)
    time.add(rows)
    time.add(rows.slice(0, 0))
    assert time.millis == latest
    events, _ = found.encode(rows)
    assert events.to_pylist() == [b"x"] * len(values)


def test_the_delay_is_subtracted_and_an_earlier_batch_takes_nothing_back() -> None:
    rows = batch(pa.array([100], pa.int64()))
    time = LatestTime(encoder(rows, event_time_delay_ms="30").event_time)
    assert time.millis is None
    time.add(rows)
    time.add(batch(pa.array([50], pa.int64())))
    assert time.millis == 70
    earliest = LatestTime(encoder(rows, event_time_delay_ms="30").event_time)
    earliest.add(batch(pa.array([-(2**63)], pa.int64())))
    assert earliest.millis == -(2**63)


def test_a_column_of_a_format_stays_part_of_the_event() -> None:
    rows = pa.record_batch({"name": ["a"], "at": pa.array([NOON], pa.timestamp("us", "UTC"))})
    events, _ = encoder(rows, format="json").encode(rows)
    assert b'"at"' in events[0].as_py()


def test_columns_without_a_time() -> None:
    with pytest.raises(ColumnTypeError, match=r"no column 'at'.*it has: event"):
        encoder(pa.record_batch({"event": [b"x"]}))
    with pytest.raises(ColumnTypeError, match=r"'at' is string, not a time"):
        encoder(batch(pa.array(["2026"])))
    with pytest.raises(ColumnTypeError, match=r"columns at would not be written"):
        encoder_for(batch(pa.array([1])).schema, parse_options(SinkOptions, {"path": "s/t"}))


def test_an_offset_says_how_far_the_watermarks_went() -> None:
    stream = StreamName("s", "t")
    offset = Offset({stream: StreamCut(stream, {0: 5})}, marks={stream: 113})
    value = offset.to_json()
    assert (value["marks"], value["version"]) == ({"s/t": 113}, 1)
    assert Offset.from_json(value) == offset
    assert "marks" not in Offset(offset.cuts).to_json()


def test_times_that_no_timestamp_can_be_are_null() -> None:
    times = timestamps(pa.array([0, -1, 2**63 - 1, -(2**63), None, 2**53]))
    assert times.type == pa.timestamp("us", "UTC")
    assert times.cast(pa.int64()).to_pylist() == [0, -1000, None, None, None, 2**53 * 1000]

"""Rows by the streams that a column of theirs names."""

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from pravega_connector.client import PravegaClient
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import ColumnTypeError, ConfigError, InvalidNameError
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.target_streams import Written, check_target, parts_of
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.source.dead_letters import check_letter_box
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName

FIRST = dt.datetime(2026, 1, 1)


def rows(targets: list[str | None], kind: pa.DataType | None = None) -> pa.RecordBatch:
    numbers = [str(i) for i in range(len(targets))]
    return pa.record_batch(
        {
            "event": pa.array([number.encode() for number in numbers], pa.binary()),
            "routing_key": pa.array([f"key {number}" for number in numbers]),
            "target_stream": pa.array(targets, kind or pa.string()),
            "at": pa.array([FIRST + dt.timedelta(i) for i in range(len(targets))], pa.timestamp("us")),
        }
    )


def parts(targets: list[str | None], **options: str) -> list[Written]:
    batch = rows(targets)
    parsed = parse_options(SinkOptions, {"scope": "a", "event_time_column": "at", **options})
    return list(parts_of(batch, encoder_for(batch.schema, parsed), parsed.stream_named))


def test_rows_of_a_stream_stay_in_their_order_with_their_keys_and_times():
    found = parts(["x", "b/y", "a/x", "b/y", "x"])
    assert {part.stream: part.events.to_pylist() for part in found} == {
        StreamName("a", "x"): [b"0", b"2", b"4"],
        StreamName("b", "y"): [b"1", b"3"],
    }
    for part in found:
        numbers = [int(event) for event in part.events.to_pylist()]
        assert part.keys is not None
        assert part.keys.to_pylist() == [f"key {number}" for number in numbers]
        assert part.rows.column("at").to_pylist() == [FIRST + dt.timedelta(number) for number in numbers]
    (only,) = parts(["x"] * 3)
    assert only.events.to_pylist() == [b"0", b"1", b"2"]
    assert parts([]) == []


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (["x", "y", None], "row 2 of column 'target_stream' is null"),
        (["x", "a b"], "row 1 of column 'target_stream'.*a b"),
        (["x", ""], "row 1 of column 'target_stream'"),
        (["x/y/z"], "row 0 of column 'target_stream'"),
    ],
)
def test_a_row_without_a_stream_is_an_error_with_its_place(targets: list[str | None], words: str):
    with pytest.raises(InvalidNameError, match=words):
        parts(targets)


def test_the_column_counts_only_where_no_option_names_a_stream():
    batch = rows(["x"]).drop_columns(["at"])
    typed = parse_options(SinkOptions, {"path": "a/b", "format": "json"})
    assert encoder_for(batch.schema, typed).target is None
    assert "target_stream" in encoder_for(batch.schema, typed).columns
    chosen = encoder_for(batch.schema, parse_options(SinkOptions, {"format": "json"}))
    assert chosen.target == "target_stream"
    assert chosen.columns == ("event",)
    with pytest.raises(ColumnTypeError, match="columns target_stream would not be written"):
        encoder_for(batch.schema, parse_options(SinkOptions, {"path": "a/b"}))


@pytest.mark.parametrize(
    ("options", "streaming", "words"),
    [
        ({}, True, "writer_mode=at_least_once"),
        ({"txn_app_id": "me", "txn_version": "1"}, False, "writer_mode=at_least_once"),
        ({"registry": "http://localhost:1"}, False, "set option 'group'"),
    ],
)
def test_what_a_column_of_streams_does_not_go_with(options: dict[str, str], streaming: bool, words: str):
    schema = rows(["x"]).drop_columns(["at"]).schema
    with pytest.raises(ConfigError, match=words):
        encoder_for(schema, parse_options(SinkOptions, options), streaming=streaming)
    assert encoder_for(schema, parse_options(SinkOptions, {"writer_mode": "at_least_once"}), streaming=True).target


def test_a_column_of_streams_is_text():
    with pytest.raises(ColumnTypeError, match="'target_stream' is int64"):
        encoder_for(rows([], pa.int64()).schema.remove(3), parse_options(SinkOptions, {}))


def test_a_stream_that_was_deleted_is_made_again_by_the_next_batch():
    """Spark keeps the process that plans writes for a minute."""
    columns = StructType([StructField("event", BinaryType())])
    with InProcessPravega() as pravega, PravegaClient(pravega.config) as client:
        options = {"controller": pravega.config.controller, "stream": "s/again", "allow_create_stream": "true"}
        source = PravegaDataSource(options | {"allow_create_scope": "true"})
        for _ in range(2):
            source.writer(columns, overwrite=False)
            client.seal_stream("s/again")
            client.delete_stream("s/again")
        source.writer(columns, overwrite=False)
        assert client.stream_exists("s/again")


def test_a_ledger_is_not_a_dead_letter_queue():
    with InProcessPravega() as pravega, pravega.client() as client:
        client.create_scope("a")
        client.create_stream("a/ledger", 1, tags=[STATE_TAG])
        client.create_stream("a/letters", 1)
        options = {
            name: parse_options(SourceOptions, {"path": "a/x", "format": "json", "dead_letter_stream": name})
            for name in ("letters", "ledger")
        }
        check_letter_box(client, options["letters"])
        with pytest.raises(InvalidNameError, match="a/ledger has the state of exactly-once writes"):
            check_letter_box(client, options["ledger"])


def test_a_refused_stream_that_was_recreated_for_events_is_accepted():
    stream = StreamName("a", "x")
    with InProcessPravega() as pravega, pravega.client() as client:
        client.create_scope("a")
        client.create_stream(stream, 1, tags=[STATE_TAG])
        with pytest.raises(InvalidNameError):
            check_target(client, stream)
        client.delete_stream(stream)
        client.create_stream(stream, 1)
        check_target(client, stream)

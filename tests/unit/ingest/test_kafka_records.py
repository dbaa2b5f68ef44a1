"""Kafka addresses, settings, and the columns of records; tests/integration/ingest/test_kafka.py has a broker."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from pravega_connector.errors import BadRecordError, ColumnTypeError, ConfigError
from pravega_connector.operations.ingest import KafkaOptions, KafkaSource, parse_kafka_config
from pravega_connector.operations.ingest.kafka_records import RecordColumns
from pravega_connector.operations.ingest.kafka_topic import KafkaAddress
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.wire import StreamName


@dataclass
class Record:
    """A message as confluent-kafka returns it."""

    number: int
    content: bytes | None
    name: bytes | None = None
    millis: tuple[int, int] = (0, -1)
    notes: list[tuple[str, bytes | None]] = field(default_factory=list)

    def offset(self) -> int:
        return self.number

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return self.name

    def timestamp(self) -> tuple[int, int]:
        return self.millis

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self.notes


def columns(input_: dict[str, str] | None = None, *, ordered: bool = True, **sink: str) -> RecordColumns:
    source = None if input_ is None else parse_options(SourceOptions, {"path": "kafka/orders", **input_})
    return RecordColumns("orders", source, parse_options(SinkOptions, {"path": "a/b", **sink}), ordered=ordered)


@pytest.mark.parametrize("text", ["kafka://", "kafka://b1:9092", "kafka://b1:9092/a/b", "kafka:///t", "kafka://b 1/t"])
def test_invalid_addresses(text: str):
    with pytest.raises(ConfigError, match="kafka://host:port/topic"):
        KafkaAddress.parse(text)


def test_addresses():
    assert KafkaAddress.parse("kafka://b1:9092,b2:9092/my.orders_1") == ("b1:9092,b2:9092", "my.orders_1")


def test_settings_are_read_like_a_properties_file():
    assert parse_kafka_config("# for tests\n\n sasl.password = a=b \nclient.id=x\n") == {
        "sasl.password": "a=b",
        "client.id": "x",
    }
    with pytest.raises(ConfigError, match="line 2") as raised:
        parse_kafka_config("client.id=x\ns3cret\n")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("config", [{"auto.offset.reset": "latest"}, {"bootstrap.servers": "b"}, {"no.such": "1"}])
def test_invalid_settings(config: dict[str, object]):
    with pytest.raises(ConfigError, match=next(iter(config))):
        KafkaSource("kafka://b1/orders", KafkaOptions(config=config))


def test_secrets_are_not_shown():
    assert "s3cret" not in repr(KafkaOptions(config={"sasl.password": "s3cret"}))


def test_raw_records_keep_their_bytes_and_keys():
    mine = columns()
    schema = mine.find((), None)
    records = [Record(3, b"a", b"k"), Record(5, None, b"\xff"), Record(9, b"c")]
    chunk = mine.chunk("orders-0", schema, records, reject=False)
    assert chunk.batch.to_pydict() == {"event": [b"a", b"", b"c"], "routing_key": ["k", "\\xff", "orders-0"]}
    assert (chunk.first, chunk.records) == (3, 7)
    encoding = mine.encoding(schema)
    (rows,) = encoding.by_stream([("kafka:orders-0", chunk)], StreamName("shop", "orders"))
    events, keys = rows.events, rows.keys
    assert (events.to_pylist(), keys.to_pylist()) == ([b"a", b"", b"c"], ["k", "\\xff", "orders-0"])  # type: ignore[union-attr]
    assert encoding.format == "raw"


@pytest.mark.parametrize("how", [{"ordered": False}, {"routing_key": "all"}])
def test_no_routing_key_of_a_record(how: dict[str, object]):
    mine = columns(**how)  # type: ignore[arg-type]
    assert mine.find((), None).names == ["event"]


def test_values_in_another_format_need_their_own():
    with pytest.raises(ConfigError, match="--input json"):
        columns(format="avro")


def test_columns_are_inferred_once():
    mine = columns({"format": "json"}, format="avro")
    assert mine.must_sample
    schema = mine.find([b'{"id": 1}', b"bad"], None)
    assert schema == pa.schema({"id": pa.int64(), "routing_key": pa.string()})
    assert columns({"format": "json"}).find((), schema) == schema
    assert mine.encoding(schema).schema_text is not None
    with pytest.raises(ColumnTypeError, match=r"topic orders|no json events"):
        columns({"format": "json"}).find([], None)
    with pytest.raises(ColumnTypeError, match="--key"):
        columns({"format": "json"}).find([b'{"routing_key": 1}'], None)


def test_malformed_values():
    mine = columns({"format": "json"})
    schema = mine.find([b'{"id": 1}'], None)
    records = [Record(3, b'{"id": 1}'), Record(4, b"\xffbad"), Record(6, None), Record(7, b'{"id": 2}')]
    with pytest.raises(BadRecordError, match="offset 4 of orders-1 is malformed") as raised:
        mine.chunk("orders-1", schema, records, reject=False)
    assert raised.value.source_id == "kafka:orders-1"
    chunk = mine.chunk("orders-1", schema, records, reject=True)
    assert chunk.batch.column("id").to_pylist() == [1, 2]
    assert [(each.record, each.text) for each in chunk.rejected] == [(4, "\\xffbad"), (6, "")]
    assert mine.chunk("orders-1", schema, records[1:3], reject=True).batch.num_rows == 0


def test_headers_become_attributes():
    mine = columns(envelope="cloudevents", format="bytes")
    schema = mine.find((), None)
    notes = [("Trace-Id", b"old"), ("trace_id", b"t7"), ("CE_Type", b"sale"), ("Content-Type", b"text/plain")]
    notes += [("time", b"noon"), ("?", b"x"), ("none", None)]
    records = [Record(2, b"a", b"ann", (1, 1500), notes), Record(3, None)]
    chunk = mine.chunk("orders-0", schema, records, reject=False)
    first, second = chunk.batch.to_pylist()
    assert dict(first["headers"]) == {
        "id": "orders-0-2",
        "traceid": "t7",
        "type": "sale",
        "datacontenttype": "text/plain",
        "kafkatime": "noon",
        "kafka": "x",
    }
    assert (first["key"], first["time"].timestamp(), first["routing_key"]) == ("ann", 1.5, "ann")
    assert (second["value"], second["key"], second["time"], second["routing_key"]) == (None, None, None, "orders-0")

"""Options of framings: what they require, and the serializer that they make."""

import pickle

import pyarrow as pa
import pytest

from pravega_connector.errors import ConfigError
from pravega_connector.operations.cli.write import _encoder
from pravega_connector.rows.columns import serializer_of
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.inference import Sample, event_columns
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.jvm.decoding import NotInJvmError, steps
from pravega_serde import DataKeys, Encrypted, Framed, JsonSerializer, LocalKeys, SerdeError
from pravega_serde.format_table import FRAMINGS
from pravega_serde.framings.layouts import LAYOUTS
from pravega_serde.registry import deserializer, serializer

COLUMNS = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = [{"id": 1, "name": "tea"}, {"id": 2, "name": None}]
IDS = {"aws-glue": "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", "azure": "0a1b2c3d4e5f60718293a4b5c6d7e8f9"}
KEY = bytes(range(32))


def written(**options: str) -> pa.BinaryArray:
    """Return the events of ``ROWS``. The encoder is pickled, as for a task."""
    encoder = pickle.loads(pickle.dumps(encoder_for(COLUMNS, parse_options(SinkOptions, options))))
    return encoder.encode(pa.RecordBatch.from_pylist(ROWS, COLUMNS))[0]


def framing(name: str) -> dict[str, str]:
    return {"framing": name} | ({"framing_id": IDS[name]} if name in IDS else {})


def test_options_name_every_framing():
    assert list(FRAMINGS) == list(LAYOUTS)
    assert {name for name in LAYOUTS if LAYOUTS[name].header is not None} == set(IDS)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (SourceOptions, {"framing": "zlib"}, "requires option 'format': for data that stays raw, set format=bytes"),
        (SourceOptions, {"format": "json", "framing": "zip"}, "must be one of aws-glue, azure, .* not 'zip'"),
        (SourceOptions, {"format": "json", "framing_id": IDS["azure"]}, "'framing_id' requires option 'framing'"),
        (SinkOptions, {"format": "json", "framing": "aws-glue"}, "requires option 'framing_id' to write aws-glue"),
        (SinkOptions, {"format": "json", "framing": "azure"}, "requires option 'framing_id' to write azure"),
    ],
)
def test_incomplete_options(kind: type, options: dict[str, str], words: str):
    with pytest.raises(ConfigError, match=words):
        parse_options(kind, options)


def test_an_invalid_id_is_an_error_before_anything_is_written():
    with pytest.raises(SerdeError, match="UUID of a schema version"):
        written(format="json", framing="aws-glue", framing_id="7")


@pytest.mark.parametrize("name", FRAMINGS)
def test_rows_come_back(name: str):
    events = written(format="json", **framing(name))
    assert Framed(JsonSerializer(), name).deserialize(events[0].as_py()) == ROWS[0]
    read = parse_options(SourceOptions, {"format": "json", "framing": name})
    assert event_columns([Sample("s", events)], read, "") == COLUMNS
    decoder = serializer_of(read, COLUMNS)
    assert decoder is not None
    assert pickle.loads(pickle.dumps(decoder)).get().decode_column(events).to_pylist() == ROWS
    with pytest.raises(NotInJvmError):
        steps(decoder.get())


def test_encrypted_fields_are_inside_the_framing(tmp_path):
    LocalKeys({"main": KEY}).save(tmp_path / "local.json")
    keys = DataKeys.create(str(tmp_path / "local.json"), "main")
    options = {
        "format": "json",
        "framing": "gzip",
        "encrypted_fields": "name",
        "encryption_keys": keys.text,
        "encryption_key_service": str(tmp_path / "local.json"),
        "encryption_stream": "shop/orders",
    }
    events = written(**options)
    sealed = Framed(JsonSerializer(), "gzip").deserialize(events[0].as_py())
    assert len(sealed["name"]) > len("tea")
    inner = Encrypted(JsonSerializer(), ["name"], keys, stream="shop/orders")
    assert Framed(inner, "gzip").deserialize(events[0].as_py()) == ROWS[0]
    decoder = serializer_of(parse_options(SourceOptions, options), COLUMNS)
    assert decoder is not None
    assert decoder.get().decode_column(events).to_pylist() == ROWS


def test_write_encrypts_and_frames_events_of_a_registry(tmp_path):
    LocalKeys({"main": KEY}).save(tmp_path / "local.json")
    keys = DataKeys.create(str(tmp_path / "local.json"), "main")
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
    }
    registry = {"registry": "confluent+mock://framed", "group": "orders-value"}
    serializer(**registry, schema=schema, format="avro", register_schema=True)
    options = {
        **registry,
        "path": "shop/orders",
        "framing": "zlib",
        "encrypted_fields": "name",
        "encryption_keys": keys.text,
        "encryption_key_service": str(tmp_path / "local.json"),
    }
    (event,) = _encoder(parse_options(SinkOptions, options))([b'{"id": 1, "name": "tea"}']).to_pylist()
    reader = deserializer(**registry)
    assert Framed(reader, "zlib").deserialize(event)["name"] != "tea"
    opened = Framed(Encrypted(reader, ["name"], keys, stream="shop/orders"), "zlib")
    assert opened.deserialize(event) == {"id": 1, "name": "tea"}

"""Options of encrypted fields: what they require, and what they show and send."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pravega_connector.errors import ConfigError
from pravega_connector.exactly_once.batch_commit.digest import RowTotal
from pravega_connector.exactly_once.batch_commit.entries import Content
from pravega_connector.rows.columns import serializer_of
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.testing import InProcessRegistry
from pravega_serde import DataKeys, Encrypted, JsonSerializer, LocalKeys

KEY = bytes(range(40, 72))
KEYS = DataKeys.create(LocalKeys({"main": KEY}), "main").text
GIVEN = {
    "format": "json",
    "encrypted_fields": "name, card.number",
    "encryption_keys": KEYS,
    "encryption_key_service": "/keys/local.json",
}
COLUMNS = pa.schema({"id": pa.int64(), "name": pa.string(), "card": pa.struct([("number", pa.string())])})


def source(**options: str) -> SourceOptions:
    return parse_options(SourceOptions, options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encryption_keys": KEYS}, "'encryption_keys' requires option 'encrypted_fields'"),
        ({"format": "json", "encryption_missing_key": "null"}, "requires option 'encrypted_fields'"),
        ({**GIVEN, "encryption_keys": None}, "requires option 'encryption_keys'"),
        ({**GIVEN, "encryption_key_service": None}, "requires option 'encryption_key_service'"),
        ({**GIVEN, "format": None}, "requires option 'format': raw events have no fields"),
        ({**GIVEN, "encrypted_fields": "a,,b"}, "a path is empty"),
        ({**GIVEN, "encryption_missing_key": "ignore"}, "encryption_missing_key"),
    ],
)
def test_incomplete_options(options: dict[str, str | None], words: str):
    with pytest.raises(ConfigError, match=words):
        source(**{name: value for name, value in options.items() if value is not None})


def test_a_replayed_batch_has_the_ledgers_total_unless_equal_values_differ():
    rows = [{"id": each, "name": f"name {each}", "card": {"number": "4000"}} for each in range(100)]
    batch = pa.RecordBatch.from_pylist(rows, COLUMNS)

    def total(batch: pa.RecordBatch, *, deterministic: bool) -> Content:
        keys = DataKeys.load(KEYS, LocalKeys({"main": KEY}))
        fields = ["name", "card.number"]
        serializer = Encrypted(JsonSerializer(), fields, keys, stream="shop/orders", deterministic=deterministic)
        found = RowTotal()
        for start, count in ((0, 30), (30, 60), (90, 10)):
            part = batch.slice(start, count)
            found.add(serializer.encode_column(part), part.column("name"))
        return found.content

    first = total(batch, deterministic=True)
    assert first.rows == 100
    assert total(batch.take(pa.array(range(99, -1, -1))), deterministic=True) == first
    assert total(batch, deterministic=False) != total(batch, deterministic=False)


@pytest.mark.parametrize(
    "streams", [{}, {"stream_pattern": "orders-*", "scope": "shop"}, {"paths": '["shop/a", "shop/b"]'}]
)
def test_several_streams_require_a_name_to_bind_values_to(streams: dict[str, str]):
    options = source(**GIVEN, **streams)
    with pytest.raises(ConfigError, match="set option 'encryption_stream'"):
        options.column_serializer(pa.struct(list(COLUMNS)))
    bound = source(**GIVEN, **streams, encryption_stream="shop/orders")
    assert "stream='shop/orders'" in repr(bound.column_serializer(pa.struct(list(COLUMNS))))


def test_the_only_stream_is_the_default():
    kind = pa.struct(list(COLUMNS))
    assert "stream='shop/orders'" in repr(source(**GIVEN, path="shop/orders").column_serializer(kind))
    without = pa.struct([COLUMNS.field("id")])
    assert repr(source(**GIVEN, path="shop/orders").column_serializer(without)).startswith("JsonSerializer")


def test_the_set_of_keys_is_read_once_and_its_keys_are_not_sent(tmp_path: Path):
    LocalKeys({"main": KEY}).save(tmp_path / "local.json")
    (tmp_path / "keys.json").write_text(KEYS)
    given = {**GIVEN, "encryption_keys": str(tmp_path / "keys.json"), "stream": "shop/orders"}
    options = parse_options(SinkOptions, {**given, "encryption_key_service": str(tmp_path / "local.json")})
    (tmp_path / "keys.json").unlink()
    encoder = encoder_for(COLUMNS, options)
    batch = pa.RecordBatch.from_pylist([{"id": 1, "name": "ann", "card": {"number": "4000"}}], COLUMNS)
    events, _ = encoder.encode(batch)
    sent = pickle.dumps(encoder)
    assert KEY not in sent
    assert pickle.loads(sent).encode(batch)[0].equals(events)


@pytest.mark.parametrize("format_name", ["avro", "json", "protobuf"])
def test_events_of_a_registry_are_encrypted_too(format_name: str, tmp_path: Path):
    local = tmp_path / "local.json"
    LocalKeys({"main": KEY}).save(local)
    with InProcessRegistry() as registry:
        given = {
            "registry": registry.uri,
            "path": "shop/orders",
            "encrypted_fields": "name,card.number",
            "encryption_keys": KEYS,
            "encryption_key_service": str(local),
        }
        new = {"format": format_name, "registry_type": "shop.Order", "create_group": "true", "register_schema": "true"}
        encoder = encoder_for(COLUMNS, parse_options(SinkOptions, given | new))
        rows = [{"id": each, "name": f"name {each}", "card": {"number": "4000"}} for each in range(50)]
        events, _ = encoder.encode(pa.RecordBatch.from_pylist(rows, COLUMNS))
        assert not any(b"name " in each or b"4000" in each for each in events.to_pylist())
        reader = serializer_of(source(**given), None)
        assert reader is not None
        assert reader.get().decode_column(events).to_pylist() == rows
        plain = {name: value for name, value in given.items() if not name.startswith("encrypt")}
        hidden = serializer_of(source(**plain), None)
        assert hidden is not None
        assert {len(each["name"]) for each in hidden.get().decode_column(events).to_pylist()} == {36, 40}

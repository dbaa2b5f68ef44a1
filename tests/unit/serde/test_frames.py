"""Serializers in polars, DuckDB and pandas: columns of events in their frames."""

import subprocess
import sys
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pravega_serde.adapters.polars  # noqa: F401 - adds the namespace of expressions and series
from pravega_serde import (
    AvroSerializer,
    CborSerializer,
    DeserializationError,
    JsonSerializer,
    SchemaError,
    SerdeError,
    SerializationError,
    UTF8StringSerializer,
)
from pravega_serde.adapters.duckdb import register
from pravega_serde.adapters.pandas import decode, encode

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("item", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.struct([("name", pa.string())]))),
    ]
)
VALUES = [
    {"id": 1, "item": "tea", "day": "2026-05-01", "at": "2026-05-01T10:00Z", "price": "1.2", "tags": [{"name": "a"}]},
    None,
    {"id": 2, "item": None, "day": None, "at": None, "price": None, "tags": []},
]  # fmt: skip
AVRO = AvroSerializer(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"]}],
    }
)
ORDERS = [{"id": 1, "item": "tea"}, None, {"id": 2, "item": None}]
SERIALIZERS = [JsonSerializer(arrow_type=COLUMNS), CborSerializer(arrow_type=COLUMNS)]


def events_of(serializer: Any) -> pa.Array:
    values = JsonSerializer(arrow_type=COLUMNS).decode_column(pa.array([_json(each) for each in VALUES], pa.binary()))
    return serializer.encode_column(values)


def _json(value: dict[str, Any] | None) -> bytes | None:
    return None if value is None else JsonSerializer().serialize(value)


class Length:
    """Reader of the length of events, which writes nothing."""

    arrow_type = pa.int64()

    def deserialize(self, data: bytes) -> int:
        return len(data)

    def decode_column(self, column: pa.Array, *, on_error: Any = None) -> pa.Array:
        return pa.array([None if each is None else len(each) for each in column.to_pylist()], self.arrow_type)


class Counted(UTF8StringSerializer):
    """Serializer that counts its calls by row and by column."""

    def __init__(self) -> None:
        self.rows = self.columns = 0

    def deserialize(self, data: bytes) -> str:
        self.rows += 1
        return super().deserialize(data)

    def decode_column(self, column: pa.Array, *, on_error: Any = None) -> pa.Array:
        self.columns += 1
        return super().decode_column(column, on_error=on_error)


# ---- polars ----


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=lambda each: type(each).__name__)
def test_polars_decodes_and_encodes_every_type(serializer: Any):
    events = events_of(serializer)
    frame = pl.DataFrame({"event": pl.from_arrow(events)})
    read = frame.with_columns(pl.col("event").pravega.decode(serializer).alias("order"))
    assert read["order"].to_list() == serializer.decode_column(events).to_pylist()
    assert frame["event"].pravega.decode(serializer).equals(read["order"], check_names=False)
    assert frame["event"].pravega.decode(serializer).name == "event"
    again = read.select(pl.col("order").pravega.encode(serializer))["order"]
    assert again.to_list() == read["order"].pravega.encode(serializer).to_list() == events.to_pylist()


def test_polars_knows_the_type_before_it_reads():
    lazy = pl.LazyFrame({"event": [b"\x02\x02\x06tea", None]}).select(pl.col("event").pravega.decode(AVRO))
    assert lazy.collect_schema()["event"] == pl.Struct({"id": pl.Int64, "item": pl.String})
    for engine in ("in-memory", "streaming"):
        ids = lazy.select(pl.col("event").struct.field("id")).collect(engine=engine)
        assert ids["id"].to_list() == [1, None]
    assert lazy.head(0).collect().height == 0


def test_polars_rows_of_columns_are_records():
    frame = pl.DataFrame({"id": [1, 2], "item": ["tea", None]})
    events = frame.select(pl.struct("id", "item").pravega.encode(AVRO).alias("event"))
    assert events["event"].to_list() == [AVRO.serialize(each) for each in frame.to_dicts()]
    assert events.schema == {"event": pl.Binary}
    decoded = events.group_by(pl.lit(1)).agg(pl.col("event").pravega.decode(AVRO))
    assert decoded["event"].to_list() == [frame.to_dicts()]


def test_polars_malformed_events():
    events = pl.DataFrame({"event": [AVRO.serialize(ORDERS[0]), None, b"\xff"]})
    with pytest.raises((DeserializationError, pl.exceptions.ComputeError)) as caught:
        events.select(pl.col("event").pravega.decode(AVRO))
    assert str(caught.value).count("[PRAVEGA-DESERIALIZATION]") == 1
    with pytest.raises(DeserializationError) as raised:
        events["event"].pravega.decode(AVRO)
    assert raised.value.row == 2
    read = events.select(pl.col("event").pravega.decode(AVRO, mode="permissive"))["event"]
    assert read.to_list() == [ORDERS[0], None, None]
    assert events["event"].pravega.decode(AVRO, mode="PERMISSIVE").to_list() == read.to_list()


# ---- DuckDB ----


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=lambda each: type(each).__name__)
def test_duckdb_decodes_and_encodes_every_type(serializer: Any):
    events = events_of(serializer)
    with duckdb.connect() as connection:
        register(connection, "orders", serializer)
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", pa.table({"event": events}))
        read = connection.sql("SELECT decode_orders(event) AS o FROM events").to_arrow_table()
        assert read["o"].to_pylist() == serializer.decode_column(events).to_pylist()
        kind = connection.sql("SELECT decode_orders(event) FROM events").types[0]
        assert str(kind).startswith("STRUCT(id BIGINT, item VARCHAR, ")
        again = connection.sql("SELECT encode_orders(decode_orders(event)) FROM events").fetchall()
        assert [event for (event,) in again] == events.to_pylist()


def test_duckdb_encodes_rows_of_a_table():
    with duckdb.connect() as connection:
        register(connection, "orders", AVRO)
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'tea'), (2, NULL)) AS t(id, item)")
        expected = [AVRO.serialize(ORDERS[0]), AVRO.serialize(ORDERS[2])]
        for value in ("t", "{'id': id, 'item': item}"):
            assert [row for (row,) in connection.sql(f"SELECT encode_orders({value}) FROM t").fetchall()] == expected
        (row,) = connection.sql("SELECT decode_orders(encode_orders(t)).item FROM t WHERE id = 1").fetchall()
        assert row == ("tea",)
        with pytest.raises(duckdb.Error, match=r"encode_orders accepts one value, not 2"):
            connection.sql("SELECT encode_orders(id, item) FROM t").fetchall()
        with pytest.raises(duckdb.Error, match=r"PRAVEGA-SCHEMA"):
            connection.sql("SELECT encode_orders({'id': id, 'cups': 1}) FROM t").fetchall()


def test_duckdb_malformed_events():
    events = pa.table({"event": pa.array([AVRO.serialize(ORDERS[0]), None, b"\xff"])})
    with duckdb.connect() as connection:
        connection.register("events", events)
        register(connection, "orders", AVRO)
        with pytest.raises(duckdb.Error, match=r"PRAVEGA-DESERIALIZATION") as caught:
            connection.sql("SELECT decode_orders(event) FROM events").fetchall()
        assert "row" not in str(caught.value)
        register(connection, "orders_or_null", AVRO, mode="PERMISSIVE")
        read = connection.sql("SELECT decode_orders_or_null(event) FROM events").fetchall()
        assert read == [(ORDERS[0],), (None,), (None,)]


def test_duckdb_reads_with_an_object_that_only_reads():
    with duckdb.connect() as connection:
        register(connection, "length", Length())
        assert connection.sql("SELECT decode_length('tea'::BLOB)").fetchall() == [(3,)]
        with pytest.raises(duckdb.CatalogException):
            connection.sql("SELECT encode_length(3)").fetchall()
        with pytest.raises(SerdeError, match="invalid name 'a-b'"):
            register(connection, "a-b", AVRO)


# ---- pandas ----


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=lambda each: type(each).__name__)
def test_pandas_decodes_and_encodes_every_type(serializer: Any):
    events = events_of(serializer)
    index = ["a", "b", "c"]
    for series in (
        pd.Series(events.to_pylist(), index=index, name="event"),
        pd.Series(pd.arrays.ArrowExtensionArray(events), index=index, name="event"),
    ):
        read = decode(series, serializer)
        assert read.dtype == pd.ArrowDtype(serializer.arrow_type)
        assert (list(read.index), read.name) == (index, "event")
        assert pa.array(read).to_pylist() == serializer.decode_column(events).to_pylist()
        again = encode(read, serializer)
        assert again.dtype == pd.ArrowDtype(pa.binary())
        assert pa.array(again).equals(events)


def test_pandas_rows_of_a_frame_are_records():
    frame = pd.DataFrame({"id": [1, 2], "item": ["tea", None]}, index=[7, 8])
    events = encode(frame, AVRO)
    assert pa.array(events).to_pylist() == [AVRO.serialize(ORDERS[0]), AVRO.serialize(ORDERS[2])]
    assert list(events.index) == [7, 8]
    orders = decode(events, AVRO).struct.explode()
    assert (list(orders.columns), list(orders["id"]), list(orders.index)) == (["id", "item"], [1, 2], [7, 8])
    expected = [None if each is None else AVRO.serialize(each) for each in ORDERS]
    assert pa.array(encode(pd.Series(ORDERS), AVRO)).to_pylist() == expected


def test_pandas_malformed_events():
    events = pd.Series([AVRO.serialize(ORDERS[0]), None, b"\xff"])
    with pytest.raises(DeserializationError):
        decode(events, AVRO)
    assert pa.array(decode(events, AVRO, mode="PERMISSIVE")).to_pylist() == [ORDERS[0], None, None]


# ---- all ----


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, "x", None]),
        pd.Series([1 + 2j]),
        pd.Series([object()]),
        pd.Series([2**70], dtype=object),
        pd.Series([Decimal("Infinity")]),
        pd.Series(["\ud800"]),
        pd.Series(pd.arrays.SparseArray([0, 0, 1])),
        pd.Series([1, "b"], dtype="category"),
        pd.Series([pd.Period("2020-01"), pd.Period("2020-01-01")]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [{"b": 1}, 5]}),
        pl.Series([1]),
        [1, 2],
        None,
    ],
)
def test_pandas_values_without_an_arrow_type_are_refused(values: Any):
    for convert in (encode, decode):
        with pytest.raises(SchemaError) as caught:
            convert(values, JsonSerializer(arrow_type=pa.int64()))
        assert "\n" not in str(caught.value)


def test_polars_objects_are_refused():
    made = pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(SchemaError, match="the column 'x' has Python's objects"):
        made["x"].pravega.encode(JsonSerializer())
    with pytest.raises(SchemaError, match="the column 'x' has Python's objects"):
        made.select(pl.col("x").pravega.encode(JsonSerializer()))
    with pytest.raises(SchemaError, match="the column 'x' of Int128 cannot become Arrow's"):
        pl.Series("x", [1], dtype=pl.Int128).pravega.encode(JsonSerializer())


def test_whole_columns_are_decoded():
    counted = Counted()
    events = [b"tea"] * 5000
    assert pl.Series(events).pravega.decode(counted).to_list() == ["tea"] * 5000
    assert pl.DataFrame({"e": events}).select(pl.col("e").pravega.decode(counted))["e"].to_list() == ["tea"] * 5000
    assert decode(pd.Series(events), counted).tolist() == ["tea"] * 5000
    with duckdb.connect() as connection:
        register(connection, "text", counted)
        connection.register("events", pa.table({"event": events}))
        assert connection.sql("SELECT count(decode_text(event)) FROM events").fetchall() == [(5000,)]
    assert counted.rows == 0
    assert counted.columns < 20


def test_a_serializer_without_columns_is_refused_before_a_row_is_read():
    with pytest.raises(SchemaError, match="does not define its columns"):
        pl.col("event").pravega.decode(JsonSerializer())
    with duckdb.connect() as connection, pytest.raises(SchemaError, match="does not define its columns"):
        register(connection, "orders", JsonSerializer())
    with pytest.raises(SchemaError, match="does not define its columns"):
        decode(pd.Series([b"{}"]), JsonSerializer())


def test_an_unknown_mode_and_an_invalid_value_are_refused():
    for call in (
        lambda: pl.col("e").pravega.decode(AVRO, mode="DROPMALFORMED"),
        lambda: pl.Series([b""]).pravega.decode(AVRO, mode="DROPMALFORMED"),
        lambda: decode(pd.Series([b""]), AVRO, mode="DROPMALFORMED"),
        lambda: register(duckdb.connect(), "orders", AVRO, mode="DROPMALFORMED"),
    ):
        with pytest.raises(SerdeError, match="invalid mode 'DROPMALFORMED': use FAILFAST or PERMISSIVE"):
            call()
    with pytest.raises(SerializationError):
        encode(pd.DataFrame({"id": [1, None], "item": ["a", "b"]}).convert_dtypes(), AVRO)
    with pytest.raises(SerializationError):
        pl.DataFrame({"id": [None, 1], "item": ["a", "b"]}).to_struct("o").pravega.encode(AVRO)


@pytest.mark.parametrize("package", ["polars", "duckdb", "pandas"])
def test_a_missing_package_names_its_extra(package: str):
    code = f"import sys; sys.modules[{package!r}] = None; import pravega_serde.adapters.{package}"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "pip install 'pravega-serde[frames]'" in done.stderr


def test_the_package_imports_none_of_them():
    code = "import sys, pravega_serde.adapters; print({'polars', 'duckdb', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"

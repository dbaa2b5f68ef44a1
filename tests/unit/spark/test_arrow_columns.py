"""Columns that neither source nor sink has, and two columns of one name."""

import pytest
from pyspark.sql import types
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from pravega_connector.errors import ColumnTypeError
from pravega_connector.rows.options.common import CommonOptions
from pravega_connector.spark.arrow_columns import arrow_columns
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.writing import Writing
from pravega_serde.columnar.variant import VARIANT
from pravega_serde.errors import PravegaError, SchemaError

TEXT = StringType()
#: TIME, which Spark 4.0 does not have.
TIMES = [types.TimeType(6)] if hasattr(types, "TimeType") else []
#: Type of ``struct(array())``.
EMPTY = StructType().add("a", ArrayType(NullType(), containsNull=False))
WHERE = {"controller": "tcp://127.0.0.1:1", "stream": "a/b"}


def test_columns_have_arrow_types() -> None:
    schema = StructType().add("a", ArrayType(StructType().add("c", TEXT))).add("d", MapType(TEXT, TimestampType()))
    assert arrow_columns(schema).names == ["a", "d"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (VariantType(), r"column 'a' is VARIANT.*parse_json"),
        (StructType().add("v", VariantType()), r"column 'a\.v' is VARIANT"),
        (ArrayType(VariantType()), "column 'a' is VARIANT"),
        (MapType(TEXT, VariantType()), "column 'a' is VARIANT"),
        (CalendarIntervalType(), "column 'a' is interval, which has no Arrow type: cast it, for"),
        (
            YearMonthIntervalType(),
            "column 'a' is interval year to month, which has no Arrow type: cast it, for example to STRING",
        ),
        (ArrayType(YearMonthIntervalType()), "column 'a' is array<interval year to month>, which has no Arrow type"),
        (StructType().add("b", TEXT).add("b", TEXT), "column 'a' has two fields 'b'"),
    ],
)
def test_a_type_without_form_is_named(kind: DataType, words: str) -> None:
    with pytest.raises(ColumnTypeError, match=words) as caught:
        arrow_columns(StructType().add("a", kind))
    assert "\n" not in str(caught.value)


def test_two_columns_of_one_name_are_named() -> None:
    schema = StructType().add("v", IntegerType()).add("k", IntegerType()).add("v", TEXT)
    with pytest.raises(ColumnTypeError, match="the DataFrame has two columns 'v'"):
        arrow_columns(schema)


def writer(options: dict[str, str], kind: DataType) -> None:
    Writing(WHERE | options, {}).arguments(StructType().add("id", IntegerType()).add("x", kind), streaming=False)


def reader(options: dict[str, str], kind: DataType) -> None:
    PravegaDataSource(WHERE | options).reader_arguments(StructType().add("id", IntegerType()).add("x", kind))


@pytest.mark.parametrize("made", [writer, reader])
@pytest.mark.parametrize("kind", [VariantType(), ArrayType(VariantType()), ArrayType(NullType()), EMPTY])
@pytest.mark.parametrize("options", [{"format": "json"}, {"format": "cbor"}])
def test_formats_of_json_values_have_variants_and_empty_lists(made, kind: DataType, options: dict[str, str]) -> None:
    made(options, kind)


def test_a_variant_has_its_arrow_type() -> None:
    options = CommonOptions(controller="tcp://127.0.0.1:1", format="json")
    assert arrow_columns(StructType().add("v", VariantType()), options).field("v").type == VARIANT


@pytest.mark.parametrize("made", [writer, reader])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"format": "string"},
        {"format": "java"},
        {"format": "avro", "avro_schema": '{"type":"record","name":"R","fields":[]}'},
        {"format": "json", "registry": "http://127.0.0.1:1", "group": "g"},
    ],
    ids=["raw", "string", "java", "avro", "registry"],
)
def test_other_formats_have_no_variants(made, options: dict[str, str]) -> None:
    with pytest.raises(ColumnTypeError, match=r"column 'x' is VARIANT, which the events do not have.*to_json"):
        made(options, VariantType())


@pytest.mark.parametrize("name", ["json", "cbor"])
@pytest.mark.parametrize(
    ("kind", "written", "read"),
    [
        (
            DayTimeIntervalType(),
            "duration.*not supported.*at [$].x.*cast it",
            "type duration.*at [$].x.; read it as string",
        ),
        (
            MapType(StructType().add("a", TEXT), TEXT),
            "map<struct.*cast its keys",
            "map<struct.*at [$].x.; cast its keys",
        ),
        *((kind, None, "type time64.*at [$].x.; read it as string") for kind in TIMES),
    ],
    ids=["interval", "map", *("time" for _ in TIMES)],
)
def test_a_type_without_form_is_an_error_of_the_new_writer_and_reader(
    name: str, kind: DataType, written: str | None, read: str
) -> None:
    if written is None:
        writer({"format": name}, kind)
    else:
        with pytest.raises(ColumnTypeError, match=written):
            writer({"format": name}, kind)
    with pytest.raises(SchemaError, match=read):
        reader({"format": name}, kind)


@pytest.mark.parametrize(
    ("name", "error"),
    [("json", "map<int32, string> is not supported by reads of JSON .at [$].x.; cast its keys"), ("cbor", None)],
)
def test_a_map_with_integers_as_keys_is_written_and_read_in_cbor(name: str, error: str | None) -> None:
    kind = MapType(IntegerType(), TEXT)
    writer({"format": name}, kind)
    if error is None:
        reader({"format": name}, kind)
        return
    with pytest.raises(PravegaError, match=error):
        reader({"format": name}, kind)

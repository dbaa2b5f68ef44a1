"""Columns that neither source nor sink has, and two columns of one name."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)

from pravega_connector.errors import ColumnTypeError
from pravega_connector.spark.arrow_columns import arrow_columns

TEXT = StringType()


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
        (CalendarIntervalType(), "no Arrow type"),
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

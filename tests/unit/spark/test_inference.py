"""Columns of events that do not name them."""

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.rows.inference import Sample, columns_in
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.wire import StreamName
from pravega_serde import serializer_for


def batch(*events: bytes) -> Sample:
    return Sample(StreamName("a", "b"), pa.array(events, pa.binary()))


def columns(format_name: str, batches: Sequence[Sample]) -> dict[str, str]:
    return {field.name: str(field.type) for field in columns_in(batches, format_name, "name them")}


def test_columns_of_all_batches_together():
    batches = [batch(b'{"id": 1, "at": "2026-01-01T00:00:00Z"}'), batch(b'{"id": 2.5, "in": {"x": null, "l": []}}')]
    assert columns("json", batches) == {
        "id": "double",
        "at": "string",
        "in": "struct<x: string, l: list<item: string>>",
    }
    write = serializer_for("cbor").serialize
    decimals = [batch(write({"price": value})) for value in (Decimal("1.5"), Decimal("12.25"))]
    assert columns("cbor", decimals) == {"price": "decimal128(38, 18)"}


def test_events_that_cannot_be_decoded_have_no_part_in_it():
    assert columns("json", [batch(b'{"id": 1}', b"no json", b"[1]", b"")]) == {"id": "int64"}


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([], "no json events"),
        ([batch(b"no json")], "no json events"),
        ([batch(b'{"id": 1}', b'{"id": "x"}')], "a/b do not have columns in common"),
        ([batch(b'{"id": 1}'), batch(b'{"id": "x"}')], "a/b do not have columns in common"),
    ],
)
def test_events_without_columns_in_common_are_an_error(batches: list[Sample], words: str):
    with pytest.raises(ColumnTypeError, match=f"{words}.*: name them"):
        columns("json", batches)


def test_raw_events_have_no_columns_to_infer():
    with pytest.raises(ConfigError, match="'infer_schema' requires option 'format' or 'registry'"):
        parse_options(SourceOptions, {"path": "a/b", "inferSchema": "true"})

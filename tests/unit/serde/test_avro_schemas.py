"""Avro schemas: how they are given, and what is wrong with those that are refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import SchemaError
from pravega_serde.avro import AvroSerializer
from tests.unit.serde._avro import FLAT, record

# Schemas


def test_schemas_come_as_text_json_or_file(tmp_path: Path) -> None:
    path = tmp_path / "flat.avsc"
    path.write_text(json.dumps(FLAT))
    kinds = [
        AvroSerializer(given).arrow_type for given in (json.dumps(FLAT), FLAT, path, str(path), f"  {json.dumps(FLAT)}")
    ]
    assert len(set(map(str, kinds))) == 1


BAD_SCHEMAS = [
    ("{", "is not JSON"),
    ("nowhere.avsc", "must be JSON or the path of a .avsc file"),
    (Path("nowhere.avsc"), "neither"),
    (5, "not int"),
    ({"type": "recrd"}, "unknown type 'recrd'"),
    ({"name": "x"}, "lacks 'type'"),
    ({"type": "record", "name": "R"}, "lacks 'fields'"),
    ({"type": "record", "fields": []}, "lacks 'name'"),
    ({"type": "record", "name": "", "fields": []}, "without a name"),
    ({"type": "record", "name": "R", "fields": [5]}, "invalid field"),
    ({"type": "record", "name": "R", "namespace": 5, "fields": []}, "invalid namespace"),
    (record(("a", "int"), ("a", "int")), "'a' twice"),
    (record(("a", "nope")), "unknown type 'nope'"),
    ({"type": "array"}, "lacks 'items'"),
    ({"type": "map", "values": 5}, "wrong 'values'"),
    ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "symbol twice"),
    ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "not one of its symbols"),
    ({"type": "enum", "name": "E", "symbols": "AB"}, "wrong 'symbols'"),
    ({"type": "fixed", "name": "F", "size": -1}, "invalid size"),
    ({"type": "fixed", "name": "F", "size": "4"}, "wrong 'size'"),
    ({"type": "fixed", "name": "F", "size": 4, "aliases": "G"}, "wrong aliases"),
    (["int", "int"], "different types"),
    (["null", ["int"]], "must not contain a union"),
    ([], "different types"),
    (
        record(("a", {"type": "fixed", "name": "F", "size": 1}), ("b", {"type": "fixed", "name": "F", "size": 1})),
        "'F' twice",
    ),
    ({"type": "string", "doc": object()}, "values that JSON does not support"),
]


@pytest.mark.parametrize(("schema", "message"), BAD_SCHEMAS, ids=[str(row[0])[:40] for row in BAD_SCHEMAS])
def test_bad_schemas_are_named(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        AvroSerializer(schema)
    assert "\n" not in str(caught.value)


def test_a_schema_nested_without_end_is_an_error() -> None:
    deep: Any = "int"
    for _ in range(63):
        deep = {"type": "array", "items": deep}
    serializer = AvroSerializer(deep)
    assert serializer.decode_column(pa.array([b"\0"])).to_pylist() == [[]]
    with pytest.raises(SchemaError, match="nested more than 64 levels deep"):
        AvroSerializer({"type": "array", "items": deep})
    with pytest.raises(SchemaError, match="is not JSON"):
        AvroSerializer("[" * 100_000)


def test_a_small_schema_cannot_unfold_into_an_enormous_type() -> None:
    fields: list[tuple[Any, ...]] = [("a0", record(("x", "int"), name="L0"))]
    fields += [(f"a{n}", record(("l", f"L{n - 1}"), ("r", f"L{n - 1}"), name=f"L{n}")) for n in range(1, 40)]
    with pytest.raises(SchemaError, match="unfolds into more than 10000 columns"):
        _ = AvroSerializer(record(*fields, name="Top")).arrow_type


def test_names_have_namespaces() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    schema = {
        "type": "record",
        "name": "R",
        "namespace": "n.s",
        "fields": [{"name": "a", "type": inner}, {"name": "b", "type": "n.s.E"}],
    }
    serializer = AvroSerializer(schema)
    assert serializer.deserialize(serializer.serialize({"a": "A", "b": "A"})) == {"a": "A", "b": "A"}


def test_a_default_that_no_branch_takes_is_an_error_of_the_schema() -> None:
    reader = record(("a", "int"), ("b", ["int", "string"], None))
    with pytest.raises(SchemaError, match=r"default of field 'b' does not fit its type: .*belongs to no branch"):
        AvroSerializer(record(("a", "int")), reader_schema=reader).deserialize(b"\x02")

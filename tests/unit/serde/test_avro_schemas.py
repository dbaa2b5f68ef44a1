"""Avro schemas: how they are given, and what is wrong with those that are refused."""

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import SchemaError
from pravega_serde.avro import AvroSerializer
from pravega_serde.avro.derive import avro_text
from pravega_serde.avro.registry import AvroRegistry
from pravega_serde.registry.interface import SchemaText
from tests.unit.serde._avro import FLAT, logical, record

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


#: Texts that Java's parser accepts.
TEXTS = ['\ufeff{"type": "int"}', '// the count\n{"type": /* 32 bits */ "int"}  // end', '/* { */ "int"', '\ufeff"int"']


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_java_parses_are_schemas(text: str, tmp_path: Path) -> None:
    assert AvroSerializer(text).serialize(1) == b"\x02"
    assert AvroRegistry().from_text(SchemaText(text)).data == b'"int"'
    path = tmp_path / "schema.avsc"
    for encoding in ("utf-8", "utf-16"):
        path.write_text(text.removeprefix("\ufeff"), encoding=encoding)
        assert AvroSerializer(path).serialize(1) == b"\x02"


def test_text_inside_a_string_is_not_a_comment() -> None:
    text = '{"type": "enum", "name": "E", "symbols": ["A"], "doc": "see http://a/*b*/ \\"//"}'
    assert json.loads(avro_text(text))["doc"] == 'see http://a/*b*/ "//'
    with pytest.raises(SchemaError, match="is not JSON"):
        AvroSerializer('{"type": "int"')


def test_a_namespace_of_null_is_inherited() -> None:
    inner = {"type": "enum", "name": "E", "namespace": None, "symbols": ["A"]}
    schema = {**record(("a", inner), ("b", "n.s.E")), "namespace": "n.s"}
    expected = record(("a", {"type": "enum", "name": "E", "symbols": ["A"]}), ("b", "E"))
    assert avro_text(schema) == avro_text({**expected, "namespace": "n.s"})
    assert AvroSerializer({**record(("a", inner)), "namespace": None}).serialize({"a": "A"}) == b"\0"
    with pytest.raises(SchemaError, match="invalid namespace 5"):
        AvroSerializer({**schema, "namespace": 5})


@pytest.mark.parametrize(
    ("default", "number"),
    [
        ("NaN", math.nan),
        ("-Infinity", -math.inf),
        (" 1.5e3d ", 1500.0),
        ("1", 1.0),
        (math.inf, math.inf),
        ('{"type":"double","default":NaN}', math.nan),
    ],
)
def test_a_number_can_be_a_text_in_a_default(default: Any, number: float) -> None:
    if isinstance(default, str) and default.startswith("{"):
        field = default.replace("{", '{"name":"f",', 1)
    else:
        field = json.dumps({"name": "f", "type": "double", "default": default})
    reader = f'{{"type":"record","name":"R","fields":[{field}]}}'
    serializer = AvroSerializer({"type": "record", "name": "R", "fields": []}, reader_schema=reader)
    for found in (serializer.deserialize(b""), *serializer.decode_column(pa.array([b""])).to_pylist()):
        assert found["f"] == number or (math.isnan(found["f"]) and math.isnan(number))


@pytest.mark.parametrize("default", ["nan", "inf", "1_0", "x", ""])
def test_other_texts_are_not_numbers(default: str) -> None:
    reader = record(("f", "double", default))
    with pytest.raises(SchemaError, match="is not a number"):
        AvroSerializer(record(), reader_schema=reader)


@pytest.mark.parametrize(
    "kind",
    ["R", {"type": "record", "name": "Other", "fields": [{"name": "r", "type": "R", "default": {}}]}, ["R", "null"]],
)
def test_a_default_that_contains_itself_is_an_error_of_the_schema(kind: Any) -> None:
    with pytest.raises(SchemaError, match="the default of field 'h' contains itself"):
        AvroSerializer(record(), reader_schema=record(("h", kind, {})))


@pytest.mark.parametrize(("size", "digits"), [(1, 2), (2, 4), (4, 9), (8, 18), (16, 38), (17, 40)])
def test_a_fixed_is_a_decimal_only_if_all_its_numbers_fit(size: int, digits: int) -> None:
    for precision in (digits, digits + 1):
        kind = logical("fixed", "decimal", name="D", size=size, precision=precision, scale=0)
        value = AvroSerializer(kind).deserialize(bytes(size - 1) + b"\x05")
        assert value == (Decimal(5) if precision == digits else bytes(size - 1) + b"\x05")


def test_a_default_that_no_branch_takes_is_an_error_of_the_schema() -> None:
    reader = record(("a", "int"), ("b", ["int", "string"], None))
    with pytest.raises(SchemaError, match=r"default of field 'b' does not fit its type: .*belongs to no branch"):
        AvroSerializer(record(("a", "int")), reader_schema=reader).deserialize(b"\x02")


LONE = "\ud800"  # JSON can escape it, UTF-8 cannot encode it


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": LONE, "fields": []},
        {"type": "record", "name": "R", "aliases": [LONE], "fields": []},
        {"type": "record", "name": "R", "fields": [{"name": LONE, "type": "int"}]},
        {"type": "enum", "name": "E", "symbols": [LONE]},
        {"type": "fixed", "name": f"n.{LONE}", "size": 1},
    ],
)
def test_names_are_unicode(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="unpaired surrogate in the name"):
        AvroSerializer(json.dumps(schema))


def test_texts_that_are_not_names_may_have_unpaired_surrogates() -> None:
    schema = {"type": "record", "name": "R", "doc": LONE, "x": LONE, "fields": [{"name": "a", "type": "int"}]}
    assert json.loads(avro_text(schema).encode()) == schema
    fields = [*schema["fields"], {"name": "b", "type": "string", "default": LONE}]
    with pytest.raises(SchemaError, match=r"the default of field 'b' does not fit.*unpaired surrogate"):
        AvroSerializer(json.dumps(schema), reader_schema=json.dumps({**schema, "fields": fields})).deserialize(b"\2")


def test_a_default_can_be_nested_too_deeply_to_be_printed() -> None:
    deep = json.loads("[" * 800 + "]" * 800)
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": deep}]}
    with pytest.raises(SchemaError, match="nested too deeply"):
        avro_text(schema)

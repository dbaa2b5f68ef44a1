"""Avro schema resolution: what Java makes of every case, by rows and by columns; and fastavro, where it agrees."""

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, SchemaError, SerdeError
from pravega_serde.avro import AvroSerializer

GOLDEN = Path(__file__).parents[2] / "vectors" / "avro_resolution.jsonl"

#: Java says what is wrong with these only when it meets an item; here the schemas are refused before any event is read.
REFUSED_EARLIER = [('{"type": "array", "items": "string"}', '{"type": "array", "items": "int"}', "00")]
#: Java cannot apply an alias if the field's own name is there, too; here the own name wins.
TAKEN_ANYWAY = "0204"


def cases() -> list[dict[str, Any]]:
    with GOLDEN.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def name_of(case: dict[str, Any]) -> str:
    return f"{json.dumps(case['writer'])[:40]}->{json.dumps(case['reader'])[:40]}:{case['hex'][:12]}"


def differs_on_purpose(case: dict[str, Any]) -> bool:
    aliased = case["hex"] == TAKEN_ANYWAY and "aliases" in str(case["reader"])
    return aliased or (json.dumps(case["writer"]), json.dumps(case["reader"]), case["hex"]) in REFUSED_EARLIER


CASES = [case for case in cases() if not differs_on_purpose(case)]


def by_rows(case: dict[str, Any]) -> str:
    value = AvroSerializer(case["writer"], reader_schema=case["reader"]).deserialize(bytes.fromhex(case["hex"]))
    return AvroSerializer(case["reader"]).serialize(value).hex()


def by_columns(case: dict[str, Any]) -> str:
    serializer = AvroSerializer(case["writer"], reader_schema=case["reader"])
    event = bytes.fromhex(case["hex"])
    column = serializer.decode_column(pa.array([event, event]))
    column.validate(full=True)
    assert column.type == serializer.arrow_type == AvroSerializer(case["reader"]).arrow_type
    writer = AvroSerializer(case["reader"])._column_writer
    writer.check(column.type)
    stored = writer._lowerings[column.type](column)
    plain = writer._plain
    return {plain(value).hex() for value in stored.to_pylist()}.pop()


def test_there_are_cases() -> None:
    assert len(CASES) == 292
    assert sum("result" in case for case in CASES) > 130


@pytest.mark.parametrize("read", [by_rows, by_columns])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_is_javas(case: dict[str, Any], read: Any) -> None:
    if "List" in str(case["reader"]) and read is by_columns:
        with pytest.raises(SchemaError, match="contains itself"):
            read(case)
    elif "error" in case:
        with pytest.raises(SerdeError) as caught:
            read(case)
        assert isinstance(caught.value, SchemaError | DeserializationError)
    elif case["reader"] == ["float", "long", "int"] and read is by_rows:
        # A bare int does not say that it was read as the third branch.
        assert read(case)[2:] == case["result"][2:]
    else:
        assert read(case) == case["result"]


def fastavro_agrees(case: dict[str, Any]) -> bool:
    """Whether fastavro gives Java's answer. It does not for some unions, defaults and names."""
    try:
        writer, reader = fastavro.parse_schema(case["writer"]), fastavro.parse_schema(case["reader"])
        value = fastavro.schemaless_reader(io.BytesIO(bytes.fromhex(case["hex"])), writer, reader)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, reader, value)
    except Exception:  # noqa: BLE001 -- whatever it raises, it says no
        return "error" in case
    return out.getvalue().hex() == case.get("result")


def test_fastavro_agrees_with_java_nearly_always() -> None:
    agreeing = sum(map(fastavro_agrees, CASES))
    assert agreeing > 0.9 * len(CASES)


@pytest.mark.parametrize("case", [REFUSED_EARLIER[0]])
def test_what_could_never_be_read_is_refused_at_once(case: tuple[str, str, str]) -> None:
    with pytest.raises(SchemaError, match=r"at \$\[\]: string -> int"):
        AvroSerializer(case[0], reader_schema=case[1])


def test_a_fields_own_name_comes_before_its_aliases() -> None:
    writer = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}
    reader = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "aliases": ["a"]}]}
    assert AvroSerializer(writer, reader_schema=reader).deserialize(b"\x02\x04") == {"b": 2}


def test_a_missing_default_is_named() -> None:
    writer = {"type": "record", "name": "R", "fields": []}
    reader = {"type": "record", "name": "R", "fields": [{"name": "new", "type": "int"}]}
    with pytest.raises(
        SchemaError, match=r"field \$\.new is not in the writer's schema and has no default; give it one"
    ):
        AvroSerializer(writer, reader_schema=reader)

"""Avro schema resolution: results of Java, of fastavro, and of our rows and columns, for every case."""

import json
from typing import Any

import pytest

from pravega_serde import DeserializationError, SchemaError, SerdeError
from pravega_serde.avro import AvroSerializer
from tests.support import avro_matrix
from tests.support.avro_matrix import (
    DIFFERENCES,
    FASTAVRO,
    OURS,
    by_columns,
    by_fastavro,
    by_java,
    by_rows,
    by_us,
    cases,
    known,
)
from tests.support.each import each_case

CASES = cases()


def name_of(case: Any) -> str:
    return f"{json.dumps(case['writer'])[:40]}->{json.dumps(case['reader'])[:40]}:{case['hex'][:12]}"


def differing(case: Any) -> set[str]:
    return {each.who for each in known(case)}


def test_there_are_cases() -> None:
    assert len(CASES) == 316
    assert sum("result" in case for case in CASES) > 150


@pytest.mark.parametrize("read", [by_rows, by_columns])
def test_results_are_those_of_java(read: Any) -> None:
    agreed = [case for case in CASES if OURS not in differing(case)]
    assert len(agreed) == 314
    each_case(((name_of(case), case) for case in agreed), lambda case: check_result(case, read))


def check_result(case: Any, read: Any) -> None:
    if "next" in str(case["reader"]) and read is by_columns:
        with pytest.raises(SchemaError, match="contains itself"):
            read(case)
    elif "error" in case:
        with pytest.raises(SerdeError) as caught:
            read(case)
        assert isinstance(caught.value, SchemaError | DeserializationError)
    elif case["reader"] == ["float", "long", "int"] and read is by_rows:
        # A bare int does not show that it was read as the third branch.
        assert read(case)[2:] == case["result"][2:]
    else:
        assert read(case) == case["result"]


def test_every_difference_is_listed_and_is_one() -> None:
    for case in CASES:
        listed = differing(case)
        assert (by_us(case) != by_java(case)) == (OURS in listed), case
        # Where we differ from Java, the results may differ.
        assert OURS in listed or (by_fastavro(case) != by_java(case)) == (FASTAVRO in listed), case
    assert all(sum(each in known(case) for case in CASES) == 1 and each.why for each in DIFFERENCES)
    assert len(DIFFERENCES) == 12


def test_the_matrix_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    avro_matrix.main()
    assert "| all | 316 |" in capsys.readouterr().out


def test_what_could_never_be_read_is_refused_at_once() -> None:
    writer, reader = {"type": "array", "items": "string"}, {"type": "array", "items": "int"}
    with pytest.raises(SchemaError, match=r"at \$\[\]: string -> int"):
        AvroSerializer(writer, reader_schema=reader)


def test_a_fields_own_name_comes_before_its_aliases() -> None:
    writer = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}
    reader = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "aliases": ["a"]}]}
    assert AvroSerializer(writer, reader_schema=reader).deserialize(b"\x02\x04") == {"b": 2}


def test_aliases_of_fields_count_only_where_the_record_has_the_name() -> None:
    """As Java: elsewhere the default is taken, or there is none."""

    def record(name: str, *fields: dict[str, object], **more: object) -> dict[str, object]:
        return {"type": "record", "name": name, "fields": list(fields), **more}

    renamed = {"name": "b", "type": "int", "aliases": ["a"]}
    writer = record("shop.Old", {"name": "a", "type": "int"})
    known = record("shop.New", renamed, aliases=["Old"])
    assert AvroSerializer(writer, reader_schema=known).deserialize(b"\x02") == {"b": 1}
    unknown = record("shop.New", {**renamed, "default": 7})
    assert AvroSerializer(writer, reader_schema=unknown).deserialize(b"\x02") == {"b": 7}
    with pytest.raises(SchemaError, match=r"\$\.b .* or add the alias shop\.Old to shop\.New, which"):
        AvroSerializer(writer, reader_schema=record("shop.New", renamed))


def test_a_missing_default_is_named() -> None:
    writer = {"type": "record", "name": "R", "fields": []}
    reader = {"type": "record", "name": "R", "fields": [{"name": "new", "type": "int"}]}
    with pytest.raises(
        SchemaError, match=r"field \$\.new is not in the writer's schema and has no default; add a default"
    ):
        AvroSerializer(writer, reader_schema=reader)


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 4}


@pytest.mark.parametrize(
    ("writer", "reader", "words"),
    [
        (MILLIS, MICROS, "timestamp-millis -> timestamp-micros"),
        ({"type": "int", "logicalType": "date"}, MICROS, "date -> timestamp-micros"),
        (CENTS, CENTS | {"scale": 3}, "decimal -> decimal of scale 2 -> 3"),
        (CENTS | FIXED, CENTS | FIXED | {"scale": 0}, "of scale 2 -> 0"),
    ],
)
def test_a_value_never_becomes_another_one(writer: Any, reader: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=rf"change the writer's values at \$: .*{words}"):
        AvroSerializer(writer, reader_schema=reader)
    # In a union it is an error of the events that have it.
    event = AvroSerializer(["null", writer]).serialize(None)
    assert AvroSerializer(["null", writer], reader_schema=["null", reader]).deserialize(event) is None


def test_a_meaning_may_be_added_and_dropped() -> None:
    event = AvroSerializer("long").serialize(1_000_000)
    assert AvroSerializer("long", reader_schema=MICROS).deserialize(event).timestamp() == 1
    assert AvroSerializer(MICROS, reader_schema="long").deserialize(event) == 1_000_000
    assert AvroSerializer(CENTS, reader_schema=CENTS | {"precision": 12}).deserialize(b"\x02\x01").is_finite()

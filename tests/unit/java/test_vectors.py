"""The golden vectors of Java's own JavaSerializer: values, and the bytes that they are written as again."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pravega_serde import DeserializationError, SerializationError
from pravega_serde.java import BlockData, ClassDescriptor, JavaObject, JavaSerializer
from tests.support.each import each_case
from tests.unit.java._matching import assert_matches

LINES = [
    json.loads(line) for line in (Path(__file__).parents[2] / "vectors/java_serializer.jsonl").read_text().splitlines()
]
VECTORS = [vector for vector in LINES if "hex" in vector]
SERIALIZER = JavaSerializer()


def ext(value: JavaObject) -> dict[str, Any]:
    head, tail, _ = value.annotations[0]
    (number,) = struct.unpack_from(">i", head)
    return {"a": number, "s": bytes(head[6:]).decode(), "o": tail}


def custom(value: JavaObject) -> dict[str, Any]:
    extra = struct.unpack_from(">i", value.annotations[0][0])[0]
    note, after = bytes(value.annotations[0][0][6:]).decode(), value.annotations[0][1]
    return {**value.fields, "transient:extra": extra, "transient:note": note, "transient:obj": after}


def no_default(value: JavaObject) -> dict[str, Any]:
    head = value.annotations[0][0]
    (length,) = struct.unpack_from(">i", head)
    return {"transient:data": bytes(head[4 : 4 + length])}


def put_fields(value: JavaObject) -> dict[str, Any]:
    renamed = {"transient:A": "alpha", "transient:B": "beta", "transient:G": "gamma"}
    return {name: value[field] for name, field in renamed.items()}


def outside(value: JavaObject) -> dict[str, Any]:
    # Fields set by the constructor of a superclass that is not serializable; a stream lacks them.
    return {**value.fields, "lost": 5}


UNPACK = {
    "com.example.gold.SubOfNonSer": outside,
    "com.example.gold.Ext": ext,
    "com.example.gold.Custom": custom,
    "com.example.gold.CustomNoDefault": no_default,
    "com.example.gold.PutFields": put_fields,
}


def named(vectors: Iterable[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(vector["case"], vector) for vector in vectors]


def test_values_are_those_of_java() -> None:
    def check(vector: dict[str, Any]) -> None:
        assert_matches(vector["java_value"], SERIALIZER.deserialize(bytes.fromhex(vector["hex"])), unpack=UNPACK)

    assert len(VECTORS) == 156
    each_case(named(VECTORS), check)


def test_values_are_written_again_byte_for_byte() -> None:
    def check(vector: dict[str, Any]) -> None:
        assert SERIALIZER.serialize(SERIALIZER.deserialize(bytes.fromhex(vector["hex"]))).hex() == vector["hex"]

    stable = [vector for vector in VECTORS if vector["java_reencode_identical"]]
    assert len(stable) == 153
    each_case(named(stable), check)


def test_descriptors_are_those_of_java() -> None:
    def check(vector: dict[str, Any]) -> None:
        value = SERIALIZER.deserialize(bytes.fromhex(vector["hex"]))
        expected = {each["name"]: (each["suid"], each["fields"]) for each in vector["classdescs"]}
        for descriptor in [each.descriptor for each in (value if isinstance(value, list) else [value])]:
            fields = [[each.name, each.type] for each in descriptor.fields]
            assert (descriptor.serial_version_uid, fields) == expected[descriptor.name]

    each_case(named(v for v in VECTORS if v["case"].startswith("sensor_")), check)


def test_classes_that_java_refuses_are_refused() -> None:
    def check(vector: dict[str, Any]) -> None:
        name = vector["error"].rpartition(" ")[2]
        with pytest.raises(SerializationError, match=name.replace(".", r"\.")):
            SERIALIZER.serialize(JavaObject(ClassDescriptor(name, 0, flags=0)))

    each_case(named(vector for vector in LINES if "error" in vector), check)


def test_every_cut_is_an_error() -> None:
    def check(vector: dict[str, Any]) -> None:
        event = bytes.fromhex(vector["hex"])
        for size in range(len(event)):
            with pytest.raises(DeserializationError):
                SERIALIZER.deserialize(event[:size])
        # The bytes after the object have no owner: Java does not look at them either.
        assert_matches(vector["java_value"], SERIALIZER.deserialize(event + b"\0\0"), unpack=UNPACK)

    each_case(named(vector for vector in VECTORS if len(vector["hex"]) < 6000), check)


def test_block_data_has_its_own_type() -> None:
    event = next(bytes.fromhex(vector["hex"]) for vector in VECTORS if vector["case"] == "externalizable")
    assert type(SERIALIZER.deserialize(event).annotations[0][0]) is BlockData

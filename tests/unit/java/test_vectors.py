"""The golden vectors of Java's own JavaSerializer: values, and the bytes that they are written as again."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from pravega_serde import DeserializationError, SerializationError
from pravega_serde.java import BlockData, ClassDescriptor, JavaObject, JavaSerializer
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
    # What the constructor of a superclass that is not serializable sets; a stream does not have it.
    return {**value.fields, "lost": 5}


UNPACK = {
    "com.example.gold.SubOfNonSer": outside,
    "com.example.gold.Ext": ext,
    "com.example.gold.Custom": custom,
    "com.example.gold.CustomNoDefault": no_default,
    "com.example.gold.PutFields": put_fields,
}


def described(value: Any) -> list[ClassDescriptor]:
    return [value.descriptor] if isinstance(value, JavaObject) else []


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["case"])
def test_value_is_javas(vector: dict[str, Any]) -> None:
    assert_matches(vector["java_value"], SERIALIZER.deserialize(bytes.fromhex(vector["hex"])), unpack=UNPACK)


@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if v["java_reencode_identical"]], ids=lambda vector: vector["case"]
)
def test_written_again_byte_for_byte(vector: dict[str, Any]) -> None:
    assert SERIALIZER.serialize(SERIALIZER.deserialize(bytes.fromhex(vector["hex"]))).hex() == vector["hex"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["case"].startswith("sensor_")], ids=lambda v: v["case"])
def test_descriptors_are_javas(vector: dict[str, Any]) -> None:
    value = SERIALIZER.deserialize(bytes.fromhex(vector["hex"]))
    for descriptor in described(value):
        expected = vector["classdescs"][0]
        found = [[each.name, each.type] for each in descriptor.fields]
        assert (descriptor.name, descriptor.serial_version_uid, found) == (
            expected["name"],
            expected["suid"],
            expected["fields"],
        )


@pytest.mark.parametrize("vector", [v for v in LINES if "error" in v], ids=lambda vector: vector["case"])
def test_what_java_refuses_is_refused(vector: dict[str, Any]) -> None:
    name = vector["error"].rpartition(" ")[2]
    with pytest.raises(SerializationError, match=name.replace(".", r"\.")):
        SERIALIZER.serialize(JavaObject(ClassDescriptor(name, 0, flags=0)))


def every_cut() -> list[tuple[str, bytes]]:
    return [(vector["case"], bytes.fromhex(vector["hex"])) for vector in VECTORS if len(vector["hex"]) < 6000]


@pytest.mark.parametrize(("case", "event"), every_cut(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_cut_is_an_error(case: str, event: bytes) -> None:
    for size in range(len(event)):
        with pytest.raises(DeserializationError):
            SERIALIZER.deserialize(event[:size])
    # The bytes after the object belong to nobody: Java does not look at them either.
    assert_matches(
        next(v["java_value"] for v in VECTORS if v["case"] == case),
        SERIALIZER.deserialize(event + b"\0\0"),
        unpack=UNPACK,
    )


def test_block_data_has_a_type_of_its_own() -> None:
    event = next(bytes.fromhex(vector["hex"]) for vector in VECTORS if vector["case"] == "externalizable")
    assert type(SERIALIZER.deserialize(event).annotations[0][0]) is BlockData

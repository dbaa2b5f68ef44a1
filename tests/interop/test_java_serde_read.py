"""Java's objects of classes outside the golden vectors are read and written again."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde.java import JavaEnum, JavaObject, JavaSerializer
from pravega_serde.java.jdk_classes import array_descriptor, jdk_descriptor, jdk_names
from tests.interop._java_values import JavaValues
from tests.unit.java._matching import assert_matches

SERIALIZER = JavaSerializer()
Events = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def java_values(tmp_path_factory: pytest.TempPathFactory) -> JavaValues:
    return JavaValues(tmp_path_factory.mktemp("java_serde"))


@pytest.fixture(scope="module")
def events(java_values: JavaValues) -> Events:
    found = {event["case"]: event for event in java_values.generate()}
    assert len(found) > 600
    return found


def temperature(value: JavaObject) -> dict[str, Any]:
    degrees, unit = value.annotations[0]
    return {"degrees": struct.unpack(">d", degrees)[0], "unit": unit}


def decode(events: Events, case: str) -> Any:
    return SERIALIZER.deserialize(bytes.fromhex(events[case]["hex"]))


def test_every_value_is_javas(events: Events) -> None:
    unpack = {"Model$Temperature": temperature}
    skipped = {"calendar", "locale", "japanese", "treemap_reversed", "treemap_reversed_again", "descriptor", "deep"}
    custom = ("my_", "proxy", "exception", "ArrayBlockingQueue", "entry", "reverse_order")
    compared = 0
    for case, event in events.items():
        value = decode(events, case)
        if case not in skipped and not case.startswith(custom):
            compared += 1
            try:
                assert_matches(event["value"], value, unpack=unpack)
            except AssertionError as error:
                raise AssertionError(f"{case}: {error}") from error
    assert compared > 550


def test_every_stable_event_is_written_again_byte_for_byte(events: Events) -> None:
    stable = [case for case, event in events.items() if event["stable"]]
    assert len(stable) > 550
    different = [case for case in stable if SERIALIZER.serialize(decode(events, case)).hex() != events[case]["hex"]]
    assert different == []


def test_what_is_not_stable_in_java_is_still_read_by_java(events: Events, java_values: JavaValues) -> None:
    cases = [case for case, event in events.items() if not event["stable"]]
    answers = java_values.verify([SERIALIZER.serialize(decode(events, case)) for case in cases])
    for case, answer in zip(cases, answers, strict=True):
        assert "error" not in answer, f"{case}: {answer}"
        assert_matches(answer["value"], decode(events, case))


def test_depth_is_no_matter(events: Events) -> None:
    value, depth = decode(events, "deep"), 0
    while not isinstance(value, str):
        (value,), depth = value, depth + 1
    assert (value, depth) == ("bottom", 300)


def test_hidden_fields_and_cycles(events: Events) -> None:
    puppy = decode(events, "puppy")
    assert puppy["friend"] is puppy
    assert (puppy["shared"], puppy["Model$Animal.shared"]) == (2, 1)
    assert puppy["toy"] == JavaEnum(puppy["toy"].descriptor, "SQUARE")
    assert [each.name for each in puppy.descriptor.hierarchy] == ["Model$Animal", "Model$Dog", "Model$Puppy"]
    nodes = decode(events, "nodes")
    assert nodes["next"]["next"] is nodes
    assert nodes["all"] is nodes["next"]["all"]


def test_a_class_with_sixty_fields(events: Events) -> None:
    sixty = decode(events, "sixty")
    assert len(sixty.fields) == 60
    assert sixty["h07"] == f"s{events['sixty']['value']['f']['h07']['v'][1:]}"


def test_a_proxy_is_its_interfaces_and_its_handler(events: Events) -> None:
    proxy = decode(events, "proxy")
    assert isinstance(proxy, JavaObject)
    assert proxy.descriptor.interfaces == ("java.lang.Runnable", "java.lang.Comparable")
    assert proxy["h"].fields == {"text": "echo"}


def test_flat_objects_by_column_are_those_by_row(events: Events) -> None:
    column = [bytes.fromhex(event["hex"]) for case, event in events.items() if case.startswith("flat_")]
    serializer = JavaSerializer(sample=column[0])
    errors: list[Any] = []
    values = serializer.decode_column(pa.array([*column, None, bytes.fromhex("aced000570")]), on_error=errors.append)
    assert len(values) == 32
    assert values[30].as_py() is values[31].as_py() is None
    failed = {error.row for error in errors}
    for row, event in enumerate(column):
        fields = serializer.deserialize(event).fields
        surrogate = 0xD800 <= ord(fields["grade"]) < 0xE000
        assert (row in failed) == surrogate
        if not surrogate:
            assert values[row].as_py() == fields


def test_the_table_of_jdk_classes_is_javas(java_values: JavaValues) -> None:
    # The table is from JDK 17; of its classes, later ones have changed only the flags of one wrapper.
    names = [*jdk_names(), "[I", "[Ljava.lang.String;", "[[D"]
    if java_values.version > 17:
        names = [name for name in names if "$Synchronized" not in name]
    for name, raw in java_values.descriptors(names).items():
        expected = array_descriptor(name) if name.startswith("[") else jdk_descriptor(name)
        assert SERIALIZER.deserialize(raw) == expected, name
        assert SERIALIZER.serialize(expected) == raw, name

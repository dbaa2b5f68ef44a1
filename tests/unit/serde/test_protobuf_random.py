"""Random Protobuf types and values: rows and columns agree, on both paths of each; damaged events are found alike."""

import random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, SerializationError
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.protobuf.storage import lowering
from tests.interop.java_proto._descriptors import everything, older

RANDOM = settings(max_examples=60)

SIGNED_32, SIGNED_64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
UNSIGNED_32, UNSIGNED_64 = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)

#: Natural values by number in ``FieldDescriptorProto.Type``.
LEAVES: dict[int, st.SearchStrategy[Any]] = {
    1: st.floats(allow_nan=False),
    2: st.floats(width=32, allow_nan=False),
    3: SIGNED_64 | st.integers(-3, 300),
    4: UNSIGNED_64 | st.integers(0, 300),
    5: SIGNED_32 | st.integers(-3, 300),
    6: UNSIGNED_64,
    7: UNSIGNED_32,
    8: st.booleans(),
    9: st.text(st.characters(codec="utf-8"), max_size=12),
    12: st.binary(max_size=12),
    13: UNSIGNED_32 | st.integers(0, 300),
    14: st.sampled_from(["ZERO", "ONE", "FIVE"]),
    15: SIGNED_32,
    16: SIGNED_64,
    17: SIGNED_32,
    18: SIGNED_64,
}
KEYS = [kind for kind in LEAVES if kind not in (1, 2, 12, 14)]
ENUM, MESSAGE = 14, 11
Values = st.SearchStrategy[Any]


class Maker:
    """Makes one random file: messages, each with the strategy of its natural values."""

    def __init__(self, draw: Any, *, proto2: bool) -> None:
        self._draw, self._proto2, self._count = draw, proto2, 0
        self.file = FileDescriptorProto(name="r.proto", package="r", syntax="proto2" if proto2 else "proto3")
        enum = self.file.enum_type.add(name="E")
        for name, number in (("ZERO", 0), ("ONE", 1), ("FIVE", 5)):
            enum.value.add(name=name, number=number)

    def message(self, depth: int) -> tuple[str, Values]:
        name = f"M{self._count}"
        self._count += 1
        message = self.file.message_type.add(name=name)
        numbers = self._draw(st.lists(st.integers(1, 40) | st.integers(1, 9000), max_size=5, unique=True))
        fields: dict[str, Values] = {}
        oneof: dict[str, Values] = {}
        for index, number in enumerate(numbers):
            fields[f"f{index}"] = self._field(message, f"f{index}", number, depth)
        if depth > 0 and self._draw(st.booleans()):
            message.oneof_decl.add(name="one")
            for index in range(3):
                oneof[f"c{index}"] = self._single(message, f"c{index}", 10_000 + index, depth, oneof_index=0)
        return f".r.{name}", st.builds(_joined, _some(fields), _one_of(oneof))

    def _field(self, message: Any, name: str, number: int, depth: int) -> Values:
        label = self._draw(st.sampled_from(["single", "single", "repeated", "map"]))
        if label == "map":
            return self._map(message, name, number, depth)
        if label == "single":
            return self._single(message, name, number, depth)
        kind, type_name, values = self._kind(depth)
        field = message.field.add(name=name, number=number, type=kind, label=3, type_name=type_name)
        if kind not in (9, 12, MESSAGE):
            field.options.packed = self._draw(st.booleans())
        return st.lists(values, max_size=4)

    def _single(self, message: Any, name: str, number: int, depth: int, **more: Any) -> Values:
        kind, type_name, values = self._kind(depth)
        label = 2 if self._proto2 and not more and self._draw(st.integers(0, 5)) == 0 else 1
        message.field.add(name=name, number=number, type=kind, label=label, type_name=type_name, **more)
        return values

    def _map(self, message: Any, name: str, number: int, depth: int) -> Values:
        key = self._draw(st.sampled_from(KEYS))
        kind, type_name, values = self._kind(depth)
        # Protobuf knows a map by the name of its entries: the field's name in camel case.
        entry = message.nested_type.add(name=f"{name.upper()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key, label=1)
        entry.field.add(name="value", number=2, type=kind, label=1, type_name=type_name)
        type_name = f".r.{message.name}.{entry.name}"
        message.field.add(name=name, number=number, type=MESSAGE, label=3, type_name=type_name)
        return st.dictionaries(LEAVES[key], values, max_size=4)

    def _kind(self, depth: int) -> tuple[int, str | None, Values]:
        kind = self._draw(st.sampled_from([*LEAVES, *([MESSAGE] * 4 if depth > 0 else [])]))
        if kind == MESSAGE:
            name, values = self.message(depth - 1)
            return kind, name, values
        return kind, ".r.E" if kind == ENUM else None, LEAVES[kind]


def _some(fields: dict[str, Values]) -> Values:
    return st.fixed_dictionaries({}, optional=fields)


def _one_of(members: dict[str, Values]) -> Values:
    choices: list[Values] = [st.fixed_dictionaries({name: values}) for name, values in members.items()]
    return st.one_of(st.just({}), *choices)


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {**first, **second}


@st.composite
def examples(draw: Any, rows: int = 8) -> tuple[ProtobufSerializer, list[Any]]:
    """A serializer of a random type, and values that it can write."""
    maker = Maker(draw, proto2=draw(st.booleans()))
    name, values = maker.message(2)
    serializer = ProtobufSerializer(FileDescriptorSet(file=[maker.file]), message_type=name[1:])
    good = []
    for value in draw(st.lists(values, min_size=1, max_size=rows)):
        try:
            serializer.serialize(value)
            good.append(value)
        except SerializationError as error:
            assert "required fields are missing" in str(error)  # noqa: PT017 -- the strategies leave any field out
    return serializer, good


def shown(serializer: ProtobufSerializer, column: pa.Array) -> str:
    """Values as text: a NaN is not equal to itself. Times as numbers: Python has none beyond its year 9999."""
    return str(lowering(serializer.plan, column.type)(column).to_pylist())


def plainly(serializer: ProtobufSerializer, events: list[bytes]) -> tuple[pa.Array, dict[int, str]]:
    """Results of the plain path, and its errors."""
    values: list[Any] = []
    errors: dict[int, str] = {}
    for row, event in enumerate(events):
        try:
            values.append(serializer.column_reader.plain.read(event))
        except DeserializationError as error:
            values.append(None)
            errors[row] = error.reason
    return pa.array(values, serializer.arrow_type), errors


@RANDOM
@given(examples())
def test_rows_survive(example: tuple[ProtobufSerializer, list[Any]]) -> None:
    serializer, values = example
    for value in values:
        event = serializer.serialize(value)
        message = serializer.deserialize(event)
        natural = serializer.as_dict(message)
        assert {name: natural[name] for name in value if value[name] is not None}.keys() == value.keys()
        assert serializer.serialize(message) == serializer.serialize(natural) == event


@RANDOM
@given(examples())
def test_columns_are_rows_on_both_paths(example: tuple[ProtobufSerializer, list[Any]]) -> None:
    serializer, values = example
    events = [serializer.serialize(value) for value in values] * 5
    column = pa.array(events, pa.binary())
    if events:
        assert not len(serializer.column_reader.fast(column).suspects), "the fast path reads all that writers write"
    decoded = serializer.decode_column(column)
    decoded.validate(full=True)
    expected, _ = plainly(serializer, events)
    assert shown(serializer, decoded) == shown(serializer, expected)
    writer = serializer.column_writer
    writer.check(decoded.type)
    stored = writer.stored(decoded)
    assert writer.fast(stored).to_pylist() == writer.plain(stored).to_pylist() == events
    assert serializer.encode_column(decoded).to_pylist() == events
    with_null = pa.concat_arrays([decoded, pa.nulls(1, decoded.type), decoded]).slice(1)
    assert serializer.encode_column(with_null).to_pylist() == [*events, None, *events][1:]


@st.composite
def compiled_examples(draw: Any) -> tuple[ProtobufSerializer, list[Any]]:
    """Input of the compiled writer: no maps, no oneofs, no unpacked numbers."""
    maker = Maker(draw, proto2=False)

    def message(name: str, depth: int) -> Values:
        made = maker.file.message_type.add(name=name)
        fields: dict[str, Values] = {}
        for index in range(draw(st.integers(1, 5))):
            field = made.field.add(name=f"f{index}", number=18 - index, label=draw(st.sampled_from([1, 1, 3])))
            field.type = draw(st.sampled_from([*LEAVES, *([MESSAGE] * 4 if depth else [])]))
            values = LEAVES.get(field.type)
            if values is None:
                field.type_name = f".r.{name}x{index}"
                values = message(f"{name}x{index}", depth - 1)
            elif field.type == ENUM:
                field.type_name = ".r.E"
            if field.label == 1 and field.type != MESSAGE and draw(st.booleans()):
                field.proto3_optional, field.oneof_index = True, len(made.oneof_decl)
                made.oneof_decl.add(name=f"_f{index}")
            fields[field.name] = values if field.label == 1 else st.lists(values, max_size=3)
        return _some(fields)

    rows = draw(st.lists(message("Top", 2), min_size=1, max_size=8))
    return ProtobufSerializer(FileDescriptorSet(file=[maker.file]), message_type="r.Top"), rows


@RANDOM
@given(compiled_examples())
def test_the_compiled_writer_writes_the_same(example: tuple[ProtobufSerializer, list[Any]]) -> None:
    serializer, values = example
    events = pa.array([serializer.serialize(value) for value in values])
    decoded = serializer.decode_column(events)
    assert serializer.encode_column(decoded).equals(events)
    writer = serializer.column_writer
    stored = writer.stored(decoded)
    assert writer.fast(stored).equals(events)
    compiled = writer.compiled(stored)
    assert compiled.equals(events) if compiled is not None else "-0.0" in str(values)


def damaged(event: bytes, chance: random.Random) -> bytes:
    data = bytearray(event)
    place = chance.randrange(len(data) + 1)
    how = chance.randrange(6)
    if how == 0:
        del data[place:]
    elif how == 1 and place < len(data):
        data[place] = chance.randrange(256)
    elif how == 2 and place < len(data):
        data[place] ^= 1 << chance.randrange(8)
    elif how == 3:
        data += bytes(chance.randrange(5))
    elif how == 4:
        data[place:place] = chance.randbytes(3)
    else:
        data = data[place:] + data[:place]
    return bytes(data)


def assert_found_alike(serializer: ProtobufSerializer, events: list[bytes]) -> None:
    expected, reasons = plainly(serializer, events)
    errors: list[DeserializationError] = []
    decoded = serializer.decode_column(pa.array(events, pa.binary()), on_error=errors.append)
    decoded.validate(full=True)
    assert {error.row: error.reason for error in errors} == reasons
    assert shown(serializer, decoded) == shown(serializer, expected)


@RANDOM
@given(examples(4), st.randoms(use_true_random=False))
def test_damaged_events_are_found_alike_by_rows_and_columns(
    example: tuple[ProtobufSerializer, list[Any]], chance: random.Random
) -> None:
    serializer, values = example
    events = [serializer.serialize(value) for value in values]
    events += [damaged(event, chance) for event in events * 3]
    events += [damaged(event, chance) for event in events] + [chance.randbytes(chance.randrange(20))]
    assert_found_alike(serializer, events)


@RANDOM
@given(examples(1))
def test_every_truncation_is_an_error_or_a_value(example: tuple[ProtobufSerializer, list[Any]]) -> None:
    serializer, values = example
    for event in map(serializer.serialize, values):
        assert_found_alike(serializer, [event[:size] for size in range(len(event))])


SAMPLES: dict[str, dict[str, Any]] = {
    "everything.Everything": {
        "i64": -5,
        "text": "ü",
        "o_i32": 0,
        "inner": {"a": 1, "packed": [1, 300]},
        "r_i32": [1, -1],
        "far": 1,
        "r_text": ["", "a"],
        "r_inner": [{}, {"b": 1 << 63}],
        "unpacked": [1, 2],
        "m_text": {"a": 1, "": 0},
        "m_u64": {1: {"a": 2}},
        "c_inner": {"a": 5},
        "w_i64": 0,
        "r_level": ["HIGH", 9],
    },
    "older.Older": {
        "id": 1,
        "text": "x",
        "part": {"x": 5},
        "closed": "A",
        "all": ["B"],
        "packed": [1, 2],
        "map": {"a": "b"},
    },
}


@pytest.mark.parametrize("name", SAMPLES)
def test_thousands_of_damaged_events(name: str) -> None:
    serializer = ProtobufSerializer(everything() if "every" in name else older(), message_type=name)
    event, chance = serializer.serialize(SAMPLES[name]), random.Random(7)
    events = [damaged(event, chance) for _ in range(1500)]
    assert_found_alike(serializer, [*events, *(damaged(event, chance) for event in events)])
    assert_found_alike(serializer, [event + other for other in events[:300]])

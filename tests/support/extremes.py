"""Smallest, largest and unusual values of every Arrow type, for every format.

To add a format, add it to the table of formats. Other configurations of a format are in :data:`FORMATS`. To add a type,
list it in :func:`columns`. The assertions for each value of each type in each format are in
``unit/serde/test_extremes.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from pravega_serde import Serializer, formats, serializer_for
from pravega_serde.avro import AvroSerializer, avro_schema_of
from pravega_serde.cbor import CborSerializer
from pravega_serde.format_table import FORMATS as FORMAT_TABLE
from pravega_serde.java import ClassDescriptor, JavaSerializer
from pravega_serde.json import JsonSerializer
from pravega_serde.protobuf import ProtobufSerializer, protobuf_schema_of

__all__ = ["FORMATS", "Format", "columns", "expected"]

FIELD: Final = "v"
"""Only field of the tested records."""


@dataclass(frozen=True, slots=True)
class Format:
    """Functions with which a format handles single values of a type."""

    make: Callable[[pa.DataType], Serializer[Any]]
    """Returns a serializer of columns of :attr:`wrap`'s type. Raises :class:`SchemaError` for an unsupported type."""
    wrap: Callable[[pa.Array], pa.Array]
    """Returns the column to write for a column of values."""
    rows_are_untyped: bool = False
    """True if rows do not keep the types of values: JSON's decimals are floats in rows."""


def _record(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], names=[FIELD])


def _avro(kind: pa.DataType) -> Serializer[Any]:
    return AvroSerializer(avro_schema_of(pa.schema([(FIELD, kind)]), "extremes.Event"))


def _protobuf(kind: pa.DataType) -> Serializer[Any]:
    return ProtobufSerializer(
        protobuf_schema_of(pa.schema([(FIELD, kind)]), "extremes.Event"), message_type="extremes.Event"
    )


def _json(kind: pa.DataType) -> Serializer[Any]:
    serializer = JsonSerializer(arrow_type=pa.schema([(FIELD, _read_from_json(kind))]))
    serializer.check_encodable(pa.struct([(FIELD, kind)]))
    return serializer


def _cbor(kind: pa.DataType) -> Serializer[Any]:
    serializer = CborSerializer(arrow_type=pa.schema([(FIELD, _read_from_json(kind))]))
    serializer.check_encodable(pa.struct([(FIELD, kind)]))
    return serializer


def _read_from_json(kind: pa.DataType) -> pa.DataType:
    """Return the nearest type that JSON and CBOR are decoded to."""
    t = pa.types
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", _read_from_json(kind.value_type)))
    if t.is_struct(kind):
        return pa.struct([(field.name, _read_from_json(field.type)) for field in kind])
    if t.is_map(kind):
        return pa.map_(pa.string(), _read_from_json(kind.item_type))
    if t.is_dictionary(kind):
        return _read_from_json(kind.value_type)
    for fits, target in _JSON_TYPES:
        if fits(kind):
            return target
    return pa.timestamp("us", kind.tz) if t.is_timestamp(kind) else kind


_JSON_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...]] = (
    (lambda kind: kind in (pa.large_string(), pa.string_view()), pa.string()),
    (lambda kind: kind in (pa.large_binary(), pa.binary_view()) or pa.types.is_fixed_size_binary(kind), pa.binary()),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_time, pa.string()),
)

_JAVA_FIELDS: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "java.lang.Integer",
    pa.int64(): "java.lang.Long",
    pa.float32(): "java.lang.Float",
    pa.float64(): "double",
    pa.string(): "java.lang.String",
    pa.binary(): "byte[]",
    pa.date32(): "java.time.LocalDate",
}


def _java_field(kind: pa.DataType) -> str:
    t = pa.types
    if t.is_timestamp(kind):
        return "java.time.Instant" if kind.tz else "java.time.LocalDateTime"
    if t.is_time(kind):
        return "java.time.LocalTime"
    if t.is_duration(kind):
        return "java.time.Duration"
    if t.is_decimal(kind):
        return "java.math.BigDecimal"
    return _JAVA_FIELDS.get(kind, "java.lang.String")


def _java_object(kind: pa.DataType) -> Serializer[Any]:
    return JavaSerializer(ClassDescriptor.of("extremes.Event", 1, {FIELD: _java_field(kind)}))


def _java_date(kind: pa.DataType) -> Serializer[Any]:
    return JavaSerializer(ClassDescriptor.of("extremes.Event", 1, {FIELD: "java.util.Date"}))


def _java_timestamp(kind: pa.DataType) -> Serializer[Any]:
    return JavaSerializer("java.sql.Timestamp")


def _declared(name: str) -> Format:
    """Return a format of the table, with columns of the written type."""
    entry = FORMAT_TABLE[name]

    def make(kind: pa.DataType) -> Serializer[Any]:
        whole = pa.struct([(FIELD, kind)]) if entry.always_record else kind
        return serializer_for(name, **({"arrow_type": whole} if entry.needs_columns else {}))

    return Format(make, _record if entry.always_record else lambda values: values)


FORMATS: Final[Mapping[str, Format]] = {name: _declared(name) for name in formats()} | {
    "avro": Format(_avro, _record),
    "cbor": Format(_cbor, _record, rows_are_untyped=True),
    "java, field": Format(_java_object, _record),
    "java, Date": Format(_java_date, _record),
    "java, Timestamp": Format(_java_timestamp, lambda values: values),
    "json": Format(_json, _record, rows_are_untyped=True),
    "protobuf": Format(_protobuf, _record),
    "protobuf, Timestamp": Format(lambda kind: ProtobufSerializer(Timestamp), lambda values: values),
    "protobuf, Duration": Format(lambda kind: ProtobufSerializer(Duration), lambda values: values),
}


def _raw(kind: pa.DataType, numbers: list[int], width: int) -> pa.Array:
    """Return an array of a type from its stored numbers, valid or not."""
    data = np.array(numbers, f"i{width}")
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)])


def _integers() -> Iterator[pa.Array]:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        info = np.iinfo(kind.to_pandas_dtype())
        yield pa.array([info.min, info.max, 0, min(info.max, 2**53 + 1), max(info.min, -1)], kind)


def _floats() -> Iterator[pa.Array]:
    common = [0.0, -0.0, float("nan"), float("inf"), float("-inf")]
    yield pa.array(np.array([*common, 65504.0, 6e-8], np.float16), pa.float16())
    yield pa.array(np.array([*common, 3.4028235e38, -3.4028235e38, 1e-45, 0.1], np.float32))
    yield pa.array([*common, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 0.1, 2.0**53, 1e22, 1e23])
    # A signaling NaN, which must not make a conversion fail.
    yield pa.array(np.frombuffer(struct.pack("<2I", 0x7FA00000, 0xFFC12345), np.float32))


def _texts() -> Iterator[pa.Array]:
    texts = ["", "\0", "\ud55c\uffff", "\U0001f600\U0010ffff", '"\\\b\n\x1f\x7f\u2028', "x" * 70_000, "\u00e9" * 33_000]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield pa.array(texts, kind)
    raw = [b"", b"\0", b"\xff\xfe", bytes(range(256)), b"x" * 70_000]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield pa.array(raw, kind)
    yield pa.array([b"\0" * 4, b"\xff" * 4], pa.binary(4))


def _decimals() -> Iterator[pa.Array]:
    for precision, scale in ((1, 0), (5, 2), (18, 18), (38, 0), (38, 18), (38, 38)):
        most = Decimal((0, (9,) * precision, -scale))
        values = [most, most.copy_negate(), Decimal(0), Decimal((0, (1,), -scale))]
        yield pa.array(values, pa.decimal128(precision, scale))
    nines = pa.array([Decimal((0, (9,) * 38, 0))], pa.decimal128(38, 0))
    yield pa.Array.from_buffers(pa.decimal128(38, -5), 1, nines.buffers())
    most = Decimal((0, (9,) * 76, 0))
    yield pa.array([most, Decimal(1)], pa.decimal256(76, 0))


_DAY: Final = 86_400
#: Seconds of years 0 and 1, of the last day of Python's calendar, and of the first second after it.
_SECONDS: Final = (-62_167_219_200, -62_135_596_800, 253_402_300_799, 253_402_300_800, 0, -1)
_DAYS: Final = (-719_529, -719_528, -719_162, -719_163, 2_932_896, 2_932_897, 0, -1, 2**31 - 1, -(2**31))


def _times() -> Iterator[pa.Array]:
    yield _raw(pa.date32(), [*_DAYS], 4)
    yield _raw(pa.date64(), [*(day * _DAY * 1000 for day in _DAYS), 2**63 - 1, 1 - 2**63, 1], 8)
    for unit, per in (("s", 1), ("ms", 1000)):
        yield _raw(pa.time32(unit), [0, _DAY * per - 1, _DAY * per, -1, 2**31 - 1], 4)
    for unit, per in (("us", 10**6), ("ns", 10**9)):
        yield _raw(pa.time64(unit), [0, _DAY * per - 1, _DAY * per, -1, 2**63 - 1, 1], 8)
    for unit, per in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        ends = [2**63 - 1, 1 - 2**63, 1, -1, 2**53 + 1]
        seconds = [each * per for each in _SECONDS if abs(each * per) < 1 << 63]
        lasts = [253_402_300_800 * per - 1] if per < 10**9 else []
        for zone in (None, "UTC", "America/New_York", "+05:30"):
            yield _raw(pa.timestamp(unit, zone), [*ends, *seconds, *lasts], 8)
        yield _raw(pa.duration(unit), [*ends, 86_400_000_000_000 * min(per, 10**3)], 8)
    yield pa.array([(1, 2, 3)], pa.month_day_nano_interval())


def _nested() -> Iterator[pa.Array]:
    """Yield lists, maps and structs of nulls, and of values that are often out of range."""
    moments = _raw(pa.timestamp("us", "UTC"), [2**63 - 1, 0, -62_135_596_800 * 10**6 - 1], 8)
    for kind in (pa.list_(moments.type), pa.large_list(moments.type), pa.list_(moments.type, 1)):
        one = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), moments)
        yield one.cast(kind)
    yield pa.array([[], [None], [[]]], pa.list_(pa.list_(pa.int32())))
    yield pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["", "\0", "\U0001f600"]), moments)
    yield pa.array([[], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))
    yield pa.array([[(2**31 - 1, True)]], pa.map_(pa.int32(), pa.bool_()))
    yield pa.StructArray.from_arrays([moments, pa.array([None, 1, 2], pa.int32())], names=["at", "n"])
    yield pa.array(["a", "b", "a"]).dictionary_encode()
    yield moments.dictionary_encode()
    yield pc.run_end_encode(pa.array(["a", "a", "b"]))
    yield pa.nulls(2)
    yield pa.array([True, False])


def columns() -> list[pa.Array]:
    """Return one array for each type, without nulls except for the type null."""
    return [*_integers(), *_floats(), *_texts(), *_decimals(), *_times(), *_nested()]


def expected(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a value in the type that it is decoded to. Finer values are rounded down, and nothing else may change.

    Raises ``pa.ArrowException`` if that type has no such value. The format must then refuse it.
    """
    t = pa.types
    if t.is_dictionary(value.type):
        return expected(value.dictionary_decode(), kind)
    if t.is_null(value.type):
        return value.cast(kind)
    if t.is_struct(kind):
        parts = [expected(part, field.type) for part, field in zip(value.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=value.is_null())
    if t.is_map(kind):
        return _entries(value, kind)
    if t.is_list(kind):
        items = expected(value.flatten(), kind.value_type)
        lengths = pc.list_value_length(value).fill_null(0).to_numpy()
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=value.is_null())
    return _leaf(value, kind)


def _entries(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the last entry of each key, as in a map."""
    keys = value.keys.slice(*_bounds(value))
    items = value.items.slice(*_bounds(value))
    last = sorted({key: place for place, key in enumerate(keys.to_pylist())}.values())
    parts = [
        expected(part.take(pa.array(last, pa.int64())), inner)
        for part, inner in ((keys, kind.key_type), (items, kind.item_type))
    ]
    return pa.MapArray.from_arrays(pa.array([0, len(last)], pa.int32()), *parts, type=kind)


def _bounds(value: pa.Array) -> tuple[int, int]:
    first, last = value.offsets.to_pylist()
    return first, last - first


def _leaf(value: pa.Array, kind: pa.DataType) -> pa.Array:
    t = pa.types
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    if (t.is_timestamp(kind) and t.is_timestamp(value.type)) or (t.is_duration(kind) and t.is_duration(value.type)):
        (number,) = value.cast(pa.int64()).to_pylist()
        micros = number * per["us"] // per[value.type.unit]
        return pa.array([micros * per[kind.unit] // per["us"]], pa.int64()).cast(kind)
    if t.is_date(value.type) and t.is_date(kind):
        (number,) = value.view(pa.int64() if value.type.bit_width == 64 else pa.int32()).to_pylist()
        days = number // (_DAY * 1000) if value.type.bit_width == 64 else number
        return pa.array([days], pa.int64()).cast(pa.int32()).cast(pa.date32()).cast(kind)
    if t.is_time(value.type) and t.is_string(kind):
        return _leaf(value, pa.time64("us")).cast(kind)
    if t.is_time(value.type) and (t.is_integer(kind) or t.is_time(kind)):
        (number,) = value.cast(pa.int32() if value.type.bit_width == 32 else pa.int64()).cast(pa.int64()).to_pylist()
        unit = kind.unit if t.is_time(kind) else "ms" if kind == pa.int32() else "us"
        micros = number * per["us"] // per[value.type.unit]
        numbers = pa.array([micros * per[unit] // per["us"]])
        return (numbers.cast(pa.int32()) if unit in ("s", "ms") else numbers).cast(kind)
    return value.cast(kind)

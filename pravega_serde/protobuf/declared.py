"""Declared Arrow types: the types of columns from which a schema was derived, where Protobuf's own are others.

A derived field has its Arrow type as text in the option ``(confluent.field_meta).params["arrow"]``. On the wire, it is
an ordinary field, which every reader of Protobuf reads: times are microseconds since 1970, or since midnight, and a
decimal has its digits as text. The type table marks the declared types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldOptions, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from pravega_serde.columnar import Lower, MalformedError, days_of, to_micros
from pravega_serde.columnar.bad_rows import UNFIT, invalid
from pravega_serde.columnar.building import decimal_fitter, decimals_of
from pravega_serde.columnar.lowering import itself, list_lowering, map_lowering, struct_lowering
from pravega_serde.columnar.types import ROWS, family, row_of, stored
from pravega_serde.protobuf.bundled_files import META_OPTION, bundled

_DECIMAL: Final = re.compile(r"decimal(128|256)\((\d{1,2}), (-?\d{1,2})\)")
_TYPES: Final = {str(row.stored): row.stored for row in ROWS.values() if row.declared and row.stored is not None}
_KEY: Final = "arrow"
_DAY: Final = 86_400_000_000


def declared_for(kind: pa.DataType) -> pa.DataType | None:
    """Return the type to declare for a column, or None if Protobuf's own types say it."""
    row = row_of(kind)
    return stored(kind) if row is not None and row.declared else None


def declare(options: FieldOptions, kind: pa.DataType) -> None:
    """Set the option of a field."""
    made = _options()
    made.meta.params[_KEY] = str(kind)
    options.MergeFromString(made.SerializeToString())


def option_text(options: FieldOptions) -> str | None:
    """Return the option of a derived field as text, or None if it has none, or other custom options."""
    found = _options()
    found.MergeFromString(options.SerializeToString())
    text = found.meta.params.get(_KEY)
    if text is None or (kind := _type(text)) is None:
        return None
    plain = plain_options(options)
    declare(plain, kind)
    written = f'{{key: "{_KEY}", value: "{text}"}}'
    return f"(confluent.field_meta) = {{params: [{written}]}}" if plain.ByteSize() == options.ByteSize() else None


def plain_options(options: FieldOptions) -> FieldOptions:
    """Return the options of a field without custom ones, also if the program knows Confluent's as an extension."""
    found = _options()
    found.MergeFromString(options.SerializeToString())
    found.ClearField("meta")
    found.DiscardUnknownFields()
    plain = FieldOptions()
    plain.MergeFromString(found.SerializeToString())
    return plain


def declared_in(field: FieldDescriptor) -> pa.DataType | None:
    """Return the declared type of a field. A text that does not fit the field is ignored."""
    if not field.has_options:
        return None
    found = _options()
    found.MergeFromString(field.GetOptions().SerializeToString())
    kind = _type(found.meta.params.get(_KEY, ""))
    name = field.message_type.full_name if field.message_type is not None else _NAMES.get(field.type, "")
    row = None if kind is None else row_of(kind)
    return kind if row is not None and row.protobuf == name else None


_NAMES: Final = {FieldDescriptor.TYPE_INT32: "int32", FieldDescriptor.TYPE_INT64: "int64"}


@cache
def _options_class() -> type[Message]:
    """Return a message with Confluent's option of a field as an ordinary field.

    As an extension, it would have to be in the pool of the whole program.
    """
    pool = DescriptorPool()
    for name in ("google/protobuf/descriptor.proto", "confluent/meta.proto"):
        file = bundled(name)
        assert file is not None
        pool.AddSerializedFile(file.SerializeToString())
    holder = FileDescriptorProto(name="options.proto", syntax="proto3", dependency=["confluent/meta.proto"])
    message = holder.message_type.add(name="Options")
    message.field.add(name="meta", number=META_OPTION, label=1, type=11, type_name=".confluent.Meta")
    pool.AddSerializedFile(holder.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Options"))


def _options() -> Any:
    return _options_class()()


def _type(text: str) -> pa.DataType | None:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return _TYPES.get(text)
    try:
        return (pa.decimal256 if found[1] == "256" else pa.decimal128)(int(found[2]), int(found[3]))
    except (pa.ArrowInvalid, ValueError):
        return None


# ---- columns ----


def wire_column(declared: pa.DataType, kind: pa.DataType) -> tuple[Lower, pa.DataType] | None:
    """Return the conversion of a column into the columns of Protobuf's own types, and their type.

    None for a column that already has them, or that does not fit.
    """
    name = family(declared)
    if family(kind) != name or name not in _WIRE or (name == "timestamp" and kind.tz is not None):
        return None
    wire, lower = _WIRE[name]
    return lambda column: lower(column, kind, declared), wire


def _from_date(column: pa.Array, _: pa.DataType, __: pa.DataType) -> pa.Array:
    days = days_of(column)
    parts = [part(days).cast(pa.int32()) for part in (pc.year, pc.month, pc.day)]
    bounds = pc.min_max(parts[0]).as_py()
    if bounds["min"] is not None and (bounds["min"] < 1 or bounds["max"] > 9999):
        raise ValueError("a date outside the years 1 to 9999")
    return pa.StructArray.from_arrays(parts, names=["year", "month", "day"], mask=column.is_null())


def _from_timestamp(column: pa.Array, kind: pa.DataType, _: pa.DataType) -> pa.Array:
    return to_micros(column, kind.unit, noun="time")


def _from_time(column: pa.Array, kind: pa.DataType, _: pa.DataType) -> pa.Array:
    # Checked in its own unit first: a cast multiplies, and the product may be beyond 64 bits.
    units = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    _check_time(units, _DAY * _UNITS[kind.unit] // 1_000_000)
    return column.cast(pa.time64("us"), safe=False).cast(pa.int64())


_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _check_time(units: pa.Array, day: int) -> None:
    bounds = pc.min_max(units).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < day:
        raise ValueError("a time of day outside 0 to 24 hours")


def _from_decimal(column: pa.Array, _: pa.DataType, declared: pa.DataType) -> pa.Array:
    texts = column.cast(declared).cast(pa.string())
    return pa.StructArray.from_arrays([texts], names=["value"], mask=column.is_null())


#: Family of a declared type -> type on the wire, and conversion of a column of a type to it.
_WIRE: Final[Mapping[str, tuple[pa.DataType, Callable[[pa.Array, pa.DataType, pa.DataType], pa.Array]]]] = {
    "date": (pa.struct([(name, pa.int32()) for name in ("year", "month", "day")]), _from_date),
    "decimal": (pa.struct([("value", pa.string())]), _from_decimal),
    "time": (pa.int64(), _from_time),
    "timestamp": (pa.int64(), _from_timestamp),
}


def raising(wire: pa.DataType, declared: pa.DataType) -> Lower:
    """Return the conversion of columns of Protobuf's own types to the declared ones.

    It raises one of ``UNFIT`` for a value that the declared type cannot hold.
    """
    if wire == declared:
        return itself
    name = family(declared)
    if name == "fields":
        return struct_lowering(
            wire,
            [field.name for field in declared],
            lower=lambda index, inner, _: _in_field(declared.field(index).name, raising(inner, declared[index].type)),
            absent=lambda *_: lambda _: None,
            path="$",
            owner="the message",
        )
    if name == "items":
        return list_lowering(raising(wire.value_type, declared.value_type), declared)
    if name == "entries":
        return map_lowering(itself, raising(wire.item_type, declared.item_type), declared)
    return _RESTORED.get(name, lambda declared: lambda column: column.cast(declared))(declared)


def _in_field(name: str, convert: Lower) -> Lower:
    def run(column: pa.Array) -> pa.Array:
        try:
            return convert(column)
        except UNFIT as error:
            inner = error if isinstance(error, MalformedError) else MalformedError(str(error))
            raise inner.within(f".{name}") from error

    return run


def _to_date(column: pa.Array) -> pa.Array:
    years, months, days = column.flatten()
    day = pc.min_max(days).as_py(), pc.min_max(months).as_py(), pc.min_max(years).as_py()
    if any(each["min"] is not None and each["min"] < 1 for each in day):
        raise ValueError("a date without year, month or day")
    texts = pc.binary_join_element_wise(
        *(_digits(each, count) for each, count in ((years, 4), (months, 2), (days, 2))), "-"
    )
    return texts.cast(pa.date32())


def _digits(numbers: pa.Array, count: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), count, "0")


def _none_empty(column: pa.Array) -> pa.Array:
    """Return the texts of decimals. An empty one is zero, as Google's type documents."""
    (texts,) = column.flatten()
    return pc.if_else(pc.equal(texts, ""), "0", texts)


def _to_time(column: pa.Array) -> pa.Array:
    _check_time(column, _DAY)
    return column.cast(pa.time64("us"))


def _to_decimals(declared: pa.DataType) -> Lower:
    convert = decimals_of(declared)
    return lambda column: convert(_none_empty(column))


_RESTORED: Final[Mapping[str, Callable[[pa.DataType], Lower]]] = {
    "date": lambda _: _to_date,
    "decimal": _to_decimals,
    "time": lambda _: _to_time,
}


# ---- single values ----

_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)


def natural(declared: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of a field's value to its natural one, or None if it stays unchanged."""
    if family(declared) == "decimal":
        fit = decimal_fitter(declared)
        return lambda value: fit(_decimal(value))
    return _NATURAL.get(family(declared))


def _date(value: Message) -> date:
    try:
        return date(value.year, value.month, value.day)  # type: ignore[attr-defined]
    except ValueError as error:
        raise MalformedError(f"invalid date: {error}") from None


def _decimal(value: Message) -> Decimal:
    text: str = value.value or "0"  # type: ignore[attr-defined]
    try:
        made = Decimal(text)
    except InvalidOperation:
        raise MalformedError(f"invalid decimal: {text[:40]!r}") from None
    if not made.is_finite():
        raise MalformedError(f"invalid decimal: {text[:40]!r}")
    return made


def _time(micros: int) -> time:
    if not 0 <= micros < _DAY:
        raise MalformedError(f"invalid time of day: {micros} µs")
    return (_EPOCH + timedelta(microseconds=micros)).time()


def _datetime(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise MalformedError(f"{micros} µs is outside the range of Python's datetime; read it as a column") from None


_NATURAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "date": _date,
    "time": _time,
    "timestamp": _datetime,
}


def wire_values(declared: pa.DataType) -> Callable[[Any], Any]:
    """Return the conversion of a natural value to that of a field. Others remain, such as a mapping of the message."""
    name = family(declared)
    fit = decimal_fitter(declared) if name == "decimal" else None

    def convert(value: Any) -> Any:
        if isinstance(value, datetime):
            if name != "timestamp" or value.tzinfo is not None:
                raise invalid("datetime without a time zone" if name == "timestamp" else str(declared), value)
            return (value - _EPOCH) // _MICROSECOND
        if isinstance(value, date) and name == "date":
            return {"year": value.year, "month": value.month, "day": value.day}
        if fit is not None and isinstance(value, Decimal | int) and not isinstance(value, bool):
            return {"value": _digits_of(fit(Decimal(value)), declared)}
        if isinstance(value, time) and name == "time":
            if value.tzinfo is not None:
                raise invalid("time without a time zone", value)
            return (datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND
        return value

    return convert


def _digits_of(value: Decimal, declared: pa.DataType) -> str:
    """Return the digits with all places after the point, as a column has them."""
    return str(pa.array([value], declared).cast(pa.string())[0].as_py())

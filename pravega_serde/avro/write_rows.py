"""Row writer: writes one value at a time, with a tree of closures compiled from the schema.

It rejects values that would become wrong events. A float or a bool is not an int, and a number must fit its type. An
unknown field of a record is an error, and so is a missing field without a default.
"""

from __future__ import annotations

import enum
import operator
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pravega_serde.avro.schema import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    kind_of,
    label_of,
)
from pravega_serde.avro.values import default_value, is_decimal, is_long_decimal, is_uuid, shape_of
from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.bad_rows import in_utc, invalid, lone_surrogate, raw_bytes
from pravega_serde.errors import SchemaError, SerializationError

#: Function that appends a value to the written bytes.
Write = Callable[[Any, bytearray], None]


class RowWriter:
    """Writer of single values of a schema.

    With ``arrow``, the values are those of an Arrow column with timestamps as numbers of microseconds, members of
    unions in a dict, and maps as pairs.
    """

    __slots__ = ("_write",)

    def __init__(self, schema: Type, *, arrow: bool = False) -> None:
        self._write = _Compiler(arrow=arrow).compile(schema)

    def __call__(self, value: Any) -> bytes:
        """Return the event of a value. Raises :class:`SerializationError`, which names the field that does not fit."""
        out = bytearray()
        try:
            self._write(value, out)
        except MalformedError as error:
            raise error.in_value("Avro") from error
        except RecursionError as error:
            raise SerializationError(
                "cannot write as Avro: the value is nested too deeply, or contains itself"
            ) from error
        return bytes(out)


class _Compiler:
    """Compiler of types to closures. Each type is compiled once. A recursive record is resolved at its first write."""

    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        self._done: dict[Type, Write] = {}

    def compile(self, schema: Type) -> Write:
        if schema not in self._done:
            if isinstance(schema, Record):
                self._done[schema] = self._later(schema)
            self._done[schema] = _BUILDERS[type(schema)](self, schema)
        return self._done[schema]

    def _later(self, schema: Record) -> Write:
        """Return a placeholder for a record inside itself during the compilation of its writer."""

        def write(value: Any, out: bytearray) -> None:
            self._done[schema](value, out)

        return write

    def _leaf(self, schema: Primitive | Fixed) -> Write:
        write_raw = _write_fixed(schema.size) if isinstance(schema, Fixed) else _PRIMITIVES[schema.name]
        convert = (_from_arrow if self._arrow else _from_natural)(schema)
        if convert is None:
            return write_raw
        return lambda value, out: write_raw(value if value is None else convert(value), out)

    def _enum(self, schema: Enum) -> Write:
        codes = {symbol: _varint(index) for index, symbol in enumerate(schema.symbols)}

        def write(value: Any, out: bytearray) -> None:
            if type(value) is not str and isinstance(value, enum.Enum):
                value = value.name
            if not isinstance(value, str) or value not in codes:
                raise invalid(f"symbol of {schema.name}", value)
            out += codes[value]

        return write

    def _array(self, schema: Array) -> Write:
        write_item = self.compile(schema.items)

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, list | tuple):
                raise invalid("array", value)
            _write_blocks(value, write_item, out)

        return write

    def _map(self, schema: Map) -> Write:
        write_value = self.compile(schema.values)

        def write_entry(entry: tuple[Any, Any], out: bytearray) -> None:
            if not isinstance(entry, tuple) or len(entry) != 2:
                raise invalid("entry of a map", entry)
            _write_string(entry[0], out)
            write_value(entry[1], out)

        def write(value: Any, out: bytearray) -> None:
            if isinstance(value, Mapping):
                value = list(value.items())
            elif not isinstance(value, list):
                raise invalid("map", value)
            _write_blocks(value, write_entry, out)

        return write

    def _record(self, schema: Record) -> Write:
        fields = [(entry.name, self.compile(entry.type), entry) for entry in schema.fields]
        names = frozenset(name for name, _, _ in fields)

        def write(value: Any, out: bytearray) -> None:
            record = value if isinstance(value, Mapping) else _attributes(value, names, schema.name)
            found = 0
            for name, write_field, entry in fields:
                try:
                    if name in record:
                        found += 1
                        write_field(record[name], out)
                    elif entry.default is MISSING:
                        raise MalformedError("no value and no default")
                    else:
                        # Created on use: an invalid default that is never used is not an error.
                        write_field(default_value(entry.type, entry.default), out)
                except MalformedError as error:
                    raise error.within(f".{name}") from error
            if found < len(record):
                extra = next(name for name in record if name not in names)
                raise MalformedError(f"{schema.name} has no field {extra!r}; omit it or add it to the schema")

        return write

    def _union(self, schema: Union) -> Write:
        arms = [(_varint(index), self.compile(branch)) for index, branch in enumerate(schema.branches)]
        choose = _chooser(schema, [write for _, write in arms], arrow=self._arrow)

        def write(value: Any, out: bytearray) -> None:
            index, value = choose(value)
            code, write_arm = arms[index]
            out += code
            write_arm(value, out)

        return write


_BUILDERS: Final[Mapping[type, Callable[[_Compiler, Any], Write]]] = {
    Array: _Compiler._array,
    Enum: _Compiler._enum,
    Fixed: _Compiler._leaf,
    Map: _Compiler._map,
    Primitive: _Compiler._leaf,
    Record: _Compiler._record,
    Union: _Compiler._union,
}


def _write_blocks(items: Iterable[Any], write_item: Write, out: bytearray) -> None:
    """Write one block of all items, as Java does, and the empty block."""
    items = list(items)
    if items:
        _write_long(len(items), out)
    for index, item in enumerate(items):
        try:
            write_item(item, out)
        except MalformedError as error:
            raise error.within(f"[{index}]") from error
    out.append(0)


def _attributes(value: Any, names: frozenset[str], record: str) -> Mapping[str, Any]:
    """Return the attributes of an object (a dataclass or similar) as the fields of a record."""
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    if not found and names:
        raise invalid(f"record {record}", value)
    return found


def encode_default(entry: Field) -> bytes:
    """Return the bytes of a field's default, as its writer would write it.

    Raises :class:`SchemaError` if it does not fit.
    """
    try:
        return RowWriter(entry.type)(default_value(entry.type, entry.default))
    except (SerializationError, MalformedError) as error:
        raise SchemaError(f"the default of field {entry.name!r} does not fit its type: {error.reason}") from error
    except RecursionError as error:
        raise SchemaError(
            f"the default of field {entry.name!r} contains itself; end it with an explicit value"
        ) from error


#: Index of the branch of a value, and the value to write with it.
_Choose = Callable[[Any], tuple[int, Any]]


def _chooser(schema: Union, arms: list[Write], *, arrow: bool) -> _Choose:
    """Return the choice of a value's branch: by its type, or for an Arrow column by the member that is set."""
    others = [index for index, branch in enumerate(schema.branches) if kind_of(branch) != "null"]
    null = next((index for index in range(len(schema.branches)) if index not in others), None)
    if len(others) == 1:
        return _choose_optional(null, others[0])
    return _choose_member(null, others) if arrow else _choose_natural(schema, arms, null, others)


def _choose_optional(null: int | None, other: int) -> _Choose:
    def choose(value: Any) -> tuple[int, Any]:
        return (null if value is None and null is not None else other), value

    return choose


def _choose_member(null: int | None, others: list[int]) -> _Choose:
    """Choose the branch by the member of an Arrow struct that is not null."""
    members = [(f"member{position}", index) for position, index in enumerate(others)]

    def choose(value: Any) -> tuple[int, Any]:
        there = [] if value is None else [(index, value[name]) for name, index in members if value[name] is not None]
        if not there and null is not None:
            return null, None
        if len(there) != 1:
            raise MalformedError(f"{len(there)} members of the union are set, but exactly one is required")
        return there[0]

    return choose


def union_chooser(schema: Union) -> _Choose:
    """Return the function that chooses the branch of a natural value as the writer does."""
    compiler = _Compiler(arrow=False)
    return _chooser(schema, [compiler.compile(branch) for branch in schema.branches], arrow=False)


def _choose_natural(schema: Union, arms: list[Write], null: int | None, others: list[int]) -> _Choose:
    """Choose the branch by a label, ``(name, value)``, else the first that accepts the value's Python type.

    A named type follows the others of its shape, because readers return its values with a label.
    """
    labels: dict[str, int] = {}
    for index in others:
        label = label_of(schema.branches[index])
        labels.setdefault(label, index)
        labels.setdefault(label.rpartition(".")[2], index)
    # A Python float is a double, so a double branch precedes a float branch.
    double = any(_test_name(schema.branches[index]) == "double" for index in others)
    shapes = Counter(shape_of(schema.branches[index]) for index in others)
    tests = [(index, _test(schema.branches[index])) for index in others]
    for position, (index, fits) in enumerate(tests):
        if isinstance(schema.branches[index], Map) and shapes["dict"] > 1:
            tests[position] = index, _fits_map(fits, arms[index])
    tests.sort(key=lambda each: _is_later(schema.branches[each[0]], shapes, double=double))

    def choose(value: Any) -> tuple[int, Any]:
        if value is None and null is not None:
            return null, None
        if isinstance(value, tuple) and len(value) == 2 and value[0] in labels:
            return labels[value[0]], value[1]
        for strict in (True, False):
            for index, fits in tests:
                if fits(value, strict):
                    return index, value
        if isinstance(value, enum.Enum):
            return choose(value.name)
        raise invalid(f"member of the union of {', '.join(map(label_of, schema.branches))}", value)

    return choose


def _is_later(branch: Type, shapes: Mapping[str, int], *, double: bool) -> bool:
    if isinstance(branch, Record | Enum | Fixed):
        return shapes[shape_of(branch)] > 1
    return double and _test_name(branch) == "float"


def _fits_map(fits: Callable[[Any, bool], bool], write: Write) -> Callable[[Any, bool], bool]:
    """Return a predicate that is strict about a map's values: a dict of other values may be a record."""

    def fits_strictly(value: Any, strict: bool) -> bool:
        if not strict or not fits(value, strict):
            return fits(value, strict)
        try:
            write(value, bytearray())
        except MalformedError:
            return False
        return True

    return fits_strictly


def _test(branch: Type) -> Callable[[Any, bool], bool]:
    """Return a predicate for the values of a branch: strict, or also for an int as a float, or for too many digits."""
    if isinstance(branch, Record):
        names = frozenset(entry.name for entry in branch.fields)
        needed = frozenset(entry.name for entry in branch.fields if entry.default is MISSING)
        return lambda value, strict: _is_record(value, names, needed, strict)
    if isinstance(branch, Enum):
        return lambda value, strict: _is_text(value) and value in branch.symbols
    if isinstance(branch, Fixed) and branch.logical is None:
        return lambda value, strict: isinstance(value, bytes) and len(value) == branch.size
    if isinstance(branch, Primitive | Fixed) and branch.logical is not None and branch.logical.name == "decimal":
        convert = _from_decimal(branch.logical, branch.size if isinstance(branch, Fixed) else None)
        return lambda value, strict: isinstance(value, Decimal) and (not strict or _converts(convert, value))
    fits = _TESTS[_test_name(branch)]
    if isinstance(branch, Primitive) and branch.logical is not None and branch.logical.name.endswith("-millis"):
        return lambda value, strict: fits(value, strict) and (not strict or not value.microsecond % 1000)
    return fits


def _converts(convert: Callable[[Any], Any], value: Any) -> bool:
    """Return True if a value fits, such as a decimal whose digits the branch of a union has."""
    try:
        convert(value)
    except MalformedError:
        return False
    return True


def _test_name(branch: Type) -> str:
    if isinstance(branch, Primitive | Fixed) and branch.logical is not None:
        logical = branch.logical.name.removesuffix("-millis").removesuffix("-micros")
        if logical in _TESTS:
            return logical
    return "bytes" if isinstance(branch, Fixed) else kind_of(branch)


def _is_record(value: Any, names: frozenset[str], needed: frozenset[str], strict: bool) -> bool:
    if isinstance(value, Mapping):
        return needed <= value.keys() <= names
    return not strict and bool(names) and all(hasattr(value, name) for name in needed)


def _is_int(value: Any, bits: int) -> bool:
    whole = type(value) is int or (isinstance(value, int) and not isinstance(value, bool | enum.Enum))
    return whole and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _is_text(value: Any) -> bool:
    return type(value) is str or (isinstance(value, str) and not isinstance(value, enum.Enum))


_TESTS: Final[Mapping[str, Callable[[Any, bool], bool]]] = {
    "array": lambda value, strict: isinstance(value, list | tuple),
    "boolean": lambda value, strict: isinstance(value, bool),
    "bytes": lambda value, strict: isinstance(value, bytes | bytearray | memoryview),
    "date": lambda value, strict: isinstance(value, date) and not isinstance(value, datetime),
    "double": lambda value, strict: isinstance(value, float) or (not strict and _is_int(value, 1024)),
    "float": lambda value, strict: isinstance(value, float) or (not strict and _is_int(value, 64)),
    "int": lambda value, strict: _is_int(value, 32),
    "local-timestamp": lambda value, strict: isinstance(value, datetime) and value.tzinfo is None,
    "long": lambda value, strict: _is_int(value, 64),
    "map": lambda value, strict: isinstance(value, Mapping),
    "string": lambda value, strict: _is_text(value),
    "time": lambda value, strict: isinstance(value, time),
    "timestamp": lambda value, strict: isinstance(value, datetime) and value.tzinfo is not None,
    "uuid": lambda value, strict: (
        isinstance(value, uuid.UUID) or (not strict and _is_text(value) and bool(is_uuid(value)))
    ),
}


_pack_float: Final = struct.Struct("<f").pack
_pack_double: Final = struct.Struct("<d").pack

_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = 86_400_000_000


def _write_long(value: int, out: bytearray) -> None:
    """Write a 64-bit number as a zigzag varint."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _varint(value: int) -> bytes:
    """Return the zigzag varint of a number."""
    out = bytearray()
    _write_long(value, out)
    return bytes(out)


def _write_null(value: Any, out: bytearray) -> None:
    if value is not None:
        raise invalid("null", value)


def _write_boolean(value: Any, out: bytearray) -> None:
    if value is not True and value is not False:
        if type(value).__name__ not in ("bool", "bool_"):
            raise invalid("boolean", value)
        value = bool(value)
    out.append(value)


def _integer(value: Any, wanted: str) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise invalid(wanted, value)
    try:
        return operator.index(value)
    except TypeError:
        raise invalid(wanted, value) from None


def _write_int(value: Any, out: bytearray) -> None:
    number = _integer(value, "int")
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise invalid("32-bit int", value)
    _write_long(number, out)


def _write_checked_long(value: Any, out: bytearray) -> None:
    number = _integer(value, "long")
    if not -(1 << 63) <= number < 1 << 63:
        raise invalid("64-bit long", value)
    _write_long(number, out)


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    if hasattr(value, "__float__") and not isinstance(value, bool | str | Decimal):
        return float(value)
    raise invalid("number", value)


def _write_float(value: Any, out: bytearray) -> None:
    try:
        out += _pack_float(_number(value))
    except OverflowError:
        raise invalid("32-bit float", value) from None


def _write_double(value: Any, out: bytearray) -> None:
    try:
        out += _pack_double(_number(value))
    except OverflowError:
        raise invalid("64-bit double", value) from None


def _write_bytes(value: Any, out: bytearray) -> None:
    data = raw_bytes(value)
    _write_long(len(data), out)
    out += data


def _write_string(value: Any, out: bytearray) -> None:
    """Write a string, with its length in bytes before it."""
    if type(value) is not str:
        if isinstance(value, enum.Enum):
            value = value.name
        if not isinstance(value, str):
            raise invalid("string", value)
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise lone_surrogate() from None
    _write_long(len(data), out)
    out += data


_PRIMITIVES: Final[Mapping[str, Write]] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _write_int,
    "long": _write_checked_long,
    "float": _write_float,
    "double": _write_double,
    "bytes": _write_bytes,
    "string": _write_string,
}


def _write_fixed(size: int) -> Write:
    """Return a writer of a fixed number of bytes."""

    def write(value: Any, out: bytearray) -> None:
        data = raw_bytes(value)
        if len(data) != size:
            raise MalformedError(f"{len(data)} bytes, but {size} are required")
        out += data

    return write


def _from_datetime(value: Any, micros_per_unit: int, *, local: bool) -> Any:
    if not isinstance(value, datetime):
        return value
    if (value.tzinfo is None) != local:
        raise MalformedError(f"{value!r} {'has a' if local else 'needs a'} time zone")
    return ((value if local else in_utc(value)) - _EPOCH) // _MICROSECOND // micros_per_unit


def _from_time(value: Any, micros_per_unit: int) -> Any:
    if not isinstance(value, time):
        if isinstance(value, int) and not 0 <= value * micros_per_unit < _DAY:
            raise invalid("time of day", value)
        return value
    if value.tzinfo is not None:
        raise MalformedError(f"{value!r} has a time zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) // micros_per_unit


def _from_date(value: Any) -> Any:
    return value.toordinal() - _FIRST_DAY if isinstance(value, date) and not isinstance(value, datetime) else value


def _from_uuid(value: Any) -> Any:
    if isinstance(value, str) and not is_uuid(value):
        raise invalid("UUID", value)
    return str(value) if isinstance(value, uuid.UUID) else value


def _uuid_bytes(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = uuid.UUID(value)
        except ValueError:
            raise invalid("UUID", value) from None
    return value.bytes if isinstance(value, uuid.UUID) else value


def _from_decimal(logical: Logical, size: int | None) -> Callable[[Any], bytes]:
    limit = 10**logical.precision

    def convert(value: Any) -> bytes:
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal) or not value.is_finite():
            raise invalid("decimal", value)
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        shift = exponent + logical.scale
        # Checked before any power of ten is computed, because the exponent may be very large.
        if len(digits) + shift > logical.precision and any(digits):
            raise MalformedError(
                f"{str(value)[:40]} has more than {logical.precision - logical.scale} digits before the point"
            )
        unscaled = int("".join(map(str, digits)))
        if shift >= 0:
            unscaled *= 10**shift if unscaled else 1
        else:
            unscaled, lost = divmod(unscaled, 10 ** min(-shift, len(digits) + 1))
            if lost:
                raise MalformedError(f"{str(value)[:40]} has more than {logical.scale} digits after the point")
        assert unscaled < limit
        return _signed_bytes(-unscaled if sign else unscaled, size)

    return convert


def _signed_bytes(number: int, size: int | None) -> bytes:
    """Return the number in two's complement, big-endian.

    Without a size, it has the minimum number of bytes, like Java's BigInteger.
    """
    least = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(least if size is None else size, "big", signed=True)


def _from_natural(target: Primitive | Fixed) -> Callable[[Any], Any] | None:
    """Return the conversion of natural values to values that the primitive writes.

    Numbers and bytes pass unchanged.
    """
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        return _from_decimal(logical, target.size if isinstance(target, Fixed) else None)
    if logical.name == "uuid" and isinstance(target, Fixed):
        return _uuid_bytes
    return _CONVERTERS.get(logical.name)


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "date": _from_date,
    "local-timestamp-micros": lambda value: _from_datetime(value, 1, local=True),
    "local-timestamp-millis": lambda value: _from_datetime(value, 1000, local=True),
    "time-micros": lambda value: _from_time(value, 1),
    "time-millis": lambda value: _from_time(value, 1000),
    "timestamp-micros": lambda value: _from_datetime(value, 1, local=False),
    "timestamp-millis": lambda value: _from_datetime(value, 1000, local=False),
    "uuid": _from_uuid,
}


def _from_arrow(target: Primitive | Fixed) -> Callable[[Any], Any] | None:
    """Return the conversion of the values of an Arrow column: numbers of microseconds, and Decimals."""
    logical = target.logical
    if logical is not None and is_decimal(logical):
        return _from_decimal(logical, target.size if isinstance(target, Fixed) else None)
    if logical is not None and is_long_decimal(logical):
        write = _from_decimal(logical, target.size if isinstance(target, Fixed) else None)
        return lambda text: write(_decimal_of(text))
    if logical is not None and logical.name in ("timestamp-millis", "local-timestamp-millis"):
        return lambda micros: micros // 1000
    return None


def _decimal_of(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise invalid("decimal", text) from None

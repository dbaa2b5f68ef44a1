"""Type table: the form of each Arrow type in each format, and the walk over nested types.

A part of a format that depends on the type subclasses :class:`Walk`. A type without a form is then refused in one way:
with the path of its field, when a schema is derived or a serializer is created. The tables of the documentation are
generated from :data:`ROWS`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from pravega_serde.errors import SchemaError

T = TypeVar("T")

#: Family, row of the table, and Arrow's names of its types. A family is a method of :class:`Walk`.
_KINDS: Final = (
    ("null", "null", "NA"),
    ("boolean", "bool", "BOOL"),
    *(("integer", f"{sign}int{bits}", f"{sign}INT{bits}".upper()) for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(("floating", f"float{bits}", name) for bits, name in ((16, "HALF_FLOAT"), (32, "FLOAT"), (64, "DOUBLE"))),
    ("decimal", "decimal", "DECIMAL32 DECIMAL64 DECIMAL128 DECIMAL256"),
    ("text", "string", "STRING LARGE_STRING STRING_VIEW"),
    ("binary", "fixed_size_binary", "FIXED_SIZE_BINARY"),
    ("binary", "binary", "BINARY LARGE_BINARY BINARY_VIEW"),
    ("date", "date", "DATE32 DATE64"),
    ("time", "time32", "TIME32"),
    ("time", "time64", "TIME64"),
    ("timestamp", "timestamp", "TIMESTAMP"),
    ("duration", "duration", "DURATION"),
    ("fields", "struct", "STRUCT"),
    ("items", "list", "LIST LARGE_LIST FIXED_SIZE_LIST"),
    ("entries", "map", "MAP"),
    ("dictionary", "dictionary", "DICTIONARY"),
)
_FAMILIES: Final = {
    getattr(pa.lib, f"Type_{name}"): (group, row) for group, row, names in _KINDS for name in names.split()
}

#: Families of types with types inside.
NESTED: Final = frozenset({"fields", "items", "entries", "dictionary"})

#: Row, its type in Spark, in Avro (with its logical type), in Protobuf, in a JSON schema (with its format) and in Java.
#: A star marks fields of Protobuf that declare the Arrow type, because Protobuf's own type is another one. Of several
#: types with one form in a JSON schema, columns are read as the last one.
_FORMS: Final = """
null|VOID|null||null|
bool|BOOLEAN|boolean|bool|boolean|java.lang.Boolean
int8|TINYINT|int|int32*|integer, format int32|java.lang.Byte
int16|SMALLINT|int|int32*|integer, format int32|java.lang.Short
uint8||int|int32|integer, format int32|
uint16||int|int32|integer, format int32|
int32|INT|int|int32|integer, format int32|java.lang.Integer
uint32||long|uint32|integer|
int64|BIGINT|long|int64|integer|java.lang.Long
uint64|||uint64|number, format decimal(20,0)|
float16||float|float|number, format float|
float32|FLOAT|float|float|number, format float|java.lang.Float
float64|DOUBLE|double|double|number|java.lang.Double
decimal|DECIMAL(p, s)|bytes, decimal|google.type.Decimal*|number, format decimal(p,s)|java.math.BigDecimal
decimal (p > 38)|||google.type.Decimal*|number, format decimal(p,s)|java.math.BigDecimal
decimal (s < 0)|||google.type.Decimal*||java.math.BigDecimal
string|STRING|string|string|string|java.lang.String
fixed_size_binary||fixed|bytes|string, format byte|byte[]
binary|BINARY|bytes|bytes|string, format byte|byte[]
date|DATE|int, date|google.type.Date*|string, format date|java.time.LocalDate
timestamp[ms, tz]||long, timestamp-millis|google.protobuf.Timestamp|string, format date-time|java.time.Instant
timestamp[us, tz]|TIMESTAMP|long, timestamp-micros|google.protobuf.Timestamp|string, format date-time|java.time.Instant
timestamp[ms]||long, local-timestamp-millis|int64*|string, format local-date-time|java.time.LocalDateTime
timestamp[us]|TIMESTAMP_NTZ|long, local-timestamp-micros|int64*|string, format local-date-time|java.time.LocalDateTime
time32||int, time-millis|int64*||java.time.LocalTime
time64|TIME|long, time-micros|int64*||java.time.LocalTime
duration|INTERVAL DAY TO SECOND||google.protobuf.Duration||java.time.Duration
struct|STRUCT|record|message|object|
list|ARRAY|array|repeated|array|java.util.List
map|MAP|map|map|object|java.util.Map
dictionary||as its values|as its values|as its values|
"""

#: Family -> its value in JSON and in CBOR.
_VALUES: Final = {
    "null": ("null", "null"),
    "boolean": ("true, false", "true, false"),
    "integer": ("number", "integer"),
    "floating": ('number; "NaN", "Infinity", "-Infinity"', "float"),
    "decimal": ("number with all digits", "decimal fraction (tag 4)"),
    "text": ("string", "text"),
    "binary": ("string in Base64", "byte string"),
    "date": ('"2026-05-01"', "text (tag 1004)"),
    "time": ('"12:30:00.000000"', "text"),
    "timestamp": ('"2026-05-01T12:30:00.000000Z", without a zone no Z', "text (tag 0); no tag without a zone"),
    "fields": ("object", "map"),
    "items": ("array", "array"),
    "entries": ("object", "map"),
}


class Row(NamedTuple):
    """Forms of the Arrow types that have the same ones. An empty form means that the format has none."""

    name: str
    spark: str
    avro: str
    protobuf: str
    schema: str
    java: str
    declared: bool

    @property
    def kind(self) -> str:
        """Name of its types without their parameters."""
        return self.name.partition(" (")[0].partition("[")[0]

    @property
    def family(self) -> str:
        """Method of a :class:`Walk`."""
        return next(group for group, name, _ in _KINDS if name == self.kind)

    @property
    def stored(self) -> pa.DataType | None:
        """Type in which columns are read; None if it has parameters, or types inside."""
        if self.kind == "timestamp":
            return pa.timestamp("us", "UTC" if "tz" in self.name else None)
        is_alias = self.family in ("boolean", "integer", "floating")
        return _STORED.get(self.kind) or (pa.type_for_alias(self.kind) if is_alias else None)

    @property
    def values(self) -> tuple[str, str]:
        """Form of a value in JSON and in CBOR."""
        return _VALUES.get(self.family, ("", ""))


def _row(line: str) -> Row:
    name, spark, avro, protobuf, schema, java = line.split("|")
    return Row(name, spark, avro, protobuf.rstrip("*"), schema, java, protobuf.endswith("*"))


ROWS: Final = {row.name: row for row in map(_row, _FORMS.strip().splitlines())}


def row_of(kind: pa.DataType) -> Row | None:
    """Return the row of a type; None for a type without a schema in any format."""
    group, name = _FAMILIES.get(kind.id, ("", ""))
    if (group == "fields" and is_variant(kind)) or (group == "decimal" and not _is_readable(kind)):
        return None
    if group == "decimal":
        name += " (s < 0)" if kind.scale < 0 else " (p > 38)" if kind.precision > 38 else ""
    elif group == "timestamp":
        name += f"[{'ms' if kind.unit in ('s', 'ms') else 'us'}{', tz' if kind.tz else ''}]"
    return ROWS.get(name)


def _is_readable(kind: pa.DataType) -> bool:
    """Return True if Arrow reads the values of a decimal type from their digits: its scale is within its precision."""
    return bool(0 <= kind.precision - kind.scale <= (38 if kind.precision <= 38 else 76))


def family(kind: pa.DataType) -> str:
    """Return the family of a type; empty for a type that no format has. ``variant`` is Spark's VARIANT."""
    name = _FAMILIES.get(kind.id, ("", ""))[0]
    if name == "decimal" and not _is_readable(kind):
        return ""
    return "variant" if name == "fields" and is_variant(kind) else name


def is_variant(kind: pa.DataType) -> bool:
    """Return True for the type of a VARIANT column: a struct that Spark has marked."""
    if not pa.types.is_struct(kind) or kind.num_fields != 2:
        return False
    return bool((kind.field(1).metadata or {}).get(b"variant") == b"true")


def is_family(kind: pa.DataType, *families: str) -> bool:
    """Return True for a type of one of the families."""
    return family(kind) in families


def is_text(kind: pa.DataType) -> bool:
    """True if a type is one of Arrow's string types."""
    return is_family(kind, "text")


def holds_bytes(kind: pa.DataType) -> bool:
    """True if a type is one of Arrow's binary or string types, or null."""
    return is_family(kind, "text", "binary", "null")


def is_any_list(kind: pa.DataType) -> bool:
    """True if a type is one of Arrow's list types, except views."""
    return is_family(kind, "items")


def integer_bounds(kind: pa.DataType) -> tuple[int, int]:
    """Return the least and greatest value of an integer type."""
    if pa.types.is_unsigned_integer(kind):
        return 0, (1 << kind.bit_width) - 1
    return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1


def fits_bits(kind: pa.DataType, bits: int) -> bool:
    """True if a signed integer of ``bits`` bits holds all values of a type."""
    return is_family(kind, "integer") and integer_bounds(kind)[1] < 1 << (bits - 1)


_STORED: Final = {
    "null": pa.null(),
    "float16": pa.float32(),
    "string": pa.string(),
    "fixed_size_binary": pa.binary(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time32": pa.time64("us"),
    "time64": pa.time64("us"),
    "duration": pa.duration("us"),
}


def stored(kind: pa.DataType) -> pa.DataType:
    """Return the one of the types with the same values that columns are read as: microseconds, offsets of 32 bits.

    The types inside stay.
    """
    name, row = _FAMILIES.get(kind.id, ("", ""))
    if name == "timestamp":
        return pa.timestamp("us", kind.tz)
    if name == "decimal":
        return (pa.decimal256 if kind.precision > 38 else pa.decimal128)(kind.precision, kind.scale)
    if name == "dictionary":
        return stored(kind.value_type)
    return pa.list_(kind.value_field) if name == "items" else _STORED.get(row, kind)


_ADVICE: Final = {
    "uint64": "cast it to decimal(20, 0)",
    "decimal (p > 38)": "cast it to at most 38 digits",
    "decimal (s < 0)": "cast it to a scale of 0",
    "time32": "cast it to string",
    "time64": "cast it to string",
    "duration": "cast it to a number",
}


def contains(kind: pa.DataType, *names: str) -> bool:
    """Return True if a type, or a type inside it, is one of the families, or of the rows, of these names."""
    own = {family(kind), _FAMILIES.get(kind.id, ("", ""))[1]}
    return not own.isdisjoint(names) or any(contains(kind.field(at).type, *names) for at in range(kind.num_fields))


def with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type whose types without others inside are those that ``leaf`` returns for them."""

    def inside(field: pa.Field) -> pa.Field:
        return pa.field(field.name, with_leaves(field.type, leaf), field.nullable)

    name = family(kind)
    if name == "fields":
        return pa.struct([inside(field) for field in kind])
    if name == "items":
        return pa.list_(inside(kind.value_field))
    return pa.map_(inside(kind.key_field), inside(kind.item_field)) if name == "entries" else leaf(kind)


def misfit(kind: pa.DataType, wanted: str, path: str, advice: str = "cast the column") -> SchemaError:
    """Return the error of a column that does not fit the type of a schema."""
    return SchemaError(f"a column of type {kind} does not fit {wanted} (at {path}); {advice}")


def no_form(kind: pa.DataType, form: str, path: str, advice: str = "") -> SchemaError:
    """Return the error of a column with a type that a format cannot hold."""
    row = row_of(kind)
    if row is None and pa.types.is_decimal(kind):
        advice = "cast it to a scale from 0 to its precision"
    advice = advice or _ADVICE.get(row.name if row else "", "cast it")
    return SchemaError(f"a column of type {kind} is not supported by {form} (at {path}); {advice}")


class Walk(Generic[T]):
    """Results for Arrow types in one format, such as a schema or a conversion.

    A subclass has a method for each family of types that the format has. It accepts a type, and for the families of
    :data:`NESTED` its path.
    """

    #: Format, as errors call it.
    language: ClassVar[str]

    def of(self, kind: pa.DataType, path: str = "$") -> T:
        """Return the result for a type. Raises :class:`SchemaError` for a type without a form."""
        name = family(kind)
        method = getattr(self, name, None) if name else None
        if method is None:
            raise no_form(kind, self.language, path)
        result: T = method(kind, path) if name in NESTED else method(kind)
        return result

    def field(self, field: pa.Field, path: str) -> T:
        """Return the result for a field of a struct, the items of a list or the values of a map."""
        return self.of(field.type, path)

    def item(self, kind: pa.DataType, path: str) -> T:
        """Return the result for the items of a list."""
        return self.field(kind.value_field, f"{path}[]")

    def value(self, kind: pa.DataType, path: str) -> T:
        """Return the result for the values of a map."""
        return self.field(kind.item_field, f"{path}{{}}")

    def members(self, fields: Iterable[pa.Field], path: str) -> dict[str, T]:
        """Return the results for the fields of a struct, by name. Raises :class:`SchemaError` for equal names."""
        made: dict[str, T] = {}
        for field in fields:
            if field.name in made:
                raise SchemaError(f"the column {path}.{field.name} exists twice; rename one of them")
            made[field.name] = self.field(field, f"{path}.{field.name}")
        return made

    def check_keys(self, kind: pa.DataType, path: str, *families: str) -> None:
        """Raise :class:`SchemaError` for a map with keys of another family."""
        if not is_family(stored(kind.key_type), *families):
            raise no_form(kind, self.language, path, "cast its keys to string")

    def dictionary(self, kind: pa.DataType, path: str) -> T:
        """Return the result for the values of a dictionary."""
        return self.of(kind.value_type, path)


_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SchemaWalk(Walk[T]):
    """Schemas of Arrow types, from a column of the table."""

    #: Attribute of :class:`Row`.
    column: ClassVar[str]

    def of(self, kind: pa.DataType, path: str = "$") -> T:
        """Return the schema of a type. Raises :class:`SchemaError` for a type without a form."""
        row = row_of(kind)
        form: str = getattr(row, self.column, "")
        if not form:
            raise no_form(kind, self.language, path)
        return super().of(kind, path) if family(kind) in NESTED else self.leaf(kind, path, form)

    def check_name(self, name: str, path: str) -> None:
        """Raise :class:`SchemaError` for a name that is not an identifier."""
        if not _IDENTIFIER.fullmatch(name):
            raise SchemaError(
                f"invalid {self.language} name {name!r} (at {path}): letters, digits and _ only; rename it"
            )

    @abstractmethod
    def leaf(self, kind: pa.DataType, path: str, form: str) -> T:
        """Return the schema of a type with a form of the table."""

"""``JavaSerializer``: events with one Java object each, and streams of several objects."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pravega_serde.columnar import ColumnReader, ColumnSerializer, ColumnWriter, FallbackError, PlainPath, per_row
from pravega_serde.errors import DeserializationError, SchemaError, SerializationError
from pravega_serde.java.columns import fast_path, object_prefix
from pravega_serde.java.convert import ColumnType, column_type
from pravega_serde.java.descriptors import DescriptorCache, Layouts, Limits
from pravega_serde.java.jdk_classes import jdk_descriptor
from pravega_serde.java.model import ClassDescriptor, JavaObject
from pravega_serde.java.protocol import (
    NULL_EVENT,
    SHORT_STRING,
    STRING_EVENT,
    STRUCT_CODES,
    decode_utf,
    encode_utf,
)
from pravega_serde.java.rows import Reader
from pravega_serde.java.types import Shape, no_such_field, shape_of, struct_of
from pravega_serde.java.values import Byte, Float, Long, Short
from pravega_serde.java.write_columns import encode_fast, lowered
from pravega_serde.java.write_rows import Writer


class _QuickRead(NamedTuple):
    """Event of one box. Only the bytes of the value differ, so it needs no reader."""

    prefix: bytes
    """Bytes before the value."""
    start: int
    """Length of the prefix."""
    unpack: Callable[[bytes, int], tuple[Any, ...]]
    make: Callable[[Any], Any]
    """Function that converts the value to its Python type."""


def _itself(value: Any) -> Any:
    return value


_KINDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "Boolean": ("Z", _itself),
    "Byte": ("B", Byte),
    "Double": ("D", _itself),
    "Float": ("F", Float),
    "Integer": ("I", _itself),
    "Long": ("J", Long),
    "Short": ("S", Short),
}
_BITS: Final = {"B": 8, "S": 16, "I": 32, "J": 64}


def _prefix(name: str) -> bytes:
    descriptor = jdk_descriptor(f"java.lang.{name}")
    assert descriptor is not None
    return object_prefix(descriptor)


def _quick_read(name: str) -> _QuickRead:
    code, make = _KINDS[name]
    prefix = _prefix(name)
    return _QuickRead(prefix, len(prefix), struct.Struct(">" + STRUCT_CODES[code]).unpack_from, make)


def _length(name: str) -> int:
    return len(_prefix(name)) + struct.calcsize(STRUCT_CODES[_KINDS[name][0]])


_QUICK_READS: Final = {_length(name): _quick_read(name) for name in _KINDS}
"""Length of an event -> its possible box. All lengths are different."""
assert len(_QUICK_READS) == len(_KINDS)


def _quick_write(name: str) -> Callable[[Any], bytes | None]:
    prefix, code = _prefix(name), _KINDS[name][0]
    pack = struct.Struct(">" + STRUCT_CODES[code]).pack
    limit = 1 << _BITS.get(code, 64) - 1
    if code in _BITS:
        return lambda value: prefix + pack(value) if -limit <= value < limit else None
    return lambda value: prefix + pack(value)


_int, _long = _quick_write("Integer"), _quick_write("Long")
_QUICK_WRITES: Final[dict[type[Any], Callable[[Any], bytes | None]]] = {
    bool: _quick_write("Boolean"),
    int: lambda value: _int(value) or _long(value),
    float: _quick_write("Double"),
    Byte: _quick_write("Byte"),
    Float: _quick_write("Float"),
    Long: _long,
    Short: _quick_write("Short"),
}
"""Python type -> function that creates its event. None for values that do not fit: the writer reports the reason."""

_TEXT_AT: Final = len(STRING_EVENT) + 2
"""Position of the text in an event that is one short string."""


_ROW_TYPES: Final = 64  # sets of fields with a cached row type


class JavaSerializer(ColumnSerializer):
    """Serializer like ``io.pravega.client.stream.impl.JavaSerializer``: one ``ObjectOutputStream`` with one object.

    Rows: any serializable Java object, in both directions. Reading returns natural Python values, or inert records
    (:class:`JavaObject`) of classes without a Python form. No class is ever loaded, and an event cannot execute code.
    If ``java_type`` or ``sample`` names a class, a ``dict`` is written as an object of it, like a column's row.

    Columns: ``java_type`` is the type of all events: the name of a box, ``java.lang.String``, ``byte[]``,
    ``java.util.Date``, ..., or a :class:`ClassDescriptor`, which becomes a struct of its fields. With ``sample``, the
    descriptor comes from an event (bytes, or hex digits) instead. ``arrow_type`` replaces the Arrow type that follows
    from ``java_type``. A struct then also selects fields by name.

    ``write_object`` is for classes with a ``writeObject`` that does not begin with ``defaultWriteObject``. It maps a
    class name to the number of contents (blocks of primitive data, objects) before that call, or to None if there is no
    call. Streams do not hold this information. Without it, such a class is recognized only if the next bytes cannot be
    its fields: by the first byte, or because the event cannot be read otherwise.

    Immutable except for caches, thread safe, can be pickled.
    """

    #: Content type of the events in an envelope.
    content_type = "application/x-java-serialized-object"

    def __init__(
        self,
        java_type: str | ClassDescriptor | None = None,
        *,
        sample: bytes | str | None = None,
        arrow_type: pa.DataType | None = None,
        limits: Limits | None = None,
        write_object: Layouts | None = None,
    ) -> None:
        self.limits, self._layouts = limits or Limits(), _checked_layouts(write_object)
        self._cache = DescriptorCache()
        self._given = {"java_type": java_type, "sample": sample, "arrow_type": arrow_type, "limits": limits}
        self._given_type, self._shape = arrow_type, None
        self._rows: dict[frozenset[str], tuple[ColumnType, dict[str, str]]] = {}
        self.java_type = _checked_type(java_type)
        if sample is not None and java_type is None:
            self.java_type, self._shape = self._learn(_sampled(sample))
        # A class without a form in Arrow is sufficient for rows. Any other type without one is an error.
        if arrow_type is not None or not isinstance(self.java_type, ClassDescriptor):
            _ = self._column

    def _arguments(self) -> dict[str, Any]:
        return {**self._given, "write_object": self._layouts}

    def __repr__(self) -> str:
        # Descriptors and samples are too long to show.
        name = self.java_type.name if isinstance(self.java_type, ClassDescriptor) else self.java_type
        return f"JavaSerializer({name!r}, arrow_type={self._given_type})"

    @cached_property
    def _column(self) -> ColumnType | None:
        return column_type(self.java_type, self._given_type, self._shape)

    def _object(self, descriptor: ClassDescriptor, value: dict[str, Any]) -> Any:
        """Return the object of a dict: with the types of columns where a field has one, or else the value as it is."""
        fields = frozenset(value)
        if fields not in self._rows:
            if len(self._rows) >= _ROW_TYPES:
                self._rows.clear()
            self._rows[fields] = self._row_type(descriptor, fields)
        kind, others = self._rows[fields]
        if not others:
            return _made(kind, value)
        made = _made(kind, {name: inner for name, inner in value.items() if name not in others})
        for name, declared in others.items():
            _check_container(name, declared, value[name])
            made[name] = value[name]
        return made

    def _row_type(self, descriptor: ClassDescriptor, fields: frozenset[str]) -> tuple[ColumnType, dict[str, str]]:
        """Return the type of rows that are a dict with these fields: that of a column with them.

        Also return the fields without a column, such as a list without a sample, and their Java types.
        """
        for name in fields.difference(descriptor.field_names):
            raise no_such_field(descriptor, name)
        known, others = [], {}
        for name, (_, field) in zip(descriptor.field_names, descriptor.all_fields, strict=True):
            if name not in fields:
                continue
            try:
                given = self._given_type or struct_of(descriptor, self._shape, [name])
            except SchemaError:
                if self._shape is not None:
                    raise
                others[name] = field.source_type
            else:
                known += [each for each in given if each.name == name]
        kind = column_type(descriptor, self._given_type, self._shape, written=pa.struct(known))
        assert kind is not None
        return kind, others

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column."""
        return self._typed().arrow_type

    def _typed(self) -> ColumnType:
        if self._column is None:
            msg = "a Java event can be of any class: set the type of the column with java_type=, sample= or arrow_type="
            raise SchemaError(msg)
        return self._column

    def serialize(self, value: Any) -> bytes:
        """Return the event of a value. ``None`` is an event too, Java's null.

        Raises :class:`SerializationError` for values without a Java form. For your own class, pass a
        :class:`JavaObject` with a descriptor that has the serialVersionUID, because Python cannot compute it.
        """
        if type(value) is str:
            raw = encode_utf(value)
            if len(raw) <= SHORT_STRING:
                return STRING_EVENT + len(raw).to_bytes(2, "big") + raw
        quick = _QUICK_WRITES.get(type(value))
        event = None if quick is None else quick(value)
        if event is not None:
            return event
        if type(value) is dict and isinstance(self.java_type, ClassDescriptor):
            value = self._object(self.java_type, value)
        writer = Writer()
        writer.write(value)
        return bytes(writer.out)

    def deserialize(self, data: bytes | bytearray | memoryview) -> Any:
        """Return the value of an event. Bytes after the object are ignored, as in Java's own deserializer.

        Raises :class:`DeserializationError`, with the path of the invalid part.
        """
        if type(data) is not bytes:
            data = bytes(data)
        if data.startswith(STRING_EVENT):
            # The most frequent event. It has no earlier objects, so it has no references.
            raw = data[_TEXT_AT:]
            if len(raw) == (data[5] << 8 | data[6] if len(data) >= _TEXT_AT else -1):
                if raw.isascii():
                    return raw.decode("ascii")
                with contextlib.suppress(DeserializationError):  # the reader reports more details
                    return decode_utf(raw)
        quick = _QUICK_READS.get(len(data))
        if quick is not None and data.startswith(quick.prefix):
            return quick.make(quick.unpack(data, quick.start)[0])
        return Reader(data, self._cache, self.limits, self._layouts).read_event()

    def learn(self, event: bytes) -> ClassDescriptor:
        """Return the class descriptor of the object in an event, to write more such objects."""
        return self._learn(event)[0]

    def _learn(self, event: bytes) -> tuple[ClassDescriptor, Shape | None]:
        value = self.deserialize(event)
        if isinstance(value, JavaObject) and isinstance(value.descriptor, ClassDescriptor):
            return value.descriptor, shape_of(value)
        msg = f"invalid sample: a {type(value).__name__}, not an object of a user-defined class"
        raise SchemaError(msg)

    def _make_reader(self) -> ColumnReader:
        kind = self._typed()
        plain = PlainPath(lambda event: self._plain(event, kind), kind.arrow_type)
        return ColumnReader(plain, fast_path(kind), few=_few_rows(kind))

    def _make_writer(self) -> ColumnWriter:
        return ColumnWriter(self._column_writer_of)

    def _column_writer_of(self, arrow_type: pa.DataType) -> Callable[[pa.Array], pa.BinaryArray]:
        given = arrow_type if self.java_type is None and self._given_type is None else self._given_type
        kind = column_type(self.java_type, given, self._shape, written=arrow_type)
        assert kind is not None

        def write(rows: pa.Array) -> pa.BinaryArray:
            try:
                return encode_fast(kind, rows)
            except FallbackError:
                values = lowered(rows, kind.arrow_type).to_pylist()
                return per_row(values, lambda value: self.serialize(_made(kind, value)))

        return write

    def _plain(self, event: bytes, kind: ColumnType) -> Any:
        value = None if event == NULL_EVENT else self.deserialize(event)
        try:
            return kind.from_java(value, len(event))
        except SerializationError as error:
            path = None if error.field_path is None else f"${error.field_path}"
            raise DeserializationError(error.reason, field_path=path) from error


def _few_rows(kind: ColumnType) -> int:
    """Return the number of rows of a column below which reading row by row is faster, as measured."""
    if not isinstance(kind.java_type, ClassDescriptor):
        return 24
    # A primitive field is one NumPy operation. A string or box needs many, for any number of rows.
    return 6 + 5 * sum(not each.primitive for _, each in kind.java_type.all_fields)


def _check_container(name: str, declared: str, value: Any) -> None:
    """Raise :class:`SerializationError` for a value that a collection of Java cannot be, which Java could not read."""
    if not declared.startswith("java.util.") or value is None:
        return
    is_map = declared.endswith(("Map", "Dictionary", "Hashtable", "Properties"))
    if isinstance(value, str | bytes | int | float) or isinstance(value, Mapping) != is_map:
        raise SerializationError(
            f"a {type(value).__name__} cannot be written as {declared}: pass a {'dict' if is_map else 'list or set'}",
            field_path=f"$.{name}",
        )


def _made(kind: ColumnType, value: Any) -> Any:
    try:
        return kind.to_java(value)
    except SerializationError as error:
        raise SerializationError(error.reason, field_path=f"${error.field_path or ''}") from error


def _checked_type(given: Any) -> str | ClassDescriptor | None:
    if given is None or isinstance(given, (str, ClassDescriptor)):
        return given
    msg = f"invalid java_type: the name of a class or a ClassDescriptor is expected, not {given!r:.80}"
    raise SchemaError(msg)


def _sampled(sample: bytes | str) -> bytes:
    try:
        return bytes.fromhex(sample) if isinstance(sample, str) else bytes(sample)
    except (TypeError, ValueError) as error:
        msg = f"invalid sample: an event's bytes, or their hex digits, are expected: {error}"
        raise SchemaError(msg) from error


def _checked_layouts(given: Layouts | None) -> dict[str, int | None]:
    layouts = dict(given or {})
    for name, ahead in layouts.items():
        if not isinstance(name, str) or not (ahead is None or (isinstance(ahead, int) and ahead >= 0)):
            msg = (
                f"invalid write_object: the name of a class and a number or None are expected, not {name!r}: {ahead!r}"
            )
            raise SchemaError(msg)
    return layouts


def load_stream(data: bytes, limits: Limits | None = None) -> list[Any]:
    """Return the objects of a stream with any number of objects, and the :class:`BlockData` between them.

    Raises :class:`DeserializationError`. For Pravega's events, which hold one object, use :class:`JavaSerializer`.
    """
    return Reader(data, DescriptorCache(), limits or Limits()).read_stream()


def dump_stream(contents: Iterable[Any]) -> bytes:
    """Return the stream of several objects and :class:`BlockData`.

    They share handles, so an object that occurs in two of them is written once.
    """
    writer = Writer()
    for each in contents:
        writer.write(each)
    return bytes(writer.out)

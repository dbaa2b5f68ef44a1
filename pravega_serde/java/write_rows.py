"""Row writer: writes one event at a time, with a stack of generators instead of recursion.

A generator writes the bytes of one object and yields each value inside it. The loop writes the value, or starts a new
generator for it, before the first one resumes. Objects are numbered as in ``ObjectOutputStream``. A repeated object
(the same object, not an equal one) is written as a reference.

Natural values are converted to the declared type of their field: an ``int`` in a field of type ``Long`` is written as
``Long``. Otherwise, the default box of a Python value would cause a ClassCastException in Java. Only plain Python
values are converted. Values that keep their Java type stay unchanged.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import struct
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from pravega_serde.errors import SerializationError
from pravega_serde.java.jdk import BOXES, WRITERS, Box
from pravega_serde.java.jdk_classes import Content, array_descriptor
from pravega_serde.java.model import (
    BlockData,
    ClassDescriptor,
    Instance,
    JavaClass,
    JavaEnum,
    OwnOrder,
    ProxyDescriptor,
)
from pravega_serde.java.protocol import (
    BASE_HANDLE,
    MAX_BLOCK,
    NATIVE,
    SC_EXTERNALIZABLE,
    SC_SERIALIZABLE,
    SC_WRITE_METHOD,
    SHORT_BLOCK,
    SHORT_STRING,
    STREAM_HEADER,
    STRUCT_CODES,
    TC_ARRAY,
    TC_BLOCKDATA,
    TC_BLOCKDATALONG,
    TC_CLASS,
    TC_CLASSDESC,
    TC_ENDBLOCKDATA,
    TC_ENUM,
    TC_LONGSTRING,
    TC_NULL,
    TC_OBJECT,
    TC_PROXYCLASSDESC,
    TC_REFERENCE,
    TC_STRING,
    array_class,
    encode_utf,
    wire_bytes,
)
from pravega_serde.java.values import (
    BigInteger,
    Byte,
    ByteArray,
    Character,
    Date,
    Float,
    Integer,
    JavaArray,
    JavaKey,
    JavaList,
    JavaMap,
    JavaSet,
    Long,
    NanoDatetime,
    Short,
    SqlDate,
    SqlTime,
    String,
    Timestamp,
    ZoneOffset,
)

_OF_JAVA: Final = ("Ljava/", "Ljavax/", "Ljava.", "Ljavax.")


def coerce(value: Any, signature: str) -> Any:
    """Return the value in the form that a field or array element of this type needs.

    A value that has that form is returned unchanged. Raises :class:`SerializationError` for a value that the type
    cannot hold.
    """
    if value is None:
        return None
    convert = _BY_TYPE.get(signature)
    if convert is not None:
        made = convert.get(type(value))
        return value if made is None else _made(made, value, signature)
    # A list in a field of an array type. Other lists are ArrayLists.
    if signature.startswith("[") and type(value) in (list, tuple):
        return _array(value, signature)
    # No class of java.lang is one of these types. Java could not read the object.
    if is_of_own_class(signature) and (isinstance(value, (str, int, float)) or type(value) is dict):
        msg = f"{value!r:.80} cannot be written as {signature}: pass a JavaEnum or a JavaObject of that class"
        raise SerializationError(msg)
    return value


def is_of_own_class(signature: str) -> bool:
    """Return True if a field's type is a class or interface outside Java's own packages."""
    return signature.startswith("L") and not signature.startswith(_OF_JAVA)


def is_coerced(signature: str) -> bool:
    """Return True if a field's type may require another form than the value's own."""
    return signature in _BY_TYPE or signature.startswith("[")


def _made(make: Callable[[Any], Any], value: Any, signature: str) -> Any:
    try:
        return make(value)
    except (ArithmeticError, ValueError, TypeError) as error:
        msg = f"{value!r} cannot be written as {signature}: {error}"
        raise SerializationError(msg) from error


def _array(value: Any, signature: str) -> Any:
    if signature == "[B":
        return _made(bytes, value, signature)
    dtype = NATIVE.get(signature[1:])
    if dtype is None:
        return JavaArray(value, array_descriptor(signature.replace("/", ".")))
    return _made(lambda items: np.array(items, dtype=dtype), value, signature)


def _utc(kind: type[Any]) -> Callable[[dt.datetime], dt.datetime]:
    def make(value: dt.datetime) -> Any:
        at = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        made = kind.combine(at.date(), at.timetz())
        beyond = getattr(value, "nanos_beyond", 0)
        return kind.of(made, beyond) if beyond and issubclass(kind, NanoDatetime) else made

    return make


def _instant(value: dt.datetime) -> dt.datetime:
    if value.tzinfo is None or value.tzinfo is dt.UTC:
        return value
    return _utc(type(value))(value)


def _offset(value: dt.datetime) -> dt.datetime:
    offset = value.utcoffset()
    if offset is None:
        msg = "it has no UTC offset"
        raise ValueError(msg)
    return value.replace(tzinfo=ZoneOffset(offset // dt.timedelta(seconds=1)))


def _named(kind: type[Any], name: str) -> Callable[[Any], Any]:
    return lambda value: kind(value, name)


def _within_32_bits(value: int) -> int:
    """Return the number itself, so that a stream with it twice keeps one object.

    Raises ``ValueError`` if it is too large.
    """
    if not -(1 << 31) <= value < 1 << 31:
        msg = "it is too large"
        raise ValueError(msg)
    return value


_DATETIMES: Final = (dt.datetime, NanoDatetime)
_LISTS: Final = ("LinkedList", "Vector", "Stack", "concurrent/CopyOnWriteArrayList")
_MAPS: Final = ("LinkedHashMap", "TreeMap", "SortedMap", "NavigableMap", "Hashtable", "Properties")
_CONCURRENT: Final = ("ConcurrentHashMap", "ConcurrentMap")
_SETS: Final = ("LinkedHashSet", "TreeSet", "SortedSet", "NavigableSet")
_CLASS_OF: Final = {"Sorted": "java.util.Tree", "Navigable": "java.util.Tree"}


def _concrete(name: str) -> str:
    """Return the class to create for a declared class or interface of ``java.util``."""
    for prefix, tree in _CLASS_OF.items():
        if name.startswith(prefix):
            return tree + name.removeprefix(prefix)
    return "java.util." + name.replace("/", ".")


_BY_TYPE: Final[dict[str, dict[type[Any], Callable[[Any], Any]]]] = {
    "Ljava/lang/Long;": {int: Long, Integer: Long},
    "Ljava/lang/Short;": {int: Short},
    "Ljava/lang/Byte;": {int: Byte},
    "Ljava/lang/Float;": {float: Float, int: Float},
    "Ljava/lang/Double;": {int: float},
    "Ljava/lang/Integer;": {bool: int, int: _within_32_bits},
    "Ljava/lang/Character;": {str: Character},
    "Ljava/math/BigInteger;": {int: BigInteger},
    "Ljava/math/BigDecimal;": {int: decimal.Decimal},
    "Ljava/util/Date;": dict.fromkeys(_DATETIMES, _utc(Date)),
    "Ljava/sql/Date;": dict.fromkeys(_DATETIMES, _utc(SqlDate)),
    "Ljava/sql/Time;": dict.fromkeys(_DATETIMES, _utc(SqlTime)),
    "Ljava/sql/Timestamp;": dict.fromkeys(_DATETIMES, _utc(Timestamp)),
    "Ljava/time/Instant;": dict.fromkeys(_DATETIMES, _instant),
    "Ljava/time/OffsetDateTime;": dict.fromkeys(_DATETIMES, _offset),
    **{f"Ljava/util/{name};": {list: _named(JavaList, _concrete(name))} for name in _LISTS},
    **{f"Ljava/util/{name};": {dict: _named(JavaMap, _concrete(name))} for name in _MAPS},
    **{
        f"Ljava/util/concurrent/{name};": {dict: _named(JavaMap, "java.util.concurrent.ConcurrentHashMap")}
        for name in _CONCURRENT
    },
    **{f"Ljava/util/{name};": dict.fromkeys((set, frozenset), _named(JavaSet, _concrete(name))) for name in _SETS},
    "Ljava/util/Collection;": {},
}
assert array_class(np.empty(0, np.int32)) == "[I"


_U16: Final = struct.Struct(">H")
_CLASS_HEAD: Final = struct.Struct(">qBH")


class _Part(NamedTuple):
    """Part that one class of a hierarchy adds to an object (``classdata`` of the grammar)."""

    owner: ClassDescriptor
    fixed: int
    """Number of primitive fields, which come first."""
    pack: Callable[..., bytes]
    """Function that packs all primitive fields."""
    chars: tuple[int, ...]
    """Positions of chars among them."""
    objects: tuple[str, ...]
    """Signatures of the object fields. Empty if any value can be written unchanged."""
    annotated: bool

    def primitives(self, values: Sequence[Any]) -> bytes:
        """Return the bytes of the primitive fields.

        Raises :class:`SerializationError`, which names the field that cannot hold its value.
        """
        try:
            if not self.chars:
                return self.pack(*values)
            units = [*values]
            for at in self.chars:
                units[at] = ord(values[at])
            return self.pack(*units)
        except (struct.error, TypeError, OverflowError) as error:
            raise _misfit(self, values) from error


def _parts_of(descriptor: ClassDescriptor | ProxyDescriptor) -> tuple[_Part, ...]:
    """Return the parts of objects of a class, topmost class first. Created once for each descriptor object."""
    parts: tuple[_Part, ...] | None = descriptor.__dict__.get("_parts")
    if parts is None:
        parts = descriptor.__dict__["_parts"] = tuple(map(_part, descriptor.hierarchy))
    return parts


def _part(owner: ClassDescriptor) -> _Part:
    fixed = sum(each.primitive for each in owner.fields)
    primitives, objects = owner.fields[:fixed], owner.fields[fixed:]
    if not all(each.primitive for each in primitives):
        raise SerializationError(f"illegal field order in {owner.name}: primitive fields come first")
    layout = struct.Struct(">" + "".join(STRUCT_CODES[each.type] for each in primitives))
    return _Part(
        owner,
        fixed,
        layout.pack,
        tuple(at for at, each in enumerate(primitives) if each.type == "C"),
        tuple(each.type if is_coerced(each.type) or is_of_own_class(each.type) else "" for each in objects),
        bool(owner.flags & SC_WRITE_METHOD),
    )


def _misfit(part: _Part, values: Sequence[Any]) -> SerializationError:
    for each, value in zip(part.owner.fields, values, strict=False):
        try:
            struct.pack(">" + STRUCT_CODES[each.type], ord(value) if each.type == "C" else value)
        except (struct.error, TypeError, OverflowError) as error:
            where = f"field {each.name} of {part.owner.name} is of Java's type {each.source_type}"
            return SerializationError(f"{where} and cannot contain {value!r}: {error}")
    raise AssertionError(part)


def _class_pieces(descriptor: ClassDescriptor) -> tuple[tuple[bytes, str], ...]:
    """Return the bytes of a class descriptor in pieces, each with the signature (a string object) after it, if any.

    The end mark is part of it, unless annotations come before that.
    """
    pieces: tuple[tuple[bytes, str], ...] | None = descriptor.__dict__.get("_pieces")
    if pieces is None:
        pieces = descriptor.__dict__["_pieces"] = tuple(_pieces(descriptor))
    return pieces


def _pieces(descriptor: ClassDescriptor) -> list[tuple[bytes, str]]:
    head = _CLASS_HEAD.pack(descriptor.serial_version_uid, descriptor.flags, len(descriptor.fields))
    raw, pieces = bytes([TC_CLASSDESC]) + _utf(descriptor.name) + head, []
    for each in descriptor.fields:
        raw += each.type[0].encode() + _utf(each.name)
        if not each.primitive:
            pieces.append((raw, each.type))
            raw = b""
    return [*pieces, (raw if descriptor.annotations else raw + bytes([TC_ENDBLOCKDATA]), "")]


def _utf(text: str) -> bytes:
    """Return the modified UTF-8 with its length before it (``utf`` of the grammar)."""
    raw = encode_utf(text)
    return _U16.pack(len(raw)) + raw


_Descriptor = ClassDescriptor | ProxyDescriptor
_Steps = Generator[Any, None, None]

_U32: Final = struct.Struct(">I")
_I32: Final = struct.Struct(">i")
_TOKEN_U16: Final = struct.Struct(">BH")
_TOKEN_U32: Final = struct.Struct(">BI")
_TOKEN_U64: Final = struct.Struct(">BQ")


class _Beginning(NamedTuple):
    """Class descriptors at the start of a stream, and the state of the writer after them."""

    raw: bytes
    handles: dict[int, int]
    classes: dict[Any, int]
    names: dict[str, int]
    kept: list[Any]


class Writer:
    """Writer of one stream. Its bytes are in ``out``."""

    __slots__ = ("_classes", "_handles", "_kept", "_names", "out")

    def __init__(self) -> None:
        self.out = bytearray(STREAM_HEADER)
        self._handles: dict[int, int] = {}
        self._classes: dict[Any, int] = {}
        self._names: dict[str, int] = {}
        self._kept: list[Any] = []

    @property
    def handles(self) -> int:
        """Number of assigned handles."""
        return len(self._kept)

    def write(self, value: Any) -> None:
        """Append one value, and all values to which it refers.

        Raises :class:`SerializationError` if it has no Java form.
        """
        if type(value) is BlockData:
            self._block(value)
            return
        stack: list[Iterable[Any]] = [iter((value,))]
        while stack:
            for each in stack[-1]:
                steps = self._begin(each)
                if steps is not None:
                    stack.append(steps)
                    break
            else:
                stack.pop()

    def _begin(self, value: Any) -> _Steps | None:
        """Write a value without inner values, or return the generator that writes it and yields the inner values."""
        if self._leaf(value):
            return None
        write = WRITERS.get(type(value))
        if write is not None:
            return self._object(value, write(value))
        return self._other(value)

    def _leaf(self, value: Any) -> bool:
        """Write a null, a reference, a string, a box or bytes.

        Return False for others, and for boxes that do not fit.
        """
        if value is None:
            self.out.append(TC_NULL)
            return True
        # Compared by identity, because Java writes two equal strings twice, and one string once.
        handle = self._handles.get(id(value))
        if handle is not None:
            self.out += _TOKEN_U32.pack(TC_REFERENCE, handle)
            return True
        kind = type(value)
        if kind is str or kind is String:
            self._string(value)
            return True
        if kind is bytes:
            self._bytes(value)
            return True
        box = BOXES.get(kind)
        return box is not None and self._box(value, box)

    def _box(self, value: Any, box: Box) -> bool:
        try:
            raw = box.pack(value)
        except struct.error:
            return False
        self.out.append(TC_OBJECT)
        self._descriptor(box.descriptor)
        self._number(value)
        self.out += raw
        return True

    def _other(self, value: Any) -> _Steps | None:  # noqa: PLR0911
        if isinstance(value, Instance):
            return self._object(value, Content(value.descriptor, value.data, value.annotations))
        if isinstance(value, (bytes, bytearray, memoryview)):
            self._bytes(value)
            return None
        if isinstance(value, JavaArray):
            return self._array(value)
        if isinstance(value, JavaEnum):
            return self._enum(value)
        if isinstance(value, JavaKey):
            return self._begin(value.value)
        if isinstance(value, (ClassDescriptor, ProxyDescriptor)):
            self._descriptor(value)
            return None
        if isinstance(value, JavaClass):
            self.out.append(TC_CLASS)
            self._descriptor(value.descriptor)
            self._number(value)
            return None
        if isinstance(value, np.ndarray):
            self._primitives(value)
            return None
        return self._by_base(value)

    def _by_base(self, value: Any) -> _Steps | None:
        """Write a value of a subclass (of ``str``, ``int``, ...), or a NumPy scalar, as its base type."""
        # NumPy's double is a subclass of float and would pass below. The others are not.
        if isinstance(value, np.generic):
            return self._begin(coerce(value.item(), _NUMPY_BOXES.get(value.dtype.char, "")))
        if isinstance(value, enum.Enum):
            return self._begin(value.name)
        if isinstance(value, str):
            return self._begin(str.__str__(value))
        for base in type(value).__mro__[1:]:
            write: Callable[[Any], Content] | None = WRITERS.get(base)
            if write is not None:
                return self._object(value, write(value))
        msg = (
            f"invalid value: Python's {type(value).__module__}.{type(value).__qualname__} has no known Java class; "
            "pass a JavaObject of a ClassDescriptor (Python cannot compute a class's serialVersionUID)"
        )
        raise SerializationError(msg)

    def _number(self, value: Any) -> None:
        """Assign a handle to an object. The object is kept, so that no other object can get its id."""
        self._handles[id(value)] = BASE_HANDLE + len(self._kept)
        self._kept.append(value)

    def _string(self, value: str) -> None:
        kept = self._kept
        self._handles[id(value)] = BASE_HANDLE + len(kept)
        kept.append(value)
        # Nearly all strings are ASCII without NUL, which is the same in modified UTF-8.
        raw = value.encode() if value.isascii() and "\0" not in value else encode_utf(value)
        if len(raw) <= SHORT_STRING:
            self.out += _TOKEN_U16.pack(TC_STRING, len(raw)) + raw
        else:
            self.out += _TOKEN_U64.pack(TC_LONGSTRING, len(raw)) + raw

    def _bytes(self, value: bytes | bytearray | memoryview) -> None:
        self.out.append(TC_ARRAY)
        self._descriptor(array_descriptor("[B"))
        self._number(value)
        self.out += _U32.pack(len(memoryview(value).cast("B")))
        self.out += value

    def _primitives(self, value: np.ndarray[Any, Any]) -> None:
        name = array_class(value)
        if name is None:
            msg = f"invalid array: Java has none for {value.ndim} dimensions of {value.dtype}"
            raise SerializationError(msg)
        self.out.append(TC_ARRAY)
        self._descriptor(array_descriptor(name))
        self._number(value)
        self.out += _U32.pack(len(value)) + wire_bytes(value, name)

    def _array(self, value: JavaArray) -> _Steps:
        self.out.append(TC_ARRAY)
        self._descriptor(value.descriptor or array_descriptor(value.java_class))
        self._number(value)
        self.out += _U32.pack(len(value))
        # Elements of Long[] are Longs. Plain numbers are written in the type that the array's class declares.
        element = value.java_class[1:].replace(".", "/")
        return (coerce(item, element) for item in value)

    def _enum(self, value: JavaEnum) -> _Steps | None:
        # A constant is one object in Java, also if it has several Python objects.
        key = ("enum", value.descriptor.name, value.name)
        handle = self._classes.get(key)
        if handle is not None:
            self.out += _TOKEN_U32.pack(TC_REFERENCE, handle)
            return None
        self.out.append(TC_ENUM)
        self._descriptor(value.descriptor)
        self._classes[key] = BASE_HANDLE + len(self._kept)
        self._number(value)
        return self._begin_name(value.name)

    def _begin_name(self, name: str) -> _Steps | None:
        handle = self._handles.get(id(name))
        if handle is None:
            self._string(name)
        else:
            self.out += _TOKEN_U32.pack(TC_REFERENCE, handle)
        return None

    def _object(self, value: Any, parts: Content) -> _Steps:
        if not parts.descriptor.flags & (SC_SERIALIZABLE | SC_EXTERNALIZABLE) or parts.descriptor.is_enum:
            msg = f"objects of this class are not serializable: {parts.descriptor.name}"
            raise SerializationError(msg)
        self.out.append(TC_OBJECT)
        self._descriptor(parts.descriptor)
        self._number(value)
        return self._data(parts)

    def _data(self, parts: Content) -> _Steps:
        """Write field values and annotations, class by class, topmost first."""
        descriptor, at, notes = parts.descriptor, 0, iter(parts.notes)
        if len(parts.values) != len(descriptor.all_fields):
            msg = f"{len(parts.values)} values for the {len(descriptor.all_fields)} fields of {descriptor.name}"
            raise SerializationError(msg)
        # An Externalizable object has only annotations, with any superclasses.
        if descriptor.flags & SC_EXTERNALIZABLE:
            yield from self._note(next(notes, ()))
            return
        for part in _parts_of(descriptor):
            note: Iterable[Any] = next(notes, ()) if part.annotated else ()
            if type(note) is OwnOrder:
                if note.ahead is None:
                    at += len(part.owner.fields)
                    yield from self._note(note)
                    continue
                yield from self._contents(note[: note.ahead])
                note = note[note.ahead :]
            if part.fixed:
                self.out += part.primitives(parts.values[at : at + part.fixed])
                at += part.fixed
            for signature in part.objects:
                value = parts.values[at]
                at += 1
                if signature:
                    value = coerce(value, signature)
                # A value without inner values bypasses the loop.
                if not self._leaf(value):
                    yield value
            # The end mark exists even if writeObject wrote nothing (objectAnnotation of the grammar).
            if part.annotated:
                yield from self._note(note)

    def _note(self, items: Iterable[Any]) -> _Steps:
        yield from self._contents(items)
        self.out.append(TC_ENDBLOCKDATA)

    def _contents(self, items: Iterable[Any]) -> _Steps:
        for item in items:
            if type(item) is BlockData:
                self._block(item)
            else:
                yield item

    def _block(self, raw: bytes) -> None:
        """Write block data, split at the same positions as in ``ObjectOutputStream``."""
        for start in range(0, len(raw), MAX_BLOCK):
            chunk = raw[start : start + MAX_BLOCK]
            if len(chunk) <= SHORT_BLOCK:
                self.out += bytes([TC_BLOCKDATA, len(chunk)]) + chunk
            else:
                self.out += _TOKEN_U32.pack(TC_BLOCKDATALONG, len(chunk)) + chunk

    def _descriptor(self, descriptor: _Descriptor) -> None:
        """Write a class descriptor and its superclasses.

        Those at the start of a stream are written once, then copied.
        """
        if self._kept:
            self._chain(descriptor)
            return
        first: _Beginning | None = descriptor.__dict__.get("_beginning")
        if first is None:
            start = len(self.out)
            self._chain(descriptor)
            if not descriptor.annotations:
                raw, handles = bytes(self.out[start:]), self._handles.copy()
                first = _Beginning(raw, handles, self._classes.copy(), self._names.copy(), self._kept.copy())
                descriptor.__dict__["_beginning"] = first
            return
        self.out += first.raw
        self._handles, self._classes = first.handles.copy(), first.classes.copy()
        self._names, self._kept = first.names.copy(), first.kept.copy()

    def _chain(self, descriptor: _Descriptor | None) -> None:
        classes, kept = self._classes, self._kept
        while descriptor is not None:
            handle = classes.get(descriptor)
            if handle is not None:
                self.out += _TOKEN_U32.pack(TC_REFERENCE, handle)
                return
            # Descriptors are compared by content, because a value may combine objects of one class from two events.
            classes[descriptor] = self._handles[id(descriptor)] = BASE_HANDLE + len(kept)
            kept.append(descriptor)
            if isinstance(descriptor, ProxyDescriptor):
                self._proxy(descriptor)
            else:
                self._class(descriptor)
            descriptor = descriptor.super_class
        self.out.append(TC_NULL)

    def _class(self, descriptor: ClassDescriptor) -> None:
        for raw, signature in _class_pieces(descriptor):
            self.out += raw
            if signature:
                self._type_string(signature)
        if descriptor.annotations:
            self._annotate(descriptor.annotations)

    def _type_string(self, text: str) -> None:
        """Write a signature. Java interns signatures, so each text is written once, and then as a reference."""
        handle = self._names.get(text)
        if handle is not None:
            self.out += _TOKEN_U32.pack(TC_REFERENCE, handle)
            return
        self._names[text] = BASE_HANDLE + len(self._kept)
        self._string(text)

    def _proxy(self, descriptor: ProxyDescriptor) -> None:
        self.out.append(TC_PROXYCLASSDESC)
        self.out += _I32.pack(len(descriptor.interfaces))
        for name in descriptor.interfaces:
            self.out += _utf(name)
        self._annotate(descriptor.annotations)

    def _annotate(self, items: Iterable[Any]) -> None:
        for item in items:
            self.write(item)
        self.out.append(TC_ENDBLOCKDATA)


_NUMPY_BOXES: Final = {
    "b": "Ljava/lang/Byte;",
    "h": "Ljava/lang/Short;",
    "i": "Ljava/lang/Integer;",
    "l": "Ljava/lang/Long;",
    "q": "Ljava/lang/Long;",
    "f": "Ljava/lang/Float;",
}
assert ByteArray.__mro__[1] is bytes

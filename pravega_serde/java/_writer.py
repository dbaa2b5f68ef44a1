"""The writer of object streams: a stack of generators instead of recursion.

A generator writes the bytes of one object and yields each value inside it; the loop writes the value, or begins a new
generator for it, before the first one goes on. Objects are numbered as ``ObjectOutputStream`` numbers them, and one
that comes again (the same object, not an equal one) is written as a reference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from pravega_serde.errors import SerializationError
from pravega_serde.java import _mutf8
from pravega_serde.java._arrays import array_class, wire_bytes
from pravega_serde.java._boxes import ByteArray, String
from pravega_serde.java._coerce import coerce
from pravega_serde.java._constants import (
    BASE_HANDLE,
    MAX_BLOCK,
    SC_EXTERNALIZABLE,
    SC_SERIALIZABLE,
    SHORT_BLOCK,
    SHORT_STRING,
    STREAM_HEADER,
)
from pravega_serde.java._containers import JavaArray, JavaKey
from pravega_serde.java._content import Content
from pravega_serde.java._jdk import WRITERS
from pravega_serde.java._jdk_scalars import BOXES, Box
from pravega_serde.java._jdk_table import array_descriptor
from pravega_serde.java._model import (
    BlockData,
    ClassDescriptor,
    Instance,
    JavaClass,
    JavaEnum,
    OwnOrder,
    ProxyDescriptor,
)
from pravega_serde.java._write_plans import class_pieces, parts_of, utf

__all__ = ["Writer"]

Descriptor = ClassDescriptor | ProxyDescriptor
Steps = Generator[Any, None, None]

_U16: Final = struct.Struct(">H")
_U32: Final = struct.Struct(">I")
_I32: Final = struct.Struct(">i")
_U64: Final = struct.Struct(">Q")


class _Beginning(NamedTuple):
    """The class descriptors at the start of a stream, and what is known after them."""

    raw: bytes
    handles: dict[int, int]
    classes: dict[Any, int]
    names: dict[str, int]
    kept: list[Any]


class Writer:
    """Writes one stream."""

    __slots__ = ("_classes", "_handles", "_kept", "_names", "out")

    def __init__(self) -> None:
        self.out = bytearray(STREAM_HEADER)
        self._handles: dict[int, int] = {}
        self._classes: dict[Any, int] = {}
        self._names: dict[str, int] = {}
        self._kept: list[Any] = []

    @property
    def handles(self) -> int:
        """How many handles have been given: each numbered object is kept, so that no other can get its id."""
        return len(self._kept)

    def write(self, value: Any) -> None:
        """Append one value, and everything that it refers to."""
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

    def _begin(self, value: Any) -> Steps | None:
        """Write a value that has no others inside, or return the generator that writes it."""
        if self._leaf(value):
            return None
        write = WRITERS.get(type(value))
        if write is not None:
            return self._object(value, write(value))
        return self._other(value)

    def _leaf(self, value: Any) -> bool:
        """Write a null, a reference, a string, a box or bytes; False for any other value, and boxes that do not fit."""
        if value is None:
            self.out += b"\x70"
            return True
        # Identity, not equality: Java writes two equal strings twice, and one string once.
        handle = self._handles.get(id(value))
        if handle is not None:
            self.out += b"\x71" + _U32.pack(handle)
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
        self.out += b"\x73"
        self._descriptor(box.descriptor)
        self._number(value)
        self.out += raw
        return True

    def _other(self, value: Any) -> Steps | None:  # noqa: PLR0911
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
            self.out += b"\x76"
            self._descriptor(value.descriptor)
            self._number(value)
            return None
        if isinstance(value, np.ndarray):
            self._primitives(value)
            return None
        return self._by_base(value)

    def _by_base(self, value: Any) -> Steps | None:
        """Values of subclasses (of ``str``, ``int``, ...) and NumPy's scalars: as the type that they extend."""
        # NumPy's double is a subclass of float and would pass below; the others are not.
        if isinstance(value, np.generic):
            return self._begin(coerce(value.item(), _NUMPY_BOXES.get(value.dtype.char, "")))
        if isinstance(value, str):
            return self._begin(str.__str__(value))
        for base in type(value).__mro__[1:]:
            write: Callable[[Any], Content] | None = WRITERS.get(base)
            if write is not None:
                return self._object(value, write(value))
        msg = (
            f"no Java class is known for Python's {type(value).__module__}.{type(value).__qualname__}; "
            "give a JavaObject of a ClassDescriptor (Python cannot compute a class's serialVersionUID)"
        )
        raise SerializationError(msg)

    def _number(self, value: Any) -> None:
        """Give an object its handle; it is kept, so that no other object can get its id."""
        self._handles[id(value)] = BASE_HANDLE + len(self._kept)
        self._kept.append(value)

    def _string(self, value: str) -> None:
        kept = self._kept
        self._handles[id(value)] = BASE_HANDLE + len(kept)
        kept.append(value)
        # Nearly all strings are ASCII without NUL: as they are.
        raw = value.encode() if value.isascii() and "\0" not in value else _mutf8.encode(value)
        if len(raw) <= SHORT_STRING:
            self.out += b"\x74" + _U16.pack(len(raw)) + raw
        else:
            self.out += b"\x7c" + _U64.pack(len(raw)) + raw

    def _bytes(self, value: bytes | bytearray | memoryview) -> None:
        self.out += b"\x75"
        self._descriptor(array_descriptor("[B"))
        self._number(value)
        self.out += _U32.pack(len(memoryview(value).cast("B")))
        self.out += value

    def _primitives(self, value: np.ndarray[Any, Any]) -> None:
        name = array_class(value)
        if name is None:
            msg = f"Java has no array for {value.ndim} dimensions of {value.dtype}"
            raise SerializationError(msg)
        self.out += b"\x75"
        self._descriptor(array_descriptor(name))
        self._number(value)
        self.out += _U32.pack(len(value)) + wire_bytes(value, name)

    def _array(self, value: JavaArray) -> Steps:
        self.out += b"\x75"
        self._descriptor(value.descriptor or array_descriptor(value.java_class))
        self._number(value)
        self.out += _U32.pack(len(value))
        # Elements of Long[] are Longs: plain numbers take the type that the array's class declares.
        element = value.java_class[1:]
        return (coerce(item, element) for item in value)

    def _enum(self, value: JavaEnum) -> Steps | None:
        # A constant is one object in Java, however many Python objects stand for it.
        key = ("enum", value.descriptor.name, value.name)
        handle = self._classes.get(key)
        if handle is not None:
            self.out += b"\x71" + _U32.pack(handle)
            return None
        self.out += b"\x7e"
        self._descriptor(value.descriptor)
        self._classes[key] = BASE_HANDLE + len(self._kept)
        self._number(value)
        return self._begin_name(value.name)

    def _begin_name(self, name: str) -> Steps | None:
        handle = self._handles.get(id(name))
        if handle is None:
            self._string(name)
        else:
            self.out += b"\x71" + _U32.pack(handle)
        return None

    def _object(self, value: Any, parts: Content) -> Steps:
        if not parts.descriptor.flags & (SC_SERIALIZABLE | SC_EXTERNALIZABLE) or parts.descriptor.is_enum:
            msg = f"objects of this class are not serializable: {parts.descriptor.name}"
            raise SerializationError(msg)
        self.out += b"\x73"
        self._descriptor(parts.descriptor)
        self._number(value)
        return self._data(parts)

    def _data(self, parts: Content) -> Steps:
        """Field values and annotations, class by class, topmost first."""
        descriptor, at, notes = parts.descriptor, 0, iter(parts.notes)
        if len(parts.values) != len(descriptor.all_fields):
            msg = f"{len(parts.values)} values for the {len(descriptor.all_fields)} fields of {descriptor.name}"
            raise SerializationError(msg)
        # An Externalizable object is its annotations alone, whatever its superclasses are.
        if descriptor.flags & SC_EXTERNALIZABLE:
            yield from self._note(next(notes, ()))
            return
        for part in parts_of(descriptor):
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
                # What has nothing inside need not go through the loop.
                if not self._leaf(value):
                    yield value
            # Java ends the annotations of such a class even when its writeObject wrote none.
            if part.annotated:
                yield from self._note(note)

    def _note(self, items: Iterable[Any]) -> Steps:
        yield from self._contents(items)
        self.out += b"\x78"

    def _contents(self, items: Iterable[Any]) -> Steps:
        for item in items:
            if type(item) is BlockData:
                self._block(item)
            else:
                yield item

    def _block(self, raw: bytes) -> None:
        """Block data, cut where ``ObjectOutputStream`` cuts it."""
        for start in range(0, len(raw), MAX_BLOCK):
            chunk = raw[start : start + MAX_BLOCK]
            if len(chunk) <= SHORT_BLOCK:
                self.out += b"\x77" + bytes([len(chunk)]) + chunk
            else:
                self.out += b"\x7a" + _U32.pack(len(chunk)) + chunk

    def _descriptor(self, descriptor: Descriptor) -> None:
        """A class descriptor and its superclasses; those that begin a stream are written once and then copied."""
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

    def _chain(self, descriptor: Descriptor | None) -> None:
        classes, kept = self._classes, self._kept
        while descriptor is not None:
            handle = classes.get(descriptor)
            if handle is not None:
                self.out += b"\x71" + _U32.pack(handle)
                return
            # By content: two events may have brought two descriptor objects of one class into this value.
            classes[descriptor] = self._handles[id(descriptor)] = BASE_HANDLE + len(kept)
            kept.append(descriptor)
            if isinstance(descriptor, ProxyDescriptor):
                self._proxy(descriptor)
            else:
                self._class(descriptor)
            descriptor = descriptor.super_class
        self.out += b"\x70"

    def _class(self, descriptor: ClassDescriptor) -> None:
        for raw, signature in class_pieces(descriptor):
            self.out += raw
            if signature:
                self._type_string(signature)
        if descriptor.annotations:
            self._annotate(descriptor.annotations)

    def _type_string(self, text: str) -> None:
        """Signatures are interned in Java: one object for each text, whoever else refers to it."""
        handle = self._names.get(text)
        if handle is not None:
            self.out += b"\x71" + _U32.pack(handle)
            return
        self._names[text] = BASE_HANDLE + len(self._kept)
        self._string(text)

    def _proxy(self, descriptor: ProxyDescriptor) -> None:
        self.out += b"\x7d"
        self.out += _I32.pack(len(descriptor.interfaces))
        for name in descriptor.interfaces:
            self.out += utf(name)
        self._annotate(descriptor.annotations)

    def _annotate(self, items: Iterable[Any]) -> None:
        for item in items:
            self.write(item)
        self.out += b"\x78"


_NUMPY_BOXES: Final = {
    "b": "Ljava/lang/Byte;",
    "h": "Ljava/lang/Short;",
    "i": "Ljava/lang/Integer;",
    "l": "Ljava/lang/Long;",
    "q": "Ljava/lang/Long;",
    "f": "Ljava/lang/Float;",
}
assert ByteArray.__mro__[1] is bytes

"""Class descriptors: parsed once, compiled to plans for reading objects, cached between events.

Every event repeats the descriptors of its classes, and they are most of its bytes. :class:`DescriptorCache` finds a
descriptor by its bytes. A :class:`Plan` holds the bytes, values and annotations of an object of the class.
:class:`ReadState` is the event that is being read: its bytes, its handles, and its cost so far.

Sizes in a stream are never trusted: an array or string is checked against the remaining bytes, and all else is limited
by :class:`Limits`. The limits are far above the sizes that applications write.

A descriptor in the stream, with the handle that each part gets (``classDesc`` of Java's grammar)::

    72  0005 "Order"  uid: 8 bytes  flags: 1  0002 fields        handle n: the class itself
        'J'  0002 "id"                                           primitive fields come first
        'L'  0004 "name"  74 0012 "Ljava/lang/String;"           handle n+1: the signature, later "71" and the handle
    78                                                           end of the annotations
    72  0004 "Base" ... 78                                       superclass, handle n+2 ...
    70                                                           no further superclass

    key of the cache    (n, name and uid): n, because later references count from it
    plan of an Order    fields of Base, then of Order; ">q" reads all primitives of a class at once
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pravega_serde.columnar import MalformedError, MemoryLimit
from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.java.jdk_classes import Codec
from pravega_serde.java.model import ClassDescriptor, Field, ProxyDescriptor
from pravega_serde.java.protocol import (
    BASE_HANDLE,
    PRIMITIVES,
    SC_BLOCK_DATA,
    SC_EXTERNALIZABLE,
    SC_SERIALIZABLE,
    SC_WRITE_METHOD,
    STREAM_HEADER,
    STRUCT_CODES,
    TC_CLASSDESC,
    TC_ENDBLOCKDATA,
    TC_LONGSTRING,
    TC_NULL,
    TC_PROXYCLASSDESC,
    TC_REFERENCE,
    TC_STRING,
    decode_utf,
)

_HEAVY: Final = MemoryLimit(per_byte=24, base=24 << 20)
"""Memory of values with a far larger form in Python than in Java: sets, deques, wrapped keys."""

_CACHED_CLASSES: Final = 256
"""Class descriptors that a serializer caches. A full cache is emptied."""

_CACHED_FIELDS: Final = 512
"""Maximum fields of a cached class."""

_CACHED_DESCRIPTOR_BYTES: Final = 16_384
"""Maximum bytes of a cached descriptor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one :class:`~pravega_serde.java.JavaSerializer`. To exceed one raises :class:`LimitExceededError`."""

    depth: int = 10_000
    """Nested objects. Java itself overflows a default thread stack of 1 MiB at some 1,000 to 3,000."""
    handles: int = 4_000_000
    """Objects, strings and class descriptors in one event: Java numbers them all."""
    size: int = 256 * 1024 * 1024
    """Bytes of one event. Pravega's own limit is 8 MiB."""
    classes: int = 4096
    """Class descriptors in one event. Each uses far more memory than its minimum of 16 bytes in the event."""


class _Step(NamedTuple):
    """Part of an object's data (``classdata`` of the grammar): the fields of one class, or one class's annotations."""

    annotated: bool
    unpack: Callable[[bytes, int], tuple[Any, ...]] | None
    size: int
    chars: tuple[int, ...]
    """Positions of chars among the unpacked values."""
    objects: int
    """Number of object fields, which follow the primitive ones."""
    telling: bool = False
    """True if block data here means that ``writeObject`` did not write the fields, which begin with an object."""
    ahead: int = 0
    """Number of contents that ``writeObject`` writes before the fields."""
    absent: int = 0
    """Number of fields that ``writeObject`` does not write at all."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Compiled class descriptor: the parts of an object in the order of the stream, and their results."""

    descriptor: ClassDescriptor | ProxyDescriptor
    steps: tuple[_Step, ...]
    codec: Codec | None
    flat: bool
    """True if the object has only fields, without annotations."""
    doubtful: tuple[str, ...] = ()
    """Classes with a ``writeObject`` that may not begin with ``defaultWriteObject``. The stream does not show it."""


def _field_step(owner: ClassDescriptor) -> _Step:
    primitives = [each for each in owner.fields if each.primitive]
    if any(not each.primitive for each in owner.fields[: len(primitives)]):
        msg = f"illegal field order in {owner.name}: primitive fields come first"
        raise MalformedError(msg)
    layout = struct.Struct(">" + "".join(STRUCT_CODES[each.type] for each in primitives))
    chars = tuple(at for at, each in enumerate(primitives) if each.type == "C")
    return _Step(
        False,
        layout.unpack_from if primitives else None,
        layout.size,
        chars,
        len(owner.fields) - len(primitives),
        telling=bool(owner.flags & SC_WRITE_METHOD) and not primitives,
    )


_ANNOTATION = _Step(True, None, 0, (), 0)


#: Class name -> number of contents that its ``writeObject`` writes before ``defaultWriteObject``; None: never called.
Layouts = Mapping[str, int | None]
_USUAL: Final[Layouts] = {}


def _steps(descriptor: ClassDescriptor | ProxyDescriptor, layouts: Layouts) -> tuple[_Step, ...]:
    if descriptor.is_external:
        if not descriptor.flags & SC_BLOCK_DATA:
            msg = f"{descriptor.name} writes itself in stream protocol version 1, which only the class itself can read"
            raise MalformedError(msg)
        return (_ANNOTATION,)
    if not descriptor.flags & SC_SERIALIZABLE:
        msg = f"{descriptor.name} is not serializable, yet the stream has an object of it"
        raise MalformedError(msg)
    steps = []
    for owner in descriptor.hierarchy:
        annotated = bool(owner.flags & SC_WRITE_METHOD)
        ahead = layouts.get(owner.name, 0) if annotated else 0
        if ahead is None:
            steps.append(_ANNOTATION._replace(absent=len(owner.fields)))
            continue
        if ahead:
            steps.append(_Step(False, None, 0, (), 0, ahead=ahead))
        if owner.fields:
            steps.append(_field_step(owner))
        if annotated:
            steps.append(_ANNOTATION)
    return tuple(steps)


def special_plan(plan: Plan, layouts: Layouts) -> Plan:
    """Return the plan of a class without a natural form, if classes of its hierarchy write in their own order."""
    return dataclasses.replace(plan, steps=_steps(plan.descriptor, layouts))


def compile_plan(
    descriptor: ClassDescriptor | ProxyDescriptor, codecs: Callable[[ClassDescriptor], Codec | None]
) -> Plan:
    """Return the plan of a class. It is compiled once for each descriptor object.

    Raises :class:`MalformedError` for a class that cannot have objects in a stream.
    """
    plan: Plan | None = descriptor.__dict__.get("_plan")
    if plan is None:
        steps = _steps(descriptor, _USUAL)
        codec = codecs(descriptor) if isinstance(descriptor, ClassDescriptor) else None
        doubtful = (
            ()
            if codec or descriptor.is_external
            else tuple(owner.name for owner in descriptor.hierarchy if owner.flags & SC_WRITE_METHOD and owner.fields)
        )
        plan = Plan(descriptor, steps, codec, not any(step.annotated for step in steps), doubtful)
        descriptor.__dict__["_plan"] = plan
    return plan


class _CachedClass(NamedTuple):
    """Bytes of a class descriptor in a stream, with its handles."""

    raw: bytes
    descriptor: ClassDescriptor
    handles: tuple[Any, ...]


class DescriptorCache:
    """Class descriptors by their bytes. Every event repeats them, and only the first is parsed.

    The parts of a descriptor refer to each other by handle numbers, so the first handle is part of the key. Thread
    safe: entries are complete, and a lost entry only costs a parse.
    """

    __slots__ = ("_known", "entries")

    def __init__(self) -> None:
        self.entries: dict[tuple[int, bytes], _CachedClass] = {}
        self._known: dict[ClassDescriptor, ClassDescriptor] = {}

    def intern(self, descriptor: ClassDescriptor) -> ClassDescriptor:
        """Return the first equal descriptor, which already has its plan."""
        known = self._known.get(descriptor)
        if known is None:
            if len(self._known) >= _CACHED_CLASSES:
                self._known = {}
            if len(descriptor.fields) <= _CACHED_FIELDS:
                self._known[descriptor] = descriptor
            return descriptor
        return known

    def add(self, key: tuple[int, bytes], entry: _CachedClass) -> None:
        """Add an entry. A full cache is emptied first, so that hostile events cannot make it grow."""
        if len(entry.raw) <= _CACHED_DESCRIPTOR_BYTES:
            if len(self.entries) >= _CACHED_CLASSES:
                self.entries = {}
            self.entries[key] = entry


class _Unresolved:
    """Marker in the handle table for an object that has no form before it is complete."""

    def __repr__(self) -> str:
        return "<object that is still being read>"


UNRESOLVED: Final = _Unresolved()


class ReadState:
    """State of reading one event. ``cache`` is shared by the events of a serializer."""

    __slots__ = (
        "cache",
        "classes",
        "copied",
        "data",
        "doubtful",
        "handles",
        "heavy",
        "layouts",
        "limits",
        "lowest",
        "nesting",
        "singles",
        "size",
    )

    def __init__(self, data: bytes, cache: DescriptorCache, limits: Limits, layouts: Layouts | None = None) -> None:
        self.data, self.size = data, len(data)
        self.cache, self.limits = cache, limits
        self.layouts = layouts
        self.doubtful: dict[str, None] = {}
        self.handles: list[Any] = []
        self.singles: set[int] = set()
        self.classes = self.heavy = self.copied = self.nesting = self.lowest = 0
        if self.size > limits.size:
            msg = f"an event of {self.size} bytes, the limit is {limits.size}"
            raise LimitExceededError(msg)
        if not data.startswith(STREAM_HEADER):
            msg = f"not a Java object stream: it begins with {data[:4].hex() or 'nothing'}, not {STREAM_HEADER.hex()}"
            raise DeserializationError(msg)

    def reserve(self) -> int:
        """Reserve the next handle for an object that is not complete."""
        self.handles.append(UNRESOLVED)
        if len(self.handles) > self.limits.handles:
            msg = f"more than {self.limits.handles} objects in one event"
            raise LimitExceededError(msg)
        return len(self.handles) - 1

    def unique(self, value: Any, kind: type[Any]) -> Any:
        """Return a value, converted to ``kind`` if the event already has that Python object.

        CPython shares small values.
        """
        if id(value) in self.singles:
            return kind(value)
        self.singles.add(id(value))
        return value

    def charge(self, memory: int) -> None:
        """Count memory of a value with a far larger form in Python.

        Raises :class:`LimitExceededError` if the total is too large.
        """
        self.heavy += memory
        if self.heavy > _HEAVY.of(self.size):
            raise LimitExceededError(_HEAVY.exceeded(self.size).reason)

    def copies(self, count: int) -> bool:
        """Count elements or bytes that are copied from an object that others may share.

        Returns False if more was copied than the event has bytes. That requires many references to one object.
        """
        self.copied += count
        return self.copied <= self.size

    def read_annotation(self, pos: int) -> tuple[tuple[Any, ...], int]:
        """Return the contents up to the end mark, and the position after it.

        The reader of objects implements this.
        """
        raise NotImplementedError


_MAX_HIERARCHY: Final = 100
"""Maximum superclasses of one class. The deepest hierarchies of the JDK have 10."""

_UID_FLAGS_COUNT: Final = struct.Struct(">qBH")
_INTERFACES_MAX: Final = 65535
"""Maximum interfaces of a proxy in ``ObjectInputStream.readProxyDesc`` and in the class file format."""


_Descriptor = ClassDescriptor | ProxyDescriptor


def read_descriptor(reader: ReadState, pos: int) -> tuple[_Descriptor | None, int]:
    """Return the class descriptor at ``pos``, or None for a null one, and the position after it.

    It is ``classDesc`` of the grammar. Raises :class:`MalformedError` or :class:`LimitExceededError`.
    """
    data, handles = reader.data, reader.handles
    token = data[pos]
    if token == TC_REFERENCE:
        return _referred(reader, pos), pos + 5
    if token != TC_CLASSDESC:
        return _read_chain(reader, pos)
    # The name, with its length in two bytes before it, and the serialVersionUID in eight bytes after it.
    key = (len(handles), data[pos + 1 : pos + 11 + (data[pos + 1] << 8 | data[pos + 2])])
    hit = reader.cache.entries.get(key)
    if hit is not None and data.startswith(hit.raw, pos):
        handles.extend(hit.handles)
        reader.classes += 1
        return hit.descriptor, pos + len(hit.raw)
    # Only a descriptor without references to earlier objects is cached. Its meaning depends only on its bytes and on
    # its first handle.
    reader.lowest = first = len(handles)
    descriptor, end = _read_chain(reader, pos)
    if reader.lowest >= first and isinstance(descriptor, ClassDescriptor):
        reader.cache.add(key, _CachedClass(data[pos:end], descriptor, tuple(handles[first:])))
    return descriptor, end


def _referred(reader: ReadState, pos: int) -> _Descriptor:
    at = int.from_bytes(reader.data[pos + 1 : pos + 5], "big") - BASE_HANDLE
    if not 0 <= at < len(reader.handles) or pos + 5 > len(reader.data):
        msg = f"reference to handle {at}, of {len(reader.handles)} so far"
        raise MalformedError(msg)
    found = reader.handles[at]
    if not isinstance(found, (ClassDescriptor, ProxyDescriptor)):
        msg = f"handle {at} is not a class descriptor"
        raise MalformedError(msg)
    reader.lowest = min(reader.lowest, at)
    return found


def _read_chain(reader: ReadState, pos: int) -> tuple[_Descriptor | None, int]:
    """Read a class and its superclasses in a loop, and build them from the topmost down."""
    parts: list[tuple[int, Any]] = []
    top: _Descriptor | None = None
    while True:
        token = reader.data[pos]
        if token == TC_CLASSDESC:
            part, pos = _read_class(reader, pos + 1)
        elif token == TC_PROXYCLASSDESC:
            part, pos = _read_proxy(reader, pos + 1)
        elif token == TC_REFERENCE:
            top, pos = _referred(reader, pos), pos + 5
            break
        elif token == TC_NULL:
            pos += 1
            break
        else:
            msg = f"byte {token:#04x} instead of a class descriptor"
            raise MalformedError(msg)
        parts.append(part)
        reader.classes += 1
        if len(parts) > _MAX_HIERARCHY or reader.classes > reader.limits.classes:
            msg = f"more than {_MAX_HIERARCHY} superclasses, or {reader.limits.classes} classes in one event"
            raise LimitExceededError(msg)
    if top is not None and parts and len(parts) + len(top.hierarchy) > _MAX_HIERARCHY:
        msg = f"more than {_MAX_HIERARCHY} superclasses"
        raise LimitExceededError(msg)
    # Superclasses come last in the stream, but are needed first.
    for handle, make in reversed(parts):
        top = reader.handles[handle] = make(top)
    return top, pos


def _read_class(reader: ReadState, pos: int) -> tuple[Any, int]:
    data = reader.data
    name, pos = _utf(data, pos)
    uid, flags, count = _UID_FLAGS_COUNT.unpack_from(data, pos)
    pos += _UID_FLAGS_COUNT.size
    if flags & SC_SERIALIZABLE and flags & SC_EXTERNALIZABLE:
        msg = f"{name} is both serializable and externalizable"
        raise MalformedError(msg)
    # The handle comes before the fields: their signatures are numbered after the class.
    handle = reader.reserve()
    fields: list[Field] = []
    new_types: list[tuple[int, int]] = []
    for _ in range(count):
        code = chr(data[pos])
        field_name, pos = _utf(data, pos + 1)
        if code in "L[":
            before = len(reader.handles)
            code, pos = _type_string(reader, pos, code)
            if len(reader.handles) > before:
                new_types.append((before, len(fields)))
        elif code not in PRIMITIVES:
            msg = f"field {field_name!r} of {name} has the unknown type code {code!r}"
            raise MalformedError(msg)
        fields.append(Field(field_name, code))
    notes, pos = _annotation(reader, pos)

    def make(above: _Descriptor | None) -> ClassDescriptor:
        made = ClassDescriptor(name, uid, flags, tuple(fields), above, notes)
        # Equality ignores annotations, so an annotated class must neither replace another nor be replaced.
        if notes:
            return made
        known = reader.cache.intern(made)
        if known is not made:
            # The signatures are objects of the stream too. Those of the known descriptor replace them.
            for at, position in new_types:
                reader.handles[at] = known.fields[position].type
        return known

    return (handle, make), pos


def _read_proxy(reader: ReadState, pos: int) -> tuple[Any, int]:
    data = reader.data
    handle = reader.reserve()
    count = int.from_bytes(data[pos : pos + 4], "big")
    pos += 4
    # Each name has at least two bytes, so a larger count is invalid.
    if count > _INTERFACES_MAX or 2 * count > len(data) - pos:
        msg = f"invalid proxy of {count} interfaces"
        raise MalformedError(msg)
    interfaces = []
    for _ in range(count):
        name, pos = _utf(data, pos)
        interfaces.append(name)
    notes, pos = _annotation(reader, pos)
    return (handle, lambda above: ProxyDescriptor(tuple(interfaces), above, notes)), pos


def _annotation(reader: ReadState, pos: int) -> tuple[tuple[Any, ...], int]:
    if reader.data[pos] == TC_ENDBLOCKDATA:
        return (), pos + 1
    reader.lowest = -1  # contents may refer to anything, so such a descriptor is not cached
    return reader.read_annotation(pos)


def _utf(data: bytes, pos: int) -> tuple[str, int]:
    end = pos + 2 + (data[pos] << 8 | data[pos + 1])
    raw = data[pos + 2 : end]
    if end > len(data):
        msg = "the bytes end inside a name"
        raise MalformedError(msg)
    return decode_utf(raw), end


def _type_string(reader: ReadState, pos: int, code: str) -> tuple[str, int]:
    """Read the signature of an object field (``className1`` of the grammar): a string object, often a reference."""
    if reader.data[pos] == TC_REFERENCE:
        at = int.from_bytes(reader.data[pos + 1 : pos + 5], "big") - BASE_HANDLE
        text = reader.handles[at] if 0 <= at < len(reader.handles) else None
        reader.lowest = min(reader.lowest, at)
        pos += 5
    else:
        text, pos = read_string(reader.data, pos)
        reader.handles.append(text)
    if not isinstance(text, str) or not text.startswith(code):
        msg = f"invalid signature of a field of type {code!r}: {text!r}"
        raise MalformedError(msg)
    return text, pos


def read_string(data: bytes, pos: int) -> tuple[str, int]:
    """Return the short or long string object at ``pos``, and the position after it.

    Raises :class:`MalformedError` for anything else.
    """
    token = data[pos]
    if token == TC_STRING:
        start = pos + 3
        end = start + (data[pos + 1] << 8 | data[pos + 2])
    elif token == TC_LONGSTRING:
        start = pos + 9
        end = start + int.from_bytes(data[pos + 1 : start], "big")
    else:
        msg = f"byte {token:#04x} instead of a string"
        raise MalformedError(msg)
    if end > len(data):
        msg = "the bytes end inside a string"
        raise MalformedError(msg)
    return decode_utf(data[start:end]), end

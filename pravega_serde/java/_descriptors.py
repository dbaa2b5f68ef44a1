"""Reading of class descriptors: ordinary ones with their superclasses, and those of dynamic proxies."""

from __future__ import annotations

import struct
from typing import Any, Final

from pravega_serde.errors import LimitExceededError
from pravega_serde.java import _mutf8
from pravega_serde.java._constants import (
    BASE_HANDLE,
    PRIMITIVES,
    SC_EXTERNALIZABLE,
    SC_SERIALIZABLE,
    TC_CLASSDESC,
    TC_ENDBLOCKDATA,
    TC_LONGSTRING,
    TC_NULL,
    TC_PROXYCLASSDESC,
    TC_REFERENCE,
    TC_STRING,
)
from pravega_serde.java._model import ClassDescriptor, Field, ProxyDescriptor
from pravega_serde.java._plans import CachedClass, MalformedError
from pravega_serde.java._state import ReadState

__all__ = ["read_descriptor", "read_string"]

MAX_HIERARCHY: Final = 100
"""Superclasses of one class; the deepest hierarchies of the JDK have 10."""

_UID_FLAGS_COUNT: Final = struct.Struct(">qBH")
_INTERFACES_MAX: Final = 65535
"""``ObjectStreamClass`` refuses proxies with more interfaces, as the class file format does."""


Descriptor = ClassDescriptor | ProxyDescriptor


def read_descriptor(reader: ReadState, pos: int) -> tuple[Descriptor | None, int]:
    """The class descriptor at ``pos`` and the position after it; None for a null descriptor."""
    data, handles = reader.data, reader.handles
    token = data[pos]
    if token == TC_REFERENCE:
        return _referred(reader, pos), pos + 5
    if token != TC_CLASSDESC:
        return _read_chain(reader, pos)
    key = (len(handles), data[pos + 1 : pos + 11 + (data[pos + 1] << 8 | data[pos + 2])])
    hit = reader.cache.entries.get(key)
    if hit is not None and data.startswith(hit.raw, pos):
        handles.extend(hit.handles)
        reader.classes += 1
        return hit.descriptor, pos + len(hit.raw)
    # A descriptor that refers to nothing before itself means the same wherever its first handle is the same.
    reader.lowest = first = len(handles)
    descriptor, end = _read_chain(reader, pos)
    if reader.lowest >= first and isinstance(descriptor, ClassDescriptor):
        reader.cache.add(key, CachedClass(data[pos:end], descriptor, tuple(handles[first:])))
    return descriptor, end


def _referred(reader: ReadState, pos: int) -> Descriptor:
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


def _read_chain(reader: ReadState, pos: int) -> tuple[Descriptor | None, int]:
    """Reads a class and its superclasses in a loop; they are built from the topmost down."""
    parts: list[tuple[int, Any]] = []
    top: Descriptor | None = None
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
        if len(parts) > MAX_HIERARCHY or reader.classes > reader.limits.classes:
            msg = f"more than {MAX_HIERARCHY} superclasses, or {reader.limits.classes} classes in one event"
            raise LimitExceededError(msg)
    if top is not None and parts and len(parts) + len(top.hierarchy) > MAX_HIERARCHY:
        msg = f"more than {MAX_HIERARCHY} superclasses"
        raise LimitExceededError(msg)
    # Superclasses come last in the stream, and are needed first.
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

    def make(above: Descriptor | None) -> ClassDescriptor:
        made = ClassDescriptor(name, uid, flags, tuple(fields), above, notes)
        # Equality ignores annotations, so an annotated class must not stand for another, nor another for it.
        if notes:
            return made
        known = reader.cache.intern(made)
        if known is not made:
            # The signatures are objects of the stream too; those of the known descriptor take their places.
            for at, position in new_types:
                reader.handles[at] = known.fields[position].type
        return known

    return (handle, make), pos


def _read_proxy(reader: ReadState, pos: int) -> tuple[Any, int]:
    data = reader.data
    handle = reader.reserve()
    count = int.from_bytes(data[pos : pos + 4], "big")
    pos += 4
    # Each name takes two bytes at least, so a count beyond that is a lie.
    if count > _INTERFACES_MAX or 2 * count > len(data) - pos:
        msg = f"a proxy of {count} interfaces"
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
    reader.lowest = -1  # contents may refer to anything: such a descriptor is not for the cache
    return reader.read_annotation(pos)


def _utf(data: bytes, pos: int) -> tuple[str, int]:
    end = pos + 2 + (data[pos] << 8 | data[pos + 1])
    raw = data[pos + 2 : end]
    if end > len(data):
        msg = "the bytes end inside a name"
        raise MalformedError(msg)
    return _mutf8.decode(raw), end


def _type_string(reader: ReadState, pos: int, code: str) -> tuple[str, int]:
    """The signature of an object field: a string object of the stream, often a reference to an earlier one."""
    if reader.data[pos] == TC_REFERENCE:
        at = int.from_bytes(reader.data[pos + 1 : pos + 5], "big") - BASE_HANDLE
        text = reader.handles[at] if 0 <= at < len(reader.handles) else None
        reader.lowest = min(reader.lowest, at)
        pos += 5
    else:
        text, pos = read_string(reader.data, pos)
        reader.handles.append(text)
    if not isinstance(text, str) or not text.startswith(code):
        msg = f"{text!r} is not the signature of a field of type {code!r}"
        raise MalformedError(msg)
    return text, pos


def read_string(data: bytes, pos: int) -> tuple[str, int]:
    """The string object at ``pos``, short or long, and the position after it."""
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
    return _mutf8.decode(data[start:end]), end

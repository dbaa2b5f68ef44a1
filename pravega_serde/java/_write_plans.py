"""Class descriptors compiled for writing: their own bytes, and the parts of an object's data."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pravega_serde.errors import SerializationError
from pravega_serde.java import _mutf8
from pravega_serde.java._coerce import is_coerced
from pravega_serde.java._constants import SC_WRITE_METHOD, STRUCT_CODES
from pravega_serde.java._model import ClassDescriptor, ProxyDescriptor

__all__ = ["Part", "class_pieces", "parts_of", "utf"]

_U16: Final = struct.Struct(">H")
_CLASS_HEAD: Final = struct.Struct(">qBH")


class Part(NamedTuple):
    """What one class of a hierarchy adds to an object."""

    owner: ClassDescriptor
    fixed: int
    """How many primitive fields come first."""
    pack: Callable[..., bytes]
    """Makes the bytes of all primitive fields."""
    chars: tuple[int, ...]
    """Which of them are chars."""
    objects: tuple[str, ...]
    """The object fields: the signature of each where it says more than the value's type, else nothing."""
    annotated: bool

    def primitives(self, values: Sequence[Any]) -> bytes:
        """Bytes of the primitive fields; :class:`SerializationError` names the one that cannot hold its value."""
        try:
            if not self.chars:
                return self.pack(*values)
            units = [*values]
            for at in self.chars:
                units[at] = ord(values[at])
            return self.pack(*units)
        except (struct.error, TypeError, OverflowError) as error:
            raise _misfit(self, values) from error


def parts_of(descriptor: ClassDescriptor | ProxyDescriptor) -> tuple[Part, ...]:
    """The parts of objects of a class, topmost class first; made once for each descriptor object."""
    parts: tuple[Part, ...] | None = descriptor.__dict__.get("_parts")
    if parts is None:
        parts = descriptor.__dict__["_parts"] = tuple(map(_part, descriptor.hierarchy))
    return parts


def _part(owner: ClassDescriptor) -> Part:
    fixed = sum(each.primitive for each in owner.fields)
    primitives, objects = owner.fields[:fixed], owner.fields[fixed:]
    if not all(each.primitive for each in primitives):
        raise SerializationError(f"illegal field order in {owner.name}: primitive fields come first")
    layout = struct.Struct(">" + "".join(STRUCT_CODES[each.type] for each in primitives))
    return Part(
        owner,
        fixed,
        layout.pack,
        tuple(at for at, each in enumerate(primitives) if each.type == "C"),
        tuple(each.type if is_coerced(each.type) else "" for each in objects),
        bool(owner.flags & SC_WRITE_METHOD),
    )


def _misfit(part: Part, values: Sequence[Any]) -> SerializationError:
    for each, value in zip(part.owner.fields, values, strict=False):
        try:
            struct.pack(">" + STRUCT_CODES[each.type], ord(value) if each.type == "C" else value)
        except (struct.error, TypeError, OverflowError) as error:
            where = f"field {each.name} of {part.owner.name} is of Java's type {each.type}"
            return SerializationError(f"{where} and cannot hold {value!r}: {error}")
    raise AssertionError(part)


def class_pieces(descriptor: ClassDescriptor) -> tuple[tuple[bytes, str], ...]:
    """A class as it is written: bytes, and the signature (a string object, with a handle) that follows them, if any.

    The end mark is part of it, unless annotations come before that.
    """
    pieces: tuple[tuple[bytes, str], ...] | None = descriptor.__dict__.get("_pieces")
    if pieces is None:
        pieces = descriptor.__dict__["_pieces"] = tuple(_pieces(descriptor))
    return pieces


def _pieces(descriptor: ClassDescriptor) -> list[tuple[bytes, str]]:
    head = _CLASS_HEAD.pack(descriptor.serial_version_uid, descriptor.flags, len(descriptor.fields))
    raw, pieces = b"\x72" + utf(descriptor.name) + head, []
    for each in descriptor.fields:
        raw += each.type[0].encode() + utf(each.name)
        if not each.primitive:
            pieces.append((raw, each.type))
            raw = b""
    return [*pieces, (raw if descriptor.annotations else raw + b"\x78", "")]


def utf(text: str) -> bytes:
    """Modified UTF-8 with its length before it."""
    raw = _mutf8.encode(text)
    return _U16.pack(len(raw)) + raw

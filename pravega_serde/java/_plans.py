"""Class descriptors compiled for reading: which bytes, how many values, whose annotations."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pravega_serde.java._constants import SC_BLOCK_DATA, SC_SERIALIZABLE, SC_WRITE_METHOD, STRUCT_CODES
from pravega_serde.java._limits import CACHED_CLASSES, CACHED_DESCRIPTOR_BYTES, CACHED_FIELDS
from pravega_serde.java._model import ClassDescriptor, ProxyDescriptor

__all__ = ["Codec", "DescriptorCache", "Layouts", "MalformedError", "Plan", "Step", "compile_plan", "special_plan"]


class MalformedError(ValueError):
    """Bytes or values that cannot be; the reader adds position and path."""


class Step(NamedTuple):
    """A part of an object's data: the fields of one class, or one class's annotations."""

    annotated: bool
    unpack: Callable[[bytes, int], tuple[Any, ...]] | None
    size: int
    chars: tuple[int, ...]
    """Which of the unpacked values are chars."""
    objects: int
    """How many object fields follow the primitive ones."""
    telling: bool = False
    """Whether block data here says that a ``writeObject`` did not write the fields: they would begin with an object."""
    ahead: int = 0
    """Contents that a ``writeObject`` writes before the fields."""
    absent: int = 0
    """Fields that a ``writeObject`` does not write at all."""


class Codec(NamedTuple):
    """How objects of one JDK class become a natural Python value."""

    read: Callable[[Any, list[Any], list[tuple[Any, ...]], Any], Any]
    """(shell, field values, annotations of each class, reader) -> value, or NotImplemented: keep it as a record."""
    shell: Callable[[Any, list[Any]], Any] | None = None
    """(class, its leading primitive fields) -> the empty value, if others may refer to it before it is complete."""
    any_form: bool = False
    """Takes descriptors that differ from JDK 17's: the value keeps its own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to read an object of one class."""

    descriptor: ClassDescriptor | ProxyDescriptor
    steps: tuple[Step, ...]
    codec: Codec | None
    flat: bool
    """The object has no annotations: fields only."""
    doubtful: tuple[str, ...] = ()
    """Classes whose ``writeObject`` may not begin with ``defaultWriteObject``: the stream does not say."""


def _field_step(owner: ClassDescriptor) -> Step:
    primitives = [each for each in owner.fields if each.primitive]
    if any(not each.primitive for each in owner.fields[: len(primitives)]):
        msg = f"illegal field order in {owner.name}: primitive fields come first"
        raise MalformedError(msg)
    layout = struct.Struct(">" + "".join(STRUCT_CODES[each.type] for each in primitives))
    chars = tuple(at for at, each in enumerate(primitives) if each.type == "C")
    return Step(
        False,
        layout.unpack_from if primitives else None,
        layout.size,
        chars,
        len(owner.fields) - len(primitives),
        telling=bool(owner.flags & SC_WRITE_METHOD) and not primitives,
    )


_ANNOTATION = Step(True, None, 0, (), 0)


#: Class name -> how many contents its ``writeObject`` writes before ``defaultWriteObject``; None: it never calls it.
Layouts = Mapping[str, int | None]
_USUAL: Final[Layouts] = {}


def _steps(descriptor: ClassDescriptor | ProxyDescriptor, layouts: Layouts) -> tuple[Step, ...]:
    if descriptor.is_external:
        if not descriptor.flags & SC_BLOCK_DATA:
            msg = f"{descriptor.name} writes itself in stream protocol version 1, which nothing but the class can read"
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
            steps.append(Step(False, None, 0, (), 0, ahead=ahead))
        if owner.fields:
            steps.append(_field_step(owner))
        if annotated:
            steps.append(_ANNOTATION)
    return tuple(steps)


def special_plan(plan: Plan, layouts: Layouts) -> Plan:
    """The plan of a class without a natural form, some of whose classes write themselves in an order of their own."""
    return dataclasses.replace(plan, steps=_steps(plan.descriptor, layouts))


def compile_plan(
    descriptor: ClassDescriptor | ProxyDescriptor, codecs: Callable[[ClassDescriptor], Codec | None]
) -> Plan:
    """The plan of a class, made once for each descriptor object."""
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


class CachedClass(NamedTuple):
    """A class descriptor as it stood in a stream, with the handles that it took there."""

    raw: bytes
    descriptor: ClassDescriptor
    handles: tuple[Any, ...]


class DescriptorCache:
    """Class descriptors by their bytes: every event repeats them, and only the first is parsed.

    The bytes refer to each other by handle numbers, so a descriptor is known by its bytes *and* by the number of its
    first handle. Safe to use from several threads: it is a cache, entries are whole, and losing one costs a parse.
    """

    __slots__ = ("_known", "entries")

    def __init__(self) -> None:
        self.entries: dict[tuple[int, bytes], CachedClass] = {}
        self._known: dict[ClassDescriptor, ClassDescriptor] = {}

    def intern(self, descriptor: ClassDescriptor) -> ClassDescriptor:
        """The descriptor of that class that was seen first, which has its plan already."""
        known = self._known.get(descriptor)
        if known is None:
            if len(self._known) >= CACHED_CLASSES:
                self._known = {}
            if len(descriptor.fields) <= CACHED_FIELDS:
                self._known[descriptor] = descriptor
            return descriptor
        return known

    def add(self, key: tuple[int, bytes], entry: CachedClass) -> None:
        """Keep an entry; a full cache is emptied first, so that hostile events cannot make it grow."""
        if len(entry.raw) <= CACHED_DESCRIPTOR_BYTES:
            if len(self.entries) >= CACHED_CLASSES:
                self.entries = {}
            self.entries[key] = entry

"""Forms of classes: fields, items and constants in the terms that Avro and Protobuf share, with the names of records.

``avro_schemas`` and ``protobuf_schemas`` write a form as a schema. A type that events cannot have raises
:class:`SchemaError` with the path of its field.
"""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec
import pyarrow as pa

from pravega_serde.adapters.classes import (
    SCALARS,
    Member,
    class_of,
    is_enum,
    members_of,
    name_of,
    root_of,
    struct_config,
    unwrapped,
    written_members,
)
from pravega_serde.adapters.defaults import MISSING, defaults_of, optional_keys
from pravega_serde.adapters.plain import NATURAL, plain, tags_of
from pravega_serde.errors import SchemaError

#: Maximum depth of types inside types. A type alias that contains itself would have no end.
_MAX_DEPTH: Final = 64


@dataclass(slots=True, eq=False)
class Scalar:
    """Single value of one of Python's types."""

    kind: type


@dataclass(slots=True, eq=False)
class Constants:
    """Constants of an enum."""

    kind: type[enum.Enum]
    name: str


@dataclass(slots=True, eq=False)
class Items:
    """List, set or tuple."""

    item: Slot


@dataclass(slots=True, eq=False)
class Entries:
    """Mapping."""

    key: Scalar | Constants
    value: Slot


@dataclass(slots=True, eq=False)
class Field:
    """Field of a record."""

    name: str
    slot: Slot
    default: Any
    """Plain value; MISSING if there is none, or if a function creates it."""
    has_default: bool
    may_be_absent: bool
    """True for a key that a TypedDict need not have, and for a value that may be UNSET: null in events."""


@dataclass(slots=True, eq=False)
class Record:
    """Class with fields. They are set after its creation, because a field may contain the class itself."""

    kind: Any
    name: str
    path: str
    fields: tuple[Field, ...] = field(default=(), repr=False)


Form = Scalar | Constants | Items | Entries | Record


@dataclass(slots=True, eq=False)
class Slot:
    """Place of a value: the types that it may have."""

    branches: tuple[Form, ...]
    nullable: bool
    path: str
    tag: str = ""
    """For several records: the field that tells them apart."""
    tagged: Mapping[Any, Record] = field(default_factory=dict)
    """Value of that field -> record."""


def form_of(kind: Any, name: str | None) -> tuple[Slot, str]:
    """Return the form of a type, and the namespace of its records. Raises :class:`SchemaError`.

    ``name`` is the name of the class, after its namespace. For a type without a name, only the namespace is used.
    """
    space, _, last = (name or "").rpartition(".")
    options, _ = options_of(kind)
    named = len(options) == 1 and (members_of(options[0]) is not None or is_enum(options[0]))
    return _Forms(last if named else "").slot(kind, "$"), space


def records_in(slot: Slot) -> Iterator[Record | Constants]:
    """Yield the records and enums of a form, each once."""
    seen: set[int] = set()
    waiting: list[Slot] = [slot]
    while waiting:
        for form in waiting.pop(0).branches:
            if isinstance(form, Items):
                waiting.append(form.item)
            elif isinstance(form, Entries):
                waiting.append(form.value)
            elif not isinstance(form, Scalar) and id(form) not in seen:
                seen.add(id(form))
                yield form
                waiting += [each.slot for each in form.fields] if isinstance(form, Record) else []


def checked_columns(
    derive: Callable[[pa.Schema, str], Any], names: Iterable[str], kinds: Iterable[pa.DataType], name: str, path: str
) -> Any:
    """Return the schema that ``derive`` returns for columns that cannot be null. Its errors get the path of a class."""
    columns = [pa.field(*each, nullable=False) for each in zip(names, kinds, strict=True)]
    try:
        return derive(pa.schema(columns), name)
    except SchemaError as error:
        raise SchemaError(error.message.replace("(at $", f"(at {path}", 1)) from error


class _Forms:
    def __init__(self, name: str) -> None:
        self._top_name = name
        self._names: set[str] = {name} if name else set()
        self._known: list[tuple[Any, Record | Constants]] = []
        self._depth = 0

    def slot(self, kind: Any, path: str) -> Slot:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise SchemaError(f"the type at {path} is nested more than {_MAX_DEPTH} levels deep")
        options, nullable = options_of(kind)
        branches = tuple(self._form(option, path) for option in options)
        made = Slot(branches, nullable, path)
        if len(branches) > 1:
            _check_union(kind, made)
        self._depth -= 1
        return made

    def _form(self, kind: Any, path: str) -> Form:
        for known, form in self._known:
            if known == kind:
                return form
        if members_of(kind) is not None:
            return self._record(kind, path)
        origin = typing.get_origin(kind)
        if isinstance(origin, type):
            return self._container(kind, origin, path)
        if is_enum(kind):
            if not kind.__members__:
                raise SchemaError(f"{name_of(kind)} (at {path}) has no constants")
            constants = Constants(kind, self._name(kind))
            self._known.append((kind, constants))
            return constants
        if isinstance(kind, typing.TypeVar):
            raise SchemaError(f"the type {kind} (at {path}) is open; pass it to the generic class, such as Box[int]")
        if kind not in SCALARS:
            raise _no_form(kind, path)
        return Scalar(kind)

    def _record(self, kind: Any, path: str) -> Record:
        config = struct_config(kind)
        if config is not None and config.array_like:
            raise SchemaError(
                f"{name_of(kind)} (at {path}) is array_like, but records have names of fields; remove array_like"
            )
        record = Record(kind, self._name(kind), path)
        self._known.append((kind, record))
        made = []
        if config is not None and config.tag is not None:
            slot = Slot((Scalar(type(config.tag)),), nullable=False, path=path)
            made.append(Field(config.tag_field, slot, config.tag, True, False))
        defaults, optional = defaults_of(kind), optional_keys(kind)
        for member in written_members(kind):
            inner = f"{path}.{member.name}"
            slot = self.slot(member.type, inner)
            absent = member.name in optional or msgspec.UnsetType in typing.get_args(unwrapped(member.type))
            if absent and slot.nullable:
                raise SchemaError(f"the value at {inner} may be absent and None, which are one null; remove None")
            made.append(_field(member, slot, defaults, absent=absent))
        record.fields = tuple(made)
        return record

    def _container(self, kind: Any, origin: type, path: str) -> Form:
        arguments = [each for each in typing.get_args(kind) if each is not Ellipsis]
        if issubclass(origin, Mapping) and len(arguments) == 2:
            key = self.slot(arguments[0], f"{path}{{}}")
            if key.nullable or len(key.branches) != 1 or not isinstance(key.branches[0], Scalar | Constants):
                raise SchemaError(f"{name_of(kind)} (at {path}) has no text as its key; use a list of objects")
            return Entries(key.branches[0], self.slot(arguments[1], f"{path}{{}}"))
        if issubclass(origin, tuple) and arguments:
            return Items(self.slot(typing.Union[tuple(arguments)], f"{path}[]"))  # noqa: UP007 -- a variable number
        if issubclass(origin, Iterable) and len(arguments) == 1:
            return Items(self.slot(arguments[0], f"{path}[]"))
        raise _no_form(kind, path)

    def _name(self, kind: Any) -> str:
        """Return a name: of the whole schema for the first, or of the class, with as many parts as make it unique."""
        if self._top_name and not self._known:
            return self._top_name
        origin = class_of(kind)
        parts = [*origin.__module__.split("."), *origin.__qualname__.replace(".<locals>", "").split(".")]
        arguments = [name_of(unwrapped(each)) for each in typing.get_args(kind)]
        for count in range(1, len(parts) + 1):
            name = re.sub(r"\W+", "_", "_".join([*parts[-count:], *arguments])).strip("_")
            if name not in self._names:
                self._names.add(name)
                return name
        raise SchemaError(f"several classes are called {name_of(kind)}; rename one")


def _field(member: Member, slot: Slot, defaults: Mapping[str, Any], *, absent: bool) -> Field:
    value = defaults.get(member.attribute, MISSING)
    if absent:
        slot.nullable = True
        return Field(member.name, slot, None, has_default=True, may_be_absent=True)
    if value is not MISSING:
        if isinstance(value, Set):
            value = sorted(value, key=repr)  # the same schema in each process
        given = value
        try:
            value = plain(given, (*NATURAL, timedelta))
            matches = (value is None and slot.nullable) or form_for(slot.branches, value) is not None
        except (TypeError, ValueError, RecursionError):  # an object that events do not have, or a list in itself
            matches = False
        if not matches:
            shown = repr(given)[:60]
            raise SchemaError(f"the default {shown} at {slot.path} does not fit its type; correct one of them")
    return Field(member.name, slot, value, has_default=member.attribute in defaults, may_be_absent=False)


def _no_form(kind: Any, path: str) -> SchemaError:
    return SchemaError(f"{name_of(kind)} (at {path}) has no type in a schema; declare one that has, or omit the field")


def options_of(kind: Any) -> tuple[list[Any], bool]:
    """Return the types of a union and of literals, each once, and True if None is among them."""
    options: list[Any] = []
    nullable = False
    for one in alternatives_of(kind):
        for each in map(type, typing.get_args(one)) if typing.get_origin(one) is typing.Literal else [one]:
            if each is type(None):
                nullable = True
            elif each not in options:
                options.append(each)
    return options, nullable


def alternatives_of(kind: Any) -> list[Any]:
    """Return the types of a union, each once, without UnsetType. A Literal is one of them."""
    found: list[Any] = []
    waiting = [kind]
    while waiting:
        one = root_of(unwrapped(waiting.pop(0)))
        if typing.get_origin(one) in (typing.Union, types.UnionType):
            waiting = [*typing.get_args(one), *waiting]
        elif one is not msgspec.UnsetType:
            one = type(None) if one is None else one
            found += [] if one in found else [one]
    return found


# ---- unions ----

#: Types whose values are text in some format.
_TEXTS: Final = (str, UUID, timedelta)


def _check_union(kind: Any, slot: Slot) -> None:
    """Raise SchemaError for types whose values a reader cannot tell apart. Find the tag of several records."""
    records = [form for form in slot.branches if isinstance(form, Record)]
    groups = (
        [form for form in slot.branches if isinstance(form, Constants) or getattr(form, "kind", None) in _TEXTS],
        [form for form in slot.branches if isinstance(form, Items)],
        [form for form in slot.branches if isinstance(form, Entries)] + records[:1],
    )
    if any(len(group) > 1 for group in groups):
        raise SchemaError(f"{name_of(kind)} (at {slot.path}) has types that events cannot tell apart; use one of them")
    if len(records) < 2:
        return
    tags = [tags_of(record.kind) for record in records]
    for name in tags[0]:
        values = [each.get(name, ()) for each in tags]
        if all(values) and len({value for each in values for value in each}) == sum(map(len, values)):
            slot.tag = name
            slot.tagged = {value: record for record, each in zip(records, values, strict=True) for value in each}
            return
    raise SchemaError(
        f"the classes of {name_of(kind)} (at {slot.path}) have no field that tells them apart; set tag=True in "
        "Structs, or add a Literal to each class"
    )


def form_for(branches: Iterable[Form], value: Any) -> Form | None:
    """Return the form of a plain value in a union. Its exact type comes before a wider one, as float is for an int."""
    wider = None
    for form in branches:
        if fits(form, value):
            if type(value) is not int or not isinstance(form, Scalar) or form.kind is int:
                return form
            wider = wider or form
    return wider


def fits(form: Form, value: Any) -> bool:
    """Return True if a plain value can be one of a form."""
    if isinstance(form, Items):
        return isinstance(value, list | tuple)
    if isinstance(form, Entries | Record):
        return isinstance(value, Mapping)
    if isinstance(form, Constants):
        return isinstance(value, str) and value in form.kind.__members__
    if form.kind in (str, UUID) or (form.kind is timedelta and isinstance(value, str)):
        return isinstance(value, str)
    return type(value) is form.kind or (form.kind in (float, Decimal) and type(value) is int)

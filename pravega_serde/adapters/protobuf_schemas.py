"""Protobuf messages of classes.

A class is a message inside the message of the whole class, so that one name finds all of them. Protobuf has no lists in
lists, no null in lists, and no lists that are null: a message with the field ``value`` is around them. A union is a
message with a oneof.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from pravega_serde.adapters.classes import SCALARS, name_of
from pravega_serde.adapters.conversion import conversion_of
from pravega_serde.adapters.forms import (
    Constants,
    Entries,
    Items,
    Record,
    Scalar,
    Slot,
    checked_columns,
    form_of,
    records_in,
)
from pravega_serde.adapters.shapes import Wrap, inside, member_name, only_form, wrap_of, wrap_of_event
from pravega_serde.errors import SchemaError

#: Derives the descriptor set of columns.
Derive = Callable[[pa.Schema, str], FileDescriptorSet]

_F = FieldDescriptorProto
_KEYS: Final = (str, int, bool)


def protobuf_files(kind: Any, name: str | None, derive: Derive) -> FileDescriptorSet:
    """Return the descriptor set of a class. ``derive`` returns the one of columns.

    Raises :class:`SchemaError`, with the path of the field.
    """
    slot, package = form_of(kind, name)
    conversion_of(kind)  # raises SchemaError for a class whose objects cannot be read
    form = only_form(slot)
    last = form.name if isinstance(form, Record) and wrap_of_event(slot) is None else (name or "").rpartition(".")[2]
    if not last:
        raise SchemaError(f"{name_of(kind)} has no name; pass the name of its message")
    writer = _Writer(f"{package}.{last}" if package else last, slot, derive)
    message = writer.top(last)
    file = FileDescriptorProto(
        name=f"{writer.name.replace('.', '/')}.proto",
        syntax="proto3",
        package=package,
        message_type=[message],
        dependency=sorted(writer.imports),
    )
    if not package:
        file.ClearField("package")
    return FileDescriptorSet(file=[file])


class _Scope:
    """Message that is being built, its full name, and the names in it."""

    def __init__(self, message: DescriptorProto, full_name: str, taken: set[str]) -> None:
        self.message, self.full_name, self.taken = message, full_name, taken

    def inner(self, name: str) -> _Scope:
        """Return a new message inside the message."""
        chosen = self.free(name)
        return _Scope(self.message.nested_type.add(name=chosen), f"{self.full_name}.{chosen}", set())

    def free(self, name: str) -> str:
        while name in self.taken:
            name += "Message"
        self.taken.add(name)
        return name


class _Writer:
    def __init__(self, name: str, slot: Slot, derive: Derive) -> None:
        self.name, self._slot, self._derive = name, slot, derive
        self.imports: set[str] = set()
        self._type_names: dict[int, str] = {}
        self._scalars: dict[type, _F] = {}

    def top(self, name: str) -> DescriptorProto:
        """Return the message of the whole class, with the messages of all classes in it."""
        message = DescriptorProto(name=name)
        self._columns([], [], self.name, "$")  # checks the name
        form, wrap = only_form(self._slot), wrap_of_event(self._slot)
        fields = ["value", *map(member_name, self._slot.branches)]
        if isinstance(form, Record) and wrap is None:
            fields = [each.name for each in form.fields]
        scope = _Scope(message, f".{self.name}", {*fields, *map(_entry, fields)})
        if wrap is None:
            self._type_names[id(form)] = scope.full_name
        messages: list[tuple[Record, _Scope]] = []
        for each in records_in(self._slot):
            if isinstance(each, Constants):
                self._enum(scope, each)
                continue
            inner = scope if id(each) in self._type_names else scope.inner(each.name)
            self._type_names[id(each)] = inner.full_name
            messages.append((each, inner))
        for record, own in messages:
            self._record(own, record)
        if wrap is not None:
            self._wrapped(scope, self._slot, wrap, item=True)
        return message

    def _columns(self, names: list[str], kinds: list[pa.DataType], name: str, path: str) -> FileDescriptorProto:
        file: FileDescriptorProto = checked_columns(self._derive, names, kinds, name, path).file[0]
        return file

    def _record(self, scope: _Scope, record: Record) -> None:
        names = [each.name for each in record.fields]
        self._columns(names, [pa.bool_()] * len(names), record.name, record.path)  # checks the names
        scope.taken |= {*names, *map(_entry, names)}
        for number, each in enumerate(record.fields, 1):
            made = scope.message.field.add(name=each.name, number=number, label=_F.LABEL_OPTIONAL)
            self._field(scope, made, each.slot, item=False)
            _set_optional(made, optional=each.slot.nullable or each.has_default)
        _add_oneofs(scope.message)

    def _field(self, scope: _Scope, made: _F, slot: Slot, *, item: bool) -> None:
        """Set the type of a field, and for a list or map that it is repeated."""
        if not slot.branches:
            raise SchemaError(f"the value at {slot.path} is always None, which Protobuf does not have; omit the field")
        wrap = wrap_of(slot, item=item)
        if wrap is not None:
            inner = scope.inner(_camel(made.name))
            self._wrapped(inner, slot, wrap, item=item)
            made.type, made.type_name = _F.TYPE_MESSAGE, inner.full_name
            return
        form = slot.branches[0]
        if isinstance(form, Items):
            self._field(scope, made, form.item, item=True)
            made.label = _F.LABEL_REPEATED
        elif isinstance(form, Entries):
            made.label, made.type, made.type_name = _F.LABEL_REPEATED, _F.TYPE_MESSAGE, self._map(scope, made, form)
        elif isinstance(form, Scalar):
            self._scalar(made, form.kind)
        else:
            made.type = _F.TYPE_ENUM if isinstance(form, Constants) else _F.TYPE_MESSAGE
            made.type_name = self._type_names[id(form)]

    def _wrapped(self, scope: _Scope, slot: Slot, wrap: Wrap, *, item: bool) -> None:
        message = scope.message
        if wrap == "value":
            scope.taken |= {"value", "ValueEntry"}
            made = message.field.add(name="value", number=1, label=_F.LABEL_OPTIONAL)
            self._field(scope, made, inside(slot, item=item), item=False)
            _set_optional(made, optional=slot.nullable)
            _add_oneofs(message)
            return
        names = [member_name(form) for form in slot.branches]
        self._columns(names, [pa.bool_()] * len(names), "Union", slot.path)
        scope.taken |= {"one_of", *names}
        message.oneof_decl.add(name="one_of")
        for number, (name, form) in enumerate(zip(names, slot.branches, strict=True), 1):
            made = message.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL, oneof_index=0)
            self._field(scope, made, Slot((form,), nullable=False, path=slot.path), item=True)

    def _map(self, scope: _Scope, made: _F, form: Entries) -> str:
        """Add the message of a map's entries, which the rules of Protobuf name."""
        entry = scope.message.nested_type.add(name=_entry(made.name))
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL)
        kind = form.key.kind if isinstance(form.key, Scalar) else str
        self._scalar(key, kind)
        if kind not in _KEYS and key.type != _F.TYPE_STRING:
            raise SchemaError(
                f"the keys at {form.value.path} are of the type {name_of(kind)}, but Protobuf's are text, integers or "
                "booleans; use one of them"
            )
        value = entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL)
        # A message around the value is not in the entry, which has only two fields.
        value.name = f"{made.name}_value"
        self._field(scope, value, form.value, item=True)
        value.name = "value"
        return f"{scope.full_name}.{entry.name}"

    def _scalar(self, made: _F, kind: type) -> None:
        if kind not in self._scalars:
            file = self._columns(["value"], [SCALARS[kind]], "Value", "$")
            self.imports.update(file.dependency)
            self._scalars[kind] = file.message_type[0].field[0]
        known = self._scalars[kind]
        made.type, made.type_name = known.type, known.type_name
        if not known.type_name:
            made.ClearField("type_name")
        if known.HasField("options"):
            made.options.CopyFrom(known.options)

    def _enum(self, scope: _Scope, form: Constants) -> None:
        """Add an enum. Its constants are names of the message around it, which another enum may have taken."""
        constants = [constant.name for constant in form.kind]
        self._columns(constants, [pa.bool_()] * len(constants), form.name, "$")  # checks the names
        if scope.taken & {*constants, form.name}:
            scope = scope.inner(form.name)
            made = scope.message.enum_type.add(name="Value")
        else:
            made = scope.message.enum_type.add(name=form.name)
        scope.taken |= {*constants, made.name}
        _fill_enum(made, form.kind)
        self._type_names[id(form)] = f"{scope.full_name}.{made.name}"


def _fill_enum(made: EnumDescriptorProto, kind: type[enum.Enum]) -> None:
    """Add the constants, with their own numbers if these are possible. The first one has the number 0."""
    numbers = {constant.name: constant.value for constant in kind}
    own = all(type(number) is int and -(1 << 31) <= number < 1 << 31 for number in numbers.values())
    if not own or 0 not in numbers.values():
        numbers = {name: position for position, name in enumerate(numbers)}
    for name, number in sorted(numbers.items(), key=lambda each: each[1] != 0):
        made.value.add(name=name, number=number)


def _set_optional(made: _F, *, optional: bool) -> None:
    if optional and made.label != _F.LABEL_REPEATED and made.type != _F.TYPE_MESSAGE:
        made.proto3_optional = True


def _add_oneofs(message: DescriptorProto) -> None:
    """Add the oneofs for optional fields, which come after all others."""
    for made in message.field:
        if made.proto3_optional:
            made.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{made.name}")


def _entry(field: str) -> str:
    return f"{_camel(field)}Entry"


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))

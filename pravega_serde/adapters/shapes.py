"""Conversion of plain values to the shape that Avro or Protobuf requires, and back.

A union of several records has the name of the record in Avro, and a message around it in Protobuf. Protobuf also has
messages around lists in lists, and around lists that can be None. Most classes need no conversion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

from pravega_serde.adapters.classes import struct_config
from pravega_serde.adapters.defaults import MISSING
from pravega_serde.adapters.forms import Constants, Entries, Field, Form, Items, Record, Scalar, Slot, form_for, form_of
from pravega_serde.adapters.plain import NATURAL, plain
from pravega_serde.errors import SchemaError

Convert = Callable[[Any], Any]


class Both(NamedTuple):
    """Conversion of a value that is written, and of one that was read."""

    out: Convert
    back: Convert


def _itself(value: Any) -> Any:
    return value


SAME: Final = Both(_itself, _itself)


def avro_shape(kind: Any, schema: str) -> Both:
    """Return the conversion between plain values of a class and values of an Avro serializer with a schema."""
    definition = json.loads(schema)
    name = definition.get("name") if isinstance(definition, Mapping) else None
    return _made(kind, name, _Avro(), None)


def protobuf_shape(kind: Any, message: Any) -> Both:
    """Return the conversion between plain values of a class and those of messages with a descriptor."""
    return _made(kind, message.full_name, _Protobuf(), message)


def _made(kind: Any, name: str | None, shapes: _Avro | _Protobuf, message: Any) -> Both:
    try:
        slot, _ = form_of(kind, name)
    except SchemaError:  # a class of a schema that was not derived from it, such as one with a field of any type
        return SAME
    made = shapes.top(slot, message)
    return made if shapes.needed else SAME


class _Shapes:
    """Compiler of conversions. ``needed`` is True if one of them changes a value."""

    def __init__(self) -> None:
        self.needed = False
        self._known: dict[Hashable, list[Both]] = {}

    def _record(self, key: Hashable, compile_fields: Callable[[], Both]) -> Both:
        """Return the conversion of a record, which may be inside itself."""
        if key not in self._known:
            made: list[Both] = []
            self._known[key] = made
            made.append(compile_fields())
            return made[0]
        made = self._known[key]
        if made:
            return made[0]
        return Both(lambda value: made[0].out(value), lambda value: made[0].back(value))

    def _fields(self, record: Record, fields: list[tuple[Field, Both, bool]], natural: tuple[type, ...]) -> Both:
        """Return the conversion of a record's fields: with all defaults, and if so marked, without None."""
        config = struct_config(record.kind)
        missing = {}
        if config is not None and config.omit_defaults:
            known = [(each.name, each.default) for each, _, _ in fields if not each.may_be_absent]
            missing = {name: plain(value, natural) for name, value in known if value is not MISSING}
        skipped = frozenset(each.name for each, _, skips in fields if skips)
        changed = [(each.name, both) for each, both, _ in fields if both is not SAME]
        if not changed and not missing and not skipped:
            return SAME
        self.needed |= bool(missing or skipped)

        def out(value: Any) -> Any:
            if not isinstance(value, Mapping):
                return value
            made = {**missing, **value}
            for name, both in changed:
                if name in made:
                    made[name] = both.out(made[name])
            return made

        def back(value: Any) -> Any:
            if not isinstance(value, Mapping):
                return value
            made = {name: each for name, each in value.items() if each is not None or name not in skipped}
            for name, both in changed:
                if name in made:
                    made[name] = both.back(made[name])
            return made

        return Both(out, back)


def _items(item: Both) -> Both:
    def of_items(convert: Convert) -> Convert:
        return lambda value: [convert(each) for each in value] if isinstance(value, list | tuple) else value

    return SAME if item is SAME else Both(*map(of_items, item))


def _entries(value: Both) -> Both:
    def of_values(convert: Convert) -> Convert:
        return lambda value: {k: convert(v) for k, v in value.items()} if isinstance(value, Mapping) else value

    return SAME if value is SAME else Both(*map(of_values, value))


def _chosen(slot: Slot, shapes: list[tuple[Form, Both]], value: Any) -> tuple[Form | None, Both]:
    """Return the form of a plain value in a union, and its conversion."""
    if isinstance(value, Mapping) and slot.tagged:
        chosen: Form | None = slot.tagged.get(value.get(slot.tag))
    else:
        chosen = form_for(slot.branches, value)
    return next(((form, both) for form, both in shapes if form is chosen), (None, SAME))


# ---- Avro ----


class _Avro(_Shapes):
    def top(self, slot: Slot, _message: Any) -> Both:
        return self._slot(slot)

    def _slot(self, slot: Slot) -> Both:
        shapes = [(form, self._form(form)) for form in slot.branches]
        if len(shapes) == 1:
            return shapes[0][1]
        has_lists = any(isinstance(form, Items) for form in slot.branches)
        if not slot.tagged and not has_lists and all(both is SAME for _, both in shapes):
            return SAME
        self.needed |= bool(slot.tagged) or has_lists

        def out(value: Any) -> Any:
            if isinstance(value, tuple):
                value = [*value]  # a tuple would be the name of a branch and its value
            form, both = _chosen(slot, shapes, value)
            made = both.out(value)
            return (form.name, made) if slot.tagged and isinstance(form, Record) else made

        def back(value: Any) -> Any:
            if isinstance(value, tuple):
                _, value = value
            return _chosen(slot, shapes, value)[1].back(value)

        return Both(out, back)

    def _form(self, form: Form) -> Both:
        if isinstance(form, Items):
            return _items(self._slot(form.item))
        if isinstance(form, Entries):
            return _entries(self._slot(form.value))
        if not isinstance(form, Record):
            return SAME

        def compile_fields() -> Both:
            fields = [(each, self._slot(each.slot), each.may_be_absent) for each in form.fields]
            return self._fields(form, fields, NATURAL)

        return self._record(id(form), compile_fields)


# ---- Protobuf ----

#: Message around a value: with a oneof, or with the field ``value``.
Wrap = Literal["oneof", "value"]


def only_form(slot: Slot) -> Form | None:
    """Return the form of a place that is no union."""
    return slot.branches[0] if len(slot.branches) == 1 else None


def wrap_of(slot: Slot, *, item: bool) -> Wrap | None:
    """Return the message that a field's value needs around it, or for ``item`` a value in a list, map or oneof."""
    if len(slot.branches) != 1:
        return "oneof"
    if isinstance(slot.branches[0], Items | Entries):
        return "value" if item or slot.nullable else None
    return "value" if item and slot.nullable else None


def wrap_of_event(slot: Slot) -> Wrap | None:
    """Return the message that a value which is an event needs around it: each, except a class."""
    return None if isinstance(only_form(slot), Record) and not slot.nullable else wrap_of(slot, item=True) or "value"


def inside(slot: Slot, *, item: bool) -> Slot:
    """Return the place of the field ``value`` in the message around a value."""
    return slot if item else Slot(slot.branches, nullable=False, path=slot.path, tag=slot.tag, tagged=slot.tagged)


def member_name(form: Form) -> str:
    """Return the name of a oneof's member."""
    if isinstance(form, Record | Constants):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", form.name).lower()
    if isinstance(form, Scalar):
        return f"{form.kind.__name__.lower()}_value"
    return "list_value" if isinstance(form, Items) else "map_value"


class _Protobuf(_Shapes):
    def top(self, slot: Slot, message: Any) -> Both:
        return self._message(slot, message, wrap_of_event(slot), item=True)

    def _field(self, slot: Slot, field: Any, *, item: bool) -> Both:
        """Return the conversion of a field's values, or for ``item`` of the values in a list or map."""
        message, form = field.message_type, only_form(slot)
        if message is None:
            return SAME
        if item or not field.is_repeated:
            return self._message(slot, message, wrap_of(slot, item=item), item=item)
        if isinstance(form, Entries) and message.GetOptions().map_entry:
            return _entries(self._field(form.value, message.fields_by_name["value"], item=True))
        return _items(self._field(form.item, field, item=True)) if isinstance(form, Items) else SAME

    def _message(self, slot: Slot, message: Any, wrap: Wrap | None, *, item: bool) -> Both:
        if message.full_name.startswith("google."):
            return SAME  # such as Int64Value, whose values can be None in a list
        if wrap == "oneof":
            return self._oneof(slot, message, item=item)
        if wrap == "value" and [*message.fields_by_name] == ["value"]:
            return self._wrapped(slot, message, item=item)
        form = only_form(slot)
        if not isinstance(form, Record):
            return SAME

        def compile_fields() -> Both:
            known = message.fields_by_name
            fields = [(each, known[each.name]) for each in form.fields if each.name in known]
            return self._fields(
                form,
                [(each, self._field(each.slot, field, item=False), _skips(each, field)) for each, field in fields],
                (*NATURAL, timedelta),
            )

        return self._record((id(form), message.full_name), compile_fields)

    def _wrapped(self, slot: Slot, message: Any, *, item: bool) -> Both:
        self.needed = True
        inner = self._field(inside(slot, item=item), message.fields_by_name["value"], item=False)

        def out(value: Any) -> Any:
            return None if value is None and not item else {"value": inner.out(value)}

        def back(value: Any) -> Any:
            return inner.back(value["value"]) if isinstance(value, Mapping) else value

        return Both(out, back)

    def _oneof(self, slot: Slot, message: Any, *, item: bool) -> Both:
        known = message.fields_by_name
        names = [member_name(form) for form in slot.branches]
        if sorted(names) != sorted(known):
            return SAME
        self.needed = True
        members = [Slot((form,), nullable=False, path=slot.path) for form in slot.branches]
        shapes = [
            (each.branches[0], self._field(each, known[name], item=True))
            for each, name in zip(members, names, strict=True)
        ]
        backs = {name: both.back for name, (_, both) in zip(names, shapes, strict=True)}

        def out(value: Any) -> Any:
            form, both = _chosen(slot, shapes, value)
            if form is None:
                return {} if value is None and item else value
            return {member_name(form): both.out(value)}

        def back(value: Any) -> Any:
            if not isinstance(value, Mapping):
                return value
            return next((backs[name](each) for name, each in value.items() if each is not None), None)

        return Both(out, back)


def _skips(entry: Field, field: Any) -> bool:
    """Return True if an absent field has the default of the class, or is absent there."""
    return entry.may_be_absent or bool(entry.has_default and not entry.slot.nullable and field.has_presence)

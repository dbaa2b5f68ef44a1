"""From a mapping to a message, by closures made from the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from pravega_serde.columnar import MalformedError
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan
from pravega_serde.protobuf._plan import plan as plan_of
from pravega_serde.protobuf._schema import descriptor_of, same_type
from pravega_serde.protobuf._stable import StableBytes
from pravega_serde.protobuf._write_values import Convert, converter, from_duration, from_micros, from_timestamp, wrong

__all__ = ["Fill", "filler"]

#: Puts a value into a message, or into a field of it.
Fill = Callable[[Any, Any], None]


def filler(plan: MessagePlan, *, arrow: bool) -> Fill:
    """What fills messages with natural values, or with those of Arrow columns; it raises :class:`MalformedError`.

    In Arrow columns timestamps and durations are numbers of microseconds, and JSON is text.
    """
    return _Compiler(arrow=arrow).message(plan)


class _Compiler:
    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        self._done: dict[str, Fill] = {}

    def message(self, plan: MessagePlan) -> Fill:
        if plan.name not in self._done:
            # A message inside itself finds its filler when it is first filled.
            self._done[plan.name] = lambda *both: self._done[plan.name](*both)  # noqa: PLW0108 -- it is another one then
            self._done[plan.name] = _or_copied(self._shape(plan))
        return self._done[plan.name]

    def _shape(self, plan: MessagePlan) -> Fill:
        if plan.shape == "json":
            return _parse_text if self._arrow else _parse_value
        if plan.shape == "wrapper":
            convert = converter(plan.fields[0].kind, None)
            return lambda message, value: setattr(message, "value", convert(value))
        if plan.shape != "message":
            return _instant(plan, arrow=self._arrow)
        fields = {field.name: self._field(field) for field in plan.fields}
        oneofs = {field.name: field.oneof for field in plan.fields if field.oneof is not None}
        fill = _fill_fields(plan.name, fields, oneofs)
        return _or_packed(fill) if plan.name == "google.protobuf.Any" else fill

    def _field(self, field: FieldPlan) -> Fill:
        if field.label == "map":
            return self._map(field)
        if field.label == "repeated":
            return self._repeated(field)
        name = field.name
        if field.message is None:
            convert = converter(field.kind, field.enum)
            return lambda message, value: setattr(message, name, convert(value))
        fill = self.message(field.message)

        def fill_message(message: Any, value: Any) -> None:
            inner = getattr(message, name)
            inner.SetInParent()
            fill(inner, value)

        return fill_message

    def _repeated(self, field: FieldPlan) -> Fill:
        name = field.name
        if field.message is None:
            convert = converter(field.kind, field.enum)
            put: Fill = lambda items, value: items.append(convert(value))  # noqa: E731
        else:
            fill = self.message(field.message)
            put = lambda items, value: fill(items.add(), value)  # noqa: E731

        def fill_items(message: Any, values: Any) -> None:
            if not isinstance(values, list | tuple):
                raise wrong("list", values)
            items = getattr(message, name)
            for index, value in enumerate(values):
                try:
                    put(items, value)
                except MalformedError as error:
                    raise error.within(f"[{index}]") from error

        return fill_items

    def _map(self, field: FieldPlan) -> Fill:
        assert field.message is not None
        key, item = field.message.fields
        put = self._entry(converter(key.kind, None), item)
        name = field.name

        def fill_entries(message: Any, values: Any) -> None:
            pairs = values.items() if isinstance(values, Mapping) else values
            if not isinstance(values, Mapping | list):
                raise wrong("mapping", values)
            entries = getattr(message, name)
            for key, value in pairs:
                try:
                    put(entries, (key, value))
                except MalformedError as error:
                    raise error.within(f"[{key!r}]") from error

        return fill_entries

    def _entry(self, convert_key: Convert, item: FieldPlan) -> Fill:
        if item.message is not None:
            fill = self.message(item.message)
            return lambda entries, pair: fill(entries[convert_key(pair[0])], pair[1])
        convert = converter(item.kind, item.enum)

        def put(entries: Any, pair: tuple[Any, Any]) -> None:
            entries[convert_key(pair[0])] = convert(pair[1])

        return put


def _fill_fields(message_name: str, fields: dict[str, Fill], oneofs: dict[str, str]) -> Fill:
    def fill(message: Any, values: Any) -> None:
        if not isinstance(values, Mapping):
            raise wrong(f"message {message_name}", values)
        chosen: dict[str, str] = {}
        for name, value in values.items():
            put = fields.get(name)
            if put is None:
                raise MalformedError(f"{message_name} has no field {name!r}; leave it out or add it to the schema")
            if value is None:
                continue
            oneof = oneofs.get(name)
            if oneof is not None and chosen.setdefault(oneof, name) != name:
                raise MalformedError(f"both {chosen[oneof]} and {name} are set, of which {oneof} allows one")
            try:
                put(message, value)
            except MalformedError as error:
                raise error.within(f".{name}") from error

    return fill


def _or_copied(fill: Fill) -> Fill:
    """Messages of the type itself are taken as they are."""

    def fill_or_copy(message: Any, value: Any) -> None:
        if isinstance(value, Message) and same_type(descriptor_of(value), descriptor_of(message)):
            try:
                message.MergeFromString(value.SerializePartialToString())
            except DecodeError as error:
                raise MalformedError(str(error)) from error
        else:
            fill(message, value)

    return fill_or_copy


def _or_packed(fill: Fill) -> Fill:
    """Any takes every other message, too."""

    def pack(message: Any, value: Any) -> None:
        if isinstance(value, Message):
            message.type_url = f"type.googleapis.com/{descriptor_of(value).full_name}"
            message.value = _stable(descriptor_of(value))(value)
        else:
            fill(message, value)

    return pack


@lru_cache(maxsize=64)
def _stable(descriptor: Descriptor) -> StableBytes:
    return StableBytes(plan_of(descriptor))


def _instant(plan: MessagePlan, *, arrow: bool) -> Fill:
    shape = plan.shape
    convert = converter("int64", None) if arrow else from_timestamp if shape == "timestamp" else from_duration

    def fill(message: Any, value: Any) -> None:
        message.seconds, message.nanos = from_micros(shape, convert(value))

    return fill


def _parse_value(message: Message, value: Any) -> None:
    try:
        json_format.ParseDict(value, message)
    except (json_format.Error, TypeError, ValueError, AttributeError) as error:
        raise wrong(f"{message.DESCRIPTOR.name}: {error}", value) from error


def _parse_text(message: Message, value: Any) -> None:
    try:
        json_format.Parse(value, message)
    except (json_format.Error, TypeError, ValueError, AttributeError) as error:
        raise wrong(f"JSON of a {message.DESCRIPTOR.name}: {error}", value) from error

"""Writing rows: from a mapping to a message, with closures built from the plan, and from a message to its bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.bad_rows import invalid
from pravega_serde.errors import SerializationError
from pravega_serde.protobuf.declared import wire_values
from pravega_serde.protobuf.plan import FieldPlan, MessagePlan, reachable
from pravega_serde.protobuf.plan import plan as plan_of
from pravega_serde.protobuf.rows import required_in
from pravega_serde.protobuf.schema import descriptor_of, same_type
from pravega_serde.protobuf.values import Convert, converter, from_duration, from_micros, from_timestamp, json_value
from pravega_serde.protobuf.wire import GROUP, LENGTH, MAX_DEPTH, Walker

#: Puts a value into a message, or into a field of it.
Fill = Callable[[Any, Any], None]


class RowWriter:
    """Writer of mappings as events."""

    __slots__ = ("_fill", "_message", "_write")

    def __init__(self, message: type[Message], fill: Fill, write: StableBytes) -> None:
        self._message, self._fill, self._write = message, fill, write

    def __call__(self, value: Any) -> bytes:
        """Return the event of a value; :class:`SerializationError` names the field that does not fit."""
        message = self._message()
        try:
            self._fill(message, value)
        except MalformedError as error:
            raise error.in_value("Protobuf") from error
        except RecursionError as error:
            raise SerializationError("cannot write as Protobuf: the value is nested too deeply") from error
        return self._write(message)


def filler(plan: MessagePlan, *, arrow: bool) -> Fill:
    """Return the filler of messages with natural values, or with those of Arrow columns.

    It raises :class:`MalformedError`. In Arrow columns timestamps and durations are numbers of microseconds, and JSON
    is text.
    """
    return _Compiler(arrow=arrow).message(plan)


class _Compiler:
    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        self._done: dict[str, Fill] = {}

    def message(self, plan: MessagePlan) -> Fill:
        if plan.name not in self._done:
            # A message inside itself finds its filler when it is first filled.
            self._done[plan.name] = lambda *both: self._done[plan.name](*both)
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
            convert = self._converter(field)
            return lambda message, value: setattr(message, name, convert(value))
        fill = self._filler(field)

        def fill_message(message: Any, value: Any) -> None:
            inner = getattr(message, name)
            inner.SetInParent()
            fill(inner, value)

        return fill_message

    def _converter(self, field: FieldPlan) -> Convert:
        convert, declared = converter(field.kind, field.enum), field.declared
        if declared is None or self._arrow:
            return convert
        to_wire = wire_values(declared)
        return lambda value: convert(to_wire(value))

    def _filler(self, field: FieldPlan) -> Fill:
        assert field.message is not None
        fill, declared = self.message(field.message), field.declared
        if declared is None or self._arrow:
            return fill
        to_wire = wire_values(declared)
        return lambda message, value: fill(message, to_wire(value))

    def _repeated(self, field: FieldPlan) -> Fill:
        name = field.name
        if field.message is None:
            convert = self._converter(field)
            put: Fill = lambda items, value: items.append(convert(value))  # noqa: E731
        else:
            fill = self._filler(field)
            put = lambda items, value: fill(items.add(), value)  # noqa: E731

        def fill_items(message: Any, values: Any) -> None:
            if not isinstance(values, list | tuple):
                raise invalid("list", values)
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
                raise invalid("mapping", values)
            entries = getattr(message, name)
            for key, value in pairs:
                try:
                    put(entries, (key, value))
                except MalformedError as error:
                    raise error.within(f"[{key!r}]") from error

        return fill_entries

    def _entry(self, convert_key: Convert, item: FieldPlan) -> Fill:
        if item.message is not None:
            fill = self._filler(item)
            return lambda entries, pair: fill(entries[convert_key(pair[0])], pair[1])
        convert = self._converter(item)

        def put(entries: Any, pair: tuple[Any, Any]) -> None:
            entries[convert_key(pair[0])] = convert(pair[1])

        return put


def _fill_fields(message_name: str, fields: dict[str, Fill], oneofs: dict[str, str]) -> Fill:
    def fill(message: Any, values: Any) -> None:
        if not isinstance(values, Mapping):
            raise invalid(f"message {message_name}", values)
        chosen: dict[str, str] = {}
        for name, value in values.items():
            put = fields.get(name)
            if put is None:
                raise MalformedError(f"{message_name} has no field {name!r}; omit it or add it to the schema")
            if value is None:
                continue
            oneof = oneofs.get(name)
            if oneof is not None and chosen.setdefault(oneof, name) != name:
                raise MalformedError(f"both {chosen[oneof]} and {name} are set, but {oneof} allows only one")
            try:
                put(message, value)
            except MalformedError as error:
                raise error.within(f".{name}") from error

    return fill


def _or_copied(fill: Fill) -> Fill:
    """Return a filler that copies messages of the type itself unchanged."""

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
    """Return the writer of an Any: other messages are packed into it."""

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
        json_value(message)
    except (json_format.Error, TypeError, ValueError, AttributeError) as error:
        raise invalid(f"{message.DESCRIPTOR.name}: {error}", value) from error


def _parse_text(message: Message, value: Any) -> None:
    try:
        json_format.Parse(value, message)
        json_value(message)
    except (json_format.Error, TypeError, ValueError, AttributeError) as error:
        raise invalid(f"JSON of a {message.DESCRIPTOR.name}: {error}", value) from error


class StableBytes:
    """Writer of messages of a type. Equal messages have equal bytes: map entries are in the order of their keys.

    Google's parser keeps maps in its own order, which differs in every process. It can sort them when it writes, but
    with rules that differ between its versions: some sorted numbers descending, and as unsigned ones. So its bytes are
    sorted here, as Java's deterministic writer sorts them. Sorting moves entries only within their message, so no
    length changes.
    """

    __slots__ = ("_any_maps", "_looked_at", "_plan", "_required")

    def __init__(self, plan: MessagePlan) -> None:
        self._plan, self._required = plan, required_in(plan)
        self._looked_at = {inner.name: _with_maps(inner) for inner in reachable(plan)}
        self._any_maps = bool(self._looked_at[plan.name])

    def __call__(self, message: Message) -> bytes:
        """Return the event of a message; raise :class:`SerializationError` if a required field is missing."""
        if self._required is not None and (missing := self._required.missing(message)):
            raise SerializationError(f"cannot write as Protobuf: required fields are missing: {missing}")
        try:
            data = message.SerializePartialToString()
        except (EncodeError, ValueError) as error:
            raise SerializationError(f"cannot write as Protobuf: {error}") from error
        return self._sorted(data, 0, len(data), self._plan, 0) if self._any_maps else data

    def _sorted(self, data: bytes, start: int, end: int, plan: MessagePlan, group: int) -> bytes:
        """Return a part of an event, with all its maps sorted. The entries of a map are together."""
        looked_at = self._looked_at[plan.name]
        parts: list[bytes] = []
        entries: list[tuple[Any, bytes]] = []
        before, last = start, 0
        for number, wire, value, stop in Walker(data).fields(start, end, depth=MAX_DEPTH, group=group):
            if number != last and entries:
                parts += _in_order(entries)
                entries = []
            last = number
            field = looked_at.get(number)
            if field is None or field.message is None or wire not in (LENGTH, GROUP):
                parts.append(data[before:stop])
            else:
                inner = self._sorted(data, value, stop, field.message, number if wire == GROUP else 0)
                if field.label == "map":
                    entries.append((_key(inner, field.message.fields[0]), data[before:value] + inner))
                else:
                    parts.append(data[before:value] + inner)
            before = stop
        return b"".join([*parts, *_in_order(entries), data[before:end]])


def _with_maps(plan: MessagePlan) -> dict[int, FieldPlan]:
    """Return the fields that are maps, or contain any."""
    return {
        field.number: field
        for field in plan.fields
        if (
            field.message is not None
            and any(inner.label == "map" for part in reachable(field.message) for inner in part.fields)
        )
        or field.label == "map"
    }


def _in_order(entries: list[tuple[Any, bytes]]) -> list[bytes]:
    return [entry for _, entry in sorted(entries)]


def _key(entry: bytes, field: FieldPlan) -> Any:
    """Return the key of an entry, in a form that sorts as the key does."""
    walker = Walker(entry)
    for number, _, start, stop in walker.fields(0, len(entry), depth=MAX_DEPTH):
        if number == 1:
            return entry[start:stop] if field.kind == "string" else _KEYS[field.kind](entry[start:stop])
    raise AssertionError("both parts of an entry are always written")


def _varint(data: bytes) -> int:
    return Walker(data).varint(0, len(data))[0]


def _signed(data: bytes) -> int:
    number = _varint(data)
    return number - (1 << 64) if number >> 63 else number


def _zigzag(data: bytes) -> int:
    number = _varint(data)
    return (number >> 1) ^ -(number & 1)


def _fixed(form: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(form).unpack
    return lambda data: unpack(data)[0]


_KEYS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "bool": _varint,
    "fixed32": _fixed("<I"),
    "fixed64": _fixed("<Q"),
    "int32": _signed,
    "int64": _signed,
    "sfixed32": _fixed("<i"),
    "sfixed64": _fixed("<q"),
    "sint32": _zigzag,
    "sint64": _zigzag,
    "uint32": _varint,
    "uint64": _varint,
}

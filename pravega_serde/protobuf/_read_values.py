"""From a message to values: natural ones, or those that Arrow arrays are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message

from pravega_serde.columnar import MalformedError
from pravega_serde.protobuf._plan import EnumPlan, FieldPlan, MessagePlan
from pravega_serde.text import java_decode

__all__ = ["Read", "value_reader"]

#: The value of something in a message.
Read = Callable[[Any], Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def value_reader(plan: MessagePlan, *, arrow: bool) -> Read:
    """What turns messages into values; it raises :class:`MalformedError` for one that Python or Arrow cannot hold."""
    return _Compiler(arrow=arrow).message(plan)


class _Compiler:
    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        self._done: dict[str, Read] = {}

    def message(self, plan: MessagePlan) -> Read:
        if plan.name not in self._done:
            # A message inside itself finds its reader when it is first read.
            self._done[plan.name] = lambda value: self._done[plan.name](value)  # noqa: PLW0108 -- it is another one then
            self._done[plan.name] = self._shape(plan)
        return self._done[plan.name]

    def _shape(self, plan: MessagePlan) -> Read:
        if plan.shape == "json":
            return _json_text if self._arrow else json_format.MessageToDict
        if plan.shape == "wrapper":
            inner = self._item(plan.fields[0])
            return lambda value: inner(value.value)
        if plan.shape != "message":
            return _micros if self._arrow else _NATURAL[plan.shape]
        return _read_fields([(plan.fields[i].name, self._field(plan.fields[i])) for i in plan.order])

    def _field(self, field: FieldPlan) -> Read:
        name = field.name
        if field.label == "map":
            return self._map(field)
        item = self._item(field)
        if field.label == "repeated":
            return _read_list(name, item)
        if field.label == "implicit":
            return lambda message: item(getattr(message, name))
        return lambda message: item(getattr(message, name)) if message.HasField(name) else None

    def _map(self, field: FieldPlan) -> Read:
        assert field.message is not None
        name, item = field.name, self._item(field.message.fields[1])
        if self._arrow:
            return lambda message: [(key, item(value)) for key, value in sorted(_pairs(message, name), key=_key)]
        return lambda message: {key: item(value) for key, value in _pairs(message, name)}

    def _item(self, field: FieldPlan) -> Read:
        if field.message is not None:
            return self.message(field.message)
        if field.enum is not None:
            return _enum(field.enum)
        return _text if field.kind == "string" else _itself


_key: Final = itemgetter(0)


def _pairs(message: Message, name: str) -> list[tuple[Any, Any]]:
    try:
        return list(getattr(message, name).items())
    except UnicodeDecodeError as error:
        # Google's parser lets it pass in proto2, and then cannot find it.
        raise MalformedError("a key that is not UTF-8") from error


def _read_fields(fields: list[tuple[str, Read]]) -> Read:
    def read(message: Message) -> dict[str, Any]:
        values = {}
        for name, read_field in fields:
            try:
                values[name] = read_field(message)
            except MalformedError as error:
                raise error.within(f".{name}") from error
        return values

    return read


def _read_list(name: str, item: Read) -> Read:
    def read(message: Message) -> list[Any]:
        values: list[Any] = []
        try:
            for value in getattr(message, name):
                values.append(item(value))  # noqa: PERF401 -- the error tells how many there were
        except MalformedError as error:
            raise error.within(f"[{len(values)}]") from error
        return values

    return read


def _itself(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    """A string of proto2 is not checked for being UTF-8: Java replaces what is not when it is looked at."""
    return java_decode(value) if isinstance(value, bytes) else value


def _enum(enum: EnumPlan) -> Read:
    names = dict(enum.names)

    def read(number: int) -> str:
        if number not in names and len(names) < _MOST_NAMES:
            names[number] = str(number)
        return names.get(number) or str(number)

    return read


#: One text for each number without a name, not one for each time it is there; so many are remembered.
_MOST_NAMES: Final = 1 << 16


def _micros(value: Any) -> int:
    """Microseconds of a timestamp or duration; what is left of the nanoseconds is dropped, as Java divides."""
    nanos = value.nanos
    micros: int = value.seconds * 1_000_000 + (nanos // 1000 if nanos >= 0 else -(-nanos // 1000))
    if not -(1 << 63) <= micros < 1 << 63:
        raise MalformedError(f"{value.seconds} seconds are beyond the range of microseconds")
    return micros


def _datetime(value: Any) -> datetime:
    micros = _micros(value)
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise MalformedError(f"{value.seconds} seconds are beyond the years that Python has") from None


def _timedelta(value: Any) -> timedelta:
    micros = _micros(value)
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        raise MalformedError(f"{value.seconds} seconds are more than Python's timedelta holds") from None


_NATURAL: Final = {"timestamp": _datetime, "duration": _timedelta}


def _json_text(value: Message) -> str:
    """JSON without spaces, keys sorted: the order of a Struct's fields is not the same twice."""
    try:
        found = json_format.MessageToDict(value)
    except (json_format.Error, ValueError) as error:
        raise MalformedError(f"no JSON: {error}") from error
    return json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

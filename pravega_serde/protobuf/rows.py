"""Rows: reading one event at a time, with Google's parser and with errors that name the fault and its position."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from pravega_serde.columnar import MalformedError, MemoryLimit
from pravega_serde.errors import DeserializationError
from pravega_serde.protobuf.plan import FieldPlan, MessagePlan, reachable
from pravega_serde.protobuf.values import Read
from pravega_serde.protobuf.wire import padding_start, walk


class RowReader:
    """Reader of events into messages. If ``values`` is set, it converts messages into values."""

    __slots__ = ("_meter", "_parse", "_plan", "_required", "_safe_size", "_values")

    def __init__(self, message: type[Message], plan: MessagePlan, values: Read | None = None) -> None:
        self._parse: Callable[[bytes], Message] = message.FromString
        self._plan, self._values = plan, values
        self._required = required_in(plan)
        self._meter = Meter(plan, message_cost if values is None else value_cost)
        self._safe_size = self._meter.safe_size

    def __call__(self, data: bytes) -> Any:
        """Return the message of an event, or its value; raise :class:`DeserializationError` for an invalid event."""
        if len(data) > self._safe_size:
            self._measure(data)
        try:
            message = self._parse(data)
        except DecodeError as error:
            message = self._without_padding(data, error)
        if self._required is not None and (missing := self._required.missing(message)):
            raise DeserializationError(f"invalid {self._plan.name}: required fields are missing: {missing}")
        return message if self._values is None else value_of(message, self._values)

    def _measure(self, data: bytes) -> None:
        try:
            self._meter.measure(data)
        except MalformedError as error:
            raise self._diagnosed(data) from error

    def _without_padding(self, data: bytes, error: DecodeError) -> Message:
        if data.endswith(b"\0"):
            with suppress(DecodeError, MalformedError):
                return self._parse(data[: padding_start(data)])
        raise self._diagnosed(data) from error

    def _diagnosed(self, data: bytes) -> DeserializationError:
        try:
            walk(data, self._plan)
            walk(data, self._plan, texts=True)
        except MalformedError as error:
            return error.in_event(self._plan.name)
        return MalformedError("malformed bytes").in_event(self._plan.name)


def value_of(message: Any, read: Read) -> Any:
    """Return the value of a message; raise :class:`DeserializationError` if Python or Arrow cannot hold it."""
    try:
        return read(message)
    except MalformedError as error:
        raise DeserializationError(error.reason, field_path=error.field_path()) from error


#: Memory of an event's value. A message without content has two bytes, so a small event could hold very many.
_MEMORY: Final = MemoryLimit(64, smallest=1 << 20)


class Meter:
    """Detector of events that would need too much memory. Few are measured: most types cannot expand so far."""

    __slots__ = ("_cost", "_plan", "safe_size")

    def __init__(self, plan: MessagePlan, cost: Callable[[MessagePlan], int]) -> None:
        self._plan, self._cost = plan, cost
        inner = [f for p in reachable(plan) for f in p.fields]
        # Maximum cost of a byte: messages have at least two bytes, packed values one.
        most = max((_per_byte(f, cost) for f in inner), default=0)
        self.safe_size = _MEMORY.of(0) // most if most > _MEMORY.per_byte else sys.maxsize
        """Size in bytes up to which events need no measurement."""

    def measure(self, data: bytes) -> None:
        """Raise :class:`LimitExceededError` if the event would need too much memory.

        Raises MalformedError if the event is malformed.
        """
        budget = _MEMORY.of(len(data))
        taken = 0

        def visit(what: MessagePlan | FieldPlan, size: int) -> None:
            nonlocal taken
            taken += self._cost(what) if isinstance(what, MessagePlan) else size * _item_cost(what)
            if taken > budget:
                raise _MEMORY.exceeded(len(data)).in_event(self._plan.name)

        walk(data, self._plan, visit)


def _per_byte(field: FieldPlan, cost: Callable[[MessagePlan], int]) -> int:
    if field.message is not None:
        return cost(field.message) // 2
    return _item_cost(field) if field.label == "repeated" and field.enum is not None else 0


def message_cost(plan: MessagePlan) -> int:
    """Return an upper bound of the bytes that Google's parser needs for a message without content."""
    return 24 + 16 * len(plan.fields)


def value_cost(plan: MessagePlan) -> int:
    """Return an upper bound of the bytes of a message, its dict, and its row in Arrow."""
    return 256 + 112 * len(plan.fields)


def _item_cost(field: FieldPlan) -> int:
    """Return the bytes of an enum's value in a list, and of its name in Arrow, whose buffers grow by doubling."""
    assert field.enum is not None
    return 24 + 2 * max(len(name.encode()) for name in field.enum.numbers)


def required_in(plan: MessagePlan) -> Required | None:
    """Return a search for missing fields in messages of a type; None if it requires none, as in proto3."""
    found = any(f.label == "required" for inner in reachable(plan) for f in inner.fields)
    return Required(plan) if found else None


class Required:
    """Search for the required fields (proto2) that are missing in messages of a type.

    Google's parser accepts messages that lack some. Its own search for them crashes on maps in lists of messages
    (protobuf 7.36), and so does its ``SerializeToString``.
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: MessagePlan) -> None:
        self._plan = plan

    def missing(self, message: Message) -> str:
        """Return the paths of the required fields that are missing; empty if none is."""
        return "" if message.IsInitialized() else ", ".join(_missing(message, self._plan))


def _missing(message: Any, plan: MessagePlan) -> Iterator[str]:
    for field in plan.fields:
        if field.label == "required" and not message.HasField(field.name):
            yield field.name
        elif field.message is not None:
            for step, inner in _inside(message, field):
                part = field.message.fields[1].message if field.label == "map" else field.message
                assert part is not None
                yield from (f"{step}.{path}" for path in _missing(inner, part))


def _inside(message: Any, field: FieldPlan) -> list[tuple[str, Any]]:
    """Yield the messages that a field holds, and their steps of a path."""
    name = field.name
    if field.label == "repeated":
        return [(f"{name}[{index}]", item) for index, item in enumerate(getattr(message, name))]
    if field.label != "map":
        return [(name, getattr(message, name))] if message.HasField(name) else []
    assert field.message is not None
    if field.message.fields[1].message is None:
        return []
    return [(f"{name}[{key!r}]", value) for key, value in getattr(message, name).items()]

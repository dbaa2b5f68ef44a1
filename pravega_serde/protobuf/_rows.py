"""Reading and writing single events, with errors that say what is wrong and where."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from google.protobuf.message import DecodeError, EncodeError, Message

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError, LimitExceededError, SerializationError
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan
from pravega_serde.protobuf._read_values import Read
from pravega_serde.protobuf._wire import TooDeepError, padding_start, walk
from pravega_serde.protobuf._write_rows import Fill

__all__ = ["RowReader", "RowWriter", "message_bytes", "value_of"]

#: How many bytes an event's value may take for each byte of the event. A message of no content takes two bytes, so a
#: small event could hold very many large messages.
MAX_EXPANSION: Final = 64

#: Events below this size count as if they had it.
_SMALL_EVENT: Final = 1 << 20


class RowReader:
    """Reads events into messages, and, where ``values`` is given, messages into values."""

    __slots__ = ("_cost", "_most", "_parse", "_plan", "_required", "_values")

    def __init__(self, message: type[Message], plan: MessagePlan, values: Read | None = None) -> None:
        self._parse: Callable[[bytes], Message] = message.FromString
        self._plan, self._values = plan, values
        reachable = list(_reachable(plan))
        self._required = any(f.label == "required" for p in reachable for f in p.fields)
        self._cost = _value_cost if values is not None else _message_cost
        inner = [f for p in reachable for f in p.fields]
        # The most that a byte can take: messages have two of them at least, packed numbers one.
        self._most = max((_per_byte(f, self._cost) for f in inner), default=0)

    def __call__(self, data: bytes) -> Any:
        """The message of an event, or its value; :class:`DeserializationError` for anything that is not one."""
        if len(data) * self._most > MAX_EXPANSION * _SMALL_EVENT:
            self._measure(data)
        try:
            message = self._parse(data)
        except DecodeError as error:
            message = self._without_padding(data, error)
        if self._required and not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())  # type: ignore[attr-defined]
            raise DeserializationError(f"no {self._plan.name}: required fields are missing: {missing}")
        return message if self._values is None else value_of(message, self._values)

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
            kind = LimitExceededError if isinstance(error, TooDeepError) else DeserializationError
            return kind(f"no {self._plan.name}: {error.reason}", field_path=error.field_path())
        return DeserializationError(f"no {self._plan.name}: the bytes are malformed")

    def _measure(self, data: bytes) -> None:
        """Raise :class:`LimitExceededError` if the event would take too much memory."""
        budget = MAX_EXPANSION * max(len(data), _SMALL_EVENT)
        taken = 0

        def visit(what: MessagePlan | FieldPlan, size: int) -> None:
            nonlocal taken
            taken += self._cost(what) if isinstance(what, MessagePlan) else size * _item_cost(what)
            if taken > budget:
                raise LimitExceededError(
                    f"an event of {len(data)} bytes would take more than {budget >> 20} MiB, "
                    f"{MAX_EXPANSION} bytes for each of its own"
                )

        try:
            walk(data, self._plan, visit)
        except MalformedError as error:
            raise self._diagnosed(data) from error


def _reachable(plan: MessagePlan) -> list[MessagePlan]:
    found: dict[str, MessagePlan] = {}
    left = [plan]
    while left:
        one = left.pop()
        if one.name not in found:
            found[one.name] = one
            left += [f.message for f in one.fields if f.message is not None]
    return list(found.values())


def _per_byte(field: FieldPlan, cost: Callable[[MessagePlan], int]) -> int:
    if field.message is not None:
        return cost(field.message) // 2
    return _item_cost(field) if field.label == "repeated" and field.enum is not None else 0


def _message_cost(plan: MessagePlan) -> int:
    """An upper bound of the bytes that Google's parser takes for a message of no content."""
    return 24 + 16 * len(plan.fields)


def _value_cost(plan: MessagePlan) -> int:
    """An upper bound of the bytes of a message, its dict, and its row in Arrow."""
    return 256 + 112 * len(plan.fields)


def _item_cost(field: FieldPlan) -> int:
    """Bytes of an enum's number in a list, and of its name in Arrow, whose buffers double when they grow."""
    assert field.enum is not None
    return 24 + 2 * max(len(name.encode()) for name in field.enum.numbers)


def value_of(message: Any, read: Read) -> Any:
    """The value of a message."""
    try:
        return read(message)
    except MalformedError as error:
        raise DeserializationError(error.reason, field_path=error.field_path()) from error


class RowWriter:
    """Writes mappings as events."""

    __slots__ = ("_fill", "_message")

    def __init__(self, message: type[Message], fill: Fill) -> None:
        self._message, self._fill = message, fill

    def __call__(self, value: Any) -> bytes:
        """The event of a value; :class:`SerializationError` says which field does not fit."""
        message = self._message()
        try:
            self._fill(message, value)
        except MalformedError as error:
            raise SerializationError(
                f"cannot write as Protobuf: {error.reason} (field {error.field_path()})"
            ) from error
        except RecursionError as error:
            raise SerializationError("cannot write as Protobuf: the value is nested too deeply") from error
        return message_bytes(message)


def message_bytes(message: Message) -> bytes:
    """A message's event. The entries of maps are sorted by their keys, so equal messages have equal bytes."""
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise SerializationError(f"cannot write as Protobuf: {error}") from error

"""Reading and writing single events, with errors that say what is wrong and where."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError, Message

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError, LimitExceededError, SerializationError
from pravega_serde.protobuf._limits import Meter, message_cost, value_cost
from pravega_serde.protobuf._plan import MessagePlan
from pravega_serde.protobuf._read_values import Read
from pravega_serde.protobuf._required import required_in
from pravega_serde.protobuf._stable import StableBytes
from pravega_serde.protobuf._wire import TooDeepError, padding_start, walk
from pravega_serde.protobuf._write_rows import Fill

__all__ = ["RowReader", "RowWriter", "value_of"]


class RowReader:
    """Reads events into messages, and, where ``values`` is given, messages into values."""

    __slots__ = ("_meter", "_parse", "_plan", "_required", "_safe_size", "_values")

    def __init__(self, message: type[Message], plan: MessagePlan, values: Read | None = None) -> None:
        self._parse: Callable[[bytes], Message] = message.FromString
        self._plan, self._values = plan, values
        self._required = required_in(plan)
        self._meter = Meter(plan, message_cost if values is None else value_cost)
        self._safe_size = self._meter.safe_size

    def __call__(self, data: bytes) -> Any:
        """The message of an event, or its value; :class:`DeserializationError` for anything that is not one."""
        if len(data) > self._safe_size:
            self._measure(data)
        try:
            message = self._parse(data)
        except DecodeError as error:
            message = self._without_padding(data, error)
        if self._required is not None and (missing := self._required.missing(message)):
            raise DeserializationError(f"no {self._plan.name}: required fields are missing: {missing}")
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
            kind = LimitExceededError if isinstance(error, TooDeepError) else DeserializationError
            return kind(f"no {self._plan.name}: {error.reason}", field_path=error.field_path())
        return DeserializationError(f"no {self._plan.name}: the bytes are malformed")


def value_of(message: Any, read: Read) -> Any:
    """The value of a message."""
    try:
        return read(message)
    except MalformedError as error:
        raise DeserializationError(error.reason, field_path=error.field_path()) from error


class RowWriter:
    """Writes mappings as events."""

    __slots__ = ("_fill", "_message", "_write")

    def __init__(self, message: type[Message], fill: Fill, write: StableBytes) -> None:
        self._message, self._fill, self._write = message, fill, write

    def __call__(self, value: Any) -> bytes:
        """The event of a value; :class:`SerializationError` says which field does not fit."""
        message = self._message()
        try:
            self._fill(message, value)
        except MalformedError as error:
            raise SerializationError(
                f"cannot write as Protobuf: {error.reason}", field_path=error.field_path()
            ) from error
        except RecursionError as error:
            raise SerializationError("cannot write as Protobuf: the value is nested too deeply") from error
        return self._write(message)

"""Protobuf serializer: rows and columns of one message type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import Message

from pravega_serde.columnar import (
    Attempt,
    ColumnReader,
    ColumnSerializer,
    FastPath,
    MalformedError,
    PlainPath,
    bytes_at_once,
)
from pravega_serde.columnar.bad_rows import UNFIT, FallbackError, bisecting
from pravega_serde.errors import DeserializationError, SerializationError
from pravega_serde.protobuf.columns import fast_path
from pravega_serde.protobuf.declared import raising
from pravega_serde.protobuf.plan import arrow_type, plan, text_fault, wire_type
from pravega_serde.protobuf.rows import Meter, RowReader, value_cost, value_of
from pravega_serde.protobuf.schema import ProtobufSchema, descriptor_of, descriptor_set, is_importable, load, same_type
from pravega_serde.protobuf.values import value_reader
from pravega_serde.protobuf.write_columns import ProtobufColumnWriter
from pravega_serde.protobuf.write_rows import RowWriter, StableBytes, filler

#: Rows of a flat message below which reading by row is faster.
_FEW_TO_READ: Final = 64


class ProtobufSerializer(ColumnSerializer):
    """Serializer of Protobuf messages of one type: one message is one event, not length-delimited.

    ``schema`` is a generated message class, a descriptor, or a ``FileDescriptorSet`` (the object, its bytes, or the
    path of its file). For a set, ``message_type`` names the message (``package.Message``). You can omit it if there is
    only one. Imports of ``google/protobuf``, ``google/type`` and ``confluent`` may be missing from a set.

    You can write messages of the type, and mappings of field names to natural values. Reading returns messages, of the
    generated class if you passed one. :meth:`as_dict` converts a message to natural values. See
    ``pravega_serde.protobuf.plan`` for natural values and Arrow columns.

    Zeros after a message are cut off, because some of Java's writers pad. As in Java, a proto3 string that is not UTF-8
    is an error. In a proto2 string, the wrong bytes are replaced when it is accessed, also as in Java.

    Raises :class:`SchemaError` for a schema that is malformed, incomplete, or lacks the message.
    """

    #: Content type of the events in an envelope.
    content_type = "application/protobuf"

    def __init__(self, schema: ProtobufSchema, *, message_type: str | None = None) -> None:
        self._message = load(schema, message_type)
        #: Fields of the message type, as readers and writers use them.
        self.plan = plan(descriptor_of(self._message))
        self._read = RowReader(self._message, self.plan)
        self._to_bytes = StableBytes(self.plan)
        self._write = RowWriter(self._message, filler(self.plan, arrow=False), self._to_bytes)
        self._natural = value_reader(self.plan, arrow=False)
        self._meter = Meter(self.plan, value_cost)

    def _arguments(self) -> dict[str, Any]:
        if is_importable(self._message):
            return {"schema": self._message}
        descriptor = descriptor_of(self._message)
        return {"schema": descriptor_set(descriptor).SerializeToString(), "message_type": descriptor.full_name}

    def __repr__(self) -> str:
        return f"ProtobufSerializer({self.plan.name})"

    @property
    def message_class(self) -> type[Message]:
        """Class of the messages that are read."""
        return self._message

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns; raises :class:`SchemaError` for a message that contains itself."""
        return arrow_type(self.plan)

    @cached_property
    def bytes_at_once(self) -> int:
        """Bytes of events that are best decoded together; 0 if that makes no difference."""
        return bytes_at_once(self.arrow_type)

    def text_fault(self, path: Sequence[str]) -> str | None:
        """Return the reason why a field cannot hold every text or all bytes."""
        return text_fault(self.plan, path)

    def serialize(self, value: Message | Mapping[str, Any]) -> bytes:
        """Return the event of a message, or of a mapping.

        Equal values have equal bytes: maps are sorted by their keys.
        """
        if type(value) is self._message:
            return self._to_bytes(value)
        if not isinstance(value, Message):
            return self._write(value)
        if not same_type(descriptor_of(value), descriptor_of(self._message)):
            name = descriptor_of(value).full_name
            raise SerializationError(f"invalid message: {name} is not the {self.plan.name} of this serializer's schema")
        return self._to_bytes(value)

    def deserialize(self, data: bytes) -> Any:
        """Return the message of an event, including unknown fields."""
        return self._read(data if isinstance(data, bytes) else bytes(data))

    def as_dict(self, message: Message) -> Any:
        """Return the natural values of a message; absent fields are None. Unknown fields are omitted."""
        if message.ByteSize() > self._meter.safe_size:
            self._meter.measure(message.SerializePartialToString())
        return value_of(message, self._natural)

    def _make_reader(self) -> ColumnReader:
        kind, wire = self.arrow_type, wire_type(self.plan)
        read = RowReader(self._message, self.plan, value_reader(self.plan, arrow=True))
        plain = PlainPath(read, wire)
        fast: FastPath | None = fast_path(self.plan, wire)
        if kind != wire:
            plain, fast = _declared_paths(plain, fast, kind)
        return ColumnReader(plain, fast, few=_FEW_TO_READ)

    def _make_writer(self) -> ProtobufColumnWriter:
        arrow_type(self.plan)  # raises SchemaError for a message that contains itself
        write = RowWriter(self._message, filler(self.plan, arrow=True), self._to_bytes)
        return ProtobufColumnWriter(self.plan, descriptor_of(self._message), write)


def _declared_paths(plain: PlainPath, fast: FastPath | None, kind: pa.DataType) -> tuple[PlainPath, FastPath | None]:
    """Return the paths with the declared types of a derived schema."""
    wire = plain.arrow_type
    convert = raising(wire, kind)

    def read(event: bytes) -> Any:
        value = plain.read(event)
        try:
            return convert(pa.array([value], wire))[0]
        except MalformedError as error:
            raise DeserializationError(
                f"a value does not fit its declared type: {error.reason}", field_path=error.field_path()
            ) from error

    def whole(column: pa.BinaryArray) -> pa.Array:
        assert fast is not None
        tried = fast(column)
        if len(tried.suspects):
            raise FallbackError
        return convert(tried.values)

    find = bisecting(whole, refusals=(FallbackError, *UNFIT))

    def attempt(column: pa.BinaryArray) -> Attempt:
        assert fast is not None
        tried = fast(column)
        try:
            return Attempt(convert(tried.values), tried.suspects)
        except UNFIT:
            return find(column)

    return PlainPath(read, kind), fast and attempt

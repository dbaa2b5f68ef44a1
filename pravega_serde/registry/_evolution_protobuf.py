"""What a reader with one Protobuf message type cannot read of another's bytes.

The rules are those of "Updating a message type" in Protobuf's language guides, and stricter where a number would be
read as another: int64 as int32 is allowed on the wire, and is a fault here. Names of fields and of message types mean
nothing on the wire, and nothing here. Descriptors are compared as they are registered: Java leaves imports out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import DecodeError

from pravega_serde.errors import SchemaError
from pravega_serde.registry._models import SchemaInfo

__all__ = ["READ_AS", "faults", "type_name"]

_Type = FieldDescriptorProto.Type
_MESSAGE: Final = FieldDescriptorProto.TYPE_MESSAGE
_GROUP: Final = FieldDescriptorProto.TYPE_GROUP
_ENUM: Final = FieldDescriptorProto.TYPE_ENUM
_BYTES: Final = FieldDescriptorProto.TYPE_BYTES
#: Written type of a single value -> types that read every value of it as what it was.
READ_AS: Final[Mapping[int, frozenset[int]]] = {
    _Type.TYPE_BOOL: frozenset({_Type.TYPE_INT32, _Type.TYPE_INT64, _Type.TYPE_UINT32, _Type.TYPE_UINT64}),
    _Type.TYPE_INT32: frozenset({_Type.TYPE_INT64}),
    _Type.TYPE_UINT32: frozenset({_Type.TYPE_INT64, _Type.TYPE_UINT64}),
    _Type.TYPE_SINT32: frozenset({_Type.TYPE_SINT64}),
    _ENUM: frozenset({_Type.TYPE_INT32, _Type.TYPE_INT64}),
    _Type.TYPE_STRING: frozenset({_BYTES}),
}
_SAFE: Final[Mapping[int, frozenset[int]]] = {**READ_AS, _MESSAGE: frozenset({_BYTES})}


def faults(writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
    """Reasons, none if everything can be read; SchemaError for a schema that is no descriptor set with its type.

    ``added`` says that the writer's schema is the newer one.
    """
    comparison = _Comparison(_Types.of(writer), _Types.of(reader), added)
    yield from comparison.messages(writer.type, reader.type, "$")


@dataclass(frozen=True, slots=True)
class _Types:
    """The messages and enums of a descriptor set by full name, and which enums keep only the numbers that they know."""

    messages: dict[str, DescriptorProto]
    enums: dict[str, EnumDescriptorProto]
    closed: frozenset[str]

    @classmethod
    def of(cls, schema: SchemaInfo) -> _Types:
        try:
            files = FileDescriptorSet.FromString(schema.data).file
        except DecodeError as error:
            raise SchemaError(f"the schema of type {schema.type!r} is no Protobuf descriptor set: {error}") from error
        types, closed = cls({}, {}, frozenset()), set()
        for file in files:
            before = set(types.enums)
            types._add(file, file.package)
            if file.syntax != "proto3":
                closed |= types.enums.keys() - before
        if schema.type not in types.messages:
            raise SchemaError(f"the descriptor set has no message type {schema.type!r}")
        return cls(types.messages, types.enums, frozenset(closed))

    def _add(self, scope: FileDescriptorProto | DescriptorProto, prefix: str) -> None:
        dot = f"{prefix}." if prefix else ""
        self.enums.update((dot + enum.name, enum) for enum in scope.enum_type)
        for message in scope.message_type if isinstance(scope, FileDescriptorProto) else scope.nested_type:
            self.messages[dot + message.name] = message
            self._add(message, dot + message.name)


class _Comparison:
    def __init__(self, writer: _Types, reader: _Types, added: bool) -> None:
        self._writer, self._reader, self._added = writer, reader, added
        self._seen: set[tuple[str, str]] = set()

    def messages(self, written: str, read: str, path: str) -> Iterator[str]:
        """Faults of one message type read as another, each pair once."""
        if (written, read) in self._seen:
            return
        self._seen.add((written, read))
        writer, reader = self._writer.messages.get(written), self._reader.messages.get(read)
        if writer is None or reader is None:
            if written != read:
                yield f"{path}: {written} and {read} cannot be compared, the descriptor set has not both of them"
            return
        yield from self._numbers(writer, reader, path)
        fields = {field.number: field for field in reader.field}
        for field in writer.field:
            if field.number in fields:
                yield from self._fields(field, fields[field.number], f"{path}.{field.name}")
        yield from _required(writer, reader, path)
        yield from _oneofs(writer, reader, path)

    def _numbers(self, writer: DescriptorProto, reader: DescriptorProto, path: str) -> Iterator[str]:
        """Numbers that are given up, or taken again."""
        old, new = (reader, writer) if self._added else (writer, reader)
        kept = {field.number for field in new.field}
        for field in old.field:
            if field.number not in kept and not _reserved(new, field.number):
                yield f"{path}.{field.name}: field {field.number} is gone, and its number is not reserved"
        for field in new.field:
            if _reserved(old, field.number):
                yield f"{path}.{field.name}: field {field.number} takes a number that was reserved"

    def _fields(self, writer: FieldDescriptorProto, reader: FieldDescriptorProto, path: str) -> Iterator[str]:
        where = f"{path} (field {writer.number})"
        repeated = FieldDescriptorProto.LABEL_REPEATED
        if writer.label == repeated != reader.label:
            yield f"{where}: a reader with a single value keeps the last one of the repeated field"
        if writer.type == reader.type == _ENUM:
            yield from self._enums(writer.type_name[1:], reader.type_name[1:], where)
        elif writer.type == reader.type and writer.type in (_MESSAGE, _GROUP):
            yield from self.messages(writer.type_name[1:], reader.type_name[1:], path)
        elif writer.type != reader.type and reader.type not in _SAFE.get(writer.type, ()):
            yield f"{where}: {type_name(writer.type)} cannot be read as {type_name(reader.type)} without harm"
        if _default(writer) != _default(reader):
            yield f"{where}: the default that stands for no value differs"

    def _enums(self, written: str, read: str, where: str) -> Iterator[str]:
        writer, reader = self._writer.enums.get(written), self._reader.enums.get(read)
        if writer is None or reader is None:
            if written != read:
                yield f"{where}: {written} and {read} cannot be compared, the descriptor set has not both of them"
            return
        numbers = {value.name: value.number for value in reader.value}
        for value in writer.value:
            if numbers.get(value.name, value.number) != value.number:
                yield f"{where}: {value.name} is number {value.number} written and {numbers[value.name]} read"
            elif value.number not in numbers.values() and not self._keeps(value.number, reader, read):
                yield f"{where}: the reader's enum has no number {value.number} ({value.name})"

    def _keeps(self, number: int, reader: EnumDescriptorProto, name: str) -> bool:
        """Whether a number that the reader's enum does not name does no harm."""
        if name in self._reader.closed:
            return False
        ranges = reader.reserved_range
        # An older reader of an open enum keeps new numbers; that one was given up has to be said.
        return self._added or any(one.start <= number <= one.end for one in ranges)


def _reserved(message: DescriptorProto, number: int) -> bool:
    return any(one.start <= number < one.end for one in message.reserved_range)


def _required(writer: DescriptorProto, reader: DescriptorProto, path: str) -> Iterator[str]:
    required = FieldDescriptorProto.LABEL_REQUIRED
    always = {field.number for field in writer.field if field.label == required}
    for field in reader.field:
        if field.label == required and field.number not in always:
            yield f"{path}.{field.name}: the reader requires field {field.number}, which need not be written"


def _oneofs(writer: DescriptorProto, reader: DescriptorProto, path: str) -> Iterator[str]:
    """Fields that could all be written, of which the reader keeps one."""
    choices = {field.number: _oneof(field) for field in reader.field}
    for index, oneof in enumerate(reader.oneof_decl):
        written = [field for field in writer.field if choices.get(field.number) == index]
        together = {_oneof(field) for field in written}
        if len(written) > 1 and (None in together or len(together) > 1):
            names = ", ".join(field.name for field in written)
            yield f"{path}.{oneof.name}: {names} may be written together, and the reader has a choice of one"


def _oneof(field: FieldDescriptorProto) -> int | None:
    # "optional" of proto3 is a oneof by itself, in name only.
    return field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None


def _default(field: FieldDescriptorProto) -> str:
    return "" if field.default_value in ("0", "false") else field.default_value


def type_name(number: int) -> str:
    """The name of a field's type as a .proto file has it: ``int32``."""
    return _Type.Name(number).removeprefix("TYPE_").lower()  # type: ignore[arg-type]

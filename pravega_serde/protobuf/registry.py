"""Registry part of Protobuf: types of events, compatibility, and reading the bytes of another message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import DecodeError, Message

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.derive import keep_numbers, protobuf_schema_of, schema_data
from pravega_serde.protobuf.ruled_values import ProtobufRuledValues
from pravega_serde.protobuf.schema import descriptor_of, descriptor_set, load
from pravega_serde.protobuf.serializer import ProtobufSerializer
from pravega_serde.protobuf.texts import files_of, is_descriptor, text_of
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.interface import EventType, RegistryFormat, RuledValues, SchemaText
from pravega_serde.registry.message_prefix import MessagePlace
from pravega_serde.serializer_interface import Serializer


class ProtobufRegistry(RegistryFormat):
    """Protobuf in a registry: a descriptor set of the message's own file, as from ``ProtobufSchema.of(Class)``."""

    suffixes = (".desc", ".pb", ".binpb")
    has_numbers = True
    typed_readers_undo_codecs = False

    def recognises(self, schema: object) -> bool:
        """True for a message class, a descriptor or a descriptor set."""
        is_class = isinstance(schema, type) and issubclass(schema, Message)
        return is_class or isinstance(schema, Descriptor | FileDescriptorSet)

    def event_type(self, schema: Any, name: str | None, *, all_files: bool = False) -> EventType:
        """Return the type of a message; ``name`` selects one of a descriptor set."""
        descriptor = load(schema, name).DESCRIPTOR
        data = schema_data(descriptor, all_files=all_files)
        info = SchemaInfo(descriptor.full_name, SerializationFormat.PROTOBUF, data)
        return EventType(info, ProtobufSerializer(schema, message_type=name))

    def payloads(self, info: SchemaInfo) -> ProtobufSerializer:
        """Return the serializer of the registered message."""
        try:
            return ProtobufSerializer(info.data, message_type=info.type)
        except SchemaError as error:
            raise SchemaError(
                f"the registered schema of {info.type!r} is incomplete: {error.message}. Java registers a message "
                "without the files that it imports: pass its class, or a complete descriptor set, as schema"
            ) from error

    def plain_reader(self, payloads: Serializer[Any]) -> Callable[[bytes], Any]:
        """Return a reader of the natural values of messages."""
        assert isinstance(payloads, ProtobufSerializer)
        read, as_dict = payloads.deserialize, payloads.as_dict
        return lambda data: as_dict(read(data))

    def is_parsed(self, text: str) -> bool:
        """Return True for a descriptor."""
        return is_descriptor(text)

    def from_text(self, schema: SchemaText) -> SchemaInfo:
        """Return the schema of the first message type of a file, with all files that it imports."""
        files = files_of(schema)
        names = _message_names(files.file[-1])
        if not names:
            raise SchemaError(f"the Protobuf file {files.file[-1].name!r} has no message type")
        descriptor = descriptor_of(load(files, next(iter(names))))
        data = schema_data(descriptor, all_files=True)
        return SchemaInfo(descriptor.full_name, SerializationFormat.PROTOBUF, data)

    def to_text(self, info: SchemaInfo, *, source: bool = False) -> SchemaText:
        """Return the file of the message type as a descriptor in base64 or as source, with its imports."""
        return text_of(_files(info), source=source)

    def is_same(self, first: SchemaInfo, second: SchemaInfo) -> bool:
        """Return True if two files have the same contents. Text does not tell the name of its file."""
        files = _files(first), _files(second)
        for each in files:
            each.file[-1].ClearField("name")
        return files[0] == files[1]

    def selected(self, info: SchemaInfo, place: MessagePlace) -> SchemaInfo:
        """Return the schema of another message type of the file: by indexes, or by a name with or without package."""
        names = _message_names(_files(info).file[-1])
        for name, indexes in names.items():
            if place in (indexes, name, name.rpartition(".")[2]):
                return replace(info, type=name)
        raise SchemaError(f"the Protobuf file of {info.type!r} has no message type {place!r}")

    def indexes(self, info: SchemaInfo) -> tuple[int, ...]:
        """Return the indexes of the message type in its file."""
        for file in reversed(_files(info).file):
            indexes = _message_names(file).get(info.type)
            if indexes is not None:
                return indexes
        raise SchemaError(f"the descriptor set has no message type {info.type!r}")

    def type_of(self, value: object) -> str | None:
        """Return the full name of a message's type."""
        return descriptor_of(value).full_name if isinstance(value, Message) else None

    def ruled_values(self, info: SchemaInfo, tags_of: Callable[[str], frozenset[str]]) -> RuledValues:
        """Return messages, with the tags in Confluent's option of fields."""
        return ProtobufRuledValues(info.data, info.type, tags_of)

    def derive(self, columns: pa.Schema, name: str) -> FileDescriptorSet:
        """Return the descriptor set of a message with the columns as fields; see :func:`protobuf_schema_of`."""
        return protobuf_schema_of(columns, name)

    def derived(self, columns: pa.Schema, name: str, after: SchemaInfo | None = None) -> EventType:
        """Return the type of the message. Fields keep their numbers from ``after``.

        The numbers of other fields stay reserved.
        """
        files = self.derive(columns, name)
        if after is not None:
            keep_numbers(files, after.data, after.type)
        return replace(self.event_type(files, name), casts=True)

    def faults(self, writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
        """Yield the faults according to the rules of "Updating a message type" in Protobuf's language guides.

        This is stricter if a number would be read as another: int64 as int32 is allowed on the wire, and is a fault
        here. Names of fields and of message types mean nothing on the wire, and nothing here. Descriptors are compared
        as they are registered: Java omits imports.
        """
        comparison = _Comparison(_Types.of(writer), _Types.of(reader), added)
        yield from comparison.messages(writer.type, reader.type, "$")

    def resolve(self, writer: SchemaInfo, reader: EventType) -> tuple[ProtobufSerializer | None, str]:
        """Return the serializer of the reader's message, matched by field numbers, if no value changes.

        Protobuf itself reads any message as any other: a field of another type is skipped or truncated. Here that is a
        misfit. Missing imports of the registered descriptor set are read from the reader's files. A set that is still
        incomplete is not compared.
        """
        payloads = _own(reader)
        misfit = _misfit(writer, descriptor_of(payloads.message_class))
        return (payloads, "") if misfit is None else (None, misfit)

    def widened(self, writer: SchemaInfo, reader: EventType) -> ProtobufSerializer | None:
        """Return the serializer of the reader's message with the writer's wider numbers."""
        wide = _widened_message(writer, descriptor_of(_own(reader).message_class))
        if wide is None or _misfit(writer, descriptor_of(wide)) is not None:
            return None
        return ProtobufSerializer(wide)


def _files(info: SchemaInfo) -> FileDescriptorSet:
    """Return the files of a schema; the last one has the message type."""
    try:
        files = FileDescriptorSet.FromString(info.data)
    except DecodeError as error:
        raise SchemaError(f"invalid registered descriptor set of {info.type!r}: {error}") from error
    return files


def _message_names(file: FileDescriptorProto) -> dict[str, tuple[int, ...]]:
    """Return the full names of a file's message types with their indexes. Types come before the types inside them."""
    names: dict[str, tuple[int, ...]] = {}

    def add(messages: Sequence[DescriptorProto], prefix: str, outer: tuple[int, ...]) -> None:
        for index, message in enumerate(messages):
            names[prefix + message.name] = (*outer, index)
            add(message.nested_type, f"{prefix}{message.name}.", (*outer, index))

    add(file.message_type, f"{file.package}." if file.package else "", ())
    return names


def _own(reader: EventType) -> ProtobufSerializer:
    assert isinstance(reader.payloads, ProtobufSerializer)
    return reader.payloads


# ---- compatibility ----

_Type = FieldDescriptorProto.Type
_MESSAGE: Final = FieldDescriptorProto.TYPE_MESSAGE
_GROUP: Final = FieldDescriptorProto.TYPE_GROUP
_ENUM: Final = FieldDescriptorProto.TYPE_ENUM
_BYTES: Final = FieldDescriptorProto.TYPE_BYTES
#: Written type of a single value -> types that read every value of it unchanged.
_READ_AS: Final[Mapping[int, frozenset[int]]] = {
    _Type.TYPE_BOOL: frozenset({_Type.TYPE_INT32, _Type.TYPE_INT64, _Type.TYPE_UINT32, _Type.TYPE_UINT64}),
    _Type.TYPE_INT32: frozenset({_Type.TYPE_INT64}),
    _Type.TYPE_UINT32: frozenset({_Type.TYPE_INT64, _Type.TYPE_UINT64}),
    _Type.TYPE_SINT32: frozenset({_Type.TYPE_SINT64}),
    _ENUM: frozenset({_Type.TYPE_INT32, _Type.TYPE_INT64}),
    _Type.TYPE_STRING: frozenset({_BYTES}),
}
_SAFE: Final[Mapping[int, frozenset[int]]] = {**_READ_AS, _MESSAGE: frozenset({_BYTES})}


@dataclass(frozen=True, slots=True)
class _Types:
    """Messages and enums of a descriptor set by full name, and the enums that keep only known numbers."""

    messages: dict[str, DescriptorProto]
    enums: dict[str, EnumDescriptorProto]
    closed: frozenset[str]

    @classmethod
    def of(cls, schema: SchemaInfo) -> _Types:
        try:
            files = FileDescriptorSet.FromString(schema.data).file
        except DecodeError as error:
            raise SchemaError(f"invalid Protobuf descriptor set of type {schema.type!r}: {error}") from error
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
        """Yield the faults of one message type read as another, each pair once."""
        if (written, read) in self._seen:
            return
        self._seen.add((written, read))
        writer, reader = self._writer.messages.get(written), self._reader.messages.get(read)
        if writer is None or reader is None:
            if written != read:
                yield f"{path}: {written} and {read} cannot be compared, the descriptor set lacks one of them"
            return
        yield from self._numbers(writer, reader, path)
        fields = {field.number: field for field in reader.field}
        for field in writer.field:
            if field.number in fields:
                yield from self._fields(field, fields[field.number], f"{path}.{field.name}")
        yield from _required(writer, reader, path)
        yield from _oneofs(writer, reader, path)

    def _numbers(self, writer: DescriptorProto, reader: DescriptorProto, path: str) -> Iterator[str]:
        """Yield the faults of numbers that are removed, or used again."""
        old, new = (reader, writer) if self._added else (writer, reader)
        kept = {field.number for field in new.field}
        for field in old.field:
            if field.number not in kept and not _reserved(new, field.number):
                yield f"{path}.{field.name}: field {field.number} was removed, and its number is not reserved"
        for field in new.field:
            if _reserved(old, field.number):
                yield f"{path}.{field.name}: field {field.number} uses a reserved number"

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
            yield f"{where}: {_type_name(writer.type)} cannot be read as {_type_name(reader.type)} without loss"
        if _default(writer) != _default(reader):
            yield f"{where}: the default for a missing value differs"

    def _enums(self, written: str, read: str, where: str) -> Iterator[str]:
        writer, reader = self._writer.enums.get(written), self._reader.enums.get(read)
        if writer is None or reader is None:
            if written != read:
                yield f"{where}: {written} and {read} cannot be compared, the descriptor set lacks one of them"
            return
        numbers = {value.name: value.number for value in reader.value}
        for value in writer.value:
            if numbers.get(value.name, value.number) != value.number:
                yield f"{where}: {value.name} is number {value.number} written and {numbers[value.name]} read"
            elif value.number not in numbers.values() and not self._keeps(value.number, reader, read):
                yield f"{where}: the reader's enum has no number {value.number} ({value.name})"

    def _keeps(self, number: int, reader: EnumDescriptorProto, name: str) -> bool:
        """True if a number that the reader's enum does not name is harmless."""
        if name in self._reader.closed:
            return False
        ranges = reader.reserved_range
        # An older reader of an open enum keeps new numbers; a removed number is a fault.
        return self._added or any(one.start <= number <= one.end for one in ranges)


def _reserved(message: DescriptorProto, number: int) -> bool:
    return any(one.start <= number < one.end for one in message.reserved_range)


def _required(writer: DescriptorProto, reader: DescriptorProto, path: str) -> Iterator[str]:
    required = FieldDescriptorProto.LABEL_REQUIRED
    always = {field.number for field in writer.field if field.label == required}
    for field in reader.field:
        if field.label == required and field.number not in always:
            yield f"{path}.{field.name}: the reader requires field {field.number}, which the writer may omit"


def _oneofs(writer: DescriptorProto, reader: DescriptorProto, path: str) -> Iterator[str]:
    """Yield the faults of fields that could all be written, if the reader keeps only one of them."""
    choices = {field.number: _oneof(field) for field in reader.field}
    for index, oneof in enumerate(reader.oneof_decl):
        written = [field for field in writer.field if choices.get(field.number) == index]
        together = {_oneof(field) for field in written}
        if len(written) > 1 and (None in together or len(together) > 1):
            names = ", ".join(field.name for field in written)
            yield f"{path}.{oneof.name}: {names} may be written together, but the reader allows only one of them"


def _oneof(field: FieldDescriptorProto) -> int | None:
    # "optional" of proto3 is a separate oneof, in name only.
    return field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None


def _default(field: FieldDescriptorProto) -> str:
    return "" if field.default_value in ("0", "false") else field.default_value


def _type_name(number: int) -> str:
    """Return the name of a field's type as a .proto file spells it: ``int32``."""
    return _Type.Name(number).removeprefix("TYPE_").lower()  # type: ignore[arg-type]


# ---- one message read as another ----

_D: Final = FieldDescriptor
# Bytes that are not text are an error of their event; they never become another text.
_WIDER: Final[Mapping[int, frozenset[int]]] = {**_READ_AS, _D.TYPE_BYTES: frozenset({_D.TYPE_STRING})}
#: Written type -> the narrower type that a reader may have.
_NARROWER: Final = {
    _D.TYPE_INT64: _D.TYPE_INT32,
    _D.TYPE_SINT64: _D.TYPE_SINT32,
    _D.TYPE_DOUBLE: _D.TYPE_FLOAT,
}
#: Names of messages that have been compared.
_Pairs = set[tuple[str, str]]

_MESSAGES: Final = (_D.TYPE_MESSAGE, _D.TYPE_GROUP)


def _misfit(writer: SchemaInfo, reader: Descriptor) -> str | None:
    """Return the reason why events of a registered schema cannot be read as a message; None if they can.

    Missing imports of the registered descriptor set are read from the reader's files. A set that is still incomplete is
    not compared. Raises :class:`SchemaError` for an invalid descriptor set.
    """
    written = _written(writer, reader)
    return None if written is None else _message_misfit(written, reader, "$", set())


def _widened_message(writer: SchemaInfo, reader: Descriptor) -> type[Message] | None:
    """Return the reader's message with the writer's numbers where its own are narrower; None if none are.

    Raises :class:`SchemaError` for an invalid descriptor set.
    """
    written, wider = _written(writer, reader), dict[tuple[str, int], int]()
    if written is not None:
        _find_wider(written, reader, wider, set())
    if not wider:
        return None
    files = descriptor_set(reader)
    for file in files.file:
        for message in file.message_type:
            _widen(message, f"{file.package}.{message.name}".lstrip("."), wider)
    return load(files, reader.full_name)


def _written(writer: SchemaInfo, reader: Descriptor) -> Descriptor | None:
    try:
        files = FileDescriptorSet.FromString(writer.data)
    except DecodeError as error:
        raise SchemaError(f"invalid registered descriptor set of {writer.type!r}: {error}") from error
    known = {file.name for file in files.file}
    files.file.extend(file for file in descriptor_set(reader).file if file.name not in known)
    try:
        return cast("Descriptor", load(files, writer.type).DESCRIPTOR)
    except SchemaError:
        return None


def _find_wider(writer: Descriptor, reader: Descriptor, wider: dict[tuple[str, int], int], seen: _Pairs) -> None:
    """Record the type that each field of the reader needs, by the name of its message and its number."""
    if (writer.full_name, reader.full_name) in seen:
        return
    seen.add((writer.full_name, reader.full_name))
    read = {field.number: field for field in reader.fields}
    for field in writer.fields:
        own = read.get(field.number)
        if own is None:
            continue
        if _NARROWER.get(field.type) == own.type:
            wider[reader.full_name, own.number] = field.type
        elif field.message_type is not None and own.message_type is not None:
            _find_wider(field.message_type, own.message_type, wider, seen)


def _widen(message: DescriptorProto, name: str, wider: dict[tuple[str, int], int]) -> None:
    for field in message.field:
        field.type = wider.get((name, field.number), field.type)  # type: ignore[assignment]
    for inside in message.nested_type:
        _widen(inside, f"{name}.{inside.name}", wider)


def _message_misfit(writer: Descriptor, reader: Descriptor, path: str, seen: _Pairs) -> str | None:
    pair = writer.full_name, reader.full_name
    if pair in seen:
        return None
    seen.add(pair)
    read = {field.number: field for field in reader.fields}
    for field in writer.fields:
        if field.number in read:
            reason = _field_misfit(field, read[field.number], f"{path}.{field.name}", seen)
            if reason is not None:
                return reason
    return None


def _field_misfit(writer: FieldDescriptor, reader: FieldDescriptor, path: str, seen: _Pairs) -> str | None:
    if writer.is_repeated and not reader.is_repeated:
        return f"{path} is repeated there, single here"
    if _is_map(writer) != _is_map(reader):
        return f"{path} is a map on one side only"
    if writer.type in _MESSAGES and reader.type == writer.type:
        assert writer.message_type is not None
        assert reader.message_type is not None
        return _message_misfit(writer.message_type, reader.message_type, path, seen)
    if reader.type != writer.type and reader.type not in _WIDER.get(writer.type, ()):
        return f"{path} (number {writer.number}) is {_type_name(writer.type)} there, {_type_name(reader.type)} here"
    return None


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry)

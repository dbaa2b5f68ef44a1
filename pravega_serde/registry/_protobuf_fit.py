"""Whether a message can be read as another one by its fields' numbers, without any value changing.

Protobuf itself reads anything as anything: a field of another type is skipped or cut to size. Here that is a misfit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.schema import descriptor_set, load
from pravega_serde.registry._evolution_protobuf import READ_AS, type_name
from pravega_serde.registry._models import SchemaInfo

__all__ = ["protobuf_misfit", "widened_message"]

_D: Final = FieldDescriptor
# Bytes that are no text are an error of their event; they never become another text.
_WIDER: Final[Mapping[int, frozenset[int]]] = {**READ_AS, _D.TYPE_BYTES: frozenset({_D.TYPE_STRING})}
#: What was written -> the narrower number that a reader may have.
_NARROWER: Final = {
    _D.TYPE_INT64: _D.TYPE_INT32,
    _D.TYPE_SINT64: _D.TYPE_SINT32,
    _D.TYPE_DOUBLE: _D.TYPE_FLOAT,
}
#: Names of messages that have been compared.
_Pairs = set[tuple[str, str]]

_MESSAGES: Final = (_D.TYPE_MESSAGE, _D.TYPE_GROUP)


def protobuf_misfit(writer: SchemaInfo, reader: Any) -> str | None:
    """Why events of a registered schema cannot be read as a message; None if they can.

    What the registered descriptor set imports and lacks is taken from the reader's files; a set that cannot be
    completed so is not compared. Raises :class:`SchemaError` for what is no descriptor set.
    """
    written = _written(writer, reader)
    return None if written is None else _message_misfit(written, reader, "$", set())


def widened_message(writer: SchemaInfo, reader: Any) -> type[Message] | None:
    """The reader's message with the writer's numbers where its own are narrower; None if none are.

    Raises :class:`SchemaError` for what is no descriptor set.
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


def _written(writer: SchemaInfo, reader: Any) -> Descriptor | None:
    try:
        files = FileDescriptorSet.FromString(writer.data)
    except DecodeError as error:
        raise SchemaError(f"the registered schema of {writer.type!r} is no descriptor set: {error}") from error
    known = {file.name for file in files.file}
    files.file.extend(file for file in descriptor_set(reader).file if file.name not in known)
    try:
        return cast("Descriptor", load(files, writer.type).DESCRIPTOR)
    except SchemaError:
        return None


def _find_wider(writer: Descriptor, reader: Descriptor, wider: dict[tuple[str, int], int], seen: _Pairs) -> None:
    """Note the type that each field of the reader's needs, by its message's name and its number."""
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
        return f"{path} (number {writer.number}) is {type_name(writer.type)} there, {type_name(reader.type)} here"
    return None


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry)

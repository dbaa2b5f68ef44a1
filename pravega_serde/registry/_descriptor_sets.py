"""Protobuf schemas as the bytes that protobuf-java's ``toProto()`` gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.schema import descriptor_set

__all__ = ["schema_data"]


def schema_data(descriptor: Any, *, all_files: bool = False) -> bytes:
    """The descriptor set that a message is registered with: its own file, or with all that it imports.

    Without what protoc adds to descriptor sets but not to generated code: comments, and JSON names that follow from the
    fields' names. Raises :class:`SchemaError` for a message inside another, which the registry does not take.
    """
    if descriptor.containing_type is not None:
        raise SchemaError(
            f"the registry takes only messages at the top of their file; {descriptor.full_name} is inside "
            f"{descriptor.containing_type.full_name}"
        )
    files = descriptor_set(descriptor).file if all_files else [_proto_of(descriptor)]
    return FileDescriptorSet(file=[_bare(file) for file in files]).SerializeToString()


def _proto_of(descriptor: Any) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    descriptor.file.CopyToProto(proto)
    return proto


def _bare(file: FileDescriptorProto) -> FileDescriptorProto:
    file.ClearField("source_code_info")
    for field in _fields(file.message_type):
        if field.json_name == _json_name(field.name):
            field.ClearField("json_name")
    for extension in file.extension:
        extension.ClearField("json_name")
    return file


def _fields(messages: Iterable[DescriptorProto]) -> Iterator[FieldDescriptorProto]:
    for message in messages:
        yield from message.field
        yield from message.extension
        yield from _fields(message.nested_type)


def _json_name(name: str) -> str:
    """As protoc derives it: every underscore is dropped and capitalises what follows it."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)

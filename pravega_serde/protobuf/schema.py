"""Protobuf schemas: the message class from a class, a descriptor or a descriptor set."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.bundled_files import BUNDLED, bundled

#: Forms in which you can pass a message type; ``str`` and ``Path`` are the path of a descriptor set's file.
ProtobufSchema = type[Message] | Descriptor | FileDescriptorSet | bytes | str | Path


def load(schema: ProtobufSchema, message_type: str | None) -> type[Message]:
    """Return the message class of a schema; :class:`SchemaError` names the fault and the fix.

    Descriptor sets are put into a separate pool: the default pool, which a whole program shares, does not change.
    """
    if isinstance(schema, type) and issubclass(schema, Message):
        return _named(schema, message_type)
    if isinstance(schema, Descriptor):
        return _named(message_factory.GetMessageClass(schema), message_type)
    if isinstance(schema, str | Path):
        schema = _read(Path(schema))
    if isinstance(schema, bytes | bytearray | memoryview):
        schema = _parse(bytes(schema))
    if isinstance(schema, FileDescriptorSet):
        return _from_set(schema, message_type)
    raise SchemaError(
        "a Protobuf schema must be a message class, a descriptor, a FileDescriptorSet, its bytes, or the path of its "
        f"file; not {_kind_of(schema)}"
    )


def _kind_of(value: object) -> str:
    return f"a class: pass protobuf_schema_of({value.__name__})" if isinstance(value, type) else type(value).__name__


def _named(message: type[Message], wanted: str | None) -> type[Message]:
    name = descriptor_of(message).full_name
    if wanted is not None and wanted != name:
        raise SchemaError(f"the schema is of {name}, but the message type is {wanted}; omit one of them")
    return message


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise SchemaError(f"cannot read the descriptor set {str(path)!r}: {error}") from error


_HOW: Final = "create it with: protoc --include_imports --descriptor_set_out=FILE"


def _parse(data: bytes) -> FileDescriptorSet:
    try:
        files = FileDescriptorSet.FromString(data)
    except DecodeError as error:
        raise SchemaError(f"invalid FileDescriptorSet of {len(data)} bytes; {_HOW}") from error
    if not files.file:
        raise SchemaError(f"the FileDescriptorSet has no file; {_HOW}")
    return files


def _from_set(files: FileDescriptorSet, message_type: str | None) -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    protos = {proto.name: proto for proto in files.file}
    for name in protos:
        _add(pool, name, protos, [])
    name = message_type or _only_message(files)
    try:
        found = pool.FindMessageTypeByName(name)
    except KeyError:
        raise SchemaError(f"the descriptor set has no message {name!r}; it has {_messages(files)}") from None
    return message_factory.GetMessageClass(found)


def _add(
    pool: descriptor_pool.DescriptorPool, name: str, protos: dict[str, FileDescriptorProto], path: list[str]
) -> None:
    """Add a file, after the files that it imports."""
    if _is_in(pool, name):
        return
    if name in path:
        raise SchemaError(f"the file {name} of the descriptor set imports itself through {', '.join(path)}")
    proto = protos.get(name) or bundled(name)
    if proto is None:
        raise SchemaError(f"the descriptor set lacks {name!r}, which {path[-1]!r} imports; {_HOW}")
    for imported in proto.dependency:
        _add(pool, imported, protos, [*path, name])
    try:
        pool.AddSerializedFile(proto.SerializeToString())
        pool.FindFileByName(name)
    except (TypeError, KeyError) as error:
        raise SchemaError(f"the file {name!r} of the descriptor set is invalid: {error}") from error


def _is_in(pool: descriptor_pool.DescriptorPool, name: str) -> bool:
    try:
        pool.FindFileByName(name)
    except KeyError:
        return False
    return True


def _only_message(files: FileDescriptorSet) -> str:
    names = _names(files)
    if len(names) == 1:
        return names[0]
    raise SchemaError(f"set message_type: the descriptor set has {_messages(files)}")


def _names(files: FileDescriptorSet) -> list[str]:
    own = [proto for proto in files.file if proto.name not in BUNDLED] or files.file
    return [f"{p.package}.{message.name}".lstrip(".") for p in own for message in p.message_type]


def _messages(files: FileDescriptorSet) -> str:
    names = _names(files)
    more = f", and {len(names) - 20} more" if len(names) > 20 else ""
    return (", ".join(names[:20]) + more) or "no message"


def _proto_of(file: FileDescriptor) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    return proto


def descriptor_of(message: type[Message] | Message) -> Descriptor:
    """Return the descriptor of a message; type stubs declare another class for it."""
    return cast("Descriptor", message.DESCRIPTOR)


def descriptor_set(descriptor: Descriptor) -> FileDescriptorSet:
    """Return the file of a message and all its imports, imports first."""
    files: dict[str, FileDescriptor] = {}

    def visit(file: FileDescriptor) -> None:
        if file.name not in files:
            for imported in file.dependencies:
                visit(imported)
            files[file.name] = file

    visit(descriptor.file)
    return FileDescriptorSet(file=[_proto_of(file) for file in files.values()])


@lru_cache(maxsize=256)
def same_type(first: Descriptor, second: Descriptor) -> bool:
    """True if two descriptors, perhaps of different pools, are of the same message type."""
    if first.full_name != second.full_name:
        return False
    return first is second or descriptor_set(first) == descriptor_set(second)


def is_importable(message: type[Message]) -> bool:
    """True if a class can be pickled by its name, as classes of generated modules can."""
    found: Any = sys.modules.get(message.__module__)
    for name in message.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is message

"""Code and schemas generated from one schema: Python classes, and schemas of other formats.

A schema of another format is derived from the columns of the events, with the same types as for
:func:`avro_schema_of`, :func:`protobuf_schema_of` and :func:`json_schema_of`.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_serde.avro import AvroSerializer, avro_schema_of
from pravega_serde.errors import SchemaError, UnsupportedTargetError
from pravega_serde.generating.avro_classes import avro_classes
from pravega_serde.generating.class_schemas import ClassSchemas
from pravega_serde.generating.code import GeneratedCode
from pravega_serde.generating.json_classes import json_classes
from pravega_serde.generating.protobuf_classes import protobuf_classes
from pravega_serde.generating.python_classes import ClassStyle, for_dataclasses, python_classes
from pravega_serde.json import json_schema_of
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.protobuf.bundled_files import bundled
from pravega_serde.protobuf.proto_source import proto_path, proto_source
from pravega_serde.protobuf.schema import descriptor_of, descriptor_set, load
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.interface import schema_text

#: Format -> compiler that writes its Java classes.
_JAVA: Final = {
    "Avro": "java -jar avro-tools.jar compile schema",
    "Json": "jsonschema2pojo",
    "Protobuf": "protoc --java_out",
}
#: Target -> format of the schema.
_FORMATS: Final = {"avsc": "Avro", "json-schema": "Json", "proto": "Protobuf"}


def python_module(info: SchemaInfo, style: ClassStyle, *, name: str, head: str) -> GeneratedCode:
    """Return a module with the classes of a schema. Raises :class:`SchemaError`, :class:`MissingExtraError`."""
    classes, schema = _classes(info, style)
    if style == "dataclass":
        classes = for_dataclasses(classes)
    first = next(iter(classes.schemas))
    module = python_classes(classes, style, head=head, schema=schema, use=_use(info, first))
    return GeneratedCode({f"{name}.py": module}, classes.notes)


def schema_files(info: SchemaInfo, target: str, *, name: str, head: str) -> GeneratedCode:
    """Return a schema of the target's format. Raises :class:`SchemaError` for columns that the format cannot have."""
    if target == "java":
        raise UnsupportedTargetError(
            f"Java classes are generated for Java objects only; for a schema of the format {info.format.name}, use "
            f"{_JAVA[info.format.name]}"
        )
    if _FORMATS[target] == info.format.name:
        return _same_format(info, target, name=name, head=head)
    columns = _columns(info)
    if target == "avsc":
        return _json_file(f"{name}.avsc", avro_schema_of(columns, info.type or name))
    if target == "json-schema":
        return _json_file(f"{name}.json", json_schema_of(columns, info.type or name))
    (file,) = protobuf_schema_of(columns, info.type or name).file
    return GeneratedCode({f"{name}.proto": proto_source(file, head)})


def _same_format(info: SchemaInfo, target: str, *, name: str, head: str) -> GeneratedCode:
    if target != "proto":
        return _json_file(f"{name}.{'avsc' if target == 'avsc' else 'json'}", schema_text(info))
    own = [file for file in _files(info).file if bundled(file.name) is None]
    if len(own) == 1:
        return GeneratedCode({f"{name}.proto": proto_source(own[0], head)})
    return GeneratedCode({proto_path(file.name): proto_source(file, head) for file in own})


def _json_file(path: str, text: str) -> GeneratedCode:
    return GeneratedCode({path: f"{json.dumps(json.loads(text), indent=2)}\n"})


# ---- classes ----


def _classes(info: SchemaInfo, style: ClassStyle) -> tuple[ClassSchemas, str | bytes]:
    """Return the schemas of the classes, and the schema for the serializer."""
    if info.format.name == "Protobuf":
        files = _files(info)
        return protobuf_classes(_messages(info, files)), files.SerializeToString(deterministic=True)
    text = schema_text(info)
    if info.format.name == "Avro":
        return avro_classes(text), text
    return json_classes(text, info.type, bytes_as_text=style == "pydantic"), text


def _use(info: SchemaInfo, first: str) -> str:
    """Return the documentation of SCHEMA."""
    if info.format.name == "Protobuf":
        return f"Descriptor set for ``typed(ProtobufSerializer(SCHEMA, message_type=...), {first})``."
    made = "AvroSerializer(SCHEMA)" if info.format.name == "Avro" else "JsonSerializer()"
    return f"Schema of the events, which ``typed({made}, {first})`` reads and writes."


def _files(info: SchemaInfo) -> FileDescriptorSet:
    """Return the files of a Protobuf schema, imports first and without comments."""
    found = load(info.data, info.type or _top_level(FileDescriptorSet.FromString(info.data))[0])
    files = descriptor_set(descriptor_of(found))
    for each in files.file:
        each.ClearField("source_code_info")
    return files


def _top_level(files: FileDescriptorSet) -> list[str]:
    """Return the messages of the last file. Raises :class:`SchemaError` if it has none."""
    if not files.file or not files.file[-1].message_type:
        raise SchemaError("the Protobuf file has no message")
    last = files.file[-1]
    return [f"{last.package}.{each.name}".lstrip(".") for each in last.message_type]


def _messages(info: SchemaInfo, files: FileDescriptorSet) -> list[Descriptor]:
    if info.type:
        return [descriptor_of(load(files, info.type))]
    found: list[Descriptor] = []
    waiting = [descriptor_of(load(files, each)) for each in reversed(_top_level(files))]
    while waiting:
        each = waiting.pop()
        if not each.GetOptions().map_entry:
            found.append(each)
            waiting += reversed(list(each.nested_types))
    return found


# ---- columns ----


def _columns(info: SchemaInfo) -> pa.Schema:
    """Return the columns of the events. Fields that are never null are not nullable."""
    part = part_of(info.format)
    assert part is not None
    if not info.type:
        names = _top_level(_files(info))
        if len(names) > 1:
            raise SchemaError(f"the Protobuf file has {len(names)} messages; set the type: {', '.join(names)[:500]}")
        info = SchemaInfo(names[0], info.format, info.data)
    payloads: Any = part.payloads(info)
    kind = payloads.arrow_type
    if not isinstance(kind, pa.StructType):
        raise SchemaError(f"the schema of {info.type} has no fields, so it cannot be a schema of another format")
    required = payloads.never_null if isinstance(payloads, AvroSerializer) else frozenset()
    return pa.schema([field.with_nullable(field.name not in required) for field in kind])

"""``.proto`` files of descriptors. protoc compiles the text to the same descriptors, without comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)
from google.protobuf.message import Message

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.declared import option_text, plain_options
from pravega_serde.protobuf.derive import json_name

_F = FieldDescriptorProto
_INDENT: Final = "  "
#: Number after the largest number of a field, and of an enum's constant.
_MAX_FIELD: Final = 536870912
_MAX_ENUM: Final = 2147483647
_LABELS: Final = {_F.LABEL_REQUIRED: "required ", _F.LABEL_REPEATED: "repeated "}


def proto_source(file: FileDescriptorProto, head: str) -> str:
    """Return the text of a file with a comment as its first lines. Raises :class:`SchemaError` for unsupported parts.

    Those are editions, extensions, groups and custom options.
    """
    syntax = file.syntax or "proto2"
    if syntax not in ("proto2", "proto3"):
        raise SchemaError(f"the file {file.name!r} has the syntax {syntax!r}; only proto2 and proto3 can be written")
    if file.extension:
        raise SchemaError(f"the file {file.name!r} has extensions, which cannot be written as text")
    blocks = [[f"// {each}" for each in head.splitlines()] + [f'syntax = "{syntax}";']]
    blocks.append([f"package {file.package};"] if file.package else [])
    public = set(file.public_dependency)
    blocks.append([f"import {'public ' * (at in public)}{_text(name)};" for at, name in enumerate(file.dependency)])
    blocks.append([f"option {each};" for each in _options(file.options, file.name)])
    blocks += [list(_enum(each)) for each in file.enum_type]
    blocks += [list(_message(each, syntax, file.package)) for each in file.message_type]
    for service in file.service:
        lines = [f"{_INDENT}option {each};" for each in _options(service.options, service.name)]
        lines += [f"{_INDENT}{line}" for method in service.method for line in _method(method)]
        blocks.append([f"service {service.name} {{", *lines, "}"])
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def proto_path(name: str) -> str:
    """Return the relative path of a file from its name in a descriptor. Raises :class:`SchemaError` for others."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not name.isprintable() or path.suffix != ".proto":
        raise SchemaError(f"the descriptor has a file with the name {name!r:.200}, which is not a relative path")
    return str(path)


def _message(message: DescriptorProto, syntax: str, scope: str) -> Iterator[str]:
    name = f"{scope}.{message.name}".lstrip(".")
    if message.extension or message.extension_range:
        raise SchemaError(f"the message {name} has extensions, which cannot be written as text")
    entries = {f".{name}.{each.name}": each for each in message.nested_type if each.options.map_entry}
    yield f"message {message.name} {{"
    for option in _options(message.options, name):
        yield f"{_INDENT}option {option};"
    for enum in message.enum_type:
        yield from _indented(_enum(enum))
    nested = list(message.nested_type)
    for field in message.field:
        # protoc numbers the nested types in the order of the text, and a map is one of them.
        if field.type_name in entries:
            at = nested.index(entries[field.type_name])
            yield from _nested(nested[:at], syntax, name)
            del nested[: at + 1]
        yield from _with_oneof(field, message, entries, syntax, name)
    yield from _nested(nested, syntax, name)
    ranges = [_range(each.start, each.end - 1, _MAX_FIELD - 1) for each in message.reserved_range]
    yield from _reserved(ranges, message.reserved_name)
    yield "}"


def _nested(messages: Sequence[DescriptorProto], syntax: str, where: str) -> Iterator[str]:
    for each in messages:
        yield from _indented(_message(each, syntax, where))


def _with_oneof(
    field: FieldDescriptorProto,
    message: DescriptorProto,
    entries: dict[str, DescriptorProto],
    syntax: str,
    where: str,
) -> Iterator[str]:
    """Yield a field. The first member of a oneof is written with all members."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        yield f"{_INDENT}{_field(field, entries, syntax, where)}"
        return
    members = [each for each in message.field if each.HasField("oneof_index") and each.oneof_index == field.oneof_index]
    if field.name != members[0].name:
        return
    oneof = message.oneof_decl[field.oneof_index]
    yield f"{_INDENT}oneof {oneof.name} {{"
    for option in _options(oneof.options, f"{where}.{oneof.name}"):
        yield f"{_INDENT * 2}option {option};"
    for each in members:
        yield f"{_INDENT * 2}{_field(each, entries, syntax, where, in_oneof=True)}"
    yield f"{_INDENT}}}"


def _field(
    field: FieldDescriptorProto, entries: dict[str, DescriptorProto], syntax: str, where: str, *, in_oneof: bool = False
) -> str:
    where = f"{where}.{field.name}"
    if field.type == _F.TYPE_GROUP:
        raise SchemaError(f"the field {where} is a group, which cannot be written as text")
    entry = entries.get(field.type_name)
    if entry is not None:
        kind = f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
    else:
        label = "optional " if field.proto3_optional or (syntax == "proto2" and not in_oneof) else ""
        kind = _LABELS.get(field.label, label) + _type(field)
    declared = option_text(field.options)
    known = field.options if declared is None else plain_options(field.options)
    options = [*_options(known, where), *([declared] if declared else [])]
    if field.HasField("default_value"):
        options.append(f"default = {_default(field)}")
    if field.HasField("json_name") and field.json_name != json_name(field.name):
        options.append(f"json_name = {_text(field.json_name)}")
    return f"{kind} {field.name} = {field.number}{_listed(options)};"


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for option in _options(enum.options, enum.name):
        yield f"{_INDENT}option {option};"
    for value in enum.value:
        options = list(_options(value.options, f"{enum.name}.{value.name}"))
        yield f"{_INDENT}{value.name} = {value.number}{_listed(options)};"
    ranges = [_range(each.start, each.end, _MAX_ENUM) for each in enum.reserved_range]
    yield from _reserved(ranges, enum.reserved_name)
    yield "}"


def _method(method: MethodDescriptorProto) -> Iterator[str]:
    takes = f"{'stream ' * method.client_streaming}{method.input_type}"
    returns = f"{'stream ' * method.server_streaming}{method.output_type}"
    options = list(_options(method.options, method.name))
    declared = f"rpc {method.name}({takes}) returns ({returns})"
    if not options:
        yield f"{declared};"
        return
    yield f"{declared} {{"
    for option in options:
        yield f"{_INDENT}option {option};"
    yield "}"


def _reserved(ranges: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    if ranges:
        yield f"{_INDENT}reserved {', '.join(ranges)};"
    if names:
        yield f"{_INDENT}reserved {', '.join(map(_text, names))};"


def _range(start: int, end: int, largest: int) -> str:
    if start == end:
        return str(start)
    return f"{start} to {'max' if end == largest else end}"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _listed(options: Sequence[str]) -> str:
    return f" [{', '.join(options)}]" if options else ""


def _type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return field.type_name
    return _F.Type.Name(field.type).removeprefix("TYPE_").lower()


def _default(field: FieldDescriptorProto) -> str:
    if field.type == _F.TYPE_BYTES:  # escaped in the descriptor already, as in C
        return f'"{field.default_value}"'
    return _text(field.default_value) if field.type == _F.TYPE_STRING else field.default_value


def _options(options: Message, where: str) -> Iterator[str]:
    """Yield the options of an element as ``name = value``."""
    known = type(options)()
    known.CopyFrom(options)
    known.DiscardUnknownFields()
    if known.ByteSize() != options.ByteSize():
        raise SchemaError(f"{where} has custom options, which cannot be written as text")
    for field, value in options.ListFields():
        if field.name == "map_entry":
            continue
        if field.message_type is not None or field.is_repeated:
            raise SchemaError(f"{where} has the option {field.name}, which cannot be written as text")
        if field.enum_type is not None:
            yield f"{field.name} = {field.enum_type.values_by_number[value].name}"
        elif isinstance(value, bool):
            yield f"{field.name} = {str(value).lower()}"
        else:
            yield f"{field.name} = {_text(value) if isinstance(value, str) else value}"


def _text(text: str) -> str:
    """Return a literal."""
    return json.dumps(text, ensure_ascii=False)

"""Protobuf message types derived from columns, and schemas as the bytes of protobuf-java's ``toProto()``.

A message that replaces an earlier one keeps the numbers of its fields: :func:`keep_numbers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MessageOptions,
)

from pravega_serde.columnar.types import ROWS, SchemaWalk, is_family, no_form, stored
from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.declared import declare, declared_for
from pravega_serde.protobuf.schema import descriptor_set, load

_F = FieldDescriptorProto
#: Messages of other files that fields of columns have.
_IMPORTED: Final = frozenset(f".{row.protobuf}" for row in ROWS.values() if "." in row.protobuf)


def protobuf_schema_of(schema: pa.Schema | Any, name: str | None = None) -> FileDescriptorSet:
    """Return the descriptor set of a class, such as ``Order``, or of a message with columns as fields 1, 2, ….

    ``name`` is the name of the message, after its package. For a class, it is by default the name of the class. The
    page *Derived schemas* has the types of a class.

    A struct becomes a message inside the message, a nullable scalar an optional field. See
    ``docs/serialization/derived-schemas.md`` for the types.

    The option ``(confluent.field_meta).params["arrow"]`` of a field holds its Arrow type if Protobuf's own is another:
    see :mod:`pravega_serde.protobuf.declared`. The generic reader of Java's registry serializers accepts no imports:
    for it, cast such columns to integers or strings. A null list or map is written as an empty one. Raises
    :class:`SchemaError` for types that Protobuf does not have (lists in lists or maps), for invalid Protobuf names, and
    for names with the same JSON name.
    """
    if not isinstance(schema, pa.Schema):
        from pravega_serde.adapters.protobuf_schemas import protobuf_files  # noqa: PLC0415 - columns need no classes

        return protobuf_files(schema, name, protobuf_schema_of)
    if name is None:
        raise SchemaError("columns have no name; pass the name of the message")
    package, _, last = name.rpartition(".")
    imports: set[str] = set()
    made = _Message(last, f".{name}", imports)
    for part in name.split("."):
        made.check_name(part, "$")
    message = made.of_fields(schema, "$")
    file = FileDescriptorProto(
        name=f"{name.replace('.', '/')}.proto", syntax="proto3", message_type=[message], dependency=sorted(imports)
    )
    if package:
        file.package = package
    return FileDescriptorSet(file=[file])


def _check_json_names(names: list[str], path: str) -> None:
    """Raise :class:`SchemaError` for names that are the same in JSON, which protoc refuses."""
    known: dict[str, str] = {}
    for name in names:
        before = known.setdefault(json_name(name), name)
        if before != name:
            raise SchemaError(
                f"the Protobuf names {before!r} and {name!r} (at {path}) are both {json_name(name)!r} in JSON; "
                "rename one"
            )


class _Message(SchemaWalk[FieldDescriptorProto]):
    """Builder of a message. A field has its type and label, and the messages that it needs are inside the message."""

    language, column = "Protobuf", "protobuf"

    def __init__(self, name: str, full_name: str, imports: set[str]) -> None:
        """Fields refer to the messages inside with ``full_name``. ``imports`` receives the imported files."""
        self._made, self._full_name, self._imports = DescriptorProto(name=name), full_name, imports
        self._taken: set[str] = set()
        self._name = ""

    def of_fields(self, fields: Iterable[pa.Field], path: str) -> DescriptorProto:
        """Return the message of columns."""
        names = [field.name for field in fields]
        _check_json_names(names, path)
        self._taken = set(names)
        for name in names:
            self.check_name(name, f"{path}.{name}")
        for number, made in enumerate(self.members(fields, path).values(), 1):
            made.number = number
            if made.proto3_optional:  # the oneofs of optional fields come after all others; here there are no others
                made.oneof_index = len(self._made.oneof_decl)
                self._made.oneof_decl.add(name=f"_{made.name}")
            self._made.field.append(made)
        return self._made

    def field(self, field: pa.Field, path: str) -> FieldDescriptorProto:
        self._name = field.name
        made = self.of(field.type, path)
        made.name = field.name
        if made.label != _F.LABEL_REPEATED:
            made.label = _F.LABEL_OPTIONAL
            made.proto3_optional = field.nullable and made.type != _F.TYPE_MESSAGE
        return made

    def leaf(self, kind: pa.DataType, path: str, form: str) -> FieldDescriptorProto:
        made = FieldDescriptorProto()
        if (declared := declared_for(kind)) is not None:
            self._imports.add("confluent/meta.proto")
            declare(made.options, declared)
        if "." in form:
            self._imports.add(f"{form.replace('.', '/').lower()}.proto")
            made.type, made.type_name = _F.TYPE_MESSAGE, f".{form}"
        else:
            made.type = _F.Type.Value(f"TYPE_{form.upper()}")
        return made

    def fields(self, kind: pa.StructType, path: str) -> FieldDescriptorProto:
        inner = _type_name(self._name, self._taken)
        full_name = f"{self._full_name}.{inner}"
        self._made.nested_type.append(_Message(inner, full_name, self._imports).of_fields(kind, path))
        return FieldDescriptorProto(type=_F.TYPE_MESSAGE, type_name=full_name)

    def items(self, kind: pa.ListType, path: str) -> FieldDescriptorProto:
        made = self._single(kind.value_type, f"{path}[]")
        made.label = _F.LABEL_REPEATED
        return made

    def entries(self, kind: pa.MapType, path: str) -> FieldDescriptorProto:
        """Return the field of a map. Add the message of its entries, which the rules of Protobuf name."""
        name = self._name
        key = self._single(kind.key_type, f"{path}{{}}")
        if not is_family(stored(kind.key_type), "text", "integer", "boolean"):
            raise no_form(kind, self.language, path, "cast its keys to string or an integer")
        self._name = f"{name}_value"
        value = self._single(kind.item_type, f"{path}{{}}")
        entry = self._made.nested_type.add(name=f"{_camel(name)}Entry", options=MessageOptions(map_entry=True))
        for number, (part, made) in enumerate((("key", key), ("value", value)), 1):
            made.name, made.number, made.label = part, number, _F.LABEL_OPTIONAL
            entry.field.append(made)
        type_name = f"{self._full_name}.{entry.name}"
        return FieldDescriptorProto(label=_F.LABEL_REPEATED, type=_F.TYPE_MESSAGE, type_name=type_name)

    def _single(self, kind: pa.DataType, path: str) -> FieldDescriptorProto:
        """Return the type of a list's item or of a part of a map, which cannot be a list or a map."""
        if is_family(stored(kind), "items", "entries"):
            raise no_form(kind, "Protobuf in another list or map", path, "wrap it in a struct")
        return self.of(kind, path)


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _type_name(field: str, taken: set[str]) -> str:
    """Return a name for the message of a field: the field's in capitals, unless another type has that name."""
    name = _camel(field)
    if not name[:1].isalpha():  # the field begins with _
        name = f"Message{name}"
    while name in taken:
        name += "Message"
    taken.add(name)
    return name


# ---- the same numbers as before ----


def keep_numbers(files: FileDescriptorSet, known: bytes, name: str) -> None:
    """Assign the fields of a derived message their numbers from an earlier descriptor set of it.

    The numbers of removed fields stay reserved.
    """
    before = DescriptorProto()
    load(known, name).DESCRIPTOR.CopyToProto(before)
    _renumber(files.file[0].message_type[0], before)


def _renumber(message: DescriptorProto, before: DescriptorProto) -> None:
    numbers = {field.name: field.number for field in before.field}
    reserved = {number for each in before.reserved_range for number in range(each.start, each.end)}
    free = max({*numbers.values(), *reserved}, default=0) + 1
    for field in message.field:
        if field.name in numbers:
            field.number = numbers.pop(field.name)
        else:
            field.number, free = free, free + 1
    for number in sorted(reserved | set(numbers.values())):
        message.reserved_range.add(start=number, end=number + 1)
    for inner, own in _inner(message, before):
        _renumber(inner, own)


def _inner(message: DescriptorProto, before: DescriptorProto) -> Iterator[tuple[DescriptorProto, DescriptorProto]]:
    """Yield the messages inside a message, and the earlier messages of the same fields.

    For maps, yield the messages of their values.
    """
    now, then = ({each.name: each for each in side.nested_type} for side in (message, before))
    old = {field.name: field for field in before.field}
    for field in message.field:
        made, known = _message_of(field, now), _message_of(old.get(field.name), then)
        if made is None or known is None:
            continue
        if made.options.map_entry and known.options.map_entry:
            made, known = (_message_of(entry.field[1], side) for entry, side in ((made, now), (known, then)))
        if made is not None and known is not None and not made.options.map_entry and not known.options.map_entry:
            yield made, known


def _message_of(field: FieldDescriptorProto | None, inside: dict[str, Any]) -> DescriptorProto | None:
    if field is None or field.type_name in _IMPORTED:
        return None
    return inside.get(field.type_name.rpartition(".")[2])


# ---- as Java registers it ----


def schema_data(descriptor: Any, *, all_files: bool = False) -> bytes:
    """Return the descriptor set to register for a message: its own file, or the file with all its imports.

    It omits the parts that protoc adds to descriptor sets but not to generated code: comments, and JSON names that
    follow from the names of fields.
    """
    files = descriptor_set(descriptor).file if all_files else [_proto_of(descriptor)]
    return FileDescriptorSet(file=[_bare(file) for file in files]).SerializeToString()


def _proto_of(descriptor: Any) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    descriptor.file.CopyToProto(proto)
    return proto


def _bare(file: FileDescriptorProto) -> FileDescriptorProto:
    file.ClearField("source_code_info")
    for field in _fields(file.message_type):
        if field.json_name == json_name(field.name):
            field.ClearField("json_name")
    for extension in file.extension:
        extension.ClearField("json_name")
    return file


def _fields(messages: Iterable[DescriptorProto]) -> Iterator[FieldDescriptorProto]:
    for message in messages:
        yield from message.field
        yield from message.extension
        yield from _fields(message.nested_type)


def json_name(name: str) -> str:
    """Return the JSON name as protoc derives it: underscores are dropped and capitalize the next letter."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)

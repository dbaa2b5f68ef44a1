"""Protobuf message types derived from columns, and schemas as the bytes of protobuf-java's ``toProto()``.

A message that replaces an earlier one keeps the numbers of its fields: :func:`keep_numbers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MessageOptions,
)

from pravega_serde.columnar import no_form
from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.declared import declare, declared_for
from pravega_serde.protobuf.schema import descriptor_set, load

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_F = FieldDescriptorProto
_t = pa.types

_SCALARS: Final[tuple[tuple[Callable[[pa.DataType], bool], _F.Type.ValueType], ...]] = (
    (_t.is_boolean, _F.TYPE_BOOL),
    (_t.is_uint64, _F.TYPE_UINT64),
    (_t.is_uint32, _F.TYPE_UINT32),
    (_t.is_int64, _F.TYPE_INT64),
    (_t.is_integer, _F.TYPE_INT32),
    (lambda kind: _t.is_time(kind) or (_t.is_timestamp(kind) and kind.tz is None), _F.TYPE_INT64),
    (_t.is_float64, _F.TYPE_DOUBLE),
    (_t.is_floating, _F.TYPE_FLOAT),
    (lambda kind: _t.is_string(kind) or _t.is_large_string(kind) or _t.is_string_view(kind), _F.TYPE_STRING),
    (lambda kind: _t.is_binary(kind) or _t.is_large_binary(kind) or _t.is_binary_view(kind), _F.TYPE_BYTES),
    (_t.is_fixed_size_binary, _F.TYPE_BYTES),
)
#: Messages of other files for columns, and the files.
_MESSAGES: Final = (
    (_t.is_timestamp, "google/protobuf/timestamp.proto", ".google.protobuf.Timestamp"),
    (_t.is_duration, "google/protobuf/duration.proto", ".google.protobuf.Duration"),
    (_t.is_date, "google/type/date.proto", ".google.type.Date"),
    (_t.is_decimal, "google/type/decimal.proto", ".google.type.Decimal"),
)
_IMPORTED: Final = frozenset(message for _, _, message in _MESSAGES)
_KEYS: Final = frozenset({_F.TYPE_BOOL, _F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_STRING})


def protobuf_schema_of(schema: pa.Schema, name: str) -> FileDescriptorSet:
    """Return the descriptor set of a message with the columns as fields 1, 2, ….

    ``name`` is the name of the message, after its package.

    | Arrow | Protobuf |
    |---|---|
    | bool, float16 and float32, float64, string, binary of any kind | bool, float, double, string, bytes |
    | integers of up to 32 bits, except uint32 | int32 |
    | uint32, int64, uint64 | uint32, int64, uint64 |
    | timestamp with a time zone, duration | google.protobuf.Timestamp, google.protobuf.Duration |
    | date | google.type.Date |
    | decimal | google.type.Decimal: its digits |
    | timestamp without a time zone, time | int64: microseconds |
    | struct | a message inside the message |
    | list, map | repeated, map |
    | dictionary | as its values |
    | a nullable scalar | optional |

    The option ``(confluent.field_meta).params["arrow"]`` of a field holds its Arrow type if Protobuf's own is another:
    see :mod:`pravega_serde.protobuf.declared`. The generic reader of Java's registry serializers accepts no imports:
    for it, cast such columns to integers or strings. A null list or map is written as an empty one. Raises
    :class:`SchemaError` for types that Protobuf does not have (lists in lists or maps), for invalid Protobuf names, and
    for names with the same JSON name.
    """
    package, _, last = name.rpartition(".")
    for part in name.split("."):
        _check_name(part, "$")
    imports: set[str] = set()
    message = _message(list(schema), last, f".{name}", "$", imports)
    file = FileDescriptorProto(
        name=f"{name.replace('.', '/')}.proto", syntax="proto3", message_type=[message], dependency=sorted(imports)
    )
    if package:
        file.package = package
    return FileDescriptorSet(file=[file])


def _check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise SchemaError(f"invalid Protobuf name {name!r} (at {path}): letters, digits and _ only; rename it")


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


def _message(fields: list[pa.Field], name: str, full_name: str, path: str, imports: set[str]) -> DescriptorProto:
    """Return a message; its fields refer to the messages inside it with ``full_name``. Add the imported files."""
    message = DescriptorProto(name=name)
    _check_json_names([field.name for field in fields], path)
    taken = {field.name for field in fields}
    for number, field in enumerate(fields, 1):
        _check_name(field.name, f"{path}.{field.name}")
        _Field(message, full_name, taken, f"{path}.{field.name}", imports).add(field, number)
    # The oneofs for optional fields come after all others; here there are no others.
    for made in message.field:
        if made.proto3_optional:
            made.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{made.name}")
    return message


class _Field:
    """Builder that adds one field to a message, with the messages that it needs."""

    def __init__(self, message: DescriptorProto, full_name: str, taken: set[str], path: str, imports: set[str]) -> None:
        self._message, self._full_name, self._taken, self._path = message, full_name, taken, path
        self._imports = imports

    def add(self, field: pa.Field, number: int) -> None:
        made = self._message.field.add(name=field.name, number=number, label=_F.LABEL_OPTIONAL)
        kind = _plain(field.type)
        if _t.is_map(kind):
            made.label, made.type, made.type_name = _F.LABEL_REPEATED, _F.TYPE_MESSAGE, self._entry(field.name, kind)
        elif _t.is_list(kind) or _t.is_large_list(kind) or _t.is_fixed_size_list(kind):
            made.label = _F.LABEL_REPEATED
            self._single(made, field.name, kind.value_type)
        else:
            self._single(made, field.name, kind)
            made.proto3_optional = field.nullable and made.type != _F.TYPE_MESSAGE

    def _single(self, made: FieldDescriptorProto, name: str, given: pa.DataType) -> None:
        kind = _plain(given)
        if _t.is_struct(kind):
            inner = _type_name(name, self._taken)
            full_name = f"{self._full_name}.{inner}"
            self._message.nested_type.append(_message(list(kind), inner, full_name, self._path, self._imports))
            made.type, made.type_name = _F.TYPE_MESSAGE, full_name
            return
        declared = declared_for(kind)
        if declared is not None:
            self._imports.add("confluent/meta.proto")
            declare(made.options, declared)
        for fits, scalar in _SCALARS:
            if fits(kind):
                made.type = scalar
                return
        for fits, file, message in _MESSAGES:
            if fits(kind):
                self._imports.add(file)
                made.type, made.type_name = _F.TYPE_MESSAGE, message
                return
        raise no_form(kind, "Protobuf here", self._path, "cast or wrap it")

    def _entry(self, name: str, kind: pa.MapType) -> str:
        """Add the message of a map's entries, which the rules of Protobuf name."""
        entry = DescriptorProto(name=f"{_camel(name)}Entry", options=MessageOptions(map_entry=True))
        key = entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL)
        self._single(key, "key", kind.key_type)
        if key.type not in _KEYS:
            raise no_form(kind, "Protobuf", self._path, "cast its keys to string or an integer")
        value = entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL)
        self._single(value, f"{name}_value", kind.item_type)
        self._message.nested_type.append(entry)
        return f"{self._full_name}.{entry.name}"


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if _t.is_dictionary(kind) else kind


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _type_name(field: str, taken: set[str]) -> str:
    """Return a name for the message of a field: the field's in capitals, unless another type has that name."""
    name = _camel(field)
    while name in taken or not _NAME.fullmatch(name):
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

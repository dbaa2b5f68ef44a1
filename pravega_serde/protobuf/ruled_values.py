"""Values of Protobuf payloads as the rules of a registered schema see them: messages, and fields with tags."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_serde.errors import SerializationError
from pravega_serde.protobuf.bundled_files import META_OPTION, bundled
from pravega_serde.protobuf.schema import descriptor_of, load
from pravega_serde.protobuf.serializer import ProtobufSerializer
from pravega_serde.registry.interface import ChangeOf, RuledField

_D: Final = FieldDescriptor
_LABEL: Final = FieldDescriptorProto.LABEL_OPTIONAL
#: Type of a field -> Confluent's name.
_TYPES: Final = {
    _D.TYPE_STRING: "STRING",
    _D.TYPE_BYTES: "BYTES",
    _D.TYPE_BOOL: "BOOLEAN",
    _D.TYPE_FLOAT: "FLOAT",
    _D.TYPE_DOUBLE: "DOUBLE",
    _D.TYPE_ENUM: "ENUM",
    **dict.fromkeys((_D.TYPE_INT32, _D.TYPE_SINT32, _D.TYPE_SFIXED32, _D.TYPE_UINT32, _D.TYPE_FIXED32), "INT"),
    **dict.fromkeys((_D.TYPE_INT64, _D.TYPE_SINT64, _D.TYPE_SFIXED64, _D.TYPE_UINT64, _D.TYPE_FIXED64), "LONG"),
}
#: Changes the fields of a message in place.
_Change = Callable[[Any], None]


class ProtobufRuledValues:
    """Messages. Fields have the full name of their descriptor."""

    def __init__(self, data: bytes, message_type: str, tags_of: Callable[[str], frozenset[str]]) -> None:
        serializer = ProtobufSerializer(data, message_type=message_type)
        self.read, self.write, self.plain = serializer.deserialize, serializer.serialize, serializer.as_dict
        self._make, self._descriptor = serializer.message_class, descriptor_of(serializer.message_class)
        self._tags_of = tags_of

    def changed(self, change_of: ChangeOf, *, decrypts: bool = False) -> Callable[[Any], Any]:
        """Return a function that changes fields inside a message, and returns a new one."""
        change = _Compiler(change_of, self._tags_of).of(self._descriptor)

        def changed(message: Any) -> Any:
            made = type(message)()
            made.CopyFrom(message)  # a rule that fails halfway may be allowed to
            change(made)
            return made

        return changed

    def exported(self, message: Any) -> Any:
        """Return a message in Protobuf's JSON form, with its defaults: names in camel case, 64-bit integers as text."""
        pool = self._descriptor.file.pool
        return json_format.MessageToDict(message, always_print_fields_with_no_presence=True, descriptor_pool=pool)

    def imported(self, value: Any) -> bytes:
        """Return the payload of a message in Protobuf's JSON form."""
        try:
            made = json_format.ParseDict(value, self._make(), descriptor_pool=self._descriptor.file.pool)
        except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
            # Its text may have values of fields.
            unknown = re.search(r'has no field named "(\w+)"', str(error))
            reason = f"it has no field {unknown[1]!r}" if unknown else "a field has a value of another type"
            raise SerializationError(f"not a message {self._descriptor.full_name}: {reason}") from None
        return self.write(made)


class _Compiler:
    def __init__(self, change_of: ChangeOf, tags_of: Callable[[str], frozenset[str]]) -> None:
        self._change_of, self._tags_of = change_of, tags_of
        self._messages: dict[str, list[_Change]] = {}

    def of(self, descriptor: Descriptor) -> _Change:
        """Return the change of a message type, which may contain itself."""
        fields = self._messages.get(descriptor.full_name)
        if fields is None:
            fields = self._messages[descriptor.full_name] = []
            fields += [change for each in descriptor.fields if (change := self._field(each)) is not None]

        def change_message(message: Any) -> None:
            for change in fields:
                change(message)

        return change_message

    def _field(self, field: FieldDescriptor) -> _Change | None:
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            return self._map(field, inner.fields_by_name["value"])
        if inner is not None:
            return _of_messages(field, self.of(inner))
        change = self._leaf(field, field)
        return None if change is None else _of_scalars(field, change)

    def _map(self, field: FieldDescriptor, value: FieldDescriptor) -> _Change | None:
        name = field.name
        if value.message_type is not None:
            inner = self.of(value.message_type)

            def change_messages(message: Any) -> None:
                for each in getattr(message, name).values():
                    inner(each)

            return change_messages
        change = self._leaf(field, value)
        if change is None:
            return None

        def change_values(message: Any) -> None:
            entries = getattr(message, name)
            for key in list(entries):
                entries[key] = change(entries[key], message)

        return change_values

    def _leaf(self, field: FieldDescriptor, value: FieldDescriptor) -> Callable[[Any, Any], Any] | None:
        tags = _tags(field) | self._tags_of(field.full_name)
        return self._change_of(RuledField(field.full_name, field.name, _TYPES.get(value.type, "NULL"), tags))


def _of_messages(field: FieldDescriptor, change: _Change) -> _Change:
    name, repeated, has_presence = field.name, field.is_repeated, field.has_presence

    def change_field(message: Any) -> None:
        if repeated:
            for each in getattr(message, name):
                change(each)
        elif not has_presence or message.HasField(name):
            change(getattr(message, name))

    return change_field


def _of_scalars(field: FieldDescriptor, change: Callable[[Any, Any], Any]) -> _Change:
    name, repeated, has_presence = field.name, field.is_repeated, field.has_presence

    def change_field(message: Any) -> None:
        if repeated:
            items = getattr(message, name)
            items[:] = [change(each, message) for each in items]
        elif not has_presence or message.HasField(name):
            setattr(message, name, change(getattr(message, name), message))

    return change_field


def _tags(field: FieldDescriptor) -> frozenset[str]:
    """Return the tags in Confluent's option of a field, which is an unknown field or one of any pool."""
    options = _options_class().FromString(field.GetOptions().SerializeToString())
    return frozenset(options.field_meta.tags)


@cache
def _options_class() -> type[Any]:
    """Return a message class with only that option."""
    meta = bundled("confluent/meta.proto")
    assert meta is not None
    file = FileDescriptorProto(name="field_options.proto", syntax="proto3")
    file.message_type.add().CopyFrom(next(each for each in meta.message_type if each.name == "Meta"))
    file.message_type[0].nested_type[0].name = "ParamsEntry"
    file.message_type[0].field[1].type_name = ".Meta.ParamsEntry"
    file.message_type.add(name="Options").field.add(
        name="field_meta", number=META_OPTION, label=_LABEL, type=_D.TYPE_MESSAGE, type_name=".Meta"
    )
    return load(FileDescriptorSet(file=[file]), "Options")

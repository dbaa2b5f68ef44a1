"""Protobuf event format of CloudEvents: the message ``io.cloudevents.v1.CloudEvent``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_serde.columnar import MalformedError, list_offsets, map_entries, nothing, number_column, text_column
from pravega_serde.columnar.arrays import repeated_text
from pravega_serde.columnar.building import build_scalars
from pravega_serde.envelopes.attributes import attribute, attributes_of, joined, without
from pravega_serde.envelopes.cloudevents import (
    BINARY,
    CONTENT_TYPE,
    REQUIRED,
    TIME,
    VERSION,
    check_required,
    kind_of_data,
    kinds_of_data,
    text_of,
    text_of_time,
    texts_of_values,
    times_of,
)
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.protobuf.values import micros_of

_F = FieldDescriptorProto
_VALUE: Final = "CloudEventAttributeValue"
_ENTRY: Final = "AttributesEntry"
_PACKAGE: Final = "io.cloudevents.v1"
_EVENT: Final = f".{_PACKAGE}.CloudEvent"
_TIMESTAMP, _ANY = "google.protobuf.Timestamp", "google.protobuf.Any"
_SCHEMA: Final = "dataschema"


def _field(number: int, name: str, kind: _F.Type.ValueType, *, type_name: str = "", one_of: bool = False) -> _F:
    made = _F(name=name, number=number, label=_F.LABEL_OPTIONAL, type=kind, type_name=type_name or None)
    if one_of:
        made.oneof_index = 0
    return made


def _descriptors() -> FileDescriptorSet:
    """Return the descriptor set with the message of the specification."""
    value = DescriptorProto(name=_VALUE)
    value.oneof_decl.add(name="attr")
    for number, (name, kind, type_name) in enumerate(
        (
            ("ce_boolean", _F.TYPE_BOOL, ""),
            ("ce_integer", _F.TYPE_INT32, ""),
            ("ce_string", _F.TYPE_STRING, ""),
            ("ce_bytes", _F.TYPE_BYTES, ""),
            ("ce_uri", _F.TYPE_STRING, ""),
            ("ce_uri_ref", _F.TYPE_STRING, ""),
            ("ce_timestamp", _F.TYPE_MESSAGE, f".{_TIMESTAMP}"),
        ),
        1,
    ):
        value.field.append(_field(number, name, kind, type_name=type_name, one_of=True))
    entry = DescriptorProto(name=_ENTRY)
    entry.options.map_entry = True
    entry.field.append(_field(1, "key", _F.TYPE_STRING))
    entry.field.append(_field(2, "value", _F.TYPE_MESSAGE, type_name=f"{_EVENT}.{_VALUE}"))
    event = DescriptorProto(name="CloudEvent", nested_type=[value, entry])
    event.oneof_decl.add(name="data")
    for number, name in enumerate(("id", "source", "spec_version", "type"), 1):
        event.field.append(_field(number, name, _F.TYPE_STRING))
    attributes = _field(5, "attributes", _F.TYPE_MESSAGE, type_name=f"{_EVENT}.{_ENTRY}")
    attributes.label = _F.LABEL_REPEATED
    event.field.append(attributes)
    event.field.append(_field(6, "binary_data", _F.TYPE_BYTES, one_of=True))
    event.field.append(_field(7, "text_data", _F.TYPE_STRING, one_of=True))
    event.field.append(_field(8, "proto_data", _F.TYPE_MESSAGE, type_name=f".{_ANY}", one_of=True))
    imports = ["google/protobuf/any.proto", "google/protobuf/timestamp.proto"]
    file = FileDescriptorProto(
        name="cloudevents.proto", package=_PACKAGE, syntax="proto3", dependency=imports, message_type=[event]
    )
    return FileDescriptorSet(file=[file])


class ProtobufEvents:
    """Reader and writer of CloudEvents in Protobuf."""

    def __init__(self) -> None:
        self._serializer = ProtobufSerializer(_descriptors(), message_type=_EVENT[1:])
        self._value_type = self._serializer.arrow_type.field("attributes").type.item_type

    def read(self, event: bytes) -> tuple[dict[str, str], bytes | None]:
        """Return the attributes and the data of one event."""
        found = self._serializer.deserialize(event)
        if found.spec_version != VERSION:
            raise MalformedError(f"spec_version is {found.spec_version!r}, not {VERSION!r}")
        attributes = {name: getattr(found, name) for name in REQUIRED}
        # Sorted, as the entries of a map in a column are.
        for name, value in sorted(found.attributes.items()):
            if (member := value.WhichOneof("attr")) is not None:
                attributes[name] = _text_of(getattr(value, member))
        check_required(attributes)
        member = found.WhichOneof("data")
        if member is None:
            return attributes, None
        data = getattr(found, member)
        return attributes, data if member == "binary_data" else data.encode() if member == "text_data" else data.value

    def read_column(self, events: pa.BinaryArray) -> tuple[pa.MapArray, pa.BinaryArray]:
        """Return the attributes and the data of events without nulls."""
        columns = self._serializer.decode_column(events)
        if set(pc.unique(columns.field("spec_version")).to_pylist()) - {VERSION}:
            raise MalformedError("the spec_version of an event is not 1.0")
        lengths, names, values = map_entries(columns.field("attributes"))
        texts = texts_of_values(values.flatten())
        if texts.null_count:
            raise MalformedError("an attribute has no value")
        attributes = joined([*((name, columns.field(name)) for name in REQUIRED), attributes_of(lengths, names, texts)])
        data = [columns.field("binary_data"), columns.field("text_data").cast(pa.binary())]
        if columns.field("proto_data").null_count < len(events):
            data.append(columns.field("proto_data").flatten()[1])
        return attributes, pc.coalesce(*data)

    def write(self, attributes: Mapping[str, str], data: bytes | None) -> bytes:
        """Return one event."""
        event: dict[str, Any] = {name: attributes[name] for name in REQUIRED}
        event["spec_version"] = VERSION
        event["attributes"] = {name: _member(name, value) for name, value in attributes.items() if name not in REQUIRED}
        if data is not None:
            text = None if kind_of_data(attributes.get(CONTENT_TYPE)) == BINARY else _decoded(data)
            event |= {"binary_data": data} if text is None else {"text_data": text}
        return self._serializer.serialize(event)

    def write_column(self, attributes: pa.MapArray, data: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events."""
        lengths, names, texts = map_entries(without(attributes, REQUIRED))
        values = pa.StructArray.from_arrays(self._members(names, texts), fields=list(self._value_type))
        kind = self._serializer.arrow_type
        entries = pa.MapArray.from_arrays(list_offsets(lengths), names, values, type=kind.field("attributes").type)
        texts = _texts(pc.if_else(number_column(kinds_of_data(attributes) != BINARY), data, nothing(pa.binary())))
        columns = {
            **{name: attribute(attributes, name) for name in REQUIRED},
            "spec_version": repeated_text(VERSION, len(data)),
            "attributes": entries,
            "binary_data": pc.if_else(texts.is_null(), data, nothing(pa.binary())),
            "text_data": texts,
            "proto_data": pa.nulls(len(data), kind.field("proto_data").type),
        }
        return self._serializer.encode_column(
            pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))
        )

    def _members(self, names: pa.StringArray, texts: pa.StringArray) -> list[pa.Array]:
        """Return the members of the values: a time is a timestamp, the address of a schema is a URI."""
        null = nothing(pa.string())
        is_time, is_uri = (pc.equal(names, text_column([name])[0]) for name in (TIME, _SCHEMA))
        members = {
            "ce_timestamp": times_of(pc.if_else(is_time, texts, null)),
            "ce_uri": pc.if_else(is_uri, texts, null),
            "ce_string": pc.if_else(pc.or_(is_time, is_uri), null, texts),
        }
        return [members.get(field.name, pa.nulls(len(texts), field.type)) for field in self._value_type]


def _text_of(value: Any) -> str:
    return text_of_time(micros_of(value)) if hasattr(value, "nanos") else text_of(value)


def _decoded(data: bytes) -> str | None:
    """Return data as text, or None if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _texts(data: pa.BinaryArray) -> pa.StringArray:
    """Return data as text, null if it is not UTF-8."""
    try:
        return data.cast(pa.string())
    except pa.ArrowInvalid:
        return build_scalars([None if each is None else _decoded(each) for each in data.to_pylist()], pa.string())


def _member(name: str, value: str) -> dict[str, Any]:
    if name == TIME:
        return {"ce_timestamp": times_of(text_column([value]))[0].as_py()}
    return {"ce_uri" if name == _SCHEMA else "ce_string": value}

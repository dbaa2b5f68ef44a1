"""Avro event format of CloudEvents, with the data as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro import AvroSerializer
from pravega_serde.columnar import MalformedError, list_offsets, map_entries, number_column, valid_rows
from pravega_serde.columnar.arrays import repeated_text
from pravega_serde.envelopes.attributes import attribute, attributes_of, joined, without
from pravega_serde.envelopes.cloudevents import (
    VERSION,
    check_required,
    text_of,
    texts_of_values,
)

_VERSION: Final = "specversion"

#: Schema of the events. The specification has more branches for ``data``, which are not read: JSON values as records.
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "CloudEvent",
    "namespace": "io.cloudevents",
    "fields": [
        {"name": "attribute", "type": {"type": "map", "values": ["null", "boolean", "int", "string", "bytes"]}},
        {"name": "data", "type": ["bytes", "null"]},
    ],
}


class AvroEvents:
    """Reader and writer of CloudEvents in Avro."""

    def __init__(self) -> None:
        self._serializer = AvroSerializer(dict(SCHEMA))
        self._value_type = self._serializer.arrow_type.field("attribute").type.item_type

    def read(self, event: bytes) -> tuple[dict[str, str], bytes | None]:
        """Return the attributes and the data of one event."""
        found = self._serializer.deserialize(event)
        attributes = {name: text_of(value) for name, value in found["attribute"].items() if value is not None}
        if (version := attributes.pop(_VERSION, None)) != VERSION:
            raise MalformedError(f"specversion is {version!r}, not {VERSION!r}")
        check_required(attributes)
        return attributes, found["data"]

    def read_column(self, events: pa.BinaryArray) -> tuple[pa.MapArray, pa.BinaryArray]:
        """Return the attributes and the data of events without nulls."""
        entries, data = self._serializer.decode_column(events).flatten()
        lengths, names, values = map_entries(entries)
        texts = texts_of_values(values.flatten())
        if texts.null_count:
            there = valid_rows(texts)
            lengths = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[there], minlength=len(lengths))
            names, texts = names.filter(number_column(there)), texts.drop_null()
        attributes = attributes_of(lengths, names, texts)
        if set(attribute(attributes, _VERSION).to_pylist()) - {VERSION}:
            raise MalformedError("the specversion of an event is not 1.0")
        return without(attributes, [_VERSION]), data

    def write(self, attributes: Mapping[str, str], data: bytes | None) -> bytes:
        """Return one event."""
        return self._serializer.serialize({"attribute": {_VERSION: VERSION, **attributes}, "data": data})

    def write_column(self, attributes: pa.MapArray, data: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events."""
        lengths, names, texts = map_entries(joined([(_VERSION, repeated_text(VERSION, len(data))), attributes]))
        members = [
            texts if member.type == pa.string() else pa.nulls(len(texts), member.type) for member in self._value_type
        ]
        values = pa.StructArray.from_arrays(members, fields=list(self._value_type))
        kind = self._serializer.arrow_type.field(0).type
        entries = pa.MapArray.from_arrays(list_offsets(lengths), names, values, type=kind)
        return self._serializer.encode_column(
            pa.StructArray.from_arrays([entries, data], fields=list(self._serializer.arrow_type))
        )

"""The schema that follows from columns, after an earlier one of the same type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.schema import load
from pravega_serde.registry._derive_protobuf import protobuf_schema_of
from pravega_serde.registry._event_types import EventType, event_type, format_named
from pravega_serde.registry._evolution import check_compatibility
from pravega_serde.registry._groups import Compatibility
from pravega_serde.registry._models import SchemaInfo, SerializationFormat

__all__ = ["column_schema"]


def column_schema(
    columns: pa.Schema,
    *,
    format: str | SerializationFormat,  # noqa: A002 -- the option's name everywhere
    type: str,  # noqa: A002 -- the registry's word
    after: SchemaInfo | None = None,
) -> EventType:
    """The type of events that follows from columns; ``after`` is the latest schema of that type, if there is one.

    Protobuf fields keep the numbers that they have in ``after``, and those of fields that are gone stay reserved.
    Raises :class:`SchemaError` for columns that have no form in the format, and, of JSON and Protobuf, which the
    registry itself does not compare, if events of the one schema could not be read with the other.
    """
    wanted = format_named(format)
    if after is None or after.format != wanted:
        return event_type(columns, format=wanted, type=type)
    if wanted == SerializationFormat.PROTOBUF:
        files = protobuf_schema_of(columns, type)
        _keep_numbers(files, after)
        made = replace(event_type(files, format=wanted, type=type), casts=True)
    else:
        made = event_type(columns, format=wanted, type=type)
    if wanted != SerializationFormat.AVRO and made.info.data != after.data:
        _check(made.info, after)
    return made


def _check(made: SchemaInfo, after: SchemaInfo) -> None:
    reasons = check_compatibility(after, made, Compatibility.FULL)
    if reasons:
        raise SchemaError(
            f"the schema that follows from the columns does not go with the latest of {made.type!r}: "
            f"{'; '.join(reasons)}"
        )


def _keep_numbers(files: FileDescriptorSet, after: SchemaInfo) -> None:
    before = DescriptorProto()
    load(after.data, after.type).DESCRIPTOR.CopyToProto(before)
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
    """The messages inside a message, and those of the same fields before; of maps those of their values."""
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
    return None if field is None else inside.get(field.type_name.rpartition(".")[2])

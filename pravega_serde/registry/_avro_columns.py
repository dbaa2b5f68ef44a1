"""The Avro schema to read registered events with, as the columns that somebody wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pravega_serde.avro.resolve import Leaf, Node, UnionNode, arrow_type, resolve
from pravega_serde.avro.schema import MISSING, Array, Field, Map, Record, Type, Union, kind_of, load
from pravega_serde.errors import SchemaError
from pravega_serde.registry._avro_print import print_schema
from pravega_serde.registry._avro_text import avro_text
from pravega_serde.registry._derive_avro import avro_schema_of
from pravega_serde.registry._event_types import schema_text
from pravega_serde.registry._evolution_avro import inside
from pravega_serde.registry._models import SchemaInfo
from pravega_serde.registry._narrowing import widened

__all__ = ["avro_reader_for"]


def avro_reader_for(schema: SchemaInfo, columns: pa.StructType) -> SchemaInfo:
    """A schema that reads events of a registered type, of all its versions, as some columns.

    It is the registered one, where that has all of them. Otherwise what the columns have in common with it, inside
    structs, lists and maps, too, stays as registered, and the rest gets the schema that follows from the columns:
    schema resolution promotes what is there and fills what is not with null.

    Raises :class:`SchemaError` for a column that has no form in Avro, and for one that the registered schema's events
    can never be read as.
    """
    own = load(schema_text(schema))[0]
    known = arrow_type(resolve(own))
    if not isinstance(own, Record):
        return schema
    has = {field.name: field.type for field in known}
    if all(has.get(column.name) == column.type for column in columns):
        return schema
    derived = load(avro_schema_of(pa.schema(list(columns)), schema.type))[0]
    made = _merged(own, columns, derived)
    _check(own, made, schema.type)
    # Aliases of a record count for events that were written under another name.
    return replace(schema, data=avro_text(print_schema(made)).encode())


def _merged(own: Type, wanted: pa.DataType, derived: Type) -> Type:
    """What reads ``own`` as the type that is wanted; ``derived`` is what follows from that type alone."""
    if arrow_type(resolve(own)) == wanted:
        return own
    if isinstance(own, Union):
        return _merged_union(own, wanted, derived)
    if isinstance(derived, Union):
        return Union(tuple(b if kind_of(b) == "null" else _merged(own, wanted, b) for b in derived.branches))
    return _merged_inside(own, wanted, derived)


def _merged_inside(own: Type, wanted: pa.DataType, derived: Type) -> Type:
    if isinstance(own, Array) and isinstance(derived, Array):
        return Array(_merged(own.items, wanted.value_type, derived.items))
    if isinstance(own, Map) and isinstance(derived, Map):
        return Map(_merged(own.values, wanted.item_type, derived.values))
    if isinstance(own, Record) and isinstance(derived, Record):
        return _merged_record(own, wanted, derived)
    return derived


def _merged_union(own: Union, wanted: pa.DataType, derived: Type) -> Type:
    """A type or null, as nullable columns are; other unions have columns of their own."""
    rest = [branch for branch in own.branches if kind_of(branch) != "null"]
    if len(rest) != 1 or not isinstance(derived, Union):
        return derived
    return _merged(rest[0], wanted, derived)


def _merged_record(own: Record, wanted: pa.StructType, derived: Record) -> Record:
    known = {entry.name: entry for entry in own.fields}
    fields = tuple(
        _merged_field(known[made.name], column.type, made) if made.name in known else made
        for column, made in zip(wanted, derived.fields, strict=True)
    )
    return replace(own, fields=fields)


def _merged_field(own: Field, wanted: pa.DataType, derived: Field) -> Field:
    """Under the registered name and aliases, and with its default where that still fits."""
    kind = _merged(own.type, wanted, derived.type)
    if kind is own.type:
        return own
    return replace(own, type=kind, default=derived.default if derived.default is not MISSING else own.default)


def _check(own: Type, made: Type, name: str) -> None:
    """Raise SchemaError if no event of the registered schema could be read: better now than as bad records."""
    try:
        place = next(_unreadable(resolve(own, widened(own, made)), "$"), None)
    except SchemaError as error:
        raise SchemaError(f"the columns do not fit the registered schema of {name!r}: {error.message}") from error
    if place is not None:
        raise SchemaError(f"the columns do not fit the registered schema of {name!r}: only null fits at {place}")


def _unreadable(node: Node, path: str) -> Iterator[str]:
    """Where a union has no branch but null that can be read."""
    if isinstance(node, UnionNode):
        rest = [arm for arm in node.arms if not (isinstance(arm.node, Leaf) and arm.node.wire == "null")]
        if rest and all(arm.node is None for arm in rest):
            yield path
    for each, place in inside(node, path):
        if each is not None:
            yield from _unreadable(each, place)

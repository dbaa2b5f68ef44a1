"""Registry part of Avro: event types, schemas to read as given columns, compatibility, resolution."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro.derive import avro_name, avro_names, avro_schema_of, avro_text, print_schema
from pravega_serde.avro.references import referring, with_definitions
from pravega_serde.avro.resolve import (
    PROMOTIONS,
    ArrayNode,
    EnumNode,
    Leaf,
    Link,
    MapNode,
    Node,
    RecordNode,
    UnionNode,
    arrow_type,
    match_fields,
    resolve,
)
from pravega_serde.avro.ruled_values import AvroRuledValues
from pravega_serde.avro.schema import (
    MISSING,
    Array,
    Field,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branches_of,
    kind_of,
    label_of,
    load,
)
from pravega_serde.avro.serializer import AvroSerializer
from pravega_serde.errors import SchemaError
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.interface import EventType, RegistryFormat, RuledValues, SchemaText, schema_text

#: Name of a schema that is a union.
UNION: Final = "union"


class AvroRegistry(RegistryFormat):
    """Avro in a registry: schemas as ``Schema.toString()`` prints them, under their own names."""

    suffixes = (".avsc",)
    names_itself = True
    needs_header = True
    compared_by_server = True

    def event_type(self, schema: Any, name: str | None, *, all_files: bool = False) -> EventType:
        """Return the type of a schema's events. A given name must be the schema's own."""
        info = SchemaInfo(_name(schema), SerializationFormat.AVRO, avro_text(schema).encode())
        if name not in (None, info.type):
            raise SchemaError(f"an Avro schema is registered under its own name, {info.type!r}, not {name!r}")
        return EventType(info, AvroSerializer(schema))

    def payloads(self, info: SchemaInfo) -> AvroSerializer:
        """Return the serializer of the schema."""
        return AvroSerializer(schema_text(info))

    def from_text(self, schema: SchemaText) -> SchemaInfo:
        """Return the schema with the definitions of all types that it refers to, as Java prints it."""
        definition = with_definitions(schema)
        if isinstance(definition, str):  # a name of a type, and never the path of a file
            definition = {"type": definition}
        return SchemaInfo(_name(definition), SerializationFormat.AVRO, avro_text(definition).encode())

    def writes_alike(self, first: SchemaInfo, second: SchemaInfo) -> bool:
        """Return True if the schemas differ at most in what readers ignore, such as docs."""
        one, other = (print_schema(load(schema_text(each))[0]) for each in (first, second))
        return one == other

    def ruled_values(self, info: SchemaInfo, tags_of: Callable[[str], frozenset[str]]) -> RuledValues:
        """Return natural values, with the tags of fields in the text of the schema."""
        return AvroRuledValues(schema_text(info), tags_of)

    def referring(self, schema: Any, references: Any) -> SchemaText:
        """Return the text of a schema with the named types that it uses from other schemas."""
        return referring(schema, references.values() if isinstance(references, Mapping) else references)

    def is_union(self, info: SchemaInfo) -> bool:
        """Return True for a schema that is a union at the top."""
        return info.type == UNION

    def print(self, info: SchemaInfo) -> bytes:
        """Return the text of the schema as Java prints it."""
        return avro_text(schema_text(info)).encode()

    def names(self, info: SchemaInfo) -> frozenset[str]:
        """Return the name and aliases of the schema, or those of a union's branches.

        An alias matches the events that were written with it.
        """
        schema = load(schema_text(info))[0]
        if not isinstance(schema, Union):
            return avro_names(schema_text(info))
        return frozenset({info.type, *map(label_of, schema.branches)})

    def derive(self, columns: pa.Schema, name: str) -> str:
        """Return a record schema with the columns as fields; see :func:`avro_schema_of`."""
        return avro_schema_of(columns, name)

    def derived(self, columns: pa.Schema, name: str, after: SchemaInfo | None = None) -> EventType:
        """Return the type of the record."""
        return self.event_type(json.loads(self.derive(columns, name)), name)

    def reader_for(self, info: SchemaInfo, columns: pa.StructType) -> EventType:
        """Return a type that reads events of a registered schema, of all its versions, as some columns.

        Its schema is the registered one if that has all the columns. Otherwise, the common parts stay as registered,
        also inside structs, lists and maps, and the rest follows from the columns. Schema resolution promotes existing
        values and fills missing ones with null.

        Raises :class:`SchemaError` for a column that Avro cannot express, and for one as which the registered schema's
        events can never be read.
        """
        chosen = _reader_schema(info, columns)
        return EventType(chosen, self.payloads(chosen))

    def faults(self, writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
        """Return the reasons that resolution reports.

        This is stricter than the server in one respect. An enum symbol that the reader does not have is a fault here,
        although it is an error only when it occurs.
        """
        written, read = (load(schema.data.decode(errors="replace"))[0] for schema in (writer, reader))
        try:
            node = resolve(written, read)
        except SchemaError as error:
            # No event of the writer could be read.
            yield error.message
        else:
            yield from _lacking(node, "$", set())

    def resolve(self, writer: SchemaInfo, reader: EventType) -> tuple[AvroSerializer | None, str]:
        """Return a serializer of both schemas, which uses Avro's schema resolution."""
        self.payloads(writer)  # an invalid writer's schema is not a misfit
        try:
            return AvroSerializer(schema_text(writer), reader_schema=schema_text(reader.info)), ""
        except SchemaError as error:
            return None, error.message

    def widened(self, writer: SchemaInfo, reader: EventType) -> AvroSerializer | None:
        """Return a serializer with a widened reader's schema.

        Avro's resolution rejects the original pair, and so does Java.
        """
        text, read = schema_text(writer), load(schema_text(reader.info))[0]
        wide = _widened(load(text)[0], read)
        return None if wide is read else AvroSerializer(text, reader_schema=print_schema(wide))


def _name(schema: Any) -> str:
    """Return the name of a schema. A union has the name of Java's ``getFullName``."""
    return UNION if isinstance(load(schema)[0], Union) else avro_name(schema)


# ---- schemas to read columns with ----


def _reader_schema(schema: SchemaInfo, columns: pa.StructType) -> SchemaInfo:
    own = load(schema_text(schema))[0]
    known = arrow_type(resolve(own))
    if not isinstance(own, Record):
        return schema
    has = {field.name: field.type for field in known}
    if all(has.get(column.name) == column.type for column in columns):
        return schema
    derived = load(avro_schema_of(pa.schema(list(columns)), schema.type))[0]
    made = _merged(own, columns, derived)
    _check_readable(own, made, schema.type)
    # Aliases of a record match events that were written with another name.
    return replace(schema, data=avro_text(print_schema(made)).encode())


def _merged(own: Type, wanted: pa.DataType, derived: Type) -> Type:
    """Return a schema that reads ``own`` as the wanted type. ``derived`` follows only from that type."""
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
    """Merge a union of a type and null, as for nullable columns. Other unions have their own columns."""
    rest = branches_of(own)
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
    """Merge a field. It keeps its registered name, aliases and default, so a wider column has the same values."""
    kind = _merged(own.type, wanted, derived.type)
    if kind is own.type:
        return own
    return replace(own, type=kind, default=derived.default if own.default is MISSING else own.default)


def _check_readable(own: Type, made: Type, name: str) -> None:
    """Raise SchemaError if no event of the registered schema could be read.

    An early error is better than malformed records.
    """
    try:
        place = next(_unreadable(resolve(own, _widened(own, made)), "$"), None)
    except SchemaError as error:
        raise SchemaError(f"the columns do not fit the registered schema of {name!r}: {error.message}") from error
    if place is not None:
        raise SchemaError(f"the columns do not fit the registered schema of {name!r}: only null fits at {place}")


def _unreadable(node: Node, path: str) -> Iterator[str]:
    """Yield the paths of unions without a readable branch other than null."""
    if isinstance(node, UnionNode):
        rest = [arm for arm in node.arms if not (isinstance(arm.node, Leaf) and arm.node.wire == "null")]
        if rest and all(arm.node is None for arm in rest):
            yield path
    for each, place in _inside(node, path):
        if each is not None:
            yield from _unreadable(each, place)


# ---- contents of a plan ----


def _lacking(node: Node, path: str, seen: set[int]) -> Iterator[str]:
    """Yield the branches and symbols that the reader does not have. They are errors only when they occur."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, EnumNode) and None in node.symbols:
        yield f"the reader's enum at {path} lacks {node.symbols.count(None)} of the writer's symbols and has no default"
    if isinstance(node, UnionNode):
        yield from (f"the reader has no branch for {arm.label} at {path}" for arm in node.arms if arm.node is None)
    for each, place in _inside(node, path):
        if each is not None:
            yield from _lacking(each, place, seen)


def _inside(node: Node, path: str) -> list[tuple[Node | None, str]]:
    """Return the direct children of a node, and their paths."""
    if isinstance(node, Link):
        return [(node.target, path)]
    if isinstance(node, ArrayNode):
        return [(node.item, f"{path}[]")]
    if isinstance(node, MapNode):
        return [(node.value, f"{path}{{}}")]
    if isinstance(node, RecordNode):
        return [(step.node, f"{path}.{step.name}") for step in node.steps if step.slot is not None]
    return [(arm.node, path) for arm in node.arms] if isinstance(node, UnionNode) else []


# ---- wider numbers ----

#: Number type -> types that hold all its numbers.
_HELD_BY: Final = {
    "int": ("int", "long", "double"),
    "long": ("long",),
    "float": ("float", "double"),
    "double": ("double",),
}


def _widened(writer: Type, reader: Type) -> Type:
    """Return the reader's schema with the writer's numbers where its own cannot hold all of them.

    A promotion of a long to a double rounds, so a long is read as it was written, too. Return ``reader`` itself if it
    holds all numbers.
    """
    widening = _Widening()
    wide = widening.of(writer, reader)
    return wide if widening.count else reader


def _is_number(kind: Primitive) -> bool:
    return kind.name in _HELD_BY and kind.logical is None


class _Widening:
    """Copy of a reader's schema with the writer's wider numbers. ``count`` is the number of wider ones.

    Schemas are graphs: each pair of records is visited once.
    """

    def __init__(self) -> None:
        self.count = 0
        self._records: dict[tuple[int, int], Record] = {}

    def of(self, writer: Type, reader: Type) -> Type:
        if isinstance(writer, Union):
            return self._branches(writer, reader)
        if isinstance(reader, Union):
            return self._union(writer, reader)
        if isinstance(writer, Primitive):
            return self._number(writer, reader)
        if isinstance(writer, Array) and isinstance(reader, Array):
            return Array(self.of(writer.items, reader.items))
        if isinstance(writer, Map) and isinstance(reader, Map):
            return Map(self.of(writer.values, reader.values))
        return self._record(writer, reader) if isinstance(writer, Record) and isinstance(reader, Record) else reader

    def _branches(self, writer: Union, reader: Type) -> Type:
        numbers = {each.name for each in writer.branches if isinstance(each, Primitive) and _is_number(each)}
        for branch in writer.branches:
            if not (isinstance(branch, Primitive) and branch.name in numbers):
                reader = self.of(branch, reader)
        # A long and a double have no type that holds both.
        wide = next((name for name in _HELD_BY if all(name in _HELD_BY[each] for each in numbers)), None)
        return reader if wide is None or not numbers else self.of(Primitive(wide), reader)

    def _number(self, writer: Primitive, reader: Type) -> Type:
        plain = isinstance(reader, Primitive) and _is_number(reader) and _is_number(writer)
        if not plain or kind_of(reader) in _HELD_BY[writer.name]:
            return reader
        self.count += 1
        return writer

    def _union(self, writer: Type, reader: Union) -> Union:
        """Widen the branch that resolution chooses, or one of them if no branch accepts the written type."""
        if isinstance(writer, Primitive):
            kinds = [kind_of(branch) for branch in reader.branches]
            if writer.name in kinds:
                return reader
            promoted = [
                each
                for each, kind in zip(reader.branches, kinds, strict=True)
                if kind in PROMOTIONS.get(writer.name, ())
            ]
            if promoted:
                made = self.of(writer, promoted[0])
                return Union(tuple(made if each is promoted[0] else each for each in reader.branches))
        same = [branch for branch in reader.branches if label_of(branch) == label_of(writer)]
        for branch in same or reader.branches:
            before = self.count
            made = self.of(writer, branch)
            if same or self.count > before:
                return Union(tuple(made if each is branch else each for each in reader.branches))
        return reader

    def _record(self, writer: Record, reader: Record) -> Record:
        pair = id(writer), id(reader)
        if pair not in self._records:
            self._records[pair] = made = replace(reader)
            slots = match_fields(writer, reader)
            fields = list(reader.fields)
            for entry in writer.fields:
                if (slot := slots.get(entry.name)) is not None:
                    fields[slot] = replace(fields[slot], type=self.of(entry.type, fields[slot].type))
            made.fields = tuple(fields)
        return self._records[pair]

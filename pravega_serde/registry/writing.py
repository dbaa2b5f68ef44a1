"""Writers of events with registry headers: of one type, of several types, or with a schema per event.

Applications create them with :func:`serializer`, :func:`multi_type_serializer` and :func:`with_schema_serializer`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import as_column
from pravega_serde.errors import SchemaError, SerdeError, SerializationError
from pravega_serde.registry.codecs import CODEC_NONE, Codec
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.encodings import column_names
from pravega_serde.registry.formats import event_type, format_named, part_of
from pravega_serde.registry.header import with_header
from pravega_serde.registry.interface import EventType
from pravega_serde.registry.reading import RegistryDeserializer, check_headerless
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.settings import (
    SerializerConfig,
    WriterSettings,
    serializer_config,
)
from pravega_serde.registry.stores import latest_of, latest_or_none, store_of
from pravega_serde.registry.values import Adapt, ObjectPayloads, Others, WithSchema
from pravega_serde.serializer_interface import OnError, SerializerCalls

if TYPE_CHECKING:
    from pravega_serde.registry.payload_rules import PayloadRules


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Encoder of events of one type. The header and the rules are what the registry returned."""

    type: EventType
    header: bytes
    codec: Codec
    rules: PayloadRules | None
    write_payload: Callable[[Any], bytes] | None = None
    """Writer of single payloads. None for the serializer of the payloads."""

    @classmethod
    def of(cls, config: SerializerConfig, type: EventType) -> _Encoder:
        header, rules = store_of(config).prepared(type)
        return cls(type, header, config.codec, rules)

    @property
    def is_deterministic(self) -> bool:
        return self.rules is None or self.rules.is_deterministic

    def with_objects(self, payloads: ObjectPayloads) -> _Encoder:
        return replace(self, write_payload=payloads.serialize)

    def write(self, value: Any) -> bytes:
        payload = (self.write_payload or self.type.payloads.serialize)(value)
        if self.rules is not None:
            payload = self.rules(payload)
        return self.header + (payload if self.codec.name == "" else self.codec.pack(payload))

    def write_column(self, column: pa.Array) -> pa.BinaryArray:
        payloads = self.type.payloads.encode_column(self.type.fitted(column))
        if self.rules is not None:
            payloads = self.rules.column(payloads)
        if self.codec.name:
            packed = [None if payload is None else self.codec.pack(payload) for payload in payloads.to_pylist()]
            payloads = pa.array(packed, pa.binary())
        return with_header(self.header, payloads) if self.header else payloads


class _Writer(SerializerCalls):
    """Base of the writers. Writers can also read their own events."""

    #: True if a read may wait for the registry.
    read_may_block = True

    _config: SerializerConfig
    #: Adapts the reader of the writer's events.
    _reading: Callable[[RegistryDeserializer], RegistryDeserializer] | None = None

    @cached_property
    def _deserializer(self) -> RegistryDeserializer:
        made = self._reader()
        return made if self._reading is None else self._reading(made)

    def _reader(self) -> RegistryDeserializer:
        raise NotImplementedError

    def _adapted(self, adapt: Adapt, others: Others) -> Self:
        """Return a copy that reads objects."""
        made = copy.copy(self)
        made.__dict__.pop("_deserializer", None)
        made._reading = lambda reader: reader.with_objects(adapt, others=others)
        return made

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns."""
        return self._deserializer.arrow_type

    def deserialize(self, data: bytes) -> Any:
        """Return the value of an event of the group; see :class:`RegistryDeserializer`."""
        return self._deserializer.deserialize(data)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events; see :class:`RegistryDeserializer`."""
        return self._deserializer.decode_column(column, on_error=on_error)

    def decode_first(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of the first events of a column; see :class:`RegistryDeserializer`."""
        return self._deserializer.decode_first(column, on_error=on_error)


class RegistrySerializer(_Writer):
    """Writer of values of one schema, like Java's registry serializer. Create one with ``serializer()``.

    The registry is asked only at creation: the encoding id is kept, also in pickled copies. Events that it reads are
    resolved to its own schema.
    """

    def __init__(self, config: SerializerConfig, type: EventType) -> None:
        _check_header(config, type.info.format)
        _check_codec(config, type.info.format)
        store = store_of(config)
        store.check_accepts(type.info)
        store.prepare_writer(type.info.format)
        self._config, self._encoder = config, _Encoder.of(config, type)

    def __repr__(self) -> str:
        return f"RegistrySerializer(group={self._config.group!r}, type={self._encoder.type.info.type!r})"

    def _reader(self) -> RegistryDeserializer:
        return RegistryDeserializer(self._config, readers=(self._encoder.type,))

    def with_objects(self, adapt: Adapt, *, others: Others = "error") -> RegistrySerializer:
        """Return a writer of objects; see :meth:`RegistryDeserializer.with_objects`.

        Raises :class:`SchemaError` if the type has no class.
        """
        made = self._adapted(adapt, others)
        made._encoder = self._encoder.with_objects(_payloads(adapt, self._encoder.type))
        return made

    @property
    def write_may_block(self) -> bool:
        """True if a write may wait for keys of the schema's rules."""
        return self._encoder.rules is not None

    @property
    def is_deterministic(self) -> bool:
        """True if equal values have equal events, with the rules of the schema."""
        return self._encoder.is_deterministic

    @property
    def schema(self) -> SchemaInfo:
        """Schema of the written events, as registered."""
        return self._encoder.type.info

    def serialize(self, value: Any) -> bytes:
        """Return the event of a value of the schema."""
        return self._encoder.write(value)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if columns of this type do not fit the schema."""
        empty = self._encoder.type.fitted(pa.nulls(0, arrow_type))
        self._encoder.type.payloads.check_encodable(empty.type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a column. A null row stays null."""
        return self._encoder.write_column(as_column(column))


class MultiTypeSerializer(_Writer):
    """Writer of values of several types into one stream. Create one with ``multi_type_serializer()``.

    Columns are a struct with one member per type. Each row has exactly one member. ``decode_column`` returns the same
    form.
    """

    def __init__(
        self,
        config: SerializerConfig,
        types: Mapping[Any, EventType],
        type_of: Callable[[Any], Any] | None = None,
    ) -> None:
        if not types:
            raise SerdeError("a multi-type serializer requires at least one schema")
        if not config.write_encoding_header:
            raise SerdeError("events of several types require the encoding header: only it identifies their type")
        self._formats = {each.info.format for each in types.values()}
        store = store_of(config)
        for each in types.values():
            store.check_accepts(each.info)
        store.prepare_writer(*(self._formats if len(self._formats) == 1 else (SerializationFormat.ANY,)))
        self._config, self._type_of = config, type_of
        self._encoders = {key: _Encoder.of(config, made) for key, made in types.items()}
        self._by_name: dict[Any, _Encoder] = {encoder.type.info.type: encoder for encoder in self._encoders.values()}
        self._columns = column_names([encoder.type.info for encoder in self._encoders.values()])

    def __repr__(self) -> str:
        return f"MultiTypeSerializer(group={self._config.group!r}, types={sorted(self._by_name)})"

    @property
    def write_may_block(self) -> bool:
        """True if a write may wait for keys of the schemas' rules."""
        return any(encoder.rules is not None for encoder in self._encoders.values())

    @property
    def is_deterministic(self) -> bool:
        """True if equal values have equal events, with the rules of all schemas."""
        return all(encoder.is_deterministic for encoder in self._encoders.values())

    def _reader(self) -> RegistryDeserializer:
        types = tuple(encoder.type for encoder in self._encoders.values())
        return RegistryDeserializer(self._config, readers=types, struct_per_type=True)

    def with_objects(self, adapt: Adapt, *, others: Others = "error") -> MultiTypeSerializer:
        """Return a writer of objects, whose class selects their type; see :meth:`RegistryDeserializer.with_objects`.

        Raises :class:`SchemaError` if a type has no class, or if two types have the same.
        """
        made, encoders = self._adapted(adapt, others), dict[Any, _Encoder]()
        for key, encoder in self._encoders.items():
            payloads = _payloads(adapt, encoder.type)
            chosen = payloads.value_class or key
            if chosen in encoders:
                raise SchemaError(
                    f"the types {encoders[chosen].type.info.type!r} and {encoder.type.info.type!r} have the same class "
                    f"{chosen.__qualname__}, so nothing tells their values apart: pass a class for each"
                )
            encoders[chosen] = encoder.with_objects(payloads)
        made._encoders, made._type_of = encoders, None
        return made

    def serialize(self, value: Any) -> bytes:
        """Return the event of a value. ``type_of``, its Python type or its message type selects the type."""
        key = type(value) if self._type_of is None else self._type_of(value)
        try:
            encoder = self._encoders.get(key)
        except TypeError as error:  # not hashable
            raise SerializationError(
                f"type_of returns {key!r:.80}, which cannot be a key of the schemas; known: {self._known()}"
            ) from error
        if encoder is None:
            encoder = self._by_name.get(self._name_of(value) or key)
        if encoder is None:
            raise SerializationError(f"no schema for a value of the type {_shown(key)!r}; known: {self._known()}")
        return encoder.write(value)

    def _name_of(self, value: Any) -> str | None:
        """Return the name of the value's type if one of the formats recognizes it."""
        parts = map(part_of, self._formats)
        return next((name for part in parts if part is not None and (name := part.type_of(value))), None)

    def _known(self) -> str:
        return ", ".join(str(_shown(key)) for key in self._encoders)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` unless the type is a struct with fields that are named for types and fit."""
        for index, encoder in self._members(arrow_type):
            empty = encoder.type.fitted(pa.nulls(0, arrow_type.field(index).type))
            encoder.type.payloads.check_encodable(empty.type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a column.

        Raises :class:`SerializationError`, which names the first row that does not have exactly one member.
        """
        column = as_column(column)
        members = self._members(column.type)
        fields = column.flatten()
        there = [field.is_valid().to_numpy(zero_copy_only=False) for field in fields]
        counts = np.sum(there, axis=0)
        wrong = np.flatnonzero((counts != 1) & column.is_valid().to_numpy(zero_copy_only=False))
        if len(wrong):
            raise SerializationError(f"row {wrong[0]}: {counts[wrong[0]]} types are set, but exactly one is required")
        place = np.full(len(column), -1)
        parts, before = [pa.nulls(0, pa.binary())], 0
        for index, encoder in members:
            rows = np.flatnonzero(there[index])
            parts.append(encoder.write_column(fields[index].take(pa.array(rows))))
            place[rows] = before + np.arange(len(rows))
            before += len(rows)
        return pa.concat_arrays(parts).take(pa.array(place, mask=place < 0))

    def _members(self, kind: pa.DataType) -> list[tuple[int, _Encoder]]:
        by_column = dict(zip(self._columns, self._encoders.values(), strict=True))
        known = pa.types.is_struct(kind) and all(entry.name in by_column for entry in kind)
        if not known or not kind.num_fields:
            raise SchemaError(f"a column of several types is a struct of {', '.join(self._columns)}; this is {kind}")
        return [(index, by_column[entry.name]) for index, entry in enumerate(kind)]


class WithSchemaSerializer(_Writer):
    """Writer of :class:`WithSchema` values of any format. Create one with ``with_schema_serializer()``.

    The registry is asked once for each new schema. Such values have no common column.
    """

    #: True if a write may wait for the registry.
    write_may_block = True

    def __init__(self, config: SerializerConfig) -> None:
        if not config.write_encoding_header:
            raise SerdeError("events with separate schemas require the encoding header: only it identifies the schema")
        store_of(config).prepare_writer(SerializationFormat.ANY)
        self._config = config
        self._encoders: dict[SchemaInfo, _Encoder] = {}

    def __repr__(self) -> str:
        return f"WithSchemaSerializer(group={self._config.group!r})"

    def _reader(self) -> RegistryDeserializer:
        return RegistryDeserializer(self._config)

    def serialize(self, value: WithSchema) -> bytes:
        """Return the event of a value with its schema."""
        if not isinstance(value, WithSchema):
            raise SerializationError(f"a WithSchema is expected, not {type(value).__name__}")
        encoder = self._encoders.get(value.schema)
        if encoder is None:
            type_ = event_type(value.schema, custom_formats=self._config.custom_formats)
            encoder = self._encoders[value.schema] = _Encoder.of(self._config, type_)
        return encoder.write(value.value)

    def deserialize(self, data: bytes) -> WithSchema:
        """Return the value of an event, with its schema."""
        return self._deserializer.deserialize_with_schema(data)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Always raise :class:`SchemaError`."""
        raise SchemaError(
            f"a column of type {arrow_type} does not define the schema of its values; write it with one schema, or "
            "with several types"
        )

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Always raise :class:`SchemaError`."""
        self.check_encodable(as_column(column).type)
        raise AssertionError


def _payloads(adapt: Adapt, type: EventType) -> ObjectPayloads:
    payloads = adapt(type.info.type, type.payloads)
    if payloads is None:
        raise SchemaError(f"the type {type.info.type!r} has no class here: pass one for it")
    return payloads


def _shown(key: Any) -> Any:
    """Return a key of a schema as errors show it."""
    return key.__qualname__ if isinstance(key, type) else key


def _check_header(config: SerializerConfig, format: SerializationFormat) -> None:
    if config.write_encoding_header:
        return
    check_headerless(format)
    if config.codec != CODEC_NONE:
        raise SerdeError("a codec requires the encoding header: only it tells readers the codec")


def _check_codec(config: SerializerConfig, format: SerializationFormat) -> None:
    part = part_of(format)
    careless = part is not None and not part.typed_readers_undo_codecs
    if config.codec.name and config.typed_java_readers and careless:
        raise SerdeError(
            f"Java's typed {format.name} deserializer does not support codecs and would fail on every event; write "
            "without codec, or set typed_java_readers=False if it does not read this stream"
        )


# ---- creation ----


def serializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schema: Any = None,
    format: str | SerializationFormat | None = None,
    type: str | None = None,
    all_files: bool = False,
    references: Sequence[Any] | Mapping[str, Any] = (),
    **settings: Unpack[WriterSettings],
) -> RegistrySerializer:
    """Return a serializer of one schema, like Java's ``avroSerializer``, ``protobufSerializer``, ``jsonSerializer``.

    ``schema`` is an Avro or JSON schema (JSON text, parsed, or a path). It may also be a Protobuf message class,
    descriptor or descriptor set, bytes of a custom format, or a SchemaInfo. From an Arrow schema, a schema of the
    format is derived. Without a schema, it is the latest one of the group, of ``type`` if there are several.

    ``references`` are schemas to which the schema refers, in a Confluent or Apicurio registry: Avro schemas that define
    named types, or JSON schemas by the names in ``$ref``. They are registered as subjects of these names.

    ``format`` is ``avro``, ``protobuf``, ``json`` or a custom one, if the schema does not identify it. ``type`` is the
    name in the registry of JSON, custom and derived schemas, and selects the message of a descriptor set. ``all_files``
    registers a message with all its imports, which Java's serializers do not do.

    The settings are those of :class:`SerializerConfig`, and ``namespace``. Asks the registry before it returns. Raises
    RegistryErrors, :class:`SchemaError`, and :class:`SerdeError` for settings that Java rejects.
    """
    config = serializer_config(registry, group, settings)
    if schema is None:
        schema = latest_of(config, type)
    if references:
        return RegistrySerializer(config, _referring(config, schema, format, references))
    return RegistrySerializer(config, _event_type(config, schema, format, type, all_files=all_files))


def multi_type_serializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schemas: Mapping[Any, Any] | Sequence[Any],
    format: str | SerializationFormat | None = None,
    type_of: Callable[[Any], Any] | None = None,
    **settings: Unpack[WriterSettings],
) -> MultiTypeSerializer:
    """Return a serializer of several types in one stream, like Java's ``…MultiTypeSerializer``.

    ``schemas`` maps keys to schemas. The key of a value is ``type_of(value)``. Without ``type_of``, it is the value's
    Python class, the name of its type, or the message type of a Protobuf message. A text key is the type's name in the
    registry if the schema has none. Otherwise as :func:`serializer`.
    """
    config = serializer_config(registry, group, settings)
    part = None if format is None else part_of(format_named(format))

    def make(schema: Any, name: str | None) -> EventType:
        # Avro schemas and message classes have their own names, which do not depend on the key.
        own = isinstance(schema, type) or (part is not None and part.names_itself)
        given = None if own and not isinstance(schema, pa.Schema) else name
        return _event_type(config, schema, format, given)

    return MultiTypeSerializer(config, _types_by_key(schemas, make), type_of)


def with_schema_serializer(
    registry: str | RegistryConfig, *, group: str, **settings: Unpack[WriterSettings]
) -> WithSchemaSerializer:
    """Return a serializer of values with their schemas, of any format, like Java's ``serializerWithSchema``."""
    return WithSchemaSerializer(serializer_config(registry, group, settings))


def _event_type(
    config: SerializerConfig,
    schema: Any,
    format: str | SerializationFormat | None,
    type: str | None,
    *,
    all_files: bool = False,
) -> EventType:
    """Return the type of a schema's events. Only Pravega's registry stores a name with a JSON schema."""
    all_files = all_files or store_of(config).all_files
    part = None if format is None else part_of(format_named(format))
    needs_name = config.registry.kind == "pravega" or part is None or not part.anonymous
    if not needs_name and not isinstance(schema, pa.Schema | pa.StructType):
        type = type or ""
    return event_type(
        schema,
        format=format,
        type=type,
        custom_formats=config.custom_formats,
        all_files=all_files,
        after=partial(latest_or_none, config),
    )


def _referring(
    config: SerializerConfig, schema: Any, format: str | SerializationFormat | None, references: Any
) -> EventType:
    """Return the type of a schema that refers to other schemas."""
    if config.registry.kind == "pravega":
        raise SerdeError("Pravega's registry has no references between schemas: put all types into one schema")
    part = part_of(format_named(format)) if format is not None else None
    if part is None:
        raise SerdeError("a schema with references requires its format: avro or json")
    text = part.referring(schema, references)
    info = part.from_text(text)
    return EventType(info, part.payloads(info), text=text)


def _types_by_key(
    schemas: Mapping[Any, Any] | Sequence[Any], make: Callable[[Any, str | None], EventType]
) -> dict[Any, EventType]:
    """Return the schemas by the key of their values: the given keys, or the types' names.

    A text key is the type's name for schemas that have none.
    """
    if isinstance(schemas, Mapping):
        return {key: make(schema, key if isinstance(key, str) else None) for key, schema in schemas.items()}
    made = [make(schema, None) for schema in schemas]
    return {each.info.type: each for each in made}

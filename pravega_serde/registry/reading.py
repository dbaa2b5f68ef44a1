"""Reader of events with registry headers: all events of a group, by the encoding id of each.

Applications create a reader with :func:`deserializer`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, Unpack

import pyarrow as pa

from pravega_serde.columnar import as_binary
from pravega_serde.columnar.bad_rows import relocated
from pravega_serde.errors import DeserializationError, SchemaError, SerdeError, SerializationError
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.encodings import (
    ColumnTypes,
    Entries,
    Sources,
    UnknownEncodingError,
    decode_column,
    decode_first,
)
from pravega_serde.registry.formats import event_type, part_of, reader_type
from pravega_serde.registry.header import Framing, read_header
from pravega_serde.registry.interface import EventType
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.settings import (
    Evolution,
    Leniency,
    ReaderSettings,
    SerializerConfig,
    Version,
    serializer_config,
)
from pravega_serde.registry.stores import latest_or_none, store_of
from pravega_serde.registry.values import (
    CONVERSIONS,
    Adapt,
    Convert,
    Others,
    ValueForm,
    WithSchema,
    natural,
    objects,
)
from pravega_serde.serializer_interface import DeserializerCalls, OnError

_READS_ONLY: Final = "a registry deserializer only reads; create a serializer to write"


class RegistryDeserializer(DeserializerCalls):
    """Reader of all events of a group. Create one with ``deserializer()``.

    Single values are read with the schema of their writer, or resolved to the reader's schema if there is one.
    ``values`` is their form. Columns have one fixed type: the reader's, or the latest of the group when
    :attr:`arrow_type` is first read. With ``version``, both have the type of that version. A pickled copy keeps the
    type. Events of other versions are migrated and resolved to it.

    ``also`` are further registries and groups. Their events are in the same stream and have another framing.

    If the registry cannot be reached, it raises a RegistryError, never a DeserializationError, because the events may
    be valid.
    """

    #: True if a read may wait for the registry.
    read_may_block = True

    def __init__(
        self,
        config: SerializerConfig,
        *,
        also: tuple[SerializerConfig, ...] = (),
        readers: tuple[EventType, ...] = (),
        types: tuple[str, ...] = (),
        struct_per_type: bool | None = None,
        unknown_is_corrupt: bool = False,
        same_schema: bool = False,
        check_readable: bool = True,
        values: ValueForm = "natural",
        version: Version = "writer",
    ) -> None:
        self._config, self._readers, self._types = config, readers, types
        self._configs = (config, *also)
        self._struct_per_type = struct_per_type
        self._leniency = {"same_schema": same_schema, "unknown_is_corrupt": unknown_is_corrupt}
        if values not in CONVERSIONS:
            raise SerdeError(f"invalid form of values {values!r}; known forms: {', '.join(CONVERSIONS)}")
        self._values, self._convert = values, CONVERSIONS[values]
        self._metadata = self._metadata_of(version)
        self._check(readable=check_readable)
        if version != "writer":
            self._readers = self._latest()

    def _metadata_of(self, version: Version) -> Mapping[str, str]:
        """Return the properties of the version to read as. Raises :class:`SerdeError` for an invalid version."""
        if version == "writer":
            return {}
        if self._readers:
            raise SerdeError("a version is one of the registry's: omit schema and schemas, or version")
        if version == "latest":
            return {}
        if not isinstance(version, Mapping) or not version:
            raise SerdeError(f"invalid version {version!r:.80}; known: writer, latest, or properties of the metadata")
        if self._config.registry.kind != "confluent":
            raise SerdeError("only schemas of a Confluent registry have metadata: omit version, or set it to 'latest'")
        return dict(version)

    def _check(self, *, readable: bool) -> None:
        if not self._config.write_encoding_header:
            self._check_headerless()
        self._check_framings()
        for config in self._configs:
            store = store_of(config)
            store.prepare_reader(self._readers[0].info.format if self._readers else SerializationFormat.ANY)
            for reader in self._readers if readable else ():
                store.check_readable(reader.info)

    def _check_framings(self) -> None:
        """Raise :class:`SerdeError` if two registries have events with the same framing."""
        known: dict[Framing, SerializerConfig] = {}
        for config in self._configs:
            for framing in store_of(config).framings:
                if framing in known:
                    raise SerdeError(
                        f"events of the registries {known[framing].registry.uri} and {config.registry.uri} have the "
                        "same header, so nothing tells them apart: read them from different streams"
                    )
                known[framing] = config

    def _check_headerless(self) -> None:
        if len(self._configs) > 1:
            raise SerdeError("events without encoding header are of one registry; omit also")
        self._readers = self._readers or self._latest()
        if len(self._readers) != 1:
            raise SerdeError("events without encoding header are read with one schema; pass the schema")
        check_headerless(self._readers[0].info.format)

    def __getstate__(self) -> dict[str, Any]:
        compiled = ("_rows", "_entries", "framings", "_read_headerless")
        return {name: value for name, value in self.__dict__.items() if name not in compiled}

    def __repr__(self) -> str:
        types = [reader.info.type for reader in self._readers] or list(self._types)
        return f"RegistryDeserializer(group={self._config.group!r}, types={types or 'any'})"

    # Single events

    @cached_property
    def framings(self) -> tuple[Framing, ...]:
        """Headers of the events that this reader accepts."""
        return tuple(self._rows)

    @cached_property
    def _rows(self) -> Sources:
        return self._sources(self._readers, others=True, convert=self._convert)

    def _sources(self, readers: tuple[EventType, ...], *, others: bool, convert: Convert = natural) -> Sources:
        return {
            framing: Entries(config, framing, readers, others=others, convert=convert, **self._leniency)
            for config in self._configs
            for framing in store_of(config).framings
        }

    def deserialize(self, data: bytes) -> Any:
        """Return the value of an event. The :class:`DeserializationError` holds its encoding id."""
        schema, value = self._read(data)
        return WithSchema(value, schema) if self._values == "with_schema" else value

    def deserialize_with_schema(self, data: bytes) -> WithSchema:
        """Return the value of an event, and the schema with which it was written, or to which it was migrated."""
        schema, value = self._read(data)
        return WithSchema(value, schema)

    def with_objects(self, adapt: Adapt, *, others: Others = "error") -> RegistryDeserializer:
        """Return a reader of objects: ``adapt`` returns the serializer of a type's payloads, or None without a class.

        Applications call :func:`pravega_serde.typed`. Events of types without a class raise
        :class:`DeserializationError`. With ``others="generic"``, they are :class:`WithSchema` values. Raises
        :class:`SchemaError` for a reader of other values than natural ones.
        """
        if self._values != "natural":
            raise SchemaError(f"objects are read from natural values, not from values={self._values!r}: omit values")
        made = copy.copy(self)
        made._convert = objects(adapt, others)
        return made

    @cached_property
    def _read_headerless(self) -> Callable[[bytes], Any]:
        only = self._readers[0]
        return self._convert(only.info, only.payloads)

    def _read(self, data: bytes) -> tuple[SchemaInfo, Any]:
        data = data if isinstance(data, bytes) else bytes(data)
        if not self._config.write_encoding_header:
            return self._readers[0].info, self._read_headerless(data)
        framing, encoding_id = read_header(data, self.framings)
        try:
            entry, start = self._rows[framing].entry_of(encoding_id, data)
            return entry.encoding.schema, entry.read(data[start:])
        except UnknownEncodingError as error:
            raise DeserializationError(error.reason, encoding_id=encoding_id) from error
        except DeserializationError as error:
            raise relocated(error, row=None, encoding_id=encoding_id) from error

    # Columns

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns.

        Without a schema, it is read once from the latest schemas of the group.
        """
        return self._columns.arrow_type()

    @property
    def read_schema(self) -> str | None:
        """JSON text of the Avro schema of the columns. None for several types and for other formats."""
        if self._columns.per_type:
            return None
        found: str | None = getattr(self._columns.types[0].payloads, "read_schema", None)
        return found

    @property
    def bytes_at_once(self) -> int:
        """Bytes of events that are best decoded together. 0 if that makes no difference."""
        return max(getattr(each.payloads, "bytes_at_once", 0) for each in self._columns.types)

    @property
    def never_null(self) -> frozenset[str]:
        """Fields of the columns' only type that are never null.

        With several types, each may be null.
        """
        if self._columns.per_type:
            return frozenset()
        return getattr(self._columns.types[0].payloads, "never_null", frozenset())

    @cached_property
    def _columns(self) -> ColumnTypes:
        types = self._readers or self._latest()
        per_type = len(types) > 1 if self._struct_per_type is None else self._struct_per_type
        return ColumnTypes(types, per_type, others_are_null=bool(self._types))

    def _latest(self) -> tuple[EventType, ...]:
        """Return the latest schemas of the selected types, in the selected order or sorted by name."""
        group = self._config.group
        store = store_of(self._config)
        # A Protobuf file of another registry is read as the types that are asked for.
        named: tuple[str | None, ...] = self._types or (None,)
        latest = [each for name in named for each in store.latest(name, self._metadata)]
        asked = {(each.schema.type, each.schema.format.full_type_name): each for each in latest}
        found = [each for _, each in sorted(asked.items())]
        wanted = self._types or tuple(dict.fromkeys(each.schema.type for each in found))
        missing = sorted(set(wanted) - {each.schema.type for each in found})
        if missing or not wanted:
            what = f"no schema of the type {missing[0]!r}" if missing else "no schema"
            raise SchemaError(f"the group {group!r} has {what} yet; pass a schema to read with")
        chosen = [each for name in wanted for each in found if each.schema.type == name]
        return tuple(
            replace(event_type(each.schema, custom_formats=self._config.custom_formats), registered=each.version.id)
            for each in chosen
        )

    @cached_property
    def _entries(self) -> Sources:
        return self._sources(self._columns.types, others=False)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events, in :attr:`arrow_type`.

        The events of each encoding id are decoded together.
        """
        if not self._config.write_encoding_header:
            return self._readers[0].payloads.decode_column(column, on_error=on_error)
        return decode_column(as_binary(column), self._columns, self._entries, on_error)

    def decode_first(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of the first events of a column.

        These are all events that decompress to ``MAX_DECOMPRESSED_BYTES`` together.
        """
        if not self._config.write_encoding_header:
            return self.decode_column(column, on_error=on_error)
        return decode_first(as_binary(column), self._columns, self._entries, on_error)

    def serialize(self, value: Any) -> bytes:
        """Always raise :class:`SerializationError`."""
        raise SerializationError(_READS_ONLY)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Always raise :class:`SchemaError`."""
        raise SchemaError(_READS_ONLY)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Always raise :class:`SchemaError`."""
        raise SchemaError(_READS_ONLY)


def check_headerless(format: SerializationFormat) -> None:
    """Raise :class:`SerdeError` for a format that needs encoding headers to read its events."""
    part = part_of(format)
    if part is not None and part.needs_header:
        raise SerdeError(
            f"{format.name} events require their encoding header: without the writer's schema they cannot be read"
        )


def deserializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schema: Any = None,
    schemas: Sequence[Any] = (),
    format: str | SerializationFormat | None = None,
    type: str | Sequence[str] | None = None,
    evolution: Evolution = "resolve",
    unknown_ids: Leniency = "fail",
    check_readable: bool = True,
    values: ValueForm = "natural",
    version: Version = "writer",
    also: Mapping[str, str] | Mapping[RegistryConfig, str] | None = None,
    **settings: Unpack[ReaderSettings],
) -> RegistryDeserializer:
    """Return a reader of all events of a group: every format, schema version, type and codec.

    ``schema``, or ``schemas`` for several types, is the type to read the events as, in the forms of :func:`serializer`.
    An Arrow schema selects the columns of JSON events. The registry is asked once if the schema can read the group's
    events, as Java's readers do. With ``check_readable=False``, only the events that cannot be read raise errors.

    ``values`` is the form of single values. With ``"json"``, they are JSON text, for events of every format.
    With ``"plain"``, they are mappings, lists and scalars, and JSON numbers with a fraction are decimals. With
    ``"with_schema"``, they are :class:`WithSchema`, whose schema tells the type. By default, they are the values of the
    format's serializer, such as Protobuf messages. Columns are the same in each form.

    Without a schema, values keep the type of their writer. Columns then have the type of the group's latest schema, or
    are a struct with a member per type. ``type`` selects types; rows of others are null then.

    With ``version="latest"``, single values are also read as the latest schema. With a mapping, all values are read as
    the latest schema that has these properties in its metadata, in a Confluent registry. The version is fixed when the
    reader is created. Events of other versions are migrated by the rules of the registry, then resolved.

    With ``evolution="corrupt"``, events of another version of the schema are malformed records and are not resolved. An
    encoding id that the registry does not have raises RegistryNotFoundError, because the event may be valid. With
    ``unknown_ids="corrupt"`` it is a malformed record, if the group exists.

    ``also`` maps other registries to groups, such as ``{"confluent+http://host:8081": "orders-value"}``. Their events
    may be in the same stream: the header of each event tells its registry. Columns have the types of ``group``.

    The settings are those of :class:`SerializerConfig`, and ``namespace``. Raises RegistryErrors, :class:`SchemaError`
    for schemas that do not fit, and UnsupportedCodecError for a group with codecs that are not known here.
    """
    config = serializer_config(registry, group, settings)
    chosen = (type,) if isinstance(type, str) else tuple(type or ())
    given = [*schemas] if schema is None else [schema, *schemas]
    name = chosen[0] if len(chosen) == 1 else None
    after = partial(latest_or_none, config)
    readers = tuple(
        reader_type(each, format=format, type=name, custom_formats=config.custom_formats, after=after) for each in given
    )
    others = {name: value for name, value in settings.items() if name not in ("namespace", "create_group")}
    return RegistryDeserializer(
        config,
        also=tuple(serializer_config(each, name, others) for each, name in (also or {}).items()),
        readers=readers,
        types=chosen,
        unknown_is_corrupt=unknown_ids == "corrupt",
        same_schema=evolution == "corrupt",
        check_readable=check_readable,
        values=values,
        version=version,
    )

"""Reading events with registry headers: whatever is in a group, by the encoding id of each event.

:func:`deserializer` is how applications make a reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Unpack

import pyarrow as pa

from pravega_serde.columnar import as_binary
from pravega_serde.columnar.bad_rows import relocated
from pravega_serde.errors import DeserializationError, SchemaError, SerdeError, SerializationError
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.encodings import (
    ColumnTypes,
    Entries,
    UnknownEncodingError,
    decode_column,
    decode_first,
)
from pravega_serde.registry.formats import event_type, part_of, reader_type
from pravega_serde.registry.header import HEADER_SIZE, read_header
from pravega_serde.registry.interface import EventType
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.settings import (
    Evolution,
    Leniency,
    ReaderSettings,
    SerializerConfig,
    check_codecs,
    prepare_group,
    serializer_config,
)
from pravega_serde.serializer_interface import OnError

_READS_ONLY: Final = "a registry deserializer only reads; make a serializer to write with"


@dataclass(frozen=True, slots=True)
class WithSchema:
    """A value and the schema that it was, or is to be, written with."""

    value: Any
    schema: SchemaInfo


class RegistryDeserializer:
    """Reads anything in a group; made by ``deserializer()``.

    Single values are read by the schema that they were written with, or resolved to the reader's where there is one.
    Columns have one type from the start: the reader's, or the latest of the group when :attr:`arrow_type` is first
    asked for; a pickled copy keeps it, and events of other versions are resolved to it.

    A registry that cannot be asked raises a RegistryError, never a DeserializationError: such events may be fine.
    """

    #: Whether a read may wait for the registry.
    read_may_block = True

    def __init__(
        self,
        config: SerializerConfig,
        *,
        readers: tuple[EventType, ...] = (),
        types: tuple[str, ...] = (),
        struct_per_type: bool | None = None,
        unknown_is_corrupt: bool = False,
        same_schema: bool = False,
        check_readable: bool = True,
    ) -> None:
        self._config, self._readers, self._types = config, readers, types
        self._struct_per_type = struct_per_type
        self._leniency = {"same_schema": same_schema, "unknown_is_corrupt": unknown_is_corrupt}
        self._check(readable=check_readable)

    def _check(self, *, readable: bool) -> None:
        config = self._config
        if not config.write_encoding_header:
            self._check_headerless()
        prepare_group(config, self._readers[0].info.format if self._readers else SerializationFormat.ANY)
        check_codecs(config)
        for reader in self._readers if readable else ():
            if reader.info.type and not config.client.can_read(config.group, reader.info):
                raise SchemaError(
                    f"by its compatibility policy the group {config.group!r} has events that the schema given for "
                    f"{reader.info.type!r} cannot read"
                )

    def _check_headerless(self) -> None:
        self._readers = self._readers or self._latest()
        if len(self._readers) != 1:
            raise SerdeError("events without encoding header are read with one schema; give it")
        check_headerless(self._readers[0].info.format)

    def __getstate__(self) -> dict[str, Any]:
        compiled = ("_rows", "_entries")
        return {name: value for name, value in self.__dict__.items() if name not in compiled}

    def __repr__(self) -> str:
        types = [reader.info.type for reader in self._readers] or list(self._types)
        return f"RegistryDeserializer(group={self._config.group!r}, types={types or 'any'})"

    # Single events

    @cached_property
    def _rows(self) -> Entries:
        return Entries(self._config, self._readers, others=True, **self._leniency)

    def deserialize(self, data: bytes) -> Any:
        """The value of an event; :class:`DeserializationError` knows its encoding id."""
        if not self._config.write_encoding_header:
            return self._readers[0].payloads.deserialize(data)
        return self._read(data)[1]

    def deserialize_with_schema(self, data: bytes) -> WithSchema:
        """The value of an event, and the schema that it was written with."""
        if not self._config.write_encoding_header:
            return WithSchema(self.deserialize(data), self._readers[0].info)
        schema, value = self._read(data)
        return WithSchema(value, schema)

    def _read(self, data: bytes) -> tuple[SchemaInfo, Any]:
        data = data if isinstance(data, bytes) else bytes(data)
        encoding_id = read_header(data)
        try:
            entry = self._rows.find(encoding_id)
            return entry.encoding.schema, entry.read(data[HEADER_SIZE:])
        except UnknownEncodingError as error:
            raise DeserializationError(error.reason, encoding_id=encoding_id) from error
        except DeserializationError as error:
            raise relocated(error, row=None, encoding_id=encoding_id) from error

    # Columns

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns. Where no schema was given, the group's latest are taken, once."""
        return self._columns.arrow_type()

    @property
    def read_schema(self) -> str | None:
        """JSON text of the Avro schema whose values the columns are; None of several types, and of other formats."""
        if self._columns.per_type:
            return None
        found: str | None = getattr(self._columns.types[0].payloads, "read_schema", None)
        return found

    @property
    def bytes_at_once(self) -> int:
        """Bytes of events that are best decoded together; 0 if that makes no difference."""
        return max(getattr(each.payloads, "bytes_at_once", 0) for each in self._columns.types)

    @property
    def never_null(self) -> frozenset[str]:
        """Fields of the columns' only type that are null in no value; with several types each may be null."""
        if self._columns.per_type:
            return frozenset()
        return getattr(self._columns.types[0].payloads, "never_null", frozenset())

    @cached_property
    def _columns(self) -> ColumnTypes:
        types = self._readers or self._latest()
        per_type = len(types) > 1 if self._struct_per_type is None else self._struct_per_type
        return ColumnTypes(types, per_type, others_are_null=bool(self._types))

    def _latest(self) -> tuple[EventType, ...]:
        """The latest schemas of the types that are wanted: in the order asked for, or in that of their names."""
        group = self._config.group
        found = sorted((each.schema for each in self._config.client.latest_schemas(group)), key=_by_name)
        wanted = self._types or tuple(dict.fromkeys(each.type for each in found))
        missing = sorted(set(wanted) - {each.type for each in found})
        if missing or not wanted:
            what = f"no schema of the type {missing[0]!r}" if missing else "no schema"
            raise SchemaError(f"the group {group!r} has {what} yet; give one to read with")
        chosen = [each for name in wanted for each in found if each.type == name]
        return tuple(event_type(each, custom_formats=self._config.custom_formats) for each in chosen)

    @cached_property
    def _entries(self) -> Entries:
        return Entries(self._config, self._columns.types, others=False, **self._leniency)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Values of a column of events, in :attr:`arrow_type`; those of each encoding id are decoded together."""
        if not self._config.write_encoding_header:
            return self._readers[0].payloads.decode_column(column, on_error=on_error)
        return decode_column(as_binary(column), self._columns, self._entries, on_error)

    def decode_first(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Values of the first events of a column: of all that unfold into ``MAX_DECOMPRESSED_BYTES`` together."""
        if not self._config.write_encoding_header:
            return self.decode_column(column, on_error=on_error)
        return decode_first(as_binary(column), self._columns, self._entries, on_error)

    def serialize(self, value: Any) -> bytes:  # noqa: ARG002
        """Always raise :class:`SerializationError`."""
        raise SerializationError(_READS_ONLY)

    def check_encodable(self, arrow_type: pa.DataType) -> None:  # noqa: ARG002
        """Always raise :class:`SchemaError`."""
        raise SchemaError(_READS_ONLY)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:  # noqa: ARG002
        """Always raise :class:`SchemaError`."""
        raise SchemaError(_READS_ONLY)


def _by_name(schema: SchemaInfo) -> tuple[str, str]:
    return schema.type, schema.format.full_type_name


def check_headerless(format: SerializationFormat) -> None:  # noqa: A002 -- the option's name everywhere
    """Raise :class:`SerdeError` for a format whose events cannot be read without their encoding header."""
    part = part_of(format)
    if part is not None and part.needs_header:
        raise SerdeError(
            f"{format.name} events need their encoding header: without the writer's schema they cannot be read"
        )


def deserializer(
    registry: str | RegistryConfig,
    *,
    group: str,
    schema: Any = None,
    schemas: Sequence[Any] = (),
    format: str | SerializationFormat | None = None,  # noqa: A002 -- the option's name everywhere
    type: str | Sequence[str] | None = None,  # noqa: A002 -- the registry's word
    evolution: Evolution = "resolve",
    unknown_ids: Leniency = "fail",
    check_readable: bool = True,
    **settings: Unpack[ReaderSettings],
) -> RegistryDeserializer:
    """A reader of anything in a group: every format, schema version, type and codec.

    ``schema``, or ``schemas`` for several types, is what to make of the events, given as for :func:`serializer`; an
    Arrow schema says which columns JSON events have. The registry is asked once whether the group's events can be read
    with it, as by Java's readers; without ``check_readable`` each event shows whether it can. Without a schema, values
    are as they were written, and columns those of the group's latest schemas: of its type, or a struct with a member
    per type. ``type`` chooses types; rows of others are null then.

    With ``evolution="corrupt"`` events of another version of the schema are bad records instead of being resolved. An
    encoding id that the registry does not know is a RegistryNotFoundError, because it says nothing about the event;
    with ``unknown_ids="corrupt"`` it makes a bad record, if the group is there.

    The settings are those of :class:`SerializerConfig`, and ``namespace``. Raises RegistryErrors, :class:`SchemaError`
    for schemas that do not fit, UnsupportedCodecError for a group with codecs that are not known here.
    """
    config = serializer_config(registry, group, settings)
    chosen = (type,) if isinstance(type, str) else tuple(type or ())
    given = [*schemas] if schema is None else [schema, *schemas]
    name = chosen[0] if len(chosen) == 1 else None
    readers = tuple(reader_type(each, format=format, type=name, custom_formats=config.custom_formats) for each in given)
    return RegistryDeserializer(
        config,
        readers=readers,
        types=chosen,
        unknown_is_corrupt=unknown_ids == "corrupt",
        same_schema=evolution == "corrupt",
        check_readable=check_readable,
    )

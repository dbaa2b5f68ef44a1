"""What each encoding id means to a reader: looked up once, compiled once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro import AvroSerializer
from pravega_serde.errors import DeserializationError, RegistryNotFoundError, SchemaError, UnsupportedCodecError
from pravega_serde.protobuf._schema import load
from pravega_serde.registry._avro_text import avro_names, avro_text
from pravega_serde.registry._codecs import Codec
from pravega_serde.registry._event_types import EventType, payload_serializer
from pravega_serde.registry._models import EncodingInfo, SchemaInfo, SerializationFormat
from pravega_serde.registry._protobuf_fit import protobuf_misfit
from pravega_serde.registry._settings import SerializerConfig
from pravega_serde.serializer import OnError, Serializer

__all__ = ["Entries", "Entry", "UnknownEncodingError", "relocated"]

#: As many as the Java client keeps; each holds a compiled serializer.
MAX_ENTRIES: Final = 1000


class UnknownEncodingError(Exception):
    """The registry does not know an encoding id, and the reader takes that for the event's fault."""

    def __init__(self, encoding_id: int) -> None:
        super().__init__(encoding_id)
        self.reason = f"the registry does not know the encoding id {encoding_id}"


@dataclass(frozen=True, slots=True)
class Entry:
    """What to do with events of one encoding id."""

    encoding: EncodingInfo
    codec: Codec
    payloads: Serializer[Any] | None
    """Reads the payloads; None if their schema does not fit the reader's."""
    target: int | None
    """Position of the reader's type among its types; None if it has none for these events."""
    misfit: str = ""

    def read(self, stored: bytes) -> Any:
        """The value of what stands behind a header; :class:`DeserializationError`."""
        if self.payloads is None:
            raise DeserializationError(self.misfit)
        return self.payloads.deserialize(self._unpack(stored))

    def read_column(self, stored: pa.BinaryArray, on_error: OnError) -> pa.Array:
        """The values of a column of such."""
        assert self.payloads is not None
        if self.codec.name:
            stored = pa.array([self._unpack_row(row, each, on_error) for row, each in enumerate(stored.to_pylist())])
            stored = stored.cast(pa.binary())
        return self.payloads.decode_column(stored, on_error=on_error)

    def _unpack(self, stored: bytes) -> bytes:
        return self.codec.unpack(stored, self.encoding.codec.properties) if self.codec.name else stored

    def _unpack_row(self, row: int, stored: bytes, on_error: OnError) -> bytes | None:
        try:
            return self._unpack(stored)
        except DeserializationError as error:
            on_error(relocated(error, row=row))
            return None


def relocated(error: DeserializationError, *, row: int | None, encoding_id: int | None = None) -> DeserializationError:
    """The same error in another row, or of an encoding."""
    known = error.encoding_id if encoding_id is None else encoding_id
    return type(error)(error.reason, field_path=error.field_path, row=row, encoding_id=known)


class Entries:
    """The entries of a group for a reader of some types, or, without any, of each event's own."""

    def __init__(
        self, config: SerializerConfig, readers: tuple[EventType, ...], *, same_schema: bool, unknown_is_corrupt: bool
    ) -> None:
        self._config, self._readers = config, readers
        self._same_schema, self._unknown_is_corrupt = same_schema, unknown_is_corrupt
        self._codecs = config.known_codecs()
        self._compiled: dict[int, Entry] = {}

    def find(self, encoding_id: int) -> Entry:
        """The entry of an encoding id.

        Raises a RegistryError if the registry cannot be asked or does not know the id (UnknownEncodingError, where that
        is the event's fault), :class:`UnsupportedCodecError`, :class:`SchemaError` for a schema that nobody can use.
        """
        entry = self._compiled.get(encoding_id)
        if entry is None:
            entry = self._compile(self._ask(encoding_id))
            if len(self._compiled) >= MAX_ENTRIES:
                self._compiled.clear()
            self._compiled[encoding_id] = entry
        return entry

    def _ask(self, encoding_id: int) -> EncodingInfo:
        client, group = self._config.client, self._config.group
        try:
            return client.encoding_info(group, encoding_id)
        except RegistryNotFoundError:
            if not self._unknown_is_corrupt:
                raise
        # The event is to blame only if its group is there.
        client.group_properties(group)
        raise UnknownEncodingError(encoding_id)

    def _compile(self, encoding: EncodingInfo) -> Entry:
        codec = self._codecs.get(encoding.codec.name)
        if codec is None:
            raise UnsupportedCodecError(
                f"events of the group {self._config.group!r} have the codec {encoding.codec.name!r}, which this reader "
                "lacks; give it in codecs"
            )
        target = next((i for i, each in enumerate(self._readers) if _is_of(encoding.schema, each.info)), None)
        if target is None:
            return Entry(encoding, codec, payload_serializer(encoding.schema, self._config.custom_formats), None)
        reader = self._readers[target]
        try:
            if self._same_schema and not _is_same(encoding.schema, reader.info):
                raise SchemaError("it is not the reader's")
            return Entry(encoding, codec, self._resolved(encoding.schema, reader), target)
        except SchemaError as error:
            version = f"version {encoding.version.version} of {encoding.schema.type!r}"
            return Entry(encoding, codec, None, target, f"the event has {version}: {error.message}")

    def _resolved(self, writer: SchemaInfo, reader: EventType) -> Serializer[Any]:
        """The serializer that reads payloads of one schema as another; :class:`SchemaError` if they do not fit."""
        if writer.data == reader.info.data or writer.format == SerializationFormat.JSON:
            return reader.payloads
        if writer.format == SerializationFormat.AVRO:
            return AvroSerializer(writer.data.decode(), reader_schema=reader.info.data.decode())
        if writer.format == SerializationFormat.PROTOBUF:
            misfit = protobuf_misfit(writer, load(reader.info.data, reader.info.type).DESCRIPTOR)
            if misfit is not None:
                raise SchemaError(misfit)
            return reader.payloads
        return payload_serializer(writer, self._config.custom_formats)


def _is_of(writer: SchemaInfo, reader: SchemaInfo) -> bool:
    """Whether events of one schema are of a reader's type, by its name."""
    if writer.format != reader.format:
        return False
    if writer.type == reader.type or (reader.format == SerializationFormat.JSON and reader.type == ""):
        return True
    return reader.format == SerializationFormat.AVRO and writer.type in avro_names(reader.data.decode())


def _is_same(writer: SchemaInfo, reader: SchemaInfo) -> bool:
    if writer.data == reader.data:
        return True
    return writer.format == SerializationFormat.AVRO and avro_text(writer.data.decode()) == reader.data.decode()

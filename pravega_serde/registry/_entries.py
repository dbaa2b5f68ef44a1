"""What each encoding id means to a reader: looked up once, compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro import AvroSerializer
from pravega_serde.avro.schema import load
from pravega_serde.errors import (
    DeserializationError,
    LimitExceededError,
    RegistryNotFoundError,
    SchemaError,
    UnsupportedCodecError,
)
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.registry._avro_print import print_schema
from pravega_serde.registry._avro_text import avro_names, avro_text
from pravega_serde.registry._codecs import CODEC_NONE, MAX_DECOMPRESSED_BYTES, Codec
from pravega_serde.registry._event_types import EventType, payload_serializer, schema_text
from pravega_serde.registry._models import EncodingInfo, SchemaInfo, SerializationFormat
from pravega_serde.registry._narrowing import narrowed, widened
from pravega_serde.registry._protobuf_fit import protobuf_misfit, widened_message
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
    narrow: pa.DataType | None = None
    """What the payloads' columns are narrowed to; None where they are read as what they are."""

    def read(self, stored: bytes) -> Any:
        """The value of what stands behind a header; :class:`DeserializationError`."""
        if self.payloads is None:
            raise DeserializationError(self.misfit)
        return self.payloads.deserialize(self._unpack(stored))

    def read_column(self, stored: pa.BinaryArray, on_error: OnError) -> pa.Array:
        """The values of a column of such; :class:`LimitExceededError` if they unfold into more than an array holds."""
        if self.narrow is not None:
            return narrowed(self._read_payloads(stored, on_error), self.narrow, on_error)
        return self._read_payloads(stored, on_error)

    def _read_payloads(self, stored: pa.BinaryArray, on_error: OnError) -> pa.Array:
        assert self.payloads is not None
        if not self.codec.name:
            return self.payloads.decode_column(stored, on_error=on_error)
        pieces = [pa.nulls(0, self.payloads.arrow_type)]
        for first, unpacked in self._unpacked(stored.to_pylist(), on_error):
            column = pa.array(unpacked, pa.binary())
            pieces.append(self.payloads.decode_column(column, on_error=_shifted(on_error, first)))
        try:
            return pa.concat_arrays(pieces)
        except pa.ArrowInvalid as error:
            raise LimitExceededError(f"{len(stored)} events unfold into too much for a column: {error}") from error

    def _unpacked(self, stored: list[bytes], on_error: OnError) -> Iterator[tuple[int, list[bytes | None]]]:
        """The payloads, as many at once as fit the limit of one, and the row of the first."""
        first, size, unpacked = 0, 0, list[bytes | None]()
        for row, each in enumerate(stored):
            payload = self._unpack_row(row, each, on_error)
            unpacked.append(payload)
            size += len(payload or b"")
            if size > MAX_DECOMPRESSED_BYTES:
                yield first, unpacked
                first, size, unpacked = row + 1, 0, []
        yield first, unpacked

    def _unpack(self, stored: bytes) -> bytes:
        return self.codec.unpack(stored, self.encoding.codec.properties) if self.codec.name else stored

    def _unpack_row(self, row: int, stored: bytes, on_error: OnError) -> bytes | None:
        try:
            return self._unpack(stored)
        except DeserializationError as error:
            on_error(relocated(error, row=row))
            return None


def _shifted(on_error: OnError, first: int) -> OnError:
    """Takes errors whose rows count from a later one on."""
    if first == 0:
        return on_error
    return lambda error: on_error(relocated(error, row=first + (error.row or 0)))


def relocated(error: DeserializationError, *, row: int | None, encoding_id: int | None = None) -> DeserializationError:
    """The same error in another row, or of an encoding."""
    known = error.encoding_id if encoding_id is None else encoding_id
    return type(error)(error.reason, field_path=error.field_path, row=row, encoding_id=known)


class Entries:
    """The entries of a group for a reader of some types; with ``others``, of other types as they were written, too."""

    def __init__(
        self,
        config: SerializerConfig,
        readers: tuple[EventType, ...],
        *,
        others: bool,
        same_schema: bool,
        unknown_is_corrupt: bool,
    ) -> None:
        self._config, self._readers, self._others = config, readers, others
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
        target = next((i for i, each in enumerate(self._readers) if _is_of(encoding.schema, each.info)), None)
        if target is None and not self._others:
            return Entry(encoding, CODEC_NONE, None, None)
        codec = self._codecs.get(encoding.codec.name)
        if codec is None:
            raise UnsupportedCodecError(
                f"events of the group {self._config.group!r} have the codec {encoding.codec.name!r}, which this reader "
                "lacks; give it in codecs"
            )
        if target is None:
            return Entry(encoding, codec, payload_serializer(encoding.schema, self._config.custom_formats), None)
        reader = self._readers[target]
        if (wide := self._widened(encoding.schema, reader)) is not None:
            return Entry(encoding, codec, wide, target, narrow=reader.payloads.arrow_type)
        payloads, misfit = self._resolved(encoding.schema, reader)
        version = f"version {encoding.version.version} of {encoding.schema.type!r}"
        return Entry(encoding, codec, payloads, target, f"the event has {version}: {misfit}")

    def _widened(self, writer: SchemaInfo, reader: EventType) -> Serializer[Any] | None:
        """What reads columns of events whose numbers are wider than the reader's; None where nothing is so.

        Rows are resolved as Java resolves them, which refuses such a pair of Avro schemas.
        """
        if self._others or self._same_schema or writer.data == reader.info.data:
            return None
        try:
            if writer.format == SerializationFormat.AVRO:
                return _widened_avro(schema_text(writer), schema_text(reader.info))
            return _widened_protobuf(writer, reader) if writer.format == SerializationFormat.PROTOBUF else None
        except SchemaError:
            return None  # for another reason, which resolution tells

    def _resolved(self, writer: SchemaInfo, reader: EventType) -> tuple[Serializer[Any] | None, str]:
        """The serializer that reads payloads of one schema as another; None, and why there is none.

        Raises :class:`SchemaError` for a writer's schema that is none: that is not the event's fault.
        """
        if self._same_schema and not _is_same(writer, reader.info):
            return None, "it is not the reader's"
        if writer.data == reader.info.data or writer.format == SerializationFormat.JSON:
            return reader.payloads, ""
        if writer.format == SerializationFormat.PROTOBUF:
            assert isinstance(reader.payloads, ProtobufSerializer)
            misfit = protobuf_misfit(writer, reader.payloads.message_class.DESCRIPTOR)
            return (None, misfit) if misfit else (reader.payloads, "")
        own = payload_serializer(writer, self._config.custom_formats)
        if writer.format != SerializationFormat.AVRO:
            return own, ""
        try:
            return AvroSerializer(schema_text(writer), reader_schema=schema_text(reader.info)), ""
        except SchemaError as error:
            return None, error.message


def _widened_avro(writer: str, reader: str) -> AvroSerializer | None:
    read = load(reader)[0]
    wide = widened(load(writer)[0], read)
    return None if wide is read else AvroSerializer(writer, reader_schema=print_schema(wide))


def _widened_protobuf(writer: SchemaInfo, reader: EventType) -> ProtobufSerializer | None:
    assert isinstance(reader.payloads, ProtobufSerializer)
    wide = widened_message(writer, reader.payloads.message_class.DESCRIPTOR)
    return ProtobufSerializer(wide) if wide is not None and not protobuf_misfit(writer, wide.DESCRIPTOR) else None


def _is_of(writer: SchemaInfo, reader: SchemaInfo) -> bool:
    """Whether events of one schema are of a reader's type, by its name."""
    if writer.format != reader.format:
        return False
    if writer.type == reader.type or (reader.format == SerializationFormat.JSON and reader.type == ""):
        return True
    return reader.format == SerializationFormat.AVRO and writer.type in avro_names(schema_text(reader))


def _is_same(writer: SchemaInfo, reader: SchemaInfo) -> bool:
    if writer.data == reader.data:
        return True
    return writer.format == SerializationFormat.AVRO and avro_text(schema_text(writer)) == schema_text(reader)

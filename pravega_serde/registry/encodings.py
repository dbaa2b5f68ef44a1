"""Readers of the encoding ids, each looked up and compiled once, and the columns that they decode.

Rows of a column are grouped by encoding id. Each group is decoded at once, and its values return to their rows.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.arrays import Int64s, number_column, numbers_of, select, valid_rows
from pravega_serde.columnar.bad_rows import relocated
from pravega_serde.errors import (
    DeserializationError,
    LimitExceededError,
    RegistryNotFoundError,
    SchemaError,
    UnsupportedCodecError,
)
from pravega_serde.registry.codecs import CODEC_NONE, MAX_DECOMPRESSED_BYTES, Codec
from pravega_serde.registry.contract import EncodingInfo, SchemaInfo
from pravega_serde.registry.formats import part_of, payload_serializer
from pravega_serde.registry.header import PRAVEGA, Framing, HeaderColumn, SameId, read_header
from pravega_serde.registry.interface import EventType
from pravega_serde.registry.lookups import MISSING_SECONDS
from pravega_serde.registry.message_prefix import MessagePrefix, split_column
from pravega_serde.registry.settings import SerializerConfig
from pravega_serde.registry.stores import store_of
from pravega_serde.registry.values import Convert, natural
from pravega_serde.serializer_interface import OnError, Serializer, report

if TYPE_CHECKING:
    from pravega_serde.registry.migrations import PayloadMigration

T = TypeVar("T")

#: Same number as in the Java client. Each entry holds a compiled serializer.
MAX_ENTRIES: Final = 1000

#: Bytes of values that one call decodes into one column. Stream readers split such columns.
MAX_COLUMN_BYTES: Final = 4 * MAX_DECOMPRESSED_BYTES


class ColumnFullError(Exception):
    """Error for a column that decompresses to more than is decoded together. It holds the row."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


@dataclass(slots=True)
class Room:
    """Bytes that a column may still decompress to. One event always fits."""

    left: int
    is_used: bool = False

    def take(self, row: int, size: int) -> None:
        """Use some bytes. Raises ColumnFullError with the row if there are not enough."""
        if size > self.left and self.is_used:
            raise ColumnFullError(row)
        self.left -= size
        self.is_used = self.is_used or size > 0


class UnknownEncodingError(Exception):
    """Error for an encoding id that the registry does not have, if the reader counts that as a malformed record."""

    def __init__(self, encoding_id: int) -> None:
        super().__init__(encoding_id)
        self.reason = f"the registry does not know the encoding id {encoding_id}"


@dataclass(frozen=True, slots=True)
class Entry:
    """Reader of the events of one encoding id."""

    encoding: EncodingInfo
    """Schema of the events, or the one to which they are migrated."""
    codec: Codec
    payloads: Serializer[Any] | None
    """Serializer of the payloads. None if their schema does not fit the reader's."""
    target: int | None
    """Position of the reader's type among its types; None if it has none for these events."""
    misfit: str = ""
    narrow: pa.DataType | None = None
    """Type that the payloads' columns are narrowed to; None if they are read as written."""
    read_payload: Callable[[bytes], Any] | None = None
    """Reader of the value of one payload. None if the reader rejects the schema."""
    rules: Callable[[bytes], bytes] | None = None
    """Rules of the schema, which return the payload to read. None if there are none."""

    def read(self, stored: bytes) -> Any:
        """Return the value of the bytes after a header. Raises :class:`DeserializationError`."""
        if self.read_payload is None:
            raise DeserializationError(self.misfit)
        return self.read_payload(self._unpack(stored))

    def read_column(self, stored: pa.BinaryArray, on_error: OnError, room: Room) -> pa.Array:
        """Return the values of a column of bytes after headers.

        Raises :class:`ColumnFullError` if they decompress to more than the room.
        """
        values = self._read_payloads(stored, on_error, room)
        return values if self.narrow is None else _narrowed(values, self.narrow, on_error)

    def _read_payloads(self, stored: pa.BinaryArray, on_error: OnError, room: Room) -> pa.Array:
        assert self.payloads is not None
        if self.codec.name or self.rules is not None:
            unpacked = list[bytes | None]()
            for row, each in enumerate(stored):
                payload = self._unpack_row(row, each.as_py(), on_error)
                room.take(row, len(payload or b""))
                unpacked.append(payload)
            stored = pa.array(unpacked, pa.binary())
        return self.payloads.decode_column(stored, on_error=on_error)

    def _unpack(self, stored: bytes) -> bytes:
        payload = self.codec.unpack(stored, self.encoding.codec.properties) if self.codec.name else stored
        return payload if self.rules is None else self.rules(payload)

    def _unpack_row(self, row: int, stored: bytes, on_error: OnError) -> bytes | None:
        try:
            return self._unpack(stored)
        except DeserializationError as error:
            on_error(relocated(error, row=row))
            return None


class Entries:
    """Entries of a group and a framing for a reader of some types.

    With ``others``, events of other types are read too, as they were written. ``convert`` is the form of single values.
    """

    def __init__(
        self,
        config: SerializerConfig,
        framing: Framing,
        readers: tuple[EventType, ...],
        *,
        others: bool,
        same_schema: bool,
        unknown_is_corrupt: bool,
        convert: Convert = natural,
    ) -> None:
        self._config, self._readers, self._others, self._convert = config, readers, others, convert
        self._framing, self._store = framing, store_of(config)
        self._same_schema, self._unknown_is_corrupt = same_schema, unknown_is_corrupt
        self._codecs = config.known_codecs()
        self._compiled: dict[tuple[int, bytes], Entry] = {}
        self._last: dict[int, tuple[bytes, Entry]] = {}
        """Prefix and entry of the last event of each encoding id. Most events have those of the one before."""
        self._prefixes: dict[int, MessagePrefix | None] = {}
        self._failures: dict[object, tuple[float, SchemaError | UnknownEncodingError]] = {}
        """Errors of unusable schemas and unknown ids, each with the time until which it is raised again."""

    def entry_of(self, encoding_id: int, event: bytes) -> tuple[Entry, int]:
        """Return the entry of an event, and where its payload begins. Raises the errors of :meth:`find`."""
        header = self._framing.size
        last = self._last.get(encoding_id)
        # No prefix is the beginning of another one.
        if last is None or not event.startswith(last[0], header):
            kind = self.prefix_of(encoding_id)
            prefix = b"" if kind is None else event[header : header + kind.size(event[header:])]
            last = prefix, self.find(encoding_id, prefix)
            if len(self._last) >= MAX_ENTRIES:
                self._last.clear()
            self._last[encoding_id] = last
        prefix, entry = last
        return entry, header + len(prefix)

    def prefix_of(self, encoding_id: int) -> MessagePrefix | None:
        """Return the kind of prefix that the payloads of an encoding id have. Raises the errors of :meth:`find`."""
        if self._framing is PRAVEGA:
            return None
        if encoding_id not in self._prefixes:
            kind = self._store.prefix_of(self._ask(encoding_id, b"").schema.format)
            if len(self._prefixes) >= MAX_ENTRIES:
                self._prefixes.clear()
            self._prefixes[encoding_id] = kind
        return self._prefixes[encoding_id]

    def find(self, encoding_id: int, prefix: bytes = b"") -> Entry:
        """Return the entry of an encoding id. ``prefix`` selects a message type of its schema.

        Raises a RegistryError if the registry cannot be reached or does not have the id (UnknownEncodingError if that
        counts as a malformed record). Raises :class:`UnsupportedCodecError`, :class:`SchemaError` for an unusable
        schema, and :class:`DeserializationError` for a prefix that selects nothing.
        """
        entry = self._compiled.get((encoding_id, prefix))
        if entry is None:
            encoding = self._ask(encoding_id, prefix)
            entry = self._once(("compile", encoding_id, prefix), lambda: self._with_values(self._compile(encoding)))
            if len(self._compiled) >= MAX_ENTRIES:
                self._compiled.clear()
            self._compiled[encoding_id, prefix] = entry
        return entry

    def ids(self) -> Iterator[int]:
        """Yield the ids that the registry has now. Raises RegistryErrors."""
        return self._store.ids(self._framing, [each.info for each in self._readers])

    def known(self, encoding_id: int) -> list[tuple[bytes, Entry]]:
        """Return the bytes before the payloads of an id, for each type of the readers in its schema, with their entry.

        Return nothing if the events of the id raise an error, unless the registry cannot be reached.
        """
        with suppress(
            SchemaError, UnsupportedCodecError, RegistryNotFoundError, UnknownEncodingError, DeserializationError
        ):
            header, kind = self._framing.header(encoding_id), self.prefix_of(encoding_id)
            prefixes = [b""] if kind is None else self._prefixes_of(self._ask(encoding_id, b"").schema, kind)
            return [(header + prefix, self.find(encoding_id, prefix)) for prefix in prefixes]
        return []

    def _prefixes_of(self, writer: SchemaInfo, kind: MessagePrefix) -> Iterator[bytes]:
        """Yield the prefixes with which events of a writer's schema select the readers' types."""
        part = part_of(writer.format)
        assert part is not None, "custom formats have no prefixes"
        for reader in self._readers:
            with suppress(SchemaError):
                chosen = part.selected(writer, reader.info.type)
                yield kind.of(part.indexes(chosen), chosen.type)

    def _once(self, key: object, work: Callable[[], T]) -> T:
        """Return the result of ``work``. For a moment after it failed, raise its error again without calling it."""
        until, failure = self._failures.get(key, (0.0, None))
        if failure is not None and time.monotonic() < until:
            raise failure.with_traceback(None)
        try:
            return work()
        except (SchemaError, UnknownEncodingError) as error:
            if len(self._failures) >= MAX_ENTRIES:
                self._failures.clear()
            self._failures[key] = time.monotonic() + MISSING_SECONDS, error
            raise

    def _ask(self, encoding_id: int, prefix: bytes) -> EncodingInfo:
        return self._once(("ask", encoding_id, prefix), lambda: self._request(encoding_id, prefix))

    def _request(self, encoding_id: int, prefix: bytes) -> EncodingInfo:
        try:
            return self._store.writer(self._framing, encoding_id, prefix)
        except RegistryNotFoundError:
            if not self._unknown_is_corrupt:
                raise
        # The event is malformed only if its group exists.
        self._store.check_group()
        raise UnknownEncodingError(encoding_id)

    def _with_values(self, entry: Entry) -> Entry:
        """Return the entry with its reader of single values."""
        if entry.payloads is None:
            return entry
        try:
            return replace(entry, read_payload=self._convert(entry.encoding.schema, entry.payloads))
        except DeserializationError as error:
            return replace(entry, misfit=error.reason)

    def _compile(self, encoding: EncodingInfo) -> Entry:
        target = self._target(encoding.schema)
        migration = self._migration(encoding, target)
        if migration is not None:
            target, encoding = target or 0, replace(encoding, schema=migration.schema)
        if target is None and not self._others:
            return Entry(encoding, CODEC_NONE, None, None)
        codec = self._codecs.get(encoding.codec.name)
        if codec is None:
            raise UnsupportedCodecError(
                f"events of the group {self._config.group!r} have the codec {encoding.codec.name!r}, which this "
                "reader does not have: name it in codecs"
            )
        rules = migration or self._store.rules_to_read(self._framing, encoding)
        if target is None:
            payloads = payload_serializer(encoding.schema, self._config.custom_formats)
            return Entry(encoding, codec, payloads, None, rules=rules)
        reader = self._readers[target]
        if (wide := self._widened(encoding.schema, reader)) is not None:
            return Entry(encoding, codec, wide, target, narrow=reader.payloads.arrow_type, rules=rules)
        found, misfit = self._resolved(encoding.schema, reader)
        title = f"the event has {self._store.title(encoding)}: {misfit}"
        return Entry(encoding, codec, found, target, title, rules=rules)

    def _migration(self, encoding: EncodingInfo, target: int | None) -> PayloadMigration | None:
        """Return the migration to a reader's version. It may have another type: then it is that of the only reader."""
        if self._same_schema or (target is None and len(self._readers) != 1):
            return None
        reader = self._readers[target or 0]
        return self._store.migration(self._framing, encoding, reader) if reader.registered else None

    def _target(self, writer: SchemaInfo) -> int | None:
        """Return the position of the reader's type that reads the events of a schema, or None."""
        found = [i for i, each in enumerate(self._readers) if _is_of(writer, each.info)]
        part = part_of(writer.format)
        if not found and writer.type == "" and part is not None and part.anonymous:
            # Without a name, the events can only be of the one type of their format.
            same = [i for i, each in enumerate(self._readers) if each.info.format == writer.format]
            return same[0] if len(same) == 1 else None
        return found[0] if found else None

    def _widened(self, writer: SchemaInfo, reader: EventType) -> Serializer[Any] | None:
        """Return a reader of columns with wider numbers than the reader's, or None if none are wider.

        Rows are resolved as in Java, which rejects such a pair of Avro schemas.
        """
        if self._others or self._same_schema or writer.data == reader.info.data:
            return None
        part = part_of(writer.format)
        try:
            return None if part is None else part.widened(writer, reader)
        except SchemaError:
            return None  # for another reason, which the resolution reports

    def _resolved(self, writer: SchemaInfo, reader: EventType) -> tuple[Serializer[Any] | None, str]:
        """Return a serializer that reads payloads of one schema as another, or None and a reason.

        Raises :class:`SchemaError` if the writer's schema is invalid, because then the event is not malformed.
        """
        if self._same_schema and not _is_same(writer, reader.info):
            return None, "it is not the reader's"
        if writer.data == reader.info.data:
            return reader.payloads, ""
        part = part_of(writer.format)
        if part is None:
            return payload_serializer(writer, self._config.custom_formats), ""
        return part.resolve(writer, reader)


def _is_of(writer: SchemaInfo, reader: SchemaInfo) -> bool:
    """Return True if the name of a reader's type is that of the schema's events."""
    if writer.format != reader.format:
        return False
    part = part_of(reader.format)
    if writer.type == reader.type or part is None:
        return writer.type == reader.type
    return (part.anonymous and reader.type == "") or writer.type in part.names(reader)


def _is_same(writer: SchemaInfo, reader: SchemaInfo) -> bool:
    if writer.data == reader.data:
        return True
    part = part_of(writer.format)
    return part is not None and part.print(writer) == reader.data


# ---- narrower columns ----

# A query keeps its columns while its stream's schemas evolve. If an int field becomes a long, its events must not be
# lost, because most values are still ints. Events are first read as the wider type. Then each number fits exactly, or
# its event is a malformed record.


def _narrowed(column: pa.Array, kind: pa.DataType, on_error: OnError) -> pa.Array:
    """Convert the column to a type of the same shape with narrower numbers.

    Rows with a number that does not fit become null.
    """
    lost = dict[int, DeserializationError]()
    for path, reason, rows in _misfits(column, kind, "$"):
        for row in rows.tolist():
            lost.setdefault(row, DeserializationError(reason, field_path=path, row=row))
    if lost:
        place = np.arange(len(column))
        place[list(lost)] = -1
        column = select(column, place, valid=place >= 0)
        for row in sorted(lost):
            on_error(lost[row])
    return column.cast(kind, safe=False)


def _misfits(column: pa.Array, kind: pa.DataType, path: str) -> Iterator[tuple[str, str, Int64s]]:
    """Yield the path, reason and rows of the numbers that ``kind`` cannot hold."""
    if column.type == kind or not len(column):
        return
    if pa.types.is_struct(kind):
        for member, inner in zip(column.flatten(), kind, strict=True):
            yield from _misfits(member, inner.type, f"{path}.{inner.name}")
    elif pa.types.is_map(kind):
        yield from _inside(column, column.items, kind.item_type, f"{path}{{}}")
    elif pa.types.is_list(kind):
        yield from _inside(column, column.values, kind.value_type, f"{path}[]")
    else:
        yield path, f"the value does not fit the column: {column.type} -> {kind}", _inexact(column, kind)


def _inside(column: pa.Array, items: pa.Array, kind: pa.DataType, path: str) -> Iterator[tuple[str, str, Int64s]]:
    """Yield the misfits in the items of lists or maps, like :func:`_misfits`."""
    offsets = numbers_of(column.offsets)
    owner = np.repeat(np.arange(len(column)), np.diff(offsets))
    there = valid_rows(column)
    for place, reason, rows in _misfits(items.slice(offsets[0], len(owner)), kind, path):
        owners = np.unique(owner[rows])
        yield place, reason, owners[there[owners]]


def _inexact(column: pa.Array, kind: pa.DataType) -> Int64s:
    """Return the rows with a number that changes with the type."""
    there = valid_rows(column)
    values = np.where(there, numbers_of(column), 0)
    narrow = kind.to_pandas_dtype()
    with np.errstate(all="ignore"):
        cast = values.astype(narrow)
        same = cast.astype(values.dtype) == values
    # Out of range, the result of a cast to an integer depends on the processor. It may convert back to the same number.
    if np.issubdtype(narrow, np.integer):
        same &= (values >= np.iinfo(narrow).min) & (values < float(np.iinfo(narrow).max) + 1)
    elif np.issubdtype(values.dtype, np.integer):
        same &= cast < float(np.iinfo(values.dtype).max) + 1
    else:
        same |= np.isnan(values)
    return np.flatnonzero(there & ~same)


# ---- columns ----

_NO_NAME: Final = re.compile(r"\W")


def column_names(schemas: Sequence[SchemaInfo]) -> tuple[str, ...]:
    """Return a column name for each type: the last part of its name, or more of it if that is ambiguous."""
    candidates = [
        (re.split(r"[.$/]", each.type)[-1], each.type, f"{each.type}_{each.format.full_type_name}") for each in schemas
    ]
    counts = [Counter(names) for names in zip(*candidates, strict=True)]
    names = [
        next((name for name, count in zip(own, counts, strict=True) if count[name] == 1), own[-1]) for own in candidates
    ]
    return tuple(_NO_NAME.sub("_", name) or "value" for name in names)


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """Types into which columns are decoded."""

    types: tuple[EventType, ...]
    per_type: bool
    """True if each type has a separate struct member. Otherwise there is one type."""
    others_are_null: bool
    """True if rows of other types are null. Otherwise they are errors."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the members."""
        return column_names([each.info for each in self.types])

    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type of the decoded column."""
        kinds = [each.payloads.arrow_type for each in self.types]
        if not self.per_type:
            return kinds[0]
        return pa.struct([pa.field(name, kind) for name, kind in zip(self.names(), kinds, strict=True)])


@dataclass(slots=True)
class _Errors:
    """Errors of a column."""

    found: list[DeserializationError] = field(default_factory=list)

    def among(self, rows: Int64s, encoding_id: int) -> OnError:
        """Add errors that count their rows among ``rows``."""

        def take(error: DeserializationError) -> None:
            assert error.row is not None
            self.found.append(relocated(error, row=int(rows[error.row]), encoding_id=encoding_id))

        return take

    def add_all(self, rows: Int64s, reason: str, encoding_id: int) -> None:
        self.found += [DeserializationError(reason, row=row, encoding_id=encoding_id) for row in rows.tolist()]

    def add_headerless(self, row: int, event: bytes, framings: Sequence[Framing]) -> None:
        try:
            read_header(event, framings)
        except DeserializationError as error:
            self.found.append(relocated(error, row=row))


#: Some rows and their values.
_Part = tuple[Int64s, pa.Array]

#: Entries of each framing of a reader.
Sources = Mapping[Framing, Entries]


def decode_column(column: pa.BinaryArray, columns: ColumnTypes, sources: Sources, on_error: OnError | None) -> pa.Array:
    """Return the values of a column of events; see :meth:`Serializer.decode_column`.

    Events after ``MAX_COLUMN_BYTES`` of values are errors.
    """
    parts, rows, size = list[pa.Array](), 0, 0
    while True:
        part = decode_first(column.slice(rows), columns, sources, _shifted(on_error, rows))
        parts.append(part)
        rows, size = rows + len(part), size + part.nbytes
        if rows == len(column):
            break
        if size > MAX_COLUMN_BYTES:
            for row in range(rows, len(column)):
                error = LimitExceededError(
                    f"the events before it decompress into {size} bytes of one column: decode fewer events at once",
                    row=row,
                )
                if on_error is None:
                    raise error
                on_error(error)
            parts.append(pa.nulls(len(column) - rows, part.type))
            break
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _shifted(on_error: OnError | None, rows: int) -> OnError:
    """Add errors that count their rows from a later row. Raise them if no errors are collected."""

    def take(error: DeserializationError) -> None:
        moved = relocated(error, row=rows + (error.row or 0)) if rows else error
        if on_error is None:
            raise moved
        on_error(moved)

    return take


def decode_first(column: pa.BinaryArray, columns: ColumnTypes, sources: Sources, on_error: OnError | None) -> pa.Array:
    """Return the values of the first events of a column that decompress to ``MAX_DECOMPRESSED_BYTES`` together."""
    while True:
        try:
            return _decode_together(column, columns, sources, on_error)
        except ColumnFullError as full:
            column = column.slice(0, full.row or len(column) // 2)


def _decode_together(
    column: pa.BinaryArray, columns: ColumnTypes, sources: Sources, on_error: OnError | None
) -> pa.Array:
    framings = tuple(sources)
    headers, errors = HeaderColumn.of(column, framings), _Errors()
    for row in headers.bad.tolist():
        errors.add_headerless(row, column[row].as_py(), framings)
    parts = _Decoder(columns, sources, errors).decode(headers)
    report(errors.found, on_error)
    kinds = [each.payloads.arrow_type for each in columns.types]
    members = [_scattered(part, len(column), kind) for part, kind in zip(parts, kinds, strict=True)]
    if not columns.per_type:
        return members[0]
    there = np.zeros(len(column), np.bool_)
    for rows, _ in (each for part in parts for each in part):
        there[rows] = True
    for error in errors.found:
        there[error.row] = False
    return pa.StructArray.from_arrays(members, fields=list(columns.arrow_type()), mask=number_column(~there))


class _Decoder:
    def __init__(self, columns: ColumnTypes, sources: Sources, errors: _Errors) -> None:
        self._columns, self._sources, self._errors = columns, sources, errors
        self._room = Room(MAX_DECOMPRESSED_BYTES)

    def decode(self, headers: HeaderColumn) -> list[list[_Part]]:
        """Return the parts of each type."""
        parts: list[list[_Part]] = [[] for _ in self._columns.types]
        unknown: Framing | None = None
        for group in headers.groups():
            try:
                if unknown is group.framing and unknown.ascending:
                    raise UnknownEncodingError(group.id)
                for target, part in self._group(group, headers):
                    parts[target].append(part)
            except UnknownEncodingError as error:
                unknown = group.framing
                self._errors.add_all(group.rows, error.reason, group.id)
        return parts

    def _group(self, group: SameId, headers: HeaderColumn) -> Iterator[tuple[int, _Part]]:
        """Yield the values of rows with one id, each with the position of its type."""
        kind = self._sources[group.framing].prefix_of(group.id)
        if kind is None:
            yield from self._typed(group, b"", headers)
            return
        found, errors = split_column(headers.events(group), group.framing.size, kind)
        for row, error in errors.items():
            self._errors.add_all(group.rows[[row]], error.reason, group.id)
        for prefix, chosen in found.items():
            yield from self._typed(group._replace(rows=group.rows[chosen]), prefix, headers)

    def _typed(self, group: SameId, prefix: bytes, headers: HeaderColumn) -> Iterator[tuple[int, _Part]]:
        """Yield the values of rows of one message type, or nothing if their type has no column."""
        framing, encoding_id, rows = group
        try:
            entry = self._sources[framing].find(encoding_id, prefix)
        except DeserializationError as error:
            self._errors.add_all(rows, error.reason, encoding_id)
            return
        if entry.target is None:
            if not self._columns.others_are_null:
                self._errors.add_all(rows, self._no_column(entry.encoding.schema.type), encoding_id)
        elif entry.payloads is None:
            self._errors.add_all(rows, entry.misfit, encoding_id)
        else:
            on_error = self._errors.among(rows, encoding_id)
            try:
                payloads = headers.payloads(group, len(prefix))
                yield entry.target, (rows, entry.read_column(payloads, on_error, self._room))
            except ColumnFullError as full:
                raise ColumnFullError(int(rows[full.row])) from None

    def _no_column(self, name: str) -> str:
        names = ", ".join(each.info.type for each in self._columns.types)
        return f"the event is of type {name!r}; the columns are of type {names}"


def _scattered(parts: list[_Part], count: int, kind: pa.DataType) -> pa.Array:
    """Return the parts' values in their rows. Rows that are in no part are null."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    place = np.full(count, -1)
    before = 0
    for rows, _ in parts:
        place[rows] = before + np.arange(len(rows))
        before += len(rows)
    values = pa.concat_arrays([pa.nulls(0, kind), *(values for _, values in parts)])
    return select(values, place, valid=place >= 0)

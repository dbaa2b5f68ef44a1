"""Change events of databases, as Debezium writes them.

Events are JSON with or without a schema, Avro, or any other format whose values have the fields of Debezium's envelope:
``before``, ``after``, ``op``, ``source`` and ``ts_ms``.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import is_text, nothing, number_column, numbers_of, select, text_column, valid_rows
from pravega_serde.columnar.arrays import Bools
from pravega_serde.columnar.building import build_scalars
from pravega_serde.envelopes.cloudevents import MOMENT
from pravega_serde.errors import DeserializationError, SchemaError, SerializationError
from pravega_serde.serializer_interface import DeserializerCalls, InnerColumns, OnError, Serializer, report

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Milliseconds that fit a timestamp in microseconds.
_MOST_MILLIS: Final = (2**63 - 1) // 1000 - 1
_DIGITS: Final = 20
#: PostgreSQL's ``sequence``: positions of the last commit and of the change. In a snapshot, and until the connector has
#: seen a commit, the first one is null. The change replaces it, because a later snapshot must be after earlier changes.
_SEQUENCE: Final = r'^\[(?:null|"(?P<commit>[0-9]{1,20})"),"(?P<change>[0-9]{1,20})"\]$'

#: Part of a position: a text, a number that is padded so that positions sort as texts, or the name of a file that ends
#: with such a number.
_Part = tuple[str, Literal["text", "number", "file"]]
_LSNS: Final[Sequence[_Part]] = (("commit_lsn", "text"), ("change_lsn", "text"))
_BINLOG: Final[Sequence[_Part]] = (("file", "file"), ("pos", "number"), ("row", "number"))
#: A file after "mysql-bin.999999" has a longer name.
_FILE: Final = r"^(?P<name>(?s:.*?))(?P<number>[0-9]*)$"
#: Connector -> fields of ``source`` with the position of a change.
_POSITIONS: Final[Mapping[str, Sequence[_Part]]] = {
    "postgresql": (("sequence", "text"),),
    "mysql": _BINLOG,
    "mariadb": _BINLOG,
    "sqlserver": (*_LSNS, ("event_serial_no", "number")),
    "db2": _LSNS,
    "informix": (("commit_lsn", "number"), ("change_lsn", "number")),
    "oracle": (("commit_scn", "number"), ("scn", "number"), ("rs_id", "text"), ("ssn", "number")),
    "mongodb": (("ts_ms", "number"), ("ord", "number")),
}
#: Field of a position -> the field that replaces it in a snapshot. The snapshot contains all commits up to its scn.
_IN_SNAPSHOT: Final = {"commit_scn": "scn"}

#: Types of the fields of ``source`` that are read from formats without a schema.
_SOURCE: Final[Mapping[str, pa.DataType]] = {
    "connector": pa.string(),
    "ts_ms": pa.int64(),
    "ts_us": pa.int64(),
    **dict.fromkeys(("sequence", "file", "commit_lsn", "change_lsn", "commit_scn", "scn", "rs_id"), pa.string()),
    **dict.fromkeys(("pos", "row", "event_serial_no", "ssn", "ord"), pa.int64()),
}

_COLON: Final = text_column([":"])[0]
_COLUMNS: Final = ("op", "before", "after", "ts", "position", "source")


@dataclass(frozen=True, slots=True)
class RowChange:
    """Change of a row in a database."""

    op: str
    """``c`` create, ``u`` update, ``d`` delete, ``r`` read of a snapshot, ``t`` truncate, ``m`` message."""
    before: Any
    """Row before the change; None if it did not exist or the database does not record it."""
    after: Any
    """Row after the change; None if it was deleted."""
    ts: datetime | None
    """Time of the change in the database."""
    position: str | None
    """Position in the log of the database. Later changes of a source have greater texts.

    None for connectors other than those of PostgreSQL, MySQL, MariaDB, SQL Server, Db2, Informix, Oracle and MongoDB.
    All rows of a snapshot can have the same position.
    """
    source: Mapping[str, Any]
    """Origin of the change: ``connector``, ``db``, ``table`` and so on."""


def change_type(
    before: pa.DataType | None, after: pa.DataType | None, source: pa.DataType | None = None
) -> pa.StructType:
    """Return the type of events in a format that does not name its columns, such as JSON.

    ``before`` and ``after`` are the types of the rows; None leaves them out. ``source`` has further fields of the
    origin. Events with and without a schema are read.
    """
    rows = [pa.field(name, kind) for name, kind in (("before", before), ("after", after)) if kind is not None]
    if source is not None and not pa.types.is_struct(source):
        raise SchemaError(f"the origin of changes is a struct of its fields, not {source}")
    given = {} if source is None else {field.name: field.type for field in source}
    origin = pa.struct([pa.field(name, kind) for name, kind in {**given, **_SOURCE}.items()])
    fields = [pa.field("op", pa.string()), *rows, pa.field("source", origin), pa.field("ts_ms", pa.int64())]
    return pa.struct([*fields, pa.field("payload", pa.struct(fields))])


class ChangeDeserializer(DeserializerCalls, InnerColumns):
    """Deserializer of Debezium's change events. Values are :class:`RowChange` objects.

    ``serializer`` reads the events as Debezium's converter wrote them: a JsonSerializer, an AvroSerializer, or the
    deserializer of a registry. To read JSON as columns, create it with ``arrow_type=change_type(row, row)``.

    Columns are a struct of ``op``, ``before``, ``after``, ``ts``, ``position`` and ``source``. ``columns`` chooses
    some of them, and fields of ``before``, ``after`` and ``source``. By default, all that the serializer reads are
    columns.

    Raises :class:`SchemaError` for columns, if the schema of the events is not Debezium's envelope or lacks a field.
    """

    def __init__(self, serializer: Serializer[Any], *, columns: pa.StructType | None = None) -> None:
        super().__init__(serializer)
        self._columns = columns

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._inner, self._columns)

    def __repr__(self) -> str:
        return f"ChangeDeserializer({self._inner!r})"

    # ---- rows ----

    def deserialize(self, data: bytes) -> RowChange:
        """Return the change of an event. Raises :class:`DeserializationError` for an event of another kind."""
        value = self._inner.deserialize(data)
        if isinstance(value, Mapping) and "op" not in value:
            value = value.get("payload")
        source = value.get("source") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(value.get("op"), str) or not isinstance(source, Mapping):
            raise _no_change()
        before, after = value.get("before"), value.get("after")
        return RowChange(value["op"], before, after, _time(value, source), _position(source), source)

    def serialize(self, value: RowChange) -> bytes:
        """Raise :class:`SerializationError`: change events are only read."""
        raise SerializationError("a ChangeDeserializer only reads events")

    # ---- columns ----

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError`: change events are only read."""
        raise SchemaError("a ChangeDeserializer only reads events")

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Raise :class:`SerializationError`: change events are only read."""
        raise SerializationError("a ChangeDeserializer only reads events")

    @cached_property
    def arrow_type(self) -> pa.StructType:
        """Arrow type of decoded columns."""
        kinds = {field.name: field.type for field in self._envelope if field.name in _COLUMNS}
        kinds |= {"op": pa.string(), "ts": MOMENT, "position": pa.string()}
        every = pa.struct([pa.field(name, kinds[name]) for name in _COLUMNS if name in kinds])
        if self._columns is None:
            return every
        for field in self._columns:
            _check_part(field, every, "")
        return self._columns

    @property
    def never_null(self) -> frozenset[str]:
        """Columns without nulls."""
        return frozenset({"op"})

    @cached_property
    def _envelope(self) -> pa.StructType:
        """Type of the envelope in the events."""
        kind = self._inner.arrow_type
        for found in (kind, *(field.type for field in _fields_of(kind) if field.name == "payload")):
            if _is_envelope({field.name: field.type for field in _fields_of(found)}):
                return found
        raise SchemaError(f"the schema has no fields 'op' and 'source' of Debezium's envelope: {str(kind)[:200]}")

    def _decode(self, column: pa.Array, on_error: OnError | None, decode: Callable[..., pa.Array]) -> pa.StructArray:
        types = self.arrow_type
        errors: list[DeserializationError] = []
        values = decode(column, on_error=errors.append)
        columns = _unwrapped(values)
        source = _columns_of(columns["source"])
        ts, beyond = _times(columns, source)
        is_change = valid_rows(columns["op"]) & valid_rows(columns["source"])
        good = is_change & ~beyond
        failed = {error.row for error in errors}
        for row in np.flatnonzero(valid_rows(column) & ~good).tolist():
            if row in failed:
                continue
            error = _beyond() if is_change[row] else _no_change()
            errors.append(DeserializationError(error.reason, field_path=error.field_path, row=row))
        columns |= {"ts": ts, "position": _positions(source, len(values))}
        parts = [_picked(columns[field.name], field.type) for field in types]
        found = pa.StructArray.from_arrays(parts, fields=list(types))
        report(errors, on_error)
        return found if good.all() else select(found, np.arange(len(values)), valid=good)


def distinct_changes(changes: Iterable[RowChange], *, remember: int = 100_000) -> Iterator[RowChange]:
    """Yield changes without those that were repeated: same position, operation and rows.

    Debezium's sink repeats its last changes after a failure. ``remember`` is the number of changes that are compared,
    with some 150 bytes each. Changes without a position are not compared.
    """
    seen: OrderedDict[bytes, None] = OrderedDict()
    for change in changes:
        if change.position is not None:
            parts = (change.position, change.op, change.before, change.after, (change.source or {}).get("table"))
            digest = hashlib.blake2b(repr(parts).encode(errors="surrogatepass"), digest_size=16).digest()
            if digest in seen:
                continue
            seen[digest] = None
            if len(seen) > remember:
                seen.popitem(last=False)
        yield change


def _rebuild(serializer: Serializer[Any], columns: pa.StructType | None) -> ChangeDeserializer:
    return ChangeDeserializer(serializer, columns=columns)


def _no_change() -> DeserializationError:
    return DeserializationError("not a change event of Debezium: it has no op or no source")


def _beyond() -> DeserializationError:
    return DeserializationError(
        "the time of the change is beyond the range of a timestamp", field_path="$.source.ts_ms"
    )


def _check_part(field: pa.Field, whole: pa.StructType, path: str) -> None:
    """Raise :class:`SchemaError` unless a struct has a field, of the same type or with more fields."""
    place = whole.get_field_index(field.name)
    if place < 0:
        known = ", ".join(each.name for each in whole)
        raise SchemaError(f"change events have no field '{path}{field.name}'; they have: {known}")
    kind = whole.field(place).type
    if kind != field.type and pa.types.is_struct(kind) and pa.types.is_struct(field.type):
        for each in field.type:
            _check_part(each, kind, f"{path}{field.name}.")
    elif kind != field.type:
        raise SchemaError(f"the field '{path}{field.name}' of change events is {kind}, not {field.type}")


def _is_envelope(fields: Mapping[str, pa.DataType]) -> bool:
    """Return True for the fields of Debezium's envelope, if the types are those that times and positions need."""
    source = fields.get("source")
    if source is None or not pa.types.is_struct(source) or not is_text(fields.get("op", pa.null())):
        return False
    times = [field.type for field in source if field.name in ("ts_ms", "ts_us")]
    connectors = [field.type for field in source if field.name == "connector"]
    return all(map(pa.types.is_int64, [*times, fields.get("ts_ms", pa.int64())])) and all(map(is_text, connectors))


def _fields_of(kind: pa.DataType) -> list[pa.Field]:
    return list(kind) if pa.types.is_struct(kind) else []


def _columns_of(column: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((field.name for field in column.type), column.flatten(), strict=True))


# ---- columns ----


def _unwrapped(values: pa.StructArray) -> dict[str, pa.Array]:
    """Return the columns of the envelope, of events with a schema from their payload."""
    own = _columns_of(values)
    payload = own.get("payload")
    if payload is None or not {"op", "source"} <= {field.name for field in _fields_of(payload.type)}:
        return own
    inside = _columns_of(payload)
    without = ~valid_rows(payload)
    if "op" not in own or not without.any():
        return inside
    rows = np.arange(len(values)) + np.where(without, 0, len(values))
    return {name: select(pa.concat_arrays([own[name], inside[name]]), rows) for name in inside}


def _picked(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column, of a struct only the fields in a type."""
    if column.type == kind:
        return column
    fields = _columns_of(column)
    parts = [_picked(fields[field.name], field.type) for field in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())


def _times(columns: Mapping[str, pa.Array], source: Mapping[str, pa.Array]) -> tuple[pa.TimestampArray, Bools]:
    """Return the times of changes, and the rows with a time beyond the range of timestamps."""
    absent = pa.nulls(len(columns["op"]), pa.int64())
    millis = pc.coalesce(source.get("ts_ms", absent), columns.get("ts_ms", absent))
    micros = source.get("ts_us", absent)
    numbers = numbers_of(millis)
    beyond = ~valid_rows(micros) & valid_rows(millis) & ((numbers > _MOST_MILLIS) | (numbers < -_MOST_MILLIS))
    scaled = number_column(np.where(beyond, 0, numbers) * 1000, valid=valid_rows(millis))
    return pc.coalesce(micros, scaled).cast(MOMENT), beyond


def _positions(source: Mapping[str, pa.Array], count: int) -> pa.StringArray:
    """Return the positions of changes in the logs of their databases."""
    found = absent = pa.nulls(count, pa.string())
    if "connector" not in source:
        return found
    for connector in source["connector"].unique().drop_null().to_pylist():
        parts = [_part(_field(source, name, absent), kind) for name, kind in _POSITIONS.get(connector, ())]
        if not parts:
            continue
        text = _sequence(parts[0]) if connector == "postgresql" else _colons(parts)
        chosen = pc.fill_null(pc.equal(source["connector"], text_column([connector])[0]), fill_value=False)
        found = pc.if_else(chosen, text, found)
    return found


def _field(source: Mapping[str, pa.Array], name: str, absent: pa.Array) -> pa.StringArray:
    """Return a field of the origin as text; null where it is missing."""
    texts = [source.get(each, absent).cast(pa.string()) for each in (name, _IN_SNAPSHOT.get(name)) if each is not None]
    return texts[0] if len(texts) == 1 else pc.coalesce(*texts)


def _part(text: pa.StringArray, kind: str) -> pa.StringArray:
    if kind == "text":
        return text
    if kind == "number":
        return pc.utf8_lpad(text, _DIGITS, "0")
    name, number = pc.extract_regex(text, _FILE).flatten()
    return pc.binary_join_element_wise(name, pc.utf8_lpad(number, _DIGITS, "0"), text_column([""])[0])


def _colons(parts: Sequence[pa.StringArray]) -> pa.StringArray:
    """Return the parts joined with colons, null if all are null."""
    joined = pc.binary_join_element_wise(*parts, _COLON, null_handling="replace", null_replacement="")
    some = functools.reduce(pc.or_, (part.is_valid() for part in parts))
    return pc.if_else(some, joined, nothing(pa.string()))


def _sequence(column: pa.StringArray) -> pa.StringArray:
    commit, change = pc.extract_regex(column, _SEQUENCE).flatten()
    commit = pc.if_else(pc.equal(commit, ""), change, commit)
    return pc.binary_join_element_wise(*(pc.utf8_lpad(part, _DIGITS, "0") for part in (commit, change)), _COLON)


# ---- rows ----


def _time(value: Mapping[str, Any], source: Mapping[str, Any]) -> datetime | None:
    micros = source.get("ts_us")
    if micros is None:
        millis = value.get("ts_ms") if source.get("ts_ms") is None else source["ts_ms"]
        if millis is None:
            return None
        micros = millis * 1000 if isinstance(millis, int) else millis
    if not isinstance(micros, int):
        raise DeserializationError(f"the time of the change is {micros!r:.40}", field_path="$.source.ts_ms")
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError as error:
        raise _beyond() from error


def _position(source: Mapping[str, Any]) -> str | None:
    connector = source.get("connector")
    parts = [(_text(source, name), kind) for name, kind in _POSITIONS.get(str(connector), ())]
    if all(text is None for text, _ in parts):
        return None
    if connector == "postgresql":
        found = re.match(_SEQUENCE, str(parts[0][0]))
        if found is None:
            return None
        return ":".join(lsn.rjust(_DIGITS, "0") for lsn in (found["commit"] or found["change"], found["change"]))
    return ":".join("" if text is None else _padded(text, kind) for text, kind in parts)


def _text(source: Mapping[str, Any], name: str) -> str | None:
    """Return a field of the origin as text; None if it is missing."""
    value = source.get(name)
    if value is None:
        return _text(source, _IN_SNAPSHOT[name]) if name in _IN_SNAPSHOT else None
    return str(value)


def _padded(text: str, kind: str) -> str:
    if kind == "text":
        return text
    if kind == "number":
        return text.rjust(_DIGITS, "0")
    name = text.rstrip("0123456789")
    return name + text[len(name) :].rjust(_DIGITS, "0")


# ---- schemas ----


class _Wrapped(msgspec.Struct):
    """Members of an event with a schema, and the mark of an event without one."""

    payload: msgspec.Raw = msgspec.Raw()
    op: msgspec.Raw = msgspec.Raw()


_wrapped: Final = msgspec.json.Decoder(_Wrapped).decode


def json_envelopes(events: pa.BinaryArray) -> pa.BinaryArray:
    """Return events in JSON without their schemas, to derive columns from them."""
    return build_scalars([_without_schema(event) for event in events.to_pylist()], pa.binary())


def _without_schema(event: bytes) -> bytes:
    try:
        found = _wrapped(event)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return event
    payload = bytes(found.payload)
    return payload if payload and not bytes(found.op) else event


def change_schema(envelope: pa.Schema) -> pa.Schema:
    """Return the columns of changes, from the columns that were derived from envelopes without schemas.

    A row that is null in all events has the type of the other row. Raises :class:`SchemaError` for events of another
    kind.
    """
    kinds = {field.name: field.type for field in envelope}
    if "op" not in kinds or not pa.types.is_struct(kinds.get("source", pa.null())):
        raise SchemaError(f"the events are not changes of Debezium: their fields are {', '.join(kinds)}")
    rows = {name: kinds[name] for name in ("before", "after") if name in kinds}
    known = next((kind for kind in reversed(rows.values()) if pa.types.is_struct(kind)), None)
    if known is not None:
        rows = {"before": known, "after": known}
    source = pa.struct([pa.field(field.name, _SOURCE.get(field.name, field.type)) for field in kinds["source"]])
    columns = {"op": pa.string(), **rows, "ts": MOMENT, "position": pa.string(), "source": source}
    return pa.schema([pa.field(name, columns[name]) for name in _COLUMNS if name in columns])

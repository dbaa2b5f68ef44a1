"""Random tables as files, ingested and exported: every value is itself, its text, or a named error.

``python -m tests.fuzz.files [--values 100000] [--seed N] [KIND …]`` writes each column of all Arrow types as CSV, JSON
lines, Parquet and Avro with pyarrow, pandas, fastavro and Python's own modules. Each file is ingested in each format.
Other libraries decode the events. Then the events are exported to a file of each format, which other libraries read.
Checked: each value is equal, or its text. Errors are one line, and the fix that they name works.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import cbor2
import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from fastavro.read import LOGICAL_READERS
from google.protobuf import descriptor_pool, message_factory

from pravega_connector.operations.export import export_stream, open_writer
from pravega_connector.operations.ingest import FileOptions, FileSource
from pravega_connector.operations.ingest.encode import encoding_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from pravega_serde.errors import PravegaError
from pravega_serde.protobuf.bundled_files import bundled
from pravega_serde.registry import registry_format
from tests.fuzz._tables import COLUMNS, Column, Moment, factor_of, nanos_of, same, same_number, same_time

__all__ = [
    "FORMATS",
    "KINDS",
    "LATE",
    "Totals",
    "avro_file",
    "check_exports",
    "check_file",
    "check_files",
    "check_late",
]

_T: Final = pa.types
_TARGET: Final = StreamName("a", "b")
_SHOWN: Final = 160
FORMATS: Final = ("json", "avro", "cbor", "protobuf")
Values = list[Any]


# ---- files ----


def _table(column: Column, values: Values) -> pa.Table:
    """Return a table of row numbers in ``k`` and values in ``x``. Raises pa.ArrowException."""
    return pa.table({"k": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, column.kind)})


def _frame(table: pa.Table) -> Any:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _arrow_csv(table: pa.Table, _: Column, __: Values) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


def _pandas_csv(table: pa.Table, _: Column, __: Values) -> bytes:
    text: str = _frame(table).to_csv(index=False)
    return text.encode()


def _python_csv(table: pa.Table, _: Column, __: Values) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.schema.names)
    writer.writerows(zip(*table.to_pydict().values(), strict=True))
    return out.getvalue().encode()


def _pandas_json(table: pa.Table, column: Column, _: Values) -> bytes:
    if not (_T.is_primitive(column.kind) or _T.is_string(column.kind)) or getattr(column.kind, "tz", None):
        raise _NoFormError  # pandas crashes for some of them
    return (_frame(table).to_json(orient="records", lines=True, double_precision=15, date_format="iso") or "").encode()


def _python_json(table: pa.Table, _: Column, __: Values) -> bytes:
    return "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()).encode()


def _own(kind: str, codec: str) -> Callable[[pa.Table, Column, Values], bytes]:
    def write(table: pa.Table, column: Column, _: Values) -> bytes:
        if getattr(column.kind, "unit", None) == "ns":
            raise _NoFormError  # exported columns have microseconds
        out = io.BytesIO()
        writer = open_writer(out, table.schema, kind, codec, {})
        for batch in table.to_batches():
            writer.write(batch)
        writer.finish()
        return out.getvalue()

    return write


def _arrow_parquet(**options: Any) -> Callable[[pa.Table, Column, Values], bytes]:
    def write(table: pa.Table, column: Column, _: Values) -> bytes:
        if options.get("use_deprecated_int96_timestamps") and "tz=" in str(column.kind):
            raise _NoFormError  # these times have no zone
        out = io.BytesIO()
        pq.write_table(table, out, **options)
        return out.getvalue()

    return write


def _pandas_parquet(table: pa.Table, _: Column, __: Values) -> bytes:
    out = io.BytesIO()
    _frame(table).to_parquet(out)
    return out.getvalue()


def _fast_avro(codec: str) -> Callable[[pa.Table, Column, Values], bytes]:
    def write(_: pa.Table, column: Column, values: Values) -> bytes:
        names = iter(range(1000))
        kind = _avro_type(column.kind, names)
        fields = [{"name": "k", "type": "long"}, {"name": "x", "type": ["null", kind]}]
        schema = fastavro.parse_schema({"type": "record", "name": "R", "fields": fields})
        out = io.BytesIO()
        rows = [{"k": row, "x": _avro_value(column.kind, value)} for row, value in enumerate(values)]
        fastavro.writer(out, schema, rows, codec=codec)
        return out.getvalue()

    return write


class _NoFormError(Exception):
    """Raised for a type that a library does not write."""


def _avro_type(kind: pa.DataType, names: Iterator[int]) -> Any:
    if _T.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, names)]}
    if _T.is_map(kind) and _T.is_string(kind.key_type):
        return {"type": "map", "values": ["null", _avro_type(kind.item_type, names)]}
    if _T.is_struct(kind):
        fields = [{"name": entry.name, "type": ["null", _avro_type(entry.type, names)]} for entry in kind]
        return {"type": "record", "name": f"N{next(names)}", "fields": fields}
    if _T.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if _T.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": f"N{next(names)}", "size": kind.byte_width}
    if kind == pa.uuid():
        return {"type": "string", "logicalType": "uuid"}
    if str(kind) not in _AVRO_TYPES:
        raise _NoFormError(str(kind))
    return _AVRO_TYPES[str(kind)]


_AVRO_TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int"),
    **dict.fromkeys(("int64", "uint32"), "long"),
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "binary": "bytes",
    "date32[day]": {"type": "int", "logicalType": "date"},
    "time32[ms]": {"type": "int", "logicalType": "time-millis"},
    "time64[us]": {"type": "long", "logicalType": "time-micros"},
    **{
        f"timestamp[{unit}, tz=UTC]": {"type": "long", "logicalType": f"timestamp-{name}"}
        for unit, name in (("ms", "millis"), ("us", "micros"), ("ns", "nanos"))
    },
    **{
        f"timestamp[{unit}]": {"type": "long", "logicalType": f"local-timestamp-{name}"}
        for unit, name in (("ms", "millis"), ("us", "micros"), ("ns", "nanos"))
    },
}


def _avro_value(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if _T.is_list(kind):
        return [_avro_value(kind.value_type, each) for each in value]
    if _T.is_map(kind):
        return {key: _avro_value(kind.item_type, each) for key, each in value}
    if _T.is_struct(kind):
        return {entry.name: _avro_value(entry.type, value[entry.name]) for entry in kind}
    return str(pa.scalar(value, kind).as_py()) if kind == pa.uuid() else value


_CODECS: Final = ("null", "deflate", "bzip2", "snappy", "xz", "zstandard")
#: Kind of file -> name of the writer -> file. A writer raises for types that it does not write.
KINDS: Final[Mapping[str, Mapping[str, Callable[[pa.Table, Column, Values], bytes]]]] = {
    "csv": {"pyarrow": _arrow_csv, "pandas": _pandas_csv, "python": _python_csv},
    "jsonl": {"pandas": _pandas_json, "python": _python_json, "export": _own("jsonl", "none")},
    "parquet": {
        "pyarrow": _arrow_parquet(),
        "pyarrow 1.0": _arrow_parquet(version="1.0", store_schema=False, use_dictionary=False),
        "pyarrow INT96": _arrow_parquet(use_deprecated_int96_timestamps=True),
        "pandas": _pandas_parquet,
    },
    "avro": {
        **{
            f"fastavro {codec}": _fast_avro(codec)
            for codec in ("null", "deflate", "bzip2", "snappy", "xz", "zstandard")
        },
        "export": _own("avro", "deflate"),
    },
}


# ---- what a file says ----

_FIELD: Final = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(,|\r\n|\n|\r|\Z)')
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?|-?(nan|NaN|inf|Infinity)")
_NULLS: Final = ("", "NA")


def _csv_fields(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the text of the second column of each row, and True if it is quoted."""
    text, at, row = data.decode(), 0, []
    while at < len(text):
        found = _FIELD.match(text, at)
        assert found is not None
        at, quoted = found.end(), found[1].startswith('"')
        row.append((found[1][1:-1].replace('""', '"') if quoted else found[1], quoted))
        if found[2] != ",":
            if row[0][0] != "k" and len(row) == 2:
                yield row[1]
            row = []


def _same_field(source: tuple[str, bool], found: Any) -> bool:
    text, quoted = source
    if found is None or (text in _NULLS and not quoted):
        return found is None and text in _NULLS and not quoted
    if found == text and isinstance(found, str):
        return True
    if isinstance(found, bool):
        return text.lower() == str(found).lower()
    if isinstance(found, Moment) or (type(found) is int and ":" in text):
        # Protobuf has microseconds for times without a zone.
        nanos = found.nanos if isinstance(found, Moment) else found * 1000
        return nanos_of(text) == nanos
    if isinstance(found, str) and same_time(text, found):
        return True
    trimmed = text.strip(" \t")
    return bool(_NUMBER.fullmatch(trimmed)) and same_number(Decimal(trimmed), found)


class _Digits(Decimal):
    """Number of JSON, with its text."""

    text: str

    def __new__(cls, text: str) -> _Digits:
        number = super().__new__(cls, text)
        number.text = text
        return number


_lines: Final = json.JSONDecoder(parse_float=_Digits, parse_int=_Digits).decode


def _same_json(value: Any, found: Any) -> bool:
    if value is None or isinstance(value, bool | str):
        if isinstance(value, bool) and isinstance(found, str):
            return found == str(value).lower()
        if isinstance(value, str) and isinstance(found, int | float | Decimal):
            # A column of decimals also accepts numbers in strings.
            return bool(re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", value)) and same_number(Decimal(value), found)
        return type(found) is type(value) and bool(found == value)
    if isinstance(value, _Digits):
        return bool(found == value.text) or same_number(value, found)
    if isinstance(found, str):
        return bool(_plain(_lines(found)) == _plain(value))
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(_same_json, value, found))
    if not isinstance(found, Mapping) or any(item is not None and name not in value for name, item in found.items()):
        return False
    return all(_same_json(item, found.get(name)) for name, item in value.items())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {name: _plain(each) for name, each in value.items()} if isinstance(value, dict) else str(value)


# ---- ingestion ----


def _events(path: Path, options: FileOptions, form: str, columns: pa.Schema | None) -> tuple[list[bytes], Any, Any]:
    """Return the events of a file, the schema that other libraries read, and the options to read them."""
    files = FileSource([path], options)
    if columns is not None:
        files.fix(columns)
    reading: dict[str, Any] = {"format": form}
    schema: Any = None
    if form == "protobuf":
        schema = registry_format("protobuf").derive(files.schema, "Row")
        place = path.with_name("row.desc")
        place.write_bytes(schema.SerializeToString())
        reading |= {"protobuf_descriptor": str(place), "protobuf_message": "Row"}
    encoding = encoding_for(files.schema, parse_options(SinkOptions, {"stream": str(_TARGET), **reading}))
    if encoding.schema_text is not None:
        reading["avro_schema"] = schema = encoding.schema_text
    found: list[bytes] = []
    for id_ in files.ids():
        for chunk in files.read(id_):
            for rows in encoding.by_stream([(id_, chunk)], _TARGET):
                found += rows.events.cast(pa.binary()).to_pylist()
    return found, schema, reading


def _decoded(events: Sequence[bytes], form: str, schema: Any) -> list[Any]:
    """Return the field ``x`` of events, decoded by another library."""
    if form == "json":
        decode = json.JSONDecoder(parse_float=Decimal).decode
        return [decode(event.decode())["x"] for event in events]
    if form == "cbor":
        return [_plain_cbor(cbor2.loads(event)["x"]) for event in events]
    if form == "avro":
        parsed = fastavro.parse_schema(json.loads(schema))
        with _integer_times():
            rows: Any = (fastavro.schemaless_reader(io.BytesIO(event), parsed, None) for event in events)
            return [row["x"] for row in rows]
    pool = descriptor_pool.DescriptorPool()
    for file in schema.file:
        _add_file(pool, file, set())
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))
    return [_plain_message(message.FromString(event)).get("x") for event in events]


def _add_file(pool: descriptor_pool.DescriptorPool, file: Any, added: set[str]) -> None:
    for name in set(file.dependency) - added:
        _add_file(pool, bundled(name), added)
    added.add(file.name)
    pool.AddSerializedFile(file.SerializeToString())


def _plain_cbor(value: Any) -> Any:
    if isinstance(value, datetime):
        return Moment((value - _START) // timedelta(microseconds=1) * 1000)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain_cbor(each) for each in value]
    return {key: _plain_cbor(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def _plain_message(message: Any) -> Any:
    """Return the value of a message: absent fields and empty lists are left out."""
    kind = message.DESCRIPTOR.full_name
    if kind in _MESSAGES:
        return _MESSAGES[kind](message)
    found = {}
    for entry in message.DESCRIPTOR.fields:
        value = getattr(message, entry.name)
        if entry.message_type is not None and entry.message_type.GetOptions().map_entry:
            inner = entry.message_type.fields_by_name["value"].message_type
            value = {key: value[key] if inner is None else _plain_message(value[key]) for key in value}
        elif entry.is_repeated:
            value = list(value) if entry.message_type is None else [_plain_message(each) for each in value]
        elif not message.HasField(entry.name):
            continue
        elif entry.message_type is not None:
            value = _plain_message(value)
        found[entry.name] = value
    return found


_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MESSAGES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "google.protobuf.Timestamp": lambda each: Moment(each.seconds * 10**9 + each.nanos),
    "google.protobuf.Duration": lambda each: Moment(each.seconds * 10**9 + each.nanos),
    "google.type.Date": lambda each: date(each.year, each.month, each.day).isoformat(),
    "google.type.Decimal": lambda each: each.value,
}


@contextmanager
def _integer_times() -> Iterator[None]:
    """Let fastavro return times as nanoseconds: Python's have only the years 1 to 9999."""
    before = dict(LOGICAL_READERS)
    for name in LOGICAL_READERS:
        if "timestamp" in name:
            factor = 10**6 if "millis" in name else 10**3
            LOGICAL_READERS[name] = lambda value, *_, factor=factor: Moment(value * factor)
    LOGICAL_READERS["int-date"] = lambda value, *_: Moment(value * 86_400 * 10**9)
    LOGICAL_READERS["int-time-millis"] = lambda value, *_: Moment(value * 10**6)
    LOGICAL_READERS["long-time-micros"] = lambda value, *_: Moment(value * 10**3)
    LOGICAL_READERS["string-uuid"] = lambda value, *_: value
    try:
        yield
    finally:
        LOGICAL_READERS.update(before)


# ---- totals ----


@dataclass(slots=True)
class Totals:
    """Counts of values, and what changed in silence."""

    equal: Counter[str] = field(default_factory=Counter)
    """Kind of file -> values that are equal or their text."""
    refused: Counter[str] = field(default_factory=Counter)
    """Kind of file -> values in files that are errors."""
    errors: dict[str, str] = field(default_factory=dict)
    """File and format -> its error."""
    findings: dict[str, str] = field(default_factory=dict)
    """File and format -> its first value that has changed."""

    def line(self) -> str:
        kinds = ", ".join(
            f"{kind} {self.equal[kind]:,} (+{self.refused[kind]:,} in errors)"
            for kind in sorted(self.equal | self.refused)
        )
        return f"{kinds}; {len(self.findings)} findings"


def check_files(
    totals: Totals, kind: str, columns: Sequence[str], rng: random.Random, rows: int, folder: Path, *, few: bool = False
) -> None:
    """Write each column with each writer of a kind, and ingest the file in each format; with ``few``, in one."""
    for name in columns:
        column = COLUMNS[name]
        values = column.values(rng, rows)
        for writer in rng.sample(sorted(KINDS[kind]), 2) if few else KINDS[kind]:
            file = _written(kind, writer, column, values, folder)
            if file is None:
                continue
            for form in rng.sample(FORMATS, 1) if few else FORMATS:
                _check_file(totals, f"{kind} of {writer}, {name} as {form}", file, form, None)


def check_late(totals: Totals, kind: str, columns: Sequence[str], rng: random.Random, rows: int, folder: Path) -> None:
    """Ingest each column with the type that another column has, as if it came after the sample."""
    writer = {"csv": "pyarrow", "jsonl": "python"}[kind]
    for first in columns:
        file = _written(kind, writer, COLUMNS[first], COLUMNS[first].values(rng, rows), folder)
        assert file is not None
        schema = FileSource([file.path]).schema
        for name in columns:
            file = _written(kind, writer, COLUMNS[name], COLUMNS[name].values(rng, rows), folder)
            assert file is not None  # of a type that is text, too
            _check_file(totals, f"{kind} of {writer}, {name} after {first} as json", file, "json", schema)


#: Columns with different types in files of text.
LATE: Final = (
    *("small", "int64", "uint64", "wide", "money", "finite", "double", "flag", "text", "code"),
    *("day", "instant_us", "local_us", "time_ms"),
)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    kind: str
    values: Sequence[Any]
    """Values, as another reader finds them."""
    is_same: Callable[[Any, Any], bool]


def _written(kind: str, writer: str, column: Column, values: Values, folder: Path) -> _File | None:
    """Return the file of a column; None if the writer does not write its type."""
    try:
        data = KINDS[kind][writer](_table(column, values), column, values)
    except _UNWRITABLE:
        return None
    path = folder / f"x.{kind}"
    path.write_bytes(data)
    return _file(path, kind, column, values, typed=writer == "export")


def _file(path: Path, kind: str, column: Column, values: Values, *, typed: bool = False) -> _File:
    """Return a file with its values: the column's, unless it is a text without types."""
    if kind == "csv":
        return _File(path, kind, list(_csv_fields(path.read_bytes())), _same_field)
    if kind == "jsonl" and not typed:
        found = [_lines(line).get("x") for line in path.read_text().split("\n") if line]
        return _File(path, kind, found, _same_json)
    return _File(path, kind, values, partial(same, column.kind))


def avro_file(column: Column, values: Values) -> bytes | None:
    """Return the values as an Avro file of fastavro; None if it does not write their type."""
    try:
        return _fast_avro("null")(_table(column, values), column, values)
    except _UNWRITABLE:
        return None


def check_file(totals: Totals, kind: str, label: str, path: Path, name: str, values: Values, form: str) -> None:
    """Ingest a file of another library, with the values of the column ``name``, in a format."""
    _check_file(totals, label, _file(path, kind, COLUMNS[name], values), form, None)


#: Errors of libraries for types that they do not write.
_FIX: Final = "--type x=string"
_UNWRITABLE: Final = (
    _NoFormError,
    pa.ArrowException,
    PravegaError,
    TypeError,
    ValueError,
    OverflowError,
    NotImplementedError,
)


def _check_file(totals: Totals, label: str, file: _File, form: str, schema: pa.Schema | None) -> None:
    for types in ({}, {"x": pa.string()}):
        options = FileOptions(multiline=True, types=types)
        try:
            events, definition, _ = _events(file.path, options, form, schema)
        except PravegaError as error:
            text = str(error)
            totals.errors[label] = text
            if "\n" in text:
                totals.findings[label] = f"an error of several lines: {text}"
            if types or _FIX not in text:
                totals.refused[file.kind] += len(file.values)
                return
            continue  # the fix that it names
        found = _decoded(events, form, definition)
        _compare(totals, file.kind, label, list(zip(file.values, found, strict=True)), file.is_same)
        return


def _compare(
    totals: Totals, kind: str, label: str, pairs: list[tuple[Any, Any]], is_same: Callable[[Any, Any], bool]
) -> None:
    lenient = label.endswith("protobuf")
    for row, (value, found) in enumerate(pairs):
        try:
            good = is_same(value, found)
        except (TypeError, ValueError, ArithmeticError):
            good = False
        # Protobuf has no null lists and maps.
        if not good and not (lenient and value is None and not found):
            totals.findings[label] = f"row {row}: {value!r:.{_SHOWN}} became {found!r:.{_SHOWN}}"
            return
    totals.equal[kind] += len(pairs)


# ---- export ----


def check_exports(
    totals: Totals,
    columns: Sequence[str],
    rng: random.Random,
    rows: int,
    folder: Path,
    server: InProcessPravega,
    *,
    few: bool = False,
) -> None:
    """Write each column as events of each format, or of one, and export them to a file of each kind."""
    for name in columns:
        values = COLUMNS[name].values(rng, rows)
        source = _written("parquet", "pyarrow", COLUMNS[name], values, folder)
        if source is None:
            continue
        for form in rng.sample(FORMATS, 1) if few else FORMATS:
            try:
                events, _, options = _events(source.path, FileOptions(), form, None)
            except PravegaError:
                continue  # compared by check_files
            stream = f"export/s{rng.randrange(10**12)}"
            with server.client() as client:
                client.create_scope("export")
                client.create_stream(stream, 1)
                with client.writer(stream) as writer:
                    writer.write_column(pa.array(events, pa.binary()))
            for kind, read in _READERS.items():
                label = f"{kind}, {name} of {form}"
                path = folder / f"y.{kind}"
                try:
                    export_stream(stream, path, controller=server.uri, overwrite=True, **options)
                except PravegaError as error:
                    totals.errors[label] = str(error)
                    totals.refused[kind] += len(values)
                    continue
                _compare(totals, kind, label, list(zip(values, read(path), strict=True)), source.is_same)


def _read_parquet(path: Path) -> list[Any]:
    return _raw(pq.read_table(path).column("x").combine_chunks())


def _raw(column: pa.Array) -> list[Any]:
    """Return values with times as :class:`Moment`, which have all years."""
    kind, there = column.type, column.is_valid().to_pylist()
    if _T.is_temporal(kind):
        numbers = column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [None if each is None else Moment(each * factor_of(kind)) for each in numbers]
    if _T.is_struct(kind):
        rows = zip(*map(_raw, column.flatten()), strict=True)
        names = [entry.name for entry in kind]
        return [dict(zip(names, row, strict=True)) if ok else None for row, ok in zip(rows, there, strict=True)]
    if _T.is_map(kind):
        keys, items = _raw(column.keys), _raw(column.items)
        ends = column.offsets.to_pylist()
        pairs = list(zip(keys, items, strict=True))
        return [pairs[ends[row] : ends[row + 1]] if ok else None for row, ok in enumerate(there)]
    if _T.is_list(kind):
        return [_raw(each.values) if ok else None for each, ok in zip(column, there, strict=True)]
    values: list[Any] = column.to_pylist()
    return values


def _read_jsonl(path: Path) -> list[Any]:
    decode = json.JSONDecoder(parse_float=Decimal).decode
    return [decode(line).get("x") for line in path.read_text().split("\n") if line]


def _read_avro(path: Path) -> list[Any]:
    with _integer_times(), path.open("rb") as file:
        rows: Any = fastavro.reader(file)
        return [row["x"] for row in rows]


_READERS: Final[Mapping[str, Callable[[Path], list[Any]]]] = {
    "parquet": _read_parquet,
    "jsonl": _read_jsonl,
    "avro": _read_avro,
}


# ---- command ----


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="*", help=f"{', '.join(KINDS)} or export; default: all")
    parser.add_argument("--values", type=int, default=100_000, help="of each kind of files")
    parser.add_argument("--rows", type=int, default=200, help="of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="NAME", help="only this column")
    parser.add_argument("--errors", action="store_true", help="print the error of each file")
    options = parser.parse_args()
    names, ended = [options.only] if options.only else list(COLUMNS), 0
    for kind in options.kind or [*KINDS, "export"]:
        totals, start, seed = Totals(), time.monotonic(), options.seed
        with tempfile.TemporaryDirectory() as name, InProcessPravega() as server:
            folder = Path(name)
            while not totals.findings and min(totals.equal.values(), default=0) < options.values:
                rng = random.Random(f"{kind} {seed}")
                if kind == "export":
                    check_exports(totals, names, rng, options.rows, folder, server)
                else:
                    check_files(totals, kind, names, rng, options.rows, folder)
                if kind in ("csv", "jsonl") and not options.only:
                    check_late(totals, kind, LATE, rng, options.rows, folder)
                seed += 1
        print(f"{kind}: {totals.line()}; {time.monotonic() - start:.0f} s", flush=True)
        for label, text in (totals.errors if options.errors else {}).items():
            print(f"  {label}: {text:.300}")
        for label, text in totals.findings.items():
            print(f"  {label}: {text}", file=sys.stderr)
        ended |= bool(totals.findings)
    sys.exit(ended)


if __name__ == "__main__":
    main()

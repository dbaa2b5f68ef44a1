"""JSON: the flat and the nested record; against orjson, msgspec, pyarrow.json and Jackson."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.json

from benchmarks.serde._subject import Subject, Work
from benchmarks.serde.avro import sensor, trip
from pravega_serde.json import JsonSerializer

__all__ = ["PACKAGES", "subjects"]

PACKAGES: Final = ("orjson", "msgspec", "pyarrow")

_SENSOR: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("temp", pa.float64()),
        ("count", pa.int32()),
        ("ok", pa.bool_()),
        ("ts", pa.int64()),
    ]
)
_PLACE: Final = pa.struct([("x", pa.float64()), ("label", pa.string())])
_TRIP: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("state", pa.string()),
        ("origin", _PLACE),
        ("stops", pa.list_(_PLACE)),
        ("note", pa.string()),
    ]
)


def subjects(count: int) -> Iterator[Subject]:
    """The same records as in the other formats; of the nested one without the map, which pyarrow.json cannot read."""
    flat = [sensor(i) | {"ts": 1_704_067_200_000 + 1000 * i} for i in range(count)]
    yield _subject("JSON flat", _SENSOR, flat, java="json")
    trips = [{name: value for name, value in trip(i).items() if name != "counts"} for i in range(count // 2)]
    yield _subject("JSON nested", _TRIP, trips)


def _subject(name: str, schema: pa.Schema, values: list[dict[str, Any]], java: str = "") -> Subject:
    serializer = JsonSerializer(arrow_type=schema)
    events = [serializer.serialize(value) for value in values]
    libraries: dict[str, dict[str, Work]] = {
        "decode rows": {"json": lambda: [json.loads(event) for event in events]},
        "encode rows": {"json": lambda: [json.dumps(value).encode() for value in values]},
        "decode columns": {"pyarrow.json": lambda: _by_pyarrow(events, schema)},
        "encode columns": {},
    }
    kind, arrow = serializer.arrow_type, serializer.decode_column(pa.array(events))
    _add_orjson(libraries, events, values, kind, arrow)
    _add_msgspec(libraries, events, values, schema, arrow)
    fastest = {"decode columns": ("", 0.8), "encode columns": ("", 0.8)}
    return Subject(name=name, serializer=serializer, events=events, libraries=libraries, java=java, aims=fastest)


def _by_pyarrow(events: list[bytes], schema: pa.Schema) -> pa.Table:
    """One thread, like everybody here; one block, like a record batch."""
    text = b"\n".join(events)
    return pyarrow.json.read_json(
        io.BytesIO(text),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _add_orjson(
    libraries: dict[str, dict[str, Work]],
    events: list[bytes],
    values: list[dict[str, Any]],
    kind: pa.DataType,
    arrow: pa.Array,
) -> None:
    try:
        import orjson  # noqa: PLC0415
    except ImportError:
        return
    loads, dumps = orjson.loads, orjson.dumps
    libraries["decode rows"]["orjson"] = lambda: [loads(event) for event in events]
    libraries["encode rows"]["orjson"] = lambda: [dumps(value) for value in values]
    libraries["decode columns"]["orjson, pyarrow"] = lambda: pa.array([loads(event) for event in events], kind)
    libraries["encode columns"]["orjson, pyarrow"] = lambda: pa.array([dumps(row) for row in arrow.to_pylist()])


def _add_msgspec(
    libraries: dict[str, dict[str, Work]],
    events: list[bytes],
    values: list[dict[str, Any]],
    schema: pa.Schema,
    arrow: pa.Array,
) -> None:
    try:
        import msgspec  # noqa: PLC0415
    except ImportError:
        return
    read, write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    libraries["decode rows"]["msgspec"] = lambda: [read(event) for event in events]
    libraries["encode rows"]["msgspec"] = lambda: [write(value) for value in values]
    libraries["encode columns"]["msgspec, pyarrow"] = lambda: pa.array([write(row) for row in arrow.to_pylist()])
    if any(pa.types.is_nested(field.type) for field in schema):
        return
    python = {pa.int64(): int, pa.int32(): int, pa.float64(): float, pa.bool_(): bool, pa.string(): str}
    event_type = msgspec.defstruct("Event", [(field.name, python[field.type]) for field in schema], gc=False)
    typed = msgspec.json.Decoder(event_type).decode

    def to_columns() -> pa.RecordBatch:
        rows = [typed(event) for event in events]
        return pa.record_batch([pa.array([getattr(row, f.name) for row in rows], f.type) for f in schema], schema)

    libraries["decode columns"]["msgspec, pyarrow"] = to_columns

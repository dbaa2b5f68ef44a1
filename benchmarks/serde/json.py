"""Realistic JSON: doubles with all digits, absent and shuffled keys, lists of all lengths, small columns.

It is compared with orjson, msgspec, pyarrow.json and Jackson.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.json

from benchmarks.serde._subject import WAYS, Subject, Work, batches
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
    [("id", pa.int64()), ("state", pa.string()), ("origin", _PLACE), ("stops", pa.list_(_PLACE)), ("note", pa.string())]
)

#: Part of the keys in a sparse record, and number of events in a small column, as in a poll or a micro-batch.
_PRESENT: Final = 0.7
_BATCH: Final = 50
#: Exponent of the lengths of lists: most have up to two items, a few have hundreds.
_SKEW: Final = 0.8
_LONGEST: Final = 1000


def subjects(count: int) -> Iterator[Subject]:
    """Return the other formats' records with the variations of real JSON.

    The nested record has no maps, which pyarrow.json does not support.
    """
    source = random.Random(20_240_101)
    flat = [_sensor(i, source) for i in range(count)]
    yield _subject("JSON flat", _SENSOR, flat, java="json")
    yield _subject("JSON sparse, shuffled", _SENSOR, [_sparse(value, source) for value in flat])
    yield _subject("JSON nested, skewed", _TRIP, [_trip(i, source) for i in range(count // 2)])
    yield _subject(f"JSON flat, {_BATCH} at a time", _SENSOR, flat, batch=_BATCH)


def _sensor(i: int, source: random.Random) -> dict[str, Any]:
    return sensor(i) | {"temp": source.gauss(20, 8), "ts": 1_704_067_200_000 + 1000 * i}


def _sparse(value: dict[str, Any], source: random.Random) -> dict[str, Any]:
    names = [name for name in value if name == "id" or source.random() < _PRESENT]
    source.shuffle(names)
    return {name: value[name] for name in names}


def _trip(i: int, source: random.Random) -> dict[str, Any]:
    length = min(int(source.paretovariate(_SKEW)) - 1, _LONGEST)
    value = trip(i) | {
        "origin": {"x": source.uniform(-180, 180), "label": "home"},
        "stops": [{"x": source.uniform(-180, 180), "label": f"stop {n}" if n else None} for n in range(length)],
    }
    return {name: value[name] for name in _TRIP.names}


def _subject(name: str, schema: pa.Schema, values: list[dict[str, Any]], java: str = "", batch: int = 0) -> Subject:
    serializer = JsonSerializer(arrow_type=schema)
    events = [serializer.serialize(value) for value in values]
    libraries: dict[str, dict[str, Work]] = {way: {} for way in WAYS}
    libraries["decode rows"]["json"] = lambda: [json.loads(event) for event in events]
    libraries["encode rows"]["json"] = lambda: [json.dumps(value).encode() for value in values]
    parts = batches(events, batch)
    libraries["decode columns"]["pyarrow.json"] = lambda: [_by_pyarrow(part, schema) for part in parts]
    arrow = [serializer.decode_column(pa.array(part)) for part in parts]
    _add_orjson(libraries, events, values, parts, arrow)
    _add_msgspec(libraries, events, values, parts, arrow, schema)
    return Subject(
        name=name,
        serializer=serializer,
        events=events,
        libraries=libraries,
        batch=batch,
        extras=False,
        java=java,
        aims={"decode columns": ("", 0.8), "encode columns": ("", 0.8)},
    )


def _by_pyarrow(events: list[bytes], schema: pa.Schema) -> pa.Table:
    """Decode with one thread, like all peers here, and with one block, like a record batch."""
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
    parts: list[list[bytes]],
    arrow: list[pa.Array],
) -> None:
    try:
        import orjson
    except ImportError:
        return
    read, write, kind = orjson.loads, orjson.dumps, arrow[0].type
    libraries["decode rows"]["orjson"] = lambda: [read(event) for event in events]
    libraries["encode rows"]["orjson"] = lambda: [write(value) for value in values]
    libraries["decode columns"]["orjson, pyarrow"] = lambda: [
        pa.array([read(event) for event in part], kind) for part in parts
    ]
    libraries["encode columns"]["orjson, pyarrow"] = lambda: [
        pa.array([write(row) for row in part.to_pylist()]) for part in arrow
    ]


def _add_msgspec(
    libraries: dict[str, dict[str, Work]],
    events: list[bytes],
    values: list[dict[str, Any]],
    parts: list[list[bytes]],
    arrow: list[pa.Array],
    schema: pa.Schema,
) -> None:
    read, write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    libraries["decode rows"]["msgspec"] = lambda: [read(event) for event in events]
    libraries["encode rows"]["msgspec"] = lambda: [write(value) for value in values]
    libraries["encode columns"]["msgspec, pyarrow"] = lambda: [
        pa.array([write(row) for row in part.to_pylist()]) for part in arrow
    ]
    if any(pa.types.is_nested(field.type) for field in schema):
        return
    python = {pa.int64(): int, pa.int32(): int, pa.float64(): float, pa.bool_(): bool, pa.string(): str}
    fields = [(field.name, python[field.type] | None, None) for field in schema]
    typed = msgspec.json.Decoder(msgspec.defstruct("Event", fields, gc=False)).decode

    def to_columns(part: list[bytes]) -> pa.RecordBatch:
        rows = [typed(event) for event in part]
        return pa.record_batch([pa.array([getattr(row, f.name) for row in rows], f.type) for f in schema], schema)

    libraries["decode columns"]["msgspec, pyarrow"] = lambda: [to_columns(part) for part in parts]

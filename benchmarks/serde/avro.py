"""Avro: a flat record of six fields and a nested one, compared with fastavro, pyruhvro and Java's generic reader."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import fastavro
import pyarrow as pa

from benchmarks.serde._subject import WAYS, Subject, Work
from pravega_serde.avro import AvroSerializer

__all__ = ["PACKAGES", "subjects"]

PACKAGES: Final = ("fastavro", "pyruhvro")

SENSOR: Final = {
    "type": "record",
    "name": "Sensor",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "temp", "type": "double"},
        {"name": "count", "type": "int"},
        {"name": "ok", "type": "boolean"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
_PLACE: Final = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "x", "type": "double"}, {"name": "label", "type": ["null", "string"]}],
}
_TRIP: Final = {
    "type": "record",
    "name": "Trip",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "DONE", "LOST"]}},
        {"name": "origin", "type": _PLACE},
        {"name": "stops", "type": {"type": "array", "items": "Place"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "note", "type": ["null", "string"]},
    ],
}


def subjects(count: int) -> Iterator[Subject]:
    """Return the same records as for the other formats."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    yield _subject("Avro flat", SENSOR, [sensor(i) | {"ts": start + timedelta(seconds=i)} for i in range(count)])
    yield _subject("Avro nested", _TRIP, [trip(i) for i in range(count // 2)])


def sensor(i: int) -> dict[str, Any]:
    """Return five fields of the flat record. The sixth is a time, with another type in each format."""
    return {"id": i, "name": f"sensor-{i % 1000}", "temp": i / 8, "count": i % 500, "ok": i % 2 == 0}


def trip(i: int) -> dict[str, Any]:
    """Return a nested record, with up to three items in its list and one in its map."""
    stops = [{"x": n / 4, "label": f"stop {n}" if n else None} for n in range(i % 4)]
    return {
        "id": i,
        "state": ("OPEN", "DONE", "LOST")[i % 3],
        "origin": {"x": i / 16, "label": "home"},
        "stops": stops,
        "counts": {"a": i, "b": 2} if i % 2 else {},
        "note": None if i % 5 else f"note {i}",
    }


def _subject(name: str, schema: Any, values: list[dict[str, Any]]) -> Subject:
    serializer = AvroSerializer(schema)
    events = [serializer.serialize(value) for value in values]
    libraries: dict[str, dict[str, Work]] = {way: {} for way in WAYS}
    arrow = serializer.decode_column(pa.array(events))
    _add_fastavro(libraries, schema, events, values, arrow)
    _add_pyruhvro(libraries, schema, events)
    fastest = {"decode columns": ("", 0.8), "encode columns": ("", 0.8)}
    return Subject(name=name, serializer=serializer, events=events, libraries=libraries, java="avro", aims=fastest)


def _add_fastavro(
    libraries: dict[str, dict[str, Work]],
    schema: Any,
    events: list[bytes],
    values: list[dict[str, Any]],
    arrow: pa.Array,
) -> None:
    parsed, kind = fastavro.parse_schema(schema), arrow.type
    read, write = fastavro.schemaless_reader, fastavro.schemaless_writer

    def encode(rows: list[dict[str, Any]]) -> list[bytes]:
        written = []
        for row in rows:
            out = io.BytesIO()
            write(out, parsed, row)
            written.append(out.getvalue())
        return written

    def decode() -> list[Any]:
        return [read(io.BytesIO(event), parsed, None) for event in events]

    libraries["decode rows"]["fastavro"] = decode
    libraries["encode rows"]["fastavro"] = lambda: encode(values)
    libraries["decode columns"]["fastavro, pyarrow"] = lambda: pa.array(decode(), kind)
    libraries["encode columns"]["fastavro, pyarrow"] = lambda: pa.array(encode([_mapped(v) for v in arrow.to_pylist()]))


def _mapped(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of Arrow with maps instead of lists of pairs."""
    return row | {"counts": dict(row["counts"])} if "counts" in row else row


def _add_pyruhvro(libraries: dict[str, dict[str, Work]], schema: Any, events: list[bytes]) -> None:
    try:
        import pyruhvro
    except ImportError:
        return
    text = json.dumps(schema)
    libraries["decode columns"]["pyruhvro"] = lambda: pyruhvro.deserialize_array(events, text)
    batch = pyruhvro.deserialize_array(events, text)
    libraries["encode columns"]["pyruhvro"] = lambda: pyruhvro.serialize_record_batch(batch, text, 1)

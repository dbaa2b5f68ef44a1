"""Rows of every kind of column, and each format's options for them."""

import datetime as dt
import json
import subprocess
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pravega_serde.java import ClassDescriptor, JavaSerializer

COUNT = 40


@dataclass(frozen=True)
class Case:
    """A format, a query whose rows it can hold, and what it takes to write and to read them."""

    name: str
    query: str
    write: dict[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    schema: str | None = None
    bad: bytes = b"\xff\xfe\xfd"
    bad_field: tuple[bytes, str] | None = None
    """An event that is bad in one field, and that field."""

    @property
    def options(self) -> dict[str, str]:
        return {"format": self.name.partition(" ")[0]} | self.write | self.read


AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "score", "type": ["null", "double"]},
        {"name": "raw", "type": "bytes"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": ["null", "int"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
                    ],
                },
            },
        },
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "ok", "type": "boolean"}]}],
        },
    ],
}

PROTO = """
syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
message Line { string sku = 1; google.protobuf.Timestamp at = 2; }
message Inner { bool ok = 1; }
message Reading {
  int64 id = 1;
  optional string name = 2;
  optional double score = 3;
  bytes raw = 4;
  google.protobuf.Timestamp at = 5;
  repeated string tags = 9;
  map<string, int32> counts = 10;
  repeated Line lines = 11;
  Inner inner = 12;
}
"""

READING = ClassDescriptor.of(
    "test.Reading",
    7,
    {
        "id": "long",
        "name": "java.lang.String",
        "score": "java.lang.Double",
        "raw": "byte[]",
        "at": "java.time.Instant",
        "local": "java.time.LocalDateTime",
        "day": "java.time.LocalDate",
        "price": "java.math.BigDecimal",
    },
)
SAMPLE = JavaSerializer().serialize(
    READING.new(
        id=1,
        name="n",
        raw=b"x",
        at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        local=dt.datetime(2026, 1, 1),
        day=dt.date(2026, 1, 1),
        price=Decimal(1),
    )
)

# Timestamps around the hour that New York repeats and the one that it leaves out.
_FLAT = """
    id,
    IF(id % 3 = 0, NULL, CONCAT('имя-', id)) AS name,
    IF(id % 4 = 0, NULL, id / 7D) AS score,
    CAST(CONCAT('raw', id) AS BINARY) AS raw,
    IF(id % 5 = 0, NULL, TIMESTAMP'2026-11-01T05:30:00.000001Z' + MAKE_INTERVAL(0, 0, 0, 0, 0, 30 * id)) AS at
"""
_PLAIN = """
    TIMESTAMP_NTZ'2026-03-08 02:30:00.5' + MAKE_INTERVAL(0, 0, 0, 0, id) AS local,
    DATE'2026-01-01' + CAST(id AS INT) AS day,
    CAST(id * 123456.789 - 1000000 AS DECIMAL({decimal})) AS price
"""
_NESTED = """
    TRANSFORM(SEQUENCE(0, CAST(id % 3 AS INT)), i -> {tag}) AS tags,
    MAP('a', CAST(id AS INT), 'b', {count}) AS counts,
    ARRAY(NAMED_STRUCT('sku', CAST(id AS STRING), 'at', IF(id % 2 = 0, NULL, TIMESTAMP'2026-11-01T05:30:00Z')))
        AS lines,
    IF(id % 6 = 0, NULL, NAMED_STRUCT('ok', id % 2 = 0)) AS inner
"""
_NULLS = {"tag": "IF(i = 1, NULL, CAST(i AS STRING))", "count": "CAST(NULL AS INT)"}
_FULL = {"tag": "CAST(i AS STRING)", "count": "7"}


def _rows(*parts: str) -> str:
    return f"SELECT {', '.join(parts)} FROM RANGE(0, {COUNT}, 1, 2)"


_EVERYTHING = _rows(_FLAT, _PLAIN.format(decimal="20, 4"), _NESTED.format(**_NULLS))
_DDL = """
    id BIGINT, name STRING, score DOUBLE, raw BINARY, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, price DECIMAL(20, 4),
    tags ARRAY<STRING>, counts MAP<STRING, INT>, lines ARRAY<STRUCT<sku: STRING, at: TIMESTAMP>>,
    inner STRUCT<ok: BOOLEAN>
"""


def cases(folder: Path) -> list[Case]:
    """Every format with the widest rows that it can hold; ``folder`` takes the files of its options."""
    avro, sample = folder / "reading.avsc", folder / "sample.bin"
    avro.write_text(json.dumps(AVRO))
    sample.write_bytes(SAMPLE)
    return [
        Case("avro", _EVERYTHING, {"avro_schema": str(avro)}, bad_field=(b"\xff" * 11, "$.id")),
        Case("json", _EVERYTHING, schema=_DDL, bad_field=(b'{"id": "seven"}', "$.id")),
        Case("cbor", _EVERYTHING, schema=_DDL, bad_field=(b"\xa1\x62id\x65seven", "$.id")),
        Case(
            "protobuf",
            _rows(_FLAT, _NESTED.format(**_FULL)),
            {"protobuf_descriptor": str(descriptor_set(folder)), "protobuf_message": "test.Reading"},
            bad_field=(b"\x5a\x03\x0a\x01\xff", "$.lines[0].sku"),
        ),
        Case(
            "java",
            # In the order of the class: primitive fields first, then by name.
            "SELECT id, at, day, local, name, price, raw, score FROM "
            f"({_rows(_FLAT, _PLAIN.format(decimal='38, 18'))})",
            {"java_sample": SAMPLE.hex()},
            bad_field=(SAMPLE.replace(b"t\x00\x01n", b"t\x00\x01\xff"), "$.name"),
        ),
        Case(
            "java with fewer fields",
            f"SELECT name, id FROM ({_rows(_FLAT)})",
            {"java_sample": str(sample)},
            schema="name STRING, id BIGINT",
        ),
        Case("java of strings", _rows("CONCAT('ключ-', id) AS value"), read={"java_type": "java.lang.String"}),
        Case("java of longs", _rows("id * 3000000000 AS value"), {"java_type": "java.lang.Long"}),
        Case("string", _rows("CONCAT('ключ-', id) AS value")),
        Case("bytes", _rows("CAST(CAST(id AS STRING) AS BINARY) AS value")),
    ]


def descriptor_set(folder: Path) -> Path:
    """The compiled form of ``PROTO``."""
    source, target = folder / "reading.proto", folder / "reading.pb"
    source.write_text(PROTO)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
    subprocess.run([*command, f"--descriptor_set_out={target}", source.name], check=True, cwd=folder)
    return target

"""The formats of exported files, read back by others."""

import decimal
import gzip
import io
import json
import os
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.operations.export import file_format, open_writer

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("event", pa.binary()),
        ("price", pa.decimal128(9, 2)),
        ("when", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float64()), ("y", pa.int32())])),
    ]
)


def rows(start, count):
    return [
        {
            "id": i,
            "name": None if i % 7 == 0 else f"ключ {i} ✓",
            "event": bytes([i % 256]) * (i % 5),
            "price": decimal.Decimal(i) / 4,
            "when": None,
            "tags": ["a", None] if i % 2 else [],
            "place": {"x": i / 8, "y": i} if i % 3 else None,
        }
        for i in range(start, start + count)
    ]


def written(kind, codec, notes=None):
    sink = io.BytesIO()
    writer = open_writer(sink, SCHEMA, kind, codec, notes or {})
    for start in range(0, 1000, 100):
        batch = pa.RecordBatch.from_pylist(rows(start, 110), SCHEMA)
        writer.write(batch.slice(5, 100))  # buffers that begin elsewhere
    writer.finish()
    return sink.getvalue()


EXPECTED = [row for start in range(0, 1000, 100) for row in rows(start + 5, 100)]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "none"])
def test_parquet(codec):
    file = pq.ParquetFile(io.BytesIO(written("parquet", codec, {"pravega.end": "cut"})))
    assert file.read().to_pylist() == EXPECTED
    assert file.schema_arrow.metadata[b"pravega.end"] == b"cut"
    assert file.schema_arrow.field("id").nullable is False


@pytest.mark.parametrize("codec", ["deflate", "none"])
def test_avro(codec):
    reader = fastavro.reader(io.BytesIO(written("avro", codec, {"pravega.end": "cut"})))
    assert list(reader) == EXPECTED
    assert reader.metadata["pravega.end"] == "cut"


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_json_lines(codec):
    data = written("jsonl", codec)
    if codec == "gzip":
        data = gzip.decompress(data)
    if codec == "zstd":
        data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    lines = data.decode().splitlines()
    assert len(lines) == len(EXPECTED)
    last = json.loads(lines[-1])
    assert last == {
        "id": 1004,
        "name": "ключ 1004 ✓",
        "event": "7Ozs7A==",
        "price": 251.0,
        "when": None,
        "tags": [],
        "place": {"x": 125.5, "y": 1004},
    }


def test_parquet_holds_back_no_more_than_a_row_group():
    sink = io.BytesIO()
    schema = pa.schema([("event", pa.binary())])
    writer = open_writer(sink, schema, "parquet", "none", {})
    for number in range(1, 41):
        writer.write(pa.RecordBatch.from_pydict({"event": [os.urandom(2 << 20)]}, schema))
        assert 2 * number - sink.tell() / (1 << 20) <= 17
    writer.finish()
    assert pq.ParquetFile(io.BytesIO(sink.getvalue())).num_row_groups == 5


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("a.parquet", (None, None), ("parquet", "snappy")),
        ("a.PARQUET", (None, "zstd"), ("parquet", "zstd")),
        ("a.jsonl", (None, None), ("jsonl", "none")),
        ("a.b.json", (None, None), ("jsonl", "none")),
        ("a.ndjson.gz", (None, None), ("jsonl", "gzip")),
        ("a.jsonl.zst", (None, None), ("jsonl", "zstd")),
        ("a.avro", (None, None), ("avro", "deflate")),
        ("anything", ("avro", "none"), ("avro", "none")),
    ],
)
def test_the_format_follows_from_the_name(name, given, expected):
    assert file_format(Path(name), *given) == expected


@pytest.mark.parametrize(
    ("name", "given"),
    [("a.txt", ()), ("a.avro.gz", ()), ("a.parquet", (None, "lzma")), ("a.gz", ()), ("a.jsonl.gz", (None, "none"))],
)
def test_a_name_or_codec_that_cannot_be(name, given):
    with pytest.raises(ConfigError):
        file_format(Path(name), *given)


@pytest.mark.parametrize(
    ("kind", "column"), [("jsonl", pa.duration("s")), ("avro", pa.duration("s")), ("parquet", pa.struct([]))]
)
def test_columns_that_a_format_does_not_have(kind, column):
    with pytest.raises(ColumnTypeError, match="the columns cannot be written"):
        open_writer(io.BytesIO(), pa.schema([("x", column)]), kind, "none", {})

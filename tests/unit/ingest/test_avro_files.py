"""Avro files: every value of a file is the value that the Avro serializer reads from an event."""

import bz2
import io
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.operations.ingest import Chunk, FileOptions, FileSource
from pravega_serde.avro import AvroSerializer

SYNC = b"0123456789abcdef"
LONG = AvroSerializer('"long"').serialize
META = AvroSerializer({"type": "map", "values": "bytes"}).serialize
MAGIC = b"Obj\x01"
Pack = Callable[[bytes], bytes]


def header(schema: Any, codec: str = "null", **more: bytes) -> bytes:
    return MAGIC + META({"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode(), **more}) + SYNC


def block(records: list[bytes], pack: Pack = lambda data: data) -> bytes:
    data = pack(b"".join(records))
    return LONG(len(records)) + LONG(len(data)) + data + SYNC


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def source(tmp_path: Path, data: bytes, **options: Any) -> FileSource:
    path = tmp_path / "x.avro"
    path.write_bytes(data)
    return FileSource([path], FileOptions(**options))


def chunks(tmp_path: Path, data: bytes, **options: Any) -> list[Chunk]:
    files = source(tmp_path, data, **options)
    return list(files.read(*files.ids()))


def rows(tmp_path: Path, data: bytes) -> list[Any]:
    return [row for chunk in chunks(tmp_path, data) for row in chunk.batch.to_pylist()]


A, B = record(("a", "int"), name="A"), record(("b", "string"), name="B")
FIXED = {"type": "fixed", "name": "F", "size": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["x", "y"]}
#: Types, and one event of each branch.
TYPES: dict[str, tuple[Any, list[bytes]]] = {
    "union of records": (["null", A, B], [b"\0", b"\2\x0a", b"\4\2b"]),
    "list of a union of records": ({"type": "array", "items": [A, B]}, [b"\0", b"\4\0\2\2\2b\0"]),
    "map of a union": ({"type": "map", "values": [A, "null", "string"]}, [b"\2\2k\4\2v\0", b"\1\4\2k\2\0"]),
    "union of map and list": (
        [{"type": "map", "values": "int"}, {"type": "array", "items": "int"}],
        [b"\0\0", b"\2\2\6\0"],
    ),
    "union of primitives": (["string", "int", "boolean", "double"], [b"\0\2s", b"\2\5", b"\4\1", b"\6" + bytes(8)]),
    "union of named types": ([FIXED, ENUM, "bytes"], [b"\0ab", b"\2\2", b"\4\2z"]),
    "null last": (["string", "null"], [b"\0\2s", b"\2"]),
    "only null": (["null"], [b"\0"]),
    "uuid": ({"type": "string", "logicalType": "uuid"}, [b"\x48" + b"25f95c12-d66b-4070-b581-0d92ec959193"]),
    "uuid of bytes": ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, [bytes(range(16))]),
    "time-millis": ({"type": "int", "logicalType": "time-millis"}, [LONG(86_399_999)]),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, [LONG(86_399_999_999)]),
    "timestamp far away": ({"type": "long", "logicalType": "timestamp-micros"}, [LONG(2**60), LONG(-(2**60))]),
    "date far away": ({"type": "int", "logicalType": "date"}, [LONG(2**31 - 1)]),
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}, [b"\x10" + b"\xff" * 8]),
    "long decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}, [b"\2\5"]),
    "duration": ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, [bytes(range(12))]),
    "record without fields": (record(name="Z"), [b""]),
    "records without fields in a list": ({"type": "array", "items": record(name="Z")}, [b"\x06\0"]),
    "enum, fixed, float, bytes": (
        record(("e", ENUM), ("f", FIXED), ("g", "float"), ("h", "bytes"), name="Q"),
        [b"\2ab" + bytes(4) + b"\4\xff\0"],
    ),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("top", [True, False], ids=["at the top", "in a field"])
def test_values_are_those_of_events(tmp_path: Path, name: str, top: bool):
    kind, events = TYPES[name]
    schema = kind if top else record(("n", "long"), ("x", kind))
    if not top:
        events = [LONG(number) + event for number, event in enumerate(events)]
    wanted = AvroSerializer(schema).decode_column(pa.array(events * 40, pa.binary()))
    files = source(tmp_path, header(schema) + block(events * 20) + block(events * 20))
    found = [chunk.batch for chunk in files.read(*files.ids())]
    assert sum(batch.num_rows for batch in found) == len(wanted)
    if pa.types.is_struct(wanted.type):
        columns = pa.Table.from_batches(found).combine_chunks().columns
        assert all(one.chunk(0).equals(other) for one, other in zip(columns, wanted.flatten(), strict=True))
    else:
        assert files.schema.names == ["value"]
        assert pa.concat_arrays([batch.column(0) for batch in found]).equals(wanted)


def snappy(data: bytes) -> bytes:
    return pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODECS: dict[str, Pack] = {
    "null": lambda data: data,
    "deflate": deflate,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "snappy": snappy,
    "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(tmp_path: Path, codec: str):
    records = [LONG(number) for number in range(1000)]
    data = (
        header(record(("x", "long")), codec, note=b"\xff\xfe")
        + block(records, CODECS[codec])
        + block([], CODECS[codec])
    )
    assert rows(tmp_path, data) == [{"x": number} for number in range(1000)]
    for cut in (len(data) - 40, len(data) // 2, len(MAGIC) + 3):
        with pytest.raises(SourceUnreadableError, match=r"x.avro"):
            chunks(tmp_path, data[:cut])
    begin = data.index(SYNC) + len(SYNC) + 4
    with pytest.raises((SourceUnreadableError, BadRecordError), match=r"x.avro"):
        chunks(tmp_path, data[:begin] + bytes(200) + data[begin + 200 :])


def test_a_recursive_record_is_an_error_of_the_file(tmp_path: Path):
    tree = record(("next", ["null", "R"]))
    with pytest.raises(
        SourceUnreadableError, match=r"x.avro has an Avro schema that cannot be read: .*contains itself"
    ):
        chunks(tmp_path, header(tree) + block([b"\0"]))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the header is truncated"),
        (b"PAR1" + bytes(40), "does not begin with"),
        (MAGIC + LONG(1) + LONG(1 << 40) + b"x", "bytes in the header"),
        (MAGIC + LONG(1) + LONG(1 << 20) + b"x", "the header is truncated"),
        (MAGIC + LONG(1 << 40), "the header is truncated"),
        (MAGIC + META({}) + SYNC, "has no schema"),
        (MAGIC + META({"avro.schema": b"{"}) + SYNC, "is not JSON"),
        (MAGIC + META({"avro.schema": b'"/etc/passwd"'}) + SYNC, "cannot be read"),
        (header("long", "lz4"), "unknown codec 'lz4'; known codecs: null, deflate"),
        (header("long") + LONG(1 << 40) + LONG(1) + b"x" + SYNC, "records in 1 bytes"),
        (header("long") + LONG(1) + LONG(1 << 40) + b"x" + SYNC, "a block of 1 records and 1099511627776 bytes"),
        (header("long") + LONG(1) + LONG(1 << 29) + b"x" + SYNC, "a block is truncated"),
        (header("long") + LONG(-1) + LONG(1) + b"x" + SYNC, "a block of -1 records"),
        (header("long") + block([b"\2\2"]), "1 bytes follow"),
        (header("string") + block([b"\1"]), "record 0 of 1: a negative length"),
        (header(record(("x", {"type": "array", "items": "double"}))) + block([LONG(1 << 60)]), "record 0 of 1"),
        (header("long", "snappy") + block([LONG(1)], lambda data: b"\xff\xff\xff\xff\x0f" + data + bytes(4)), "snappy"),
        (header("long", "snappy") + block([LONG(1)], lambda data: snappy(data)[:-1] + b"x"), "the checksum differs"),
    ],
)
def test_damaged_files_are_errors_that_need_no_memory(tmp_path: Path, data: bytes, reason: str):
    tracemalloc.start()
    try:
        with pytest.raises(SourceUnreadableError, match=rf"x.avro .*{reason}"):
            chunks(tmp_path, data)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_malformed_values_are_named_or_handed_over(tmp_path: Path):
    data = header(record(("n", "int"), ("s", "string"))) + block([b"\2\2a", b"\4\2\xff", b"\6\2c"])
    with pytest.raises(BadRecordError, match=r"x.avro, record 2: .*UTF-8.*\$\.s"):
        chunks(tmp_path, data)
    (chunk,) = chunks(tmp_path, data, reject=True)
    assert chunk.batch.to_pylist() == [{"n": 1, "s": "a"}, {"n": 3, "s": "c"}]
    assert [(bad.record, bad.text) for bad in chunk.rejected] == [(1, "0402ff")]


def test_a_null_in_the_place_of_a_record_is_not_an_event(tmp_path: Path):
    data = header(["null", A]) + block([b"\2\2", b"\0"])
    with pytest.raises(BadRecordError, match=r"x.avro, record 2: the record is null"):
        chunks(tmp_path, data)


def test_files_of_other_writers(tmp_path: Path):
    out = io.BytesIO()
    schema = record(("x", ["null", A, "string"]), ("y", {"type": "map", "values": "long"}))
    values = [{"x": None, "y": {}}, {"x": {"a": 1}, "y": {"k": 2}}, {"x": "s", "y": {"k": -(2**63)}}] * 1000
    fastavro.writer(out, schema, values, codec="deflate", sync_interval=500)
    found = rows(tmp_path, out.getvalue())
    assert [row["x"] and (row["x"]["member0"] or row["x"]["member1"]) for row in found] == [
        each["x"] for each in values
    ]
    assert [dict(row["y"]) for row in found] == [each["y"] for each in values]

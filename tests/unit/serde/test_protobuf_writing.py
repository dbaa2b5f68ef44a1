"""Columns that are written as Protobuf: types that are taken, types and rows that do not fit, and all without ptars."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.struct_pb2 import Struct

from pravega_serde import DeserializationError, ProtobufSerializer, SchemaError, SerializationError, typed
from tests.unit.serde._arrow import struct
from tests.unit.serde._protobuf import ALL, FLAT

TAKEN = [
    ("i32", pa.int8(), [1]),
    ("i32", pa.uint16(), [1]),
    ("i64", pa.uint32(), [1]),
    ("u32", pa.int64(), [1]),
    ("u32", pa.uint32(), [1 << 31]),
    ("u64", pa.uint64(), [1 << 63]),
    ("u64", pa.int32(), [5]),
    ("fl", pa.float16(), [np.float16(0.5)]),
    ("dbl", pa.int32(), [5]),
    ("dbl", pa.float32(), [0.5]),
    ("text", pa.large_string(), ["x"]),
    ("text", pa.dictionary(pa.int8(), pa.string()), ["x"]),
    ("data", pa.large_binary(), [b"x"]),
    ("data", pa.binary(2), [b"xx"]),
    ("level", pa.dictionary(pa.int32(), pa.string()), ["MID"]),
    ("level", pa.int32(), [5]),
    ("level", pa.string(), ["17"]),
    ("r_i32", pa.large_list(pa.int32()), [[1]]),
    ("r_i32", pa.list_(pa.int32(), 2), [[1, 2]]),
    ("r_i32", pa.null(), [None]),
    ("m_text", pa.map_(pa.large_string(), pa.int32()), [[("a", 1)]]),
    ("at", pa.timestamp("s", "Europe/Berlin"), [5]),
    ("at", pa.timestamp("ns", "UTC"), [5999]),
    ("took", pa.duration("ms"), [-1500]),
    ("w_i64", pa.int16(), [0]),
    ("inner", struct(a=pa.int8()), [{"a": 5}]),
    ("inner", pa.null(), [None]),
]


@pytest.mark.parametrize(("name", "kind", "values"), TAKEN, ids=[f"{row[0]} {row[1]}" for row in TAKEN])
def test_column_types_that_are_taken(name: str, kind: pa.DataType, values: list[Any]) -> None:
    column = pa.StructArray.from_arrays([pa.array([*values, None], kind)], names=[name])
    ALL.check_encodable(column.type)
    writer = ALL.column_writer
    events = ALL.encode_column(column)
    assert events.to_pylist() == writer.plain(writer.stored(column)).to_pylist()
    assert events[1].as_py() == b""
    assert (events[0].as_py() == b"") == (values == [None])


@pytest.mark.parametrize("size", [0, 1, 16])
def test_an_empty_column_may_have_a_buffer_of_any_size(size: int) -> None:
    kind = pa.decimal128(20, 0)
    items = pa.Array.from_buffers(kind, 0, [None, pa.py_buffer(bytes(size))])
    column = pa.ListArray.from_arrays([0, 0, 0], items)
    events = ALL.encode_column(pa.StructArray.from_arrays([column], names=["r_u64"]))
    assert events.to_pylist() == [b"", b""]


MISFITS = [
    (struct(i32=pa.int64()), r"a column of type int64 does not fit Protobuf's int32 \(at \$\.i32\); cast the column"),
    (struct(i64=pa.uint64()), "int64"),
    (struct(fl=pa.float64()), "float"),
    (struct(text=pa.binary()), "string"),
    (struct(data=pa.string()), "bytes"),
    (struct(u64=pa.decimal128(38, 0)), "uint64"),
    (struct(at=pa.timestamp("us")), r"requires timestamps with a time zone"),
    (struct(took=pa.int64()), "requires durations"),
    (struct(r_i32=pa.int32()), "requires a list"),
    (struct(r_i32=pa.list_(pa.string())), r"at \$\.r_i32\[\]"),
    (struct(m_text=pa.list_(pa.int64())), "requires a map"),
    (struct(m_text=pa.map_(pa.int32(), pa.int64())), r"at \$\.m_text\{\}\.key"),
    (struct(inner=pa.int32()), "requires a struct"),
    (struct(inner=struct(z=pa.int32())), r"the column \$\.inner\.z exists, but everything\.Inner has no such field"),
    (pa.struct([("i32", pa.int32()), ("i32", pa.int32())]), r"the column \$\.i32 exists twice"),
    (pa.int32(), "requires a struct, or a record batch"),
]


@pytest.mark.parametrize(("kind", "message"), MISFITS, ids=[str(row[0])[:40] for row in MISFITS])
def test_column_types_that_do_not_fit(kind: pa.DataType, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ALL.check_encodable(kind)


UNWRITABLE = [
    (struct(u32=pa.int64()), {"u32": 1 << 32}, r"row 1: .*invalid uint32: .* \(field \$\.u32\)"),
    (struct(u64=pa.int64()), {"u64": -1}, r"row 1: .*invalid uint64"),
    (struct(level=pa.string()), {"level": "NO"}, r"row 1: .*invalid value of the enum"),
    (struct(r_i32=pa.list_(pa.int32())), {"r_i32": [1, None]}, r"row 1: .*invalid int32: None .*r_i32\[1\]"),
    (struct(m_text=pa.map_(pa.string(), pa.int64())), {"m_text": [("a", None)]}, r"row 1: .*m_text\['a'\]"),
    (struct(at=pa.timestamp("us", "UTC")), {"at": 253_402_300_800_000_000}, r"row 1: .*invalid timestamp.*\$\.at\)"),
    (struct(took=pa.duration("s")), {"took": 315_576_000_001}, r"row 1: .*invalid duration: .* \(field \$\.took\)"),
]


@pytest.mark.parametrize("more", [0, 1000])
@pytest.mark.parametrize(("kind", "value", "message"), UNWRITABLE)
def test_rows_that_cannot_be_written_are_named(kind: pa.DataType, value: Any, message: str, more: int) -> None:
    with pytest.raises(SerializationError, match=message):
        ALL.encode_column(pa.array([{}, value] + [{}] * more, kind))


def test_batches_slices_nulls_and_nothing() -> None:
    column = FLAT.decode_column(pa.array([FLAT.serialize({"id": n, "name": f"n{n}"}) for n in range(10)]))
    events = FLAT.encode_column(column)
    assert FLAT.encode_column(pa.RecordBatch.from_struct_array(column)).equals(events)
    assert FLAT.encode_column(column.slice(3, 4)).equals(events.slice(3, 4))
    with_null = pa.concat_arrays([column, pa.nulls(1, column.type)])
    assert FLAT.encode_column(with_null).to_pylist() == [*events.to_pylist(), None]
    assert FLAT.encode_column(column.slice(0, 0)).to_pylist() == []
    assert FLAT.decode_column(pa.array([], pa.binary())).type == FLAT.arrow_type
    assert FLAT.decode_column(pa.array([None, events[0].as_py()], pa.large_binary())).null_count == 1


WITHOUT_PTARS = """
import sys
sys.modules["ptars"] = None
from tests.unit.serde._protobuf import FLAT
column = FLAT.decode_column(FLAT.encode_column(FLAT.decode_column(__import__("pyarrow").array([b"\\x08\\x05"] * 3))))
assert FLAT.column_writer._compiled is None
print(column.field("id").to_pylist())
"""


def test_ptars_is_not_needed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PTARS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[5, 5, 5]\n", done.stderr
    assert FLAT.column_writer._compiled is not None


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN"])
def test_json_has_no_infinite_numbers(number: str):
    serializer, good = ProtobufSerializer(schema=Struct), Struct()
    good.update({"a": 1})
    with pytest.raises(SerializationError, match="row 200: "):
        serializer.encode_column(pa.array(['{"a":1}'] * 200 + [f'{{"a":{number}}}']))
    infinite = Struct()
    infinite.fields["a"].number_value = float(number)
    for read in (
        lambda event: serializer.as_dict(serializer.deserialize(event)),
        typed(serializer, dict[str, Any]).deserialize,
        lambda event: serializer.decode_column(pa.array([good.SerializeToString()] * 200 + [event])),
    ):
        with pytest.raises(DeserializationError):
            read(infinite.SerializeToString())

"""String columns that are not UTF-8, which Spark has after CAST(bytes AS STRING): no format writes them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pravega_serde import SerializationError, serializer_for
from pravega_serde.columnar.checks import first_not_utf8, write_check
from pravega_serde.routing import segment_keys
from tests.unit.serde._protobuf import ALL

#: Rows, and the first one that is not UTF-8.
ROWS = [
    ([b"ok", b"a\xff"], 1),
    ([b"\xc3", b"\xa9"], 0),  # one character in two rows
    ([b"x", b"\xed\xa0\x80"], 1),  # a surrogate
    ([b'"', b"\xf0\x9f\x98"], 1),
    ([b"\xf0\x9f\x98\x80", b"\0\xff"], 1),
]
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "v", "type": %s}]}'
TEXT = serializer_for("avro", schema=RECORD % '"string"')
COUNTS = serializer_for("avro", schema=RECORD % '{"type": "map", "values": "long"}')
JSON, CBOR, JAVA = serializer_for("json"), serializer_for("cbor"), serializer_for("java")


def column_of(rows: list[bytes], kind: pa.DataType) -> pa.Array:
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int32 if kind == pa.string() else np.int64)
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(rows))])


def one_each(values: pa.Array) -> pa.Array:
    return pa.array(range(len(values) + 1), pa.int32())


def in_field(values: pa.Array, name: str = "v") -> pa.Array:
    return pa.StructArray.from_arrays([values], [name])


def in_lists(values: pa.Array, name: str = "v") -> pa.Array:
    return in_field(pa.ListArray.from_arrays(one_each(values), values), name)


def as_keys(values: pa.Array, name: str = "v") -> pa.Array:
    return in_field(pa.MapArray.from_arrays(one_each(values), values, pa.array([1] * len(values))), name)


def in_dictionary(values: pa.Array) -> pa.Array:
    return in_field(pa.DictionaryArray.from_arrays(one_each(values)[:-1], values))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(("rows", "bad"), ROWS)
@pytest.mark.parametrize(
    ("serializer", "placed", "path"),
    [
        (JSON, lambda values: values, "$"),
        (JSON, in_field, "$.v"),
        (JSON, in_lists, "$.v[]"),
        (JSON, as_keys, "$.v{}"),
        (JSON, in_dictionary, "$.v"),
        (TEXT, in_field, "$.v"),
        (COUNTS, as_keys, "$.v{}"),
        (ALL, lambda values: in_field(values, "text"), "$.text"),
        (ALL, lambda values: in_lists(values, "r_text"), "$.r_text[]"),
        (ALL, lambda values: as_keys(values, "m_text"), "$.m_text{}"),
        (JAVA, lambda values: values, "$"),
        (CBOR, in_field, "$.v"),
    ],
)
def test_no_format_writes_other_bytes_as_text(
    serializer: Any, placed: Callable[[pa.Array], pa.Array], path: str, rows: list[bytes], bad: int, kind: pa.DataType
) -> None:
    with pytest.raises(SerializationError, match=rf"row {bad}: a text is not UTF-8 \(field ") as raised:
        serializer.encode_column(placed(column_of(rows, kind)))
    assert raised.value.field_path == path


@pytest.mark.parametrize(("rows", "bad"), ROWS)
def test_no_key_of_other_bytes_has_a_place(rows: list[bytes], bad: int) -> None:
    with pytest.raises(SerializationError, match=rf"row {bad}: the routing key is not UTF-8"):
        segment_keys(column_of(rows, pa.string()))
    keys = pa.DictionaryArray.from_arrays(pa.array([None, *range(bad + 1)]), column_of(rows, pa.string()))
    with pytest.raises(SerializationError, match=rf"row {bad + 1}: the routing key is not UTF-8"):
        segment_keys(keys)
    assert len(segment_keys(keys[: bad + 1])) == bad + 1


def test_only_the_texts_of_the_rows_count() -> None:
    bad, good = column_of([b"\xff"], pa.string()), pa.array(["ü", None, "x"])
    texts = pa.concat_arrays([bad, good, bad])[1:-1]
    assert first_not_utf8(texts) is None
    under_a_null = pa.Array.from_buffers(pa.string(), 1, [pa.py_buffer(b"\0"), *bad.buffers()[1:]])
    assert first_not_utf8(under_a_null) is None
    for placed in (in_field, in_lists, as_keys, in_dictionary):
        column = placed(pa.concat_arrays([bad, pa.array(["ü", "x"])]))
        check = write_check(column.type)
        assert check is not None
        assert check(column) is not None
        assert check(column[1:]) is None


@pytest.mark.parametrize("placed", [in_field, in_lists, as_keys, in_dictionary])
def test_views_are_written_as_plain_texts(placed: Callable[[pa.Array], pa.Array]) -> None:
    texts = pa.array([f"text {number}" for number in range(200)])
    plain, views = (placed(column).flatten()[0] for column in (texts, texts.cast(pa.string_view())))
    absent = pa.array([number == 7 for number in range(200)])
    rows, same = (pa.StructArray.from_arrays([each], ["v"], mask=absent) for each in (views, plain))
    for serializer in (JSON, CBOR):
        assert serializer.encode_column(rows).equals(serializer.encode_column(same))
    with pytest.raises(SerializationError, match=r"row 1: a text is not UTF-8"):
        JSON.encode_column(pa.array([b"a", b"\xff"], pa.binary_view()).view(pa.string_view()))


def test_types_without_texts_and_maps_have_no_check() -> None:
    inside = [pa.list_(pa.int32()), pa.binary(), pa.dictionary(pa.int32(), pa.binary())]
    assert write_check(pa.struct([(str(kind), kind) for kind in inside])) is None

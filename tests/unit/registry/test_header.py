"""The five bytes before every registry event, by row and by column."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import DeserializationError, SchemaError
from pravega_serde.registry.header import HEADER_SIZE, HeaderColumn, header_of, read_header, with_header

IDS = st.integers(0, 2**31 - 1)


def test_a_header_is_what_java_writes() -> None:
    assert header_of(0).hex() == "0100000000"
    assert header_of(2**31 - 1).hex() == "017fffffff"


@given(IDS, st.binary(max_size=20))
def test_an_id_is_read_again(encoding_id: int, payload: bytes) -> None:
    assert read_header(header_of(encoding_id) + payload) == encoding_id


@pytest.mark.parametrize("event", [b"", b"\x01", b"\x01\0\0\0", b"\x02\0\0\0\0", b"{}   ", b"\x01\xff\xff\xff\xff"])
def test_what_is_no_header_is_bad_data(event: bytes) -> None:
    with pytest.raises(DeserializationError, match="header"):
        read_header(event)
    assert HeaderColumn.of(pa.array([event])).bad.tolist() == [0]


EVENTS = st.lists(
    st.one_of(
        st.none(),
        st.binary(max_size=8),
        st.builds(lambda i, payload: header_of(i) + payload, st.integers(0, 3), st.binary(max_size=9)),
        st.builds(header_of, IDS),
    ),
    max_size=30,
)


@given(EVENTS, st.integers(0, 5), st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]))
def test_a_columns_headers_are_the_rows(events: list[bytes | None], skipped: int, kind: pa.DataType) -> None:
    column = pa.array([b"\x01\0\0\0\x07?"] * skipped + events, kind).slice(skipped)
    headers = HeaderColumn.of(column)
    found: dict[int, tuple[int, bytes]] = {}
    for encoding_id, rows in headers.groups():
        payloads = headers.payloads(rows).to_pylist()
        assert rows.tolist() == sorted(rows.tolist())
        found |= {row: (encoding_id, payload) for row, payload in zip(rows.tolist(), payloads, strict=True)}
    for row, event in enumerate(events):
        if event is None:
            assert row not in found
            assert row not in headers.bad
            continue
        try:
            expected = read_header(event), event[HEADER_SIZE:]
        except DeserializationError:
            assert row in headers.bad
        else:
            assert found.pop(row) == expected
    assert found == {}


def test_groups_are_in_the_order_of_ids() -> None:
    ids = np.random.default_rng(1).integers(0, 5, 1000).tolist()
    headers = HeaderColumn.of(pa.array([header_of(i) for i in ids]))
    assert [encoding_id for encoding_id, _ in headers.groups()] == sorted(set(ids))
    assert sum(len(rows) for _, rows in headers.groups()) == 1000
    assert HeaderColumn.of(pa.array([], pa.binary())).groups() == []


def test_only_binary_columns_hold_events() -> None:
    with pytest.raises(SchemaError, match="cannot contain events"):
        HeaderColumn.of(pa.array([1, 2]))


def test_payloads_get_one_header() -> None:
    column = with_header(header_of(300), pa.array([b"ab", None, b""]))
    assert column.type == pa.binary()
    assert column.to_pylist() == [struct.pack(">bi", 1, 300) + b"ab", None, b"\x01\0\0\x01\x2c"]

"""The header before every registry event, by row and by column."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import DeserializationError, SchemaError
from pravega_serde.registry.header import (
    APICURIO,
    CONFLUENT,
    PRAVEGA,
    Framing,
    HeaderColumn,
    encoding_ids,
    read_header,
    with_header,
)

ALL = (PRAVEGA, CONFLUENT, APICURIO)
IDS = st.integers(1, 2**31 - 1)


@pytest.mark.parametrize(
    ("framing", "first", "last"),
    [
        (PRAVEGA, "0100000001", "017fffffff"),  # AbstractSerializer of Java's registry serializers
        (CONFLUENT, "0000000001", "007fffffff"),
        (APICURIO, "000000000000000001", "00000000007fffffff"),
    ],
)
def test_a_header_is_what_java_writes(framing: Framing, first: str, last: str) -> None:
    assert framing.header(1).hex() == first
    assert framing.header(2**31 - 1).hex() == last


@given(st.sampled_from(ALL), IDS, st.binary(max_size=20))
def test_an_id_is_read_again(framing: Framing, encoding_id: int, payload: bytes) -> None:
    assert read_header(framing.header(encoding_id) + payload, ALL) == (framing, encoding_id)


@pytest.mark.parametrize("event", [b"", b"\x01", b"\x01\0\0\0", b"\x02\0\0\0\0", b"{}   ", b"\x01\xff\xff\xff\xff"])
@pytest.mark.parametrize("framings", [(PRAVEGA,), ALL])
def test_what_is_not_a_header_is_bad_data(event: bytes, framings: tuple[Framing, ...]) -> None:
    with pytest.raises(DeserializationError, match="header"):
        read_header(event, framings)
    assert HeaderColumn.of(pa.array([event]), framings).bad.tolist() == [0]


@pytest.mark.parametrize("event", [b"\0" * 5, b"\0" * 9, b"\0\xff\xff\xff\xff", b"\0\0\0\0\0\x80\0\0\0"])
def test_an_id_that_no_registry_gives_is_bad_data(event: bytes) -> None:
    with pytest.raises(DeserializationError, match="header"):
        read_header(event, ALL)
    assert HeaderColumn.of(pa.array([event, event + b"x"]), ALL).bad.tolist() == [0, 1]


EVENTS = st.lists(
    st.one_of(
        st.none(),
        st.binary(max_size=10),
        st.builds(
            lambda framing, i, payload: framing.header(i) + payload,
            st.sampled_from(ALL),
            st.integers(1, 3),
            st.binary(max_size=9),
        ),
        st.builds(lambda framing, i: framing.header(i), st.sampled_from(ALL), IDS),
    ),
    max_size=30,
)


@given(
    EVENTS,
    st.integers(0, 5),
    st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]),
    st.sampled_from([(PRAVEGA,), (CONFLUENT,), (CONFLUENT, APICURIO), ALL]),
)
def test_a_columns_headers_are_the_rows(
    events: list[bytes | None], skipped: int, kind: pa.DataType, framings: tuple[Framing, ...]
) -> None:
    column = pa.array([b"\x01\0\0\0\x07?"] * skipped + events, kind).slice(skipped)
    headers = HeaderColumn.of(column, framings)
    found: dict[int, tuple[tuple[Framing, int], bytes]] = {}
    for group in headers.groups():
        payloads, rows = headers.payloads(group).to_pylist(), group.rows.tolist()
        assert rows == sorted(rows)
        header = group.framing, group.id
        found |= {row: (header, payload) for row, payload in zip(rows, payloads, strict=True)}
    for row, event in enumerate(events):
        if event is None:
            assert row not in found
            assert row not in headers.bad
            continue
        try:
            expected = read_header(event, framings)
        except DeserializationError:
            assert row in headers.bad
        else:
            assert found.pop(row) == (expected, event[expected[0].size :])
    assert found == {}


def test_groups_are_in_the_order_of_ids() -> None:
    ids = np.random.default_rng(1).integers(0, 5, 1000).tolist()
    headers = HeaderColumn.of(pa.array([PRAVEGA.header(i) for i in ids]))
    assert [group.id for group in headers.groups()] == sorted(set(ids))
    assert sum(len(group.rows) for group in headers.groups()) == 1000
    assert HeaderColumn.of(pa.array([], pa.binary())).groups() == []


def test_encoding_ids_are_of_pravegas_registry() -> None:
    column = pa.array([PRAVEGA.header(3) + b"x", None, CONFLUENT.header(4), b"?"])
    assert encoding_ids(column) == pa.array([3, None, None, None], pa.int32())


def test_only_binary_columns_hold_events() -> None:
    with pytest.raises(SchemaError, match="cannot contain events"):
        HeaderColumn.of(pa.array([1, 2]))


def test_payloads_get_one_header() -> None:
    column = with_header(PRAVEGA.header(300), pa.array([b"ab", None, b""]))
    assert column.type == pa.binary()
    assert column.to_pylist() == [b"\x01\0\0\x01\x2cab", None, b"\x01\0\0\x01\x2c"]

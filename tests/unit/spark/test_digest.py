"""Digests of rows."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.sink._digest import RowDigest

BINARY = pa.binary()
rows = st.lists(st.tuples(st.binary(max_size=6), st.none() | st.text(max_size=3)), max_size=12)


def digest(*batches: list[tuple[bytes, str | None]], kind: pa.DataType = BINARY) -> tuple[str, int, int]:
    result = RowDigest()
    for batch in batches:
        events = pa.array([event for event, _ in batch], pa.binary()).cast(kind)
        result.add(events, pa.array([key for _, key in batch], pa.string()))
    return result.hex(), result.rows, result.bytes


@given(rows, st.integers(0, 12))
def test_batches_make_no_difference(data: list[tuple[bytes, str | None]], cut: int):
    assert digest(data) == digest(data[:cut], data[cut:]) == digest(data, kind=pa.large_binary())


@given(rows, rows)
def test_other_rows_have_another_digest(one: list[tuple[bytes, str | None]], other: list[tuple[bytes, str | None]]):
    assert (digest(one) == digest(other)) is (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(b"ab", None), (b"c", None)], [(b"a", None), (b"bc", None)]),
        ([(b"a", None), (b"b", None)], [(b"b", None), (b"a", None)]),
        ([(b"a", "")], [(b"a", None)]),
        ([(b"a", "k")], [(b"ak", None)]),
    ],
)
def test_what_looks_alike_is_not(one: list[tuple[bytes, str | None]], other: list[tuple[bytes, str | None]]):
    assert digest(one) != digest(other)


def test_a_slice_is_its_rows():
    events, keys = pa.array([b"a", b"bb", b"ccc"], pa.binary()), pa.array(["x", None, "z"])
    sliced = RowDigest()
    sliced.add(events[1:], keys[1:])
    assert sliced.hex() == digest([(b"bb", None), (b"ccc", "z")])[0]


def test_no_keys_are_null_keys():
    without = RowDigest()
    without.add(pa.array([b"a", b"b"], pa.binary()), None)
    assert without.hex() == digest([(b"a", None), (b"b", None)])[0]

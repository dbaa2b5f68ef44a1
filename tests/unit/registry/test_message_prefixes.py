"""Prefixes that name the message type of a Protobuf event, in columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde.errors import DeserializationError
from pravega_serde.registry.message_prefix import MessageIndexes, MessagePrefix, TypeReference, split_column

HEADER = b"\0\0\0\0\7"
KINDS: dict[str, MessagePrefix] = {"indexes": MessageIndexes(), "references": TypeReference()}
MALFORMED = (b"", b"\x80", b"\x01", b"\xff\xff\xff\xff\xff", b"\x7f")


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_the_rows_of_each_prefix(kind: str, data: st.DataObject) -> None:
    """The number of prefixes is often larger than the number of those whose rows are found at once."""
    of = KINDS[kind].of
    prefixes = [of((number, number % 3) if number % 2 else (number,), f"shop.M{number}") for number in range(24)]
    valid = st.tuples(st.sampled_from(prefixes), st.binary(max_size=4)).map(b"".join)
    events = data.draw(st.lists(valid | valid | st.sampled_from(MALFORMED), max_size=80))
    expected: dict[bytes, list[int]] = {}
    malformed = set()
    for row, event in enumerate(events):
        try:
            expected.setdefault(event[: KINDS[kind].size(event)], []).append(row)
        except DeserializationError:
            malformed.add(row)
    column = pa.array([HEADER + event for event in events], pa.binary())
    found, errors = split_column(column, len(HEADER), KINDS[kind])
    assert {prefix: rows.tolist() for prefix, rows in found.items()} == expected
    assert set(errors) == malformed

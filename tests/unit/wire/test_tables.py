"""Records of the controller's own tables."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.wire import StreamName, segment_id
from pravega_connector.wire.internal_records import (
    decode_sealed_lengths,
    metadata_table,
    read_table,
    sealed_key,
    streams_table,
)

# As a server of 0.13 gave it, for two segments that were sealed at 5,200 and 5,800 bytes.
RECORD = bytes.fromhex(
    "000001000000002102"
    "00000000000000000000000000001450"
    "000000000000000100000000000016a8"
)  # fmt: skip


def test_lengths_of_a_real_record():
    assert decode_sealed_lengths(RECORD) == {0: 5200, 1: 5800}


@given(st.binary(max_size=60))
def test_any_other_bytes_are_a_value_error(data: bytes):
    try:
        decode_sealed_lengths(data)
    except ValueError:
        return
    assert data[:2] == b"\0\0"


@pytest.mark.parametrize("at", range(len(RECORD)))
def test_a_record_cut_short_is_a_value_error(at: int):
    with pytest.raises(ValueError, match=r"missing at its end|unknown"):
        decode_sealed_lengths(RECORD[:at])


def test_names():
    some = uuid.UUID(int=7)
    assert streams_table("s", some) == f"_system/_tables/s/streamsInScope.#.{some}"
    assert metadata_table(StreamName("s", "t"), some) == f"_system/_tables/s/t/metadata.#.{some}"
    assert sealed_key(segment_id(5, 999)) == "segmentsSealedSizeMapShard-0"
    assert sealed_key(segment_id(5, 1000)) == "segmentsSealedSizeMapShard-1"
    request = read_table(1, "t", "", "kéy")
    assert request.keys == (("kéy".encode(), -(2**63)),)

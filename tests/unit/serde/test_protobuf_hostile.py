"""Events that are none, padding, and the limits on depth, memory and time."""

import os
import re
import subprocess
import sys
import time as clock
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, LimitExceededError
from pravega_serde.protobuf.wire import MAX_DEPTH
from tests.unit.serde._protobuf import ALL, DOCUMENTS, FLAT, MALFORMED, OLDER, TREE


@pytest.mark.parametrize(("event", "reason", "path"), MALFORMED, ids=[row[0].hex() for row in MALFORMED])
def test_malformed_events_are_named(event: bytes, reason: str, path: str) -> None:
    with pytest.raises(DeserializationError, match=re.escape(reason)) as caught:
        ALL.deserialize(event)
    assert (caught.value.field_path, caught.value.code) == (path, "PRAVEGA-DESERIALIZATION")
    assert "everything.Everything" in str(caught.value)
    assert "\n" not in str(caught.value)
    errors: list[DeserializationError] = []
    good = ALL.serialize({"i32": 5})
    decoded = ALL.decode_column(pa.array([good, event, None, good]), on_error=errors.append)
    assert decoded.is_valid().to_pylist() == [True, False, False, True]
    assert [(error.row, error.field_path, error.reason) for error in errors] == [(1, path, caught.value.reason)]


def test_a_wrong_string_is_found_in_items_that_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pravega_serde.protobuf.columns._ROWS_AT_ONCE", 100)
    good = ALL.serialize({"r_inner": [{"c": "good"}] * 3, "r_i32": [1, 2]})
    wrong = good.replace(b"good", b"go\xffd", 3).replace(b"go\xffd", b"good", 2)
    events = [good] * 99 + [wrong] + [good] * 100
    rows: list[int | None] = []
    values = ALL.decode_column(pa.array(events), on_error=lambda error: rows.append(error.row))
    assert rows == [99]
    assert values.drop_null().to_pylist() == ALL.decode_column(pa.array([good] * 199)).to_pylist()
    assert values[199]["r_inner"].as_py() == ALL.as_dict(ALL.deserialize(good))["r_inner"]


def test_a_wrong_string_is_found_where_another_one_follows() -> None:
    event = b"\x72\x01\xff" + ALL.serialize({"text": "x", "i32": 5})
    for rows in (1, 50):
        errors: list[DeserializationError] = []
        ALL.decode_column(pa.array([event] * rows), on_error=errors.append)
        assert len(errors) == rows


@pytest.mark.parametrize("zeros", [1, 7, 97])
@pytest.mark.parametrize("value", [{"id": 5, "name": "x", "ok": True}, {}, {"name": "\0\0"}])
def test_zero_padding_is_cut_off(zeros: int, value: dict[str, Any]) -> None:
    event = FLAT.serialize(value)
    assert FLAT.serialize(FLAT.deserialize(event + bytes(zeros))) == event
    column = pa.array([event + bytes(zeros), event] * 20)
    assert not len(FLAT.column_reader.fast(column).suspects)
    assert FLAT.encode_column(FLAT.decode_column(column)).to_pylist() == [event] * 40


def test_padding_inside_a_message_is_no_padding() -> None:
    event = ALL.serialize({"inner": {"a": 1}})
    wrong = event[:2] + bytes([event[2] + 2]) + event[3:] + b"\0\0"
    with pytest.raises(DeserializationError, match="invalid field number 0"):
        ALL.deserialize(wrong)
    with pytest.raises(DeserializationError, match="invalid field number 0"):
        ALL.decode_column(pa.array([wrong]))


# Limits


def tree(depth: int) -> bytes:
    event = b""
    for _ in range(depth):
        size = len(event)
        event = b"\x12" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + event
    return event


def test_depth() -> None:
    TREE.deserialize(tree(MAX_DEPTH))
    with pytest.raises(LimitExceededError, match="nested more than 100 levels deep"):
        TREE.deserialize(tree(MAX_DEPTH + 1))


BOMBS = [
    ("r_inner", ALL, b"\xca\x03\x00"),
    ("m_u64", ALL, b"\xfa\x03\x02\x12\x00"),
    ("c_inner", ALL, b"\xca\x04\x00"),
    ("children", TREE, b"\x12\x00"),
    ("named", TREE, b"\x1a\x02\x12\x00"),
    ("values", DOCUMENTS, b"\x22\x00"),
    ("unknown", FLAT, b"\xa2\x06\x00"),
    ("group", OLDER, b"\x2b\x2c"),
    ("flags", ALL, b"\xaa\x03\x80\x80\x04" + bytes(1 << 16)),
    ("levels", ALL, b"\xc2\x03\x80\x80\x04" + b"\x4d" * (1 << 16)),
    ("u64", ALL, b"\xe2\x02\xfc\xff\x3f" + b"\x05" * ((1 << 20) - 4)),
    ("texts", ALL, b"\xb2\x03\x00"),
    ("unpacked", ALL, b"\xd0\x03\x05"),
]


#: Reads each bomb in every way, and prints how far memory grew, in MiB, and the longest time, in seconds.
MEASURE = """
import pyarrow as pa
from pravega_serde import SerdeError
from tests.fuzz._measure import Meter, settle
from tests.unit.serde.test_protobuf_hostile import ALL, BOMBS

ALL.decode_column(pa.array([b""] * 100))
grown = longest = 0.0
for _, serializer, unit in BOMBS:
    event = unit * ((1 << 20) // len(unit))
    for read in (
        lambda: serializer.as_dict(serializer.deserialize(event)),
        lambda: serializer.decode_column(pa.array([event])),
    ):
        settle()
        meter = Meter()
        try:
            read()
        except SerdeError:
            pass
        grown, longest = max(grown, meter.mebibytes()), max(longest, meter.seconds())
print(grown, longest)
"""


@pytest.mark.long
def test_no_event_takes_far_more_memory_than_its_own_size() -> None:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", MEASURE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    grown, longest = map(float, done.stdout.split())
    assert 1 < grown < 64
    assert longest < 5, "a second, with room for busy machines"


def test_an_event_that_expands_too_much_is_refused() -> None:
    with pytest.raises(LimitExceededError, match="values of 1048575 bytes use more than 64 MiB"):
        ALL.column_reader.plain.read(b"\xca\x03\x00" * 349_525)
    errors: list[DeserializationError] = []
    ALL.decode_column(pa.array([b"\xca\x03\x00" * 349_525, b""]), on_error=errors.append)
    assert [(error.row, error.code) for error in errors] == [(0, "PRAVEGA-LIMIT-EXCEEDED")]


def test_large_events_with_content_are_read() -> None:
    value = {"r_inner": [{"a": 1, "b": n, "packed": [n] * 20, "c": "content " * 5} for n in range(5000)]}
    event = ALL.serialize(value)
    assert len(event) > 400_000
    assert len(ALL.decode_column(pa.array([event])).field("r_inner")[0]) == 5000


def test_fields_in_a_hostile_order_take_no_time() -> None:
    event = b"".join(FLAT.serialize({name: 1}) for name in ("ts", "id")) * 20_000
    began = clock.process_time()
    assert FLAT.decode_column(pa.array([event] * 3)).field("id").to_pylist() == [1, 1, 1]
    assert clock.process_time() - began < 5

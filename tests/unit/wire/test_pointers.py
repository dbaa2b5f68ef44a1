"""Event pointers as text and as bytes."""

import pickle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import InvalidPointerError
from pravega_connector.wire import EventPointer, StreamName, segment_id

STREAM = StreamName("s", "t")
# From a reader of Java's client 0.13.0.
JAVA = ("s/t/3.#epoch.2:1234-19", "0000010000000013000e732f742f332e2365706f63682e3244d213")

pointers = st.builds(
    EventPointer,
    st.builds(
        StreamName, st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.from_regex(r"_?[A-Z.]{1,9}", fullmatch=True)
    ),
    st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)),
    st.one_of(st.integers(0, 2**62 - 2), st.sampled_from([63, 64, 2**14 - 1, 2**14, 2**30 - 1, 2**30])),
    st.one_of(st.integers(0, 2**30 - 2), st.sampled_from([127, 128, 2**14 - 1, 2**14])),
)


def test_java_pointers_are_read_and_written():
    text, data = JAVA
    pointer = EventPointer(STREAM, segment_id(3, 2), 1234, 19)
    assert EventPointer.from_text(text) == EventPointer.from_bytes(bytes.fromhex(data)) == pointer
    assert (pointer.to_text(), str(pointer), pointer.to_bytes().hex()) == (text, text, data)


@given(pointers)
def test_both_forms_keep_a_pointer(pointer):
    assert EventPointer.from_text(pointer.to_text()) == pointer
    assert EventPointer.from_bytes(pointer.to_bytes()) == pointer
    assert pickle.loads(pickle.dumps(pointer)) == pointer


@pytest.mark.parametrize(
    "text",
    ["", "s/t/0.#epoch.0", "s/t/0.#epoch.0:5", "s/t/0.#epoch.0:-5-1", "s/t:1-2", "s/t t/0:1-2", None, b"s/t/0:1-2"],
)
def test_refuses_other_texts(text):
    with pytest.raises(InvalidPointerError, match="invalid event pointer"):
        EventPointer.from_text(text)


def test_refuses_other_bytes():
    data = EventPointer(STREAM, 0, 5, 9).to_bytes()
    for wrong in [data[:end] for end in range(len(data))] + [data + b"x", b"\1" + data[1:], b"\0\1" + data[2:]]:
        with pytest.raises(InvalidPointerError, match="invalid event pointer"):
            EventPointer.from_bytes(wrong)


@pytest.mark.parametrize(
    "place", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (2**63, 0, 0), (0, 2**62, 0), (2**31, 0, 0), ("0", 0, 0)]
)
def test_refuses_places_that_no_event_has(place):
    with pytest.raises(InvalidPointerError, match="invalid event pointer"):
        EventPointer(STREAM, *place)


def test_of_a_record():
    row = {"scope": "s", "stream": "t", "segment_id": 4, "offset": 12, "value": 1}
    assert EventPointer.of(row) == EventPointer(STREAM, 4, 12)
    for wrong in ({**row, "scope": "a b"}, {"scope": "s"}, SimpleNamespace(**row), {**row, "offset": None}, 7):
        with pytest.raises(InvalidPointerError, match="invalid event pointer"):
            EventPointer.of(wrong)

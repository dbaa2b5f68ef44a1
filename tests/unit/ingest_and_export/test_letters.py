"""Fields of a dead letter."""

import base64
import json

import numpy as np
import pyarrow as pa

from pravega_connector.client import EventBatch
from pravega_connector.deadletters import LETTER_SCHEMA, SliceReading, letters_of
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.wire import StreamName
from pravega_serde import DeserializationError

STREAM = StreamName("shop", "orders")


def batch(*events):
    sizes = np.array([0, *(len(event) + 8 for event in events[:-1])])
    return EventBatch(STREAM, 7, pa.array(events, pa.binary()), 1000 + np.cumsum(sizes))


def test_letters_come_in_order_one_for_each_row():
    errors = [
        DeserializationError("second", row=2, field_path="$.✓", encoding_id=4),
        DeserializationError("first\nline", row=0),
        DeserializationError("again", row=2),
        DeserializationError("nowhere"),
    ]
    found = list(letters_of(batch(b"\xff\x00", b"good", b""), errors))
    assert [offset for offset, _ in found] == [1000, 1022]
    first, second = (json.loads(letter) for _, letter in found)
    assert list(first) == [field.split()[0] for field in LETTER_SCHEMA.split(", ")]
    assert (first["error"], first["field"], base64.b64decode(first["event"])) == ("first line", None, b"\xff\x00")
    assert (second["error"], second["field"], second["encoding_id"], second["size"]) == ("second", "$.✓", 4, 0)
    assert (second["scope"], second["stream"], second["segment_id"], second["offset"]) == ("shop", "orders", 7, 1022)


def test_an_event_that_makes_a_letter_too_large_is_reported_by_its_place():
    ((_, letter),) = letters_of(batch(bytes(7 << 20)), [DeserializationError("bad", row=0)])
    said = json.loads(letter)
    assert (said["event"], said["size"], said["offset"]) == (None, 7 << 20, 1000)


def test_repetitions_are_the_same_and_others_are_not():
    reading = SliceReading(SegmentSlice(STREAM, 7, 10, 20), "reader")
    same = [reading, SliceReading(SegmentSlice(STREAM, 7, 10, 99), "reader")]
    others = [
        SliceReading(SegmentSlice(STREAM, 7, 11, 20), "reader"),
        SliceReading(SegmentSlice(STREAM, 8, 10, 20), "reader"),
        SliceReading(SegmentSlice(StreamName("shop", "other"), 7, 10, 20), "reader"),
        SliceReading(SegmentSlice(STREAM, 7, 10, 20), "another"),
    ]
    assert len({each.id for each in same}) == 1
    assert len({each.id for each in [reading, *others]}) == 5
    # Letters that exist already were numbered under this very id.
    assert str(reading.id) == "3c1401fa-6a83-5d86-8d45-91e25f259034"

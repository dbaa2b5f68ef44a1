"""Batches of events that are put together before they are decoded."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from pravega_connector.errors import DataLossError
from pravega_connector.reader.slices import EventBatch, joined
from pravega_connector.wire import StreamName
from pravega_serde import serializer_for

STREAM = StreamName("s", "x")
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "items", "type": {"type": "array", "items": "string"}}],
}


def batch(first: int, count: int, segment: int = 0) -> EventBatch:
    events = pa.array([b"%08d" % number for number in range(first, first + count)])
    return EventBatch(STREAM, segment, events, np.arange(first, first + count) * 16)


def numbers(found: EventBatch) -> list[int]:
    assert found.offsets.tolist() == [int(event) * 16 for event in found.events.to_pylist()]
    return [int(event) for event in found.events.to_pylist()]


def test_batches_are_put_together_until_they_are_large_enough():
    size = batch(0, 10).events.nbytes
    found = list(joined([batch(0, 10), batch(10, 10), batch(20, 10), batch(30, 2)], 2 * size))
    assert [numbers(each) for each in found] == [[*range(20)], [*range(20, 32)]]


def test_with_no_size_they_stay_as_they_are():
    given = [batch(0, 3), batch(3, 4)]
    assert list(joined(given, 0)) == given


def test_those_of_two_segments_stay_apart():
    found = list(joined([batch(0, 2), batch(2, 2), batch(4, 2, segment=1)], 1 << 20))
    assert [(each.segment_id, numbers(each)) for each in found] == [(0, [0, 1, 2, 3]), (1, [4, 5])]


def test_what_came_before_an_error_is_handed_on_first():
    def lossy() -> Iterator[EventBatch]:
        yield batch(0, 2)
        yield batch(2, 2)
        raise DataLossError("gone")

    found = joined(lossy(), 1 << 20)
    assert numbers(next(found)) == [0, 1, 2, 3]
    with pytest.raises(DataLossError):
        next(found)


def test_events_with_lists_are_best_read_together():
    assert serializer_for("avro", schema=ORDER).bytes_at_once == 8 << 20
    flat = {**ORDER, "fields": ORDER["fields"][:1]}
    assert serializer_for("avro", schema=flat).bytes_at_once == 0

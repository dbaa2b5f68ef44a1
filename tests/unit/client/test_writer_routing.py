"""Routing keys by router, batches, and columns that are cut to pieces, on a store that works."""

import json
import threading

import numpy as np
import pyarrow as pa
import pytest

from pravega_connector.core.events import pieces_of
from pravega_connector.errors import ColumnTypeError, ConfigError, DeadlineExceededError
from pravega_connector.testing.requests import Append
from pravega_serde import SchemaError, SerializationError, serializer_for
from pravega_serde.routing import ByColumn, ByConstant, ByField, ByFunction, Unrouted, segment_key
from tests.support.fake_stream import FakeSegmentStore, FakeStream

ROWS = [{"n": i, "order": {"customer": f"customer-{i % 17}"}} for i in range(300)]
BATCH = pa.RecordBatch.from_pylist(ROWS)
JSON = serializer_for("json")


@pytest.fixture
def wide(store: FakeSegmentStore) -> FakeStream:
    """A stream of four segments."""
    return FakeStream(store, segments=4)


def events_of(stream, number=0):
    return stream.store.segments[stream.segment(number)].events


def expected(number, key_of=lambda row: row["order"]["customer"]):
    low, high = number / 4, (number + 1) / 4
    return [JSON.serialize(row) for row in ROWS if low <= segment_key(key_of(row)) < high]


def customer(row):
    return row["order"]["customer"]


@pytest.mark.parametrize("as_batch", [False, True])
@pytest.mark.parametrize("router", [ByField("order.customer"), ByFunction(customer)], ids=["field", "function"])
def test_a_router_gives_the_keys_of_values_and_of_batches(wide, router, as_batch):
    with wide.client() as client, client.writer(wide.name, JSON, router=router) as writer:
        if as_batch:
            writer.write_batch(BATCH)
        else:
            for row in ROWS:
                writer.write(row)
    assert [events_of(wide, number) for number in range(4)] == [expected(number) for number in range(4)]
    assert sum(bool(events_of(wide, number)) for number in range(4)) > 1


def test_a_constant_key_is_one_order(wide):
    with wide.client() as client, client.writer(wide.name, JSON, router=ByConstant("k")) as writer:
        writer.write_batch(BATCH)
    assert events_of(wide, int(segment_key("k") * 4)) == [JSON.serialize(row) for row in ROWS]


def test_a_key_given_with_the_event_counts_more_than_the_router(wide):
    with wide.client() as client, client.writer(wide.name, router=ByConstant("k")) as writer:
        writer.write(b"a", "other")
        writer.write_column(pa.array([b"b"]), pa.array(["other"]))
        writer.write(b"c")
    other, own = int(segment_key("other") * 4), int(segment_key("k") * 4)
    assert (other, events_of(wide, other), events_of(wide, own)) == (other, [b"a", b"b"], [b"c"])
    assert other != own


def test_raw_events_are_routed_by_what_is_in_them(wide):
    inside = serializer_for("json", arrow_type=pa.struct([("k", pa.string())]))
    events = [json.dumps({"k": f"key-{i}"}).encode() for i in range(100)]
    with wide.client() as client, client.writer(wide.name, router=ByField("k", inside)) as writer:
        writer.write_column(pa.chunked_array([events[:30], events[30:60]]))
        writer.write_batch(pa.RecordBatch.from_pydict({"event": events[60:]}))
    for number in range(4):
        here = [e for e in events if number / 4 <= segment_key(json.loads(e)["k"]) < (number + 1) / 4]
        assert events_of(wide, number) == here


def test_without_keys_a_batch_stays_together(wide):
    with wide.client() as client, client.writer(wide.name, JSON, router=Unrouted()) as writer:
        writer.write_batch(BATCH)
    assert sorted(len(events_of(wide, number)) for number in range(4)) == [0, 0, 0, 300]


def test_what_cannot_be_routed_or_encoded_is_not_written(client, stream):
    class Single:
        def serialize(self, value):
            return value

    with client.writer(stream.name, JSON, router=ByColumn("nothing")) as writer:
        with pytest.raises(SchemaError, match="nothing"):
            writer.write_batch(BATCH)
        with pytest.raises(SchemaError, match="nothing"):
            writer.write_column(pa.array([b"{}"]))
        with pytest.raises(SerializationError, match="nothing"):
            writer.write({"n": 1})
    with client.writer(stream.name, Single()) as writer, pytest.raises(ConfigError, match=r"Single.*encode_column"):
        writer.write_batch(BATCH)
    with client.writer(stream.name) as writer, pytest.raises(ColumnTypeError, match="no column 'event'"):
        writer.write_batch(BATCH)
    with client.writer(stream.name, JSON) as writer, pytest.raises(ConfigError, match=r"not a Table.*to_batches"):
        writer.write_batch(pa.Table.from_batches([BATCH]))
    assert events_of(stream) == []


# ---------------------------------------------------------------- large columns


@pytest.mark.parametrize(
    ("lengths", "pieces"),
    [
        ([5], [(0, 1)]),
        ([16 << 20], [(0, 1)]),
        ([8 << 20, 8 << 20, 1], [(0, 1), (1, 2), (2, 3)]),
        ([1 << 20] * 20, [(0, 8), (8, 16), (16, 20)]),
        ([20 << 20, 1, 1], [(0, 1), (1, 3)]),
    ],
)
def test_columns_over_16_mib_are_cut_to_8(lengths, pieces):
    assert list(pieces_of(np.array(lengths))) == pieces


def test_a_large_column_is_written_whole_and_in_order(wide):
    events = [b"%07d" % i + bytes(1 << 16) for i in range(300)]  # 18.8 MiB
    keys = [f"key-{i % 29}" for i in range(300)]
    with wide.client() as client, client.writer(wide.name) as writer:
        writer.write_column(pa.array(events), pa.array(keys))
    for number in range(4):
        here = [e for e, k in zip(events, keys, strict=True) if number / 4 <= segment_key(k) < (number + 1) / 4]
        assert events_of(wide, number) == here


def test_a_column_that_is_taken_in_part_says_how_far(client, stream, store):
    go = threading.Event()
    store.on(Append, lambda session, request: go.wait(30) and store.serve(session, request))
    with client.writer(stream.name, timeout=0.3, max_in_flight=8 << 20) as writer:
        with pytest.raises(DeadlineExceededError, match="the writer accepted the first 8 rows of the column"):
            writer.write_column(pa.array([bytes((1 << 20) - 8)] * 20))
        go.set()
        writer.flush(10)
    assert len(events_of(stream)) == 8

"""Rows of a slice and losses on a fake store, which has no tables; and reports when servers fail."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, StreamCut, StreamName
from pravega_connector.errors import ControllerUnavailableError, DataLossError
from pravega_connector.operations.monitoring import stream_lag, survey
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.data_loss import DataLoss
from pravega_connector.spark.source.progress import Progress, PublishedPosition
from pravega_connector.spark.source.readers import read_rows
from pravega_connector.testing.requests import frame
from tests.support.fake_stream import FakeSegmentStore, FakeStream

EVENTS = [b"event %d" % i * (i + 1) for i in range(20)]
FRAMES = [frame(event) for event in EVENTS]


@pytest.fixture
def store() -> Iterator[FakeSegmentStore]:
    with FakeSegmentStore() as store:
        yield store


@pytest.fixture
def stream(store: FakeSegmentStore) -> FakeStream:
    stream = FakeStream(store)
    store.append(stream.segment(0), b"".join(FRAMES))
    return stream


@pytest.fixture
def client(stream: FakeStream) -> Iterator[PravegaClient]:
    with stream.client(timeout=1.0) as client:
        yield client


def end_of(count: int) -> int:
    return sum(map(len, FRAMES[:count]))


def values(client: PravegaClient, piece: SegmentSlice, *, fail: bool, stop: int | None = None) -> list[bytes]:
    options = SourceOptions(path=str(piece.stream), columns=("event",), fail_on_data_loss=fail)
    schema = pa.schema(decoded_fields(options, None))
    rows = read_rows(client, options, schema, None, piece, stop=stop)
    return [event for batch in rows for event in batch.column("event").to_pylist()]


@pytest.mark.parametrize("gone", [0, 1, 7, 19, 20])
def test_a_task_continues_after_the_gap(client, stream, store, gone):
    store.segments[stream.segment(0)].start = end_of(gone)
    piece = SegmentSlice(stream.name, 0, 0, end_of(20))
    assert values(client, piece, fail=False) == EVENTS[gone:]


def test_a_task_that_may_not_says_where_and_how_much(client, stream, store):
    store.segments[stream.segment(0)].start = end_of(9)
    piece = SegmentSlice(stream.name, 0, end_of(2), end_of(20))
    with pytest.raises(DataLossError) as caught:
        values(client, piece, fail=True)
    assert f"segment 0, offset {end_of(2)}: {end_of(9) - end_of(2):,} bytes from there on were" in str(caught.value)


def test_a_gap_before_the_last_event_to_read_is_passed_over(client, stream, store):
    store.segments[stream.segment(0)].start = end_of(3)
    piece = SegmentSlice(stream.name, 0, 0, end_of(20))
    assert values(client, piece, fail=False, stop=end_of(5)) == EVENTS[3:5]


def truncate_away(stream, store) -> None:
    """Scale the stream, and truncate it behind its first segment."""
    stream.head = dict.fromkeys(stream.scale([0], 0.0, 0.5, 1.0), 0)
    del store.segments[stream.segment(0)]


def test_a_segment_that_is_gone_ends_the_task(client, stream, store, caplog):
    truncate_away(stream, store)
    piece = SegmentSlice(stream.name, 0, end_of(2), end_of(20))
    with caplog.at_level(logging.WARNING):
        assert values(client, piece, fail=False) == []
    assert f"{end_of(20) - end_of(2):,} bytes" in caplog.text


def test_an_unreported_length_is_an_unknown_loss(client, stream, store):
    truncate_away(stream, store)
    position = StreamCut(stream.name, {0: end_of(20)})
    (loss,) = survey(client.stores, position).losses
    assert loss.bytes is None
    with pytest.raises(DataLossError, match="an unknown number of bytes"):
        DataLoss(client, fail=True).resume(position)
    tolerant = DataLoss(client, fail=False)
    resumed = tolerant.resume(position)
    assert resumed is not None
    assert set(resumed.positions.values()) == {0}
    tolerant.resume(position)
    assert len(tolerant.losses) == 1, "told once"


def test_what_exists_stays_where_it_is(client, stream):
    position = StreamCut(stream.name, {0: end_of(3)})
    assert DataLoss(client, fail=True).resume(position) is position
    assert stream_lag(client, position).bytes == end_of(20) - end_of(3)
    assert stream.asked["segments_between"] == stream.asked["current_segments"] == 0, (
        "an open segment asks no controller"
    )


class Publisher:
    """A client whose controller is unavailable at first."""

    def __init__(self) -> None:
        self.published: list[StreamCut] = []
        self.fails = True

    def subscriber(self, stream: StreamName, name: str) -> SimpleNamespace:
        def publish(cut: StreamCut) -> None:
            if self.fails:
                raise ControllerUnavailableError("nobody answers")
            self.published.append(cut)

        return SimpleNamespace(publish=publish)


def test_a_position_is_published_later_if_not_now(caplog):
    client, now = Publisher(), [0.0]
    name = StreamName("s", "t")
    cuts = [StreamCut(name, {0: at}) for at in (10, 20)]
    position = PublishedPosition(client, "q", lambda: now[0])
    with caplog.at_level(logging.WARNING):
        position.publish({name: cuts[0]})
        position.publish({name: cuts[0]})
    assert caplog.text.count("was not published") == 1
    client.fails = False
    position.publish({name: cuts[0]})
    assert client.published == [], "not again at once"
    position.publish({name: cuts[1]})
    assert client.published == [cuts[1]], "the next batch does not wait"
    client.fails = True
    position.publish({name: cuts[0]})
    client.fails, now[0] = False, 10.0
    for _ in range(3):
        position.publish({name: cuts[0]})
    assert client.published == [cuts[1], cuts[0]], "once is enough"


def test_the_report_is_fresh_and_never_fails(client, stream, store):
    now = [0.0]
    progress = Progress(client, DataLoss(client, fail=True), lambda: now[0])
    at = {stream.name: StreamCut(stream.name, {0: end_of(3)})}

    def measured(end: Mapping[StreamName, StreamCut]) -> Any:
        progress.measure(end)
        return progress.report()

    assert measured({}) is None
    report = measured(at)
    assert report == {
        "behind": {
            "bytes": end_of(20) - end_of(3),
            "streams": {
                "scope/stream": {"bytes": end_of(20) - end_of(3), "segments": {"0.#epoch.0": end_of(20) - end_of(3)}}
            },
        },
        "streams": {"scope/stream": {"0.#epoch.0": end_of(20)}},
    }
    store.append(stream.segment(0), FRAMES[0])
    assert measured(at) is report
    now[0] = 2.0
    assert measured(at)["behind"]["bytes"] == report["behind"]["bytes"] + len(FRAMES[0])
    store.close()
    client.health.timeout = client.health.failover_timeout = 0.2
    known, now[0] = measured(at), 4.0
    assert measured(at) is known is not None
    assert progress.report("nobody answers") == {**known, "trouble": "nobody answers"}

"""Data loss before a query has read it: by truncation, deletion, retention, and between plan and task."""

import itertools
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import DataLossError, MalformedStreamCutError, StreamNotFoundError
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.readers import PravegaBatchReader, PravegaStreamReader
from pravega_connector.spark.versions import HAS_ADMISSION
from pravega_connector.wire import StreamName
from tests.integration.spark._planning import next_offset

SIZE = 100  # of an event with its header


class Query:
    """Calls readers as Spark does: one plans, others have the tasks; only offsets outlive :meth:`restart`."""

    def __init__(self, config: PravegaConfig, streams: str, **options: str) -> None:
        raw = {"controller": config.controller, "start_stream_cut": "earliest", "columns": "stream,offset,event"}
        self.options = parse_options(SourceOptions, raw | {"stream": streams} | options)
        self.offset: dict | None = None
        self.restart()

    def restart(self, **options: str) -> None:
        if options:
            parsed = parse_options(SourceOptions, {"stream": "s/t", **options})
            self.options = replace(self.options, **{name: getattr(parsed, name) for name in options})
        self.planner = self.new_reader()

    def new_reader(self) -> PravegaStreamReader:
        return PravegaStreamReader(self.options, pa.schema(decoded_fields(self.options, None)), None)

    def plan(self) -> dict:
        if self.offset is None:
            self.offset = self.planner.initialOffset()
        return next_offset(self.planner, json.loads(json.dumps(self.offset)))

    def read(self, end: dict) -> list[bytes]:
        reader = self.new_reader()
        parts = reader.partitions(self.offset, end)
        return [event for part in parts for rows in reader.read(part) for event in rows.column("event").to_pylist()]

    def run(self) -> list[bytes]:
        """All events that there are, batch by batch."""
        events: list[bytes] = []
        while (end := self.plan()) != self.offset:
            events += self.read(end)
            self.offset = end
        return events

    def read_at_once(self) -> list[bytes]:
        """All events of a batch query with the same options."""
        reader = PravegaBatchReader(self.options, pa.schema(decoded_fields(self.options, None)), None)
        parts = reader.partitions()
        return [event for part in parts for rows in reader.read(part) for event in rows.column("event").to_pylist()]

    @property
    def report(self) -> dict:
        """Values in the query's progress."""
        told = self.planner.reportLatestOffset()
        assert told is not None
        return json.loads(json.dumps(told))


@pytest.fixture
def write(client: PravegaClient) -> Callable[..., list[bytes]]:
    """``write(stream, name, count)``: this many events of SIZE bytes with their headers."""

    def write(stream: StreamName, name: str, count: int) -> list[bytes]:
        events = [f"{name}-{i}".encode().ljust(SIZE - 8, b".") for i in range(count)]
        with client.writer(stream) as writer:
            for i, event in enumerate(events):
                writer.write(event, routing_key=str(i))
        return events

    return write


@pytest.fixture
def query(config: PravegaConfig, client: PravegaClient, stream_name: StreamName, write) -> Query:
    """A query of a stream of two segments that has read 40 events and is down."""
    client.create_stream(stream_name, 2)
    query = Query(config, str(stream_name))
    events = write(stream_name, "read", 40)
    assert sorted(query.run()) == sorted(events)
    return query


def scale(client: PravegaClient, stream: StreamName, *bounds: float) -> None:
    current = client.controller.current_segments(stream)
    client.controller.scale_stream(stream, [r.id for r in current], list(itertools.pairwise(bounds)))


def delete(client: PravegaClient, stream: StreamName) -> None:
    client.controller.seal_stream(stream)
    client.controller.delete_stream(stream)


def test_truncation_past_the_checkpoint_is_an_error_with_place_and_amount(client, stream_name, query, write):
    write(stream_name, "lost", 17)
    client.truncate(client.tail(stream_name))
    query.restart()
    lost = {i: at - query.offset["streams"][str(stream_name)][f"{i}.#epoch.0"] for i, at in tail(client, stream_name)}
    with pytest.raises(DataLossError) as caught:
        query.run()
    first = query.offset["streams"][str(stream_name)]["0.#epoch.0"]
    assert f"stream {stream_name}, segment 0, offset {first}: {lost[0]:,} bytes from there on" in str(caught.value)
    assert f"with 1 more segments {17 * SIZE:,} bytes in total" in str(caught.value)
    assert sum(lost.values()) == 17 * SIZE


def tail(client: PravegaClient, stream: StreamName) -> list[tuple[int, int]]:
    return list(client.tail(stream).positions.items())


def test_without_failing_it_continues_at_the_head_and_reports_it(client, stream_name, query, write, caplog):
    write(stream_name, "lost", 17)
    client.truncate(client.tail(stream_name))
    kept = write(stream_name, "kept", 9)
    query.restart(fail_on_data_loss="false")
    with caplog.at_level(logging.WARNING):
        assert sorted(query.run()) == sorted(kept)
    assert query.report["lost"]["bytes"] == 17 * SIZE
    assert {loss["reason"] for loss in query.report["lost"]["segments"]} == {"truncated"}
    assert caplog.text.count("[PRAVEGA-DATA-LOSS]") == len(query.report["lost"]["segments"]) == 2
    assert query.report["behind"] == {
        "bytes": 0,
        "events": 0,
        "streams": {str(stream_name): {"bytes": 0, "events": 0, "segments": {"0.#epoch.0": 0, "1.#epoch.0": 0}}},
    }
    assert query.run() == []  # and the loss is not found again


def test_the_batch_after_a_loss_is_replayed_as_it_was(client, stream_name, query, write):
    write(stream_name, "lost", 17)
    client.truncate(client.tail(stream_name))
    kept = write(stream_name, "kept", 9)
    query.restart(fail_on_data_loss="false")
    end = query.plan()
    write(stream_name, "later", 5)
    query.restart()
    assert sorted(query.read(end)) == sorted(kept)


def test_what_was_truncated_of_a_scaled_stream_is_counted_to_the_byte(client, stream_name, query, write):
    write(stream_name, "lost", 11)
    scale(client, stream_name, 0.0, 0.3, 0.7, 1.0)
    write(stream_name, "lost too", 23)
    scale(client, stream_name, 0.0, 0.5, 1.0)
    write(stream_name, "and this", 7)
    client.truncate(client.tail(stream_name))
    kept = write(stream_name, "kept", 6)
    query.restart()
    with pytest.raises(DataLossError, match=f" {(11 + 23 + 7) * SIZE:,} bytes in total"):
        query.run()
    query.restart(fail_on_data_loss="false")
    assert sorted(query.run()) == sorted(kept)
    assert query.report["lost"]["bytes"] == (11 + 23 + 7) * SIZE


@pytest.mark.parametrize("sealed_when_read", [False, True])
def test_a_segment_that_was_read_to_its_end_is_not_a_loss(client, stream_name, query, write, sealed_when_read):
    if sealed_when_read:
        write(stream_name, "last", 3)
        scale(client, stream_name, 0.0, 0.2, 0.6, 1.0)
        end = query.plan()
        query.read(end)
        query.offset = end
    else:
        scale(client, stream_name, 0.0, 0.2, 0.6, 1.0)
    client.truncate(client.tail(stream_name))
    kept = write(stream_name, "kept", 12)
    query.restart()
    assert sorted(query.run()) == sorted(kept)
    assert "lost" not in query.report


def test_one_segment_read_to_its_end_and_one_not(client, stream_name, query, write):
    """Only unread events are lost, though both streams were truncated."""
    place = query.offset["streams"][str(stream_name)]
    with client.writer(stream_name) as writer:
        writer.write(b".".ljust(SIZE - 8), routing_key="one")
    (grown,) = [i for i, at in tail(client, stream_name) if at != place[f"{i}.#epoch.0"]]
    scale(client, stream_name, 0.0, 0.4, 1.0)
    client.truncate(client.tail(stream_name))
    query.restart()
    with pytest.raises(DataLossError) as caught:
        query.run()
    assert f"segment {grown}, offset {place[f'{grown}.#epoch.0']}: {SIZE} bytes" in str(caught.value)
    assert "more segments" not in str(caught.value)


def test_truncation_while_it_runs(client, stream_name, query, write):
    write(stream_name, "lost", 4)
    client.truncate(client.tail(stream_name))
    with pytest.raises(DataLossError):
        query.plan()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_truncation_between_the_plan_and_the_task(client, stream_name, query, write, fail, caplog):
    query.restart(fail_on_data_loss=fail)
    write(stream_name, "lost", 10)
    cut = client.tail(stream_name)
    kept = write(stream_name, "kept", 10)
    end = query.plan()
    client.truncate(cut)
    if fail == "true":
        with pytest.raises(DataLossError, match=r"segment \d, offset \d+: [\d,]+ bytes from there on were truncated"):
            query.read(end)
        return
    with caplog.at_level(logging.WARNING):
        assert sorted(query.read(end)) == sorted(kept)
    assert caplog.text.count("[PRAVEGA-DATA-LOSS]") == 2


def test_a_segment_that_goes_between_the_plan_and_the_task(client, stream_name, query, write, caplog):
    query.restart(fail_on_data_loss="false")
    write(stream_name, "lost", 10)
    end = query.plan()
    scale(client, stream_name, 0.0, 0.4, 1.0)
    client.truncate(client.tail(stream_name))
    with caplog.at_level(logging.WARNING):
        assert query.read(end) == []
    query.offset = end
    assert query.run() == []
    assert "lost" not in query.report  # all of it was planned, and the tasks have told it
    assert caplog.text.count("[PRAVEGA-DATA-LOSS]") == 2


def test_a_deleted_stream(config, client, stream_name, query, write, caplog):
    other = StreamName(stream_name.scope, "other")
    client.create_stream(other)
    query = Query(config, f"{stream_name},{other}")
    query.run()
    delete(client, stream_name)
    query.restart()
    with pytest.raises(DataLossError, match=f"stream {stream_name}, segment 0, offset .* deleted with the stream"):
        query.run()
    query.restart(fail_on_data_loss="false")
    kept = write(other, "kept", 3)
    with caplog.at_level(logging.WARNING):
        assert sorted(query.run()) == sorted(kept)
    assert {loss["reason"] for loss in query.report["lost"]["segments"]} == {"deleted"}
    again = write(other, "again", 2)
    assert sorted(query.run()) == sorted(again)
    assert caplog.text.count("[PRAVEGA-DATA-LOSS]") == 2
    # It comes back as another stream.
    client.create_stream(stream_name, 1)
    new = write(stream_name, "new", 4)
    assert sorted(query.run()) == sorted(new)


def test_a_stream_that_is_not_there_is_no_loss(config, client, stream_name):
    client.controller.create_scope(stream_name.scope)
    with pytest.raises(StreamNotFoundError):
        Query(config, str(stream_name)).run()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_batch_read_from_a_cut_that_was_truncated(config, client, stream_name, write, fail):
    client.create_stream(stream_name, 2)
    head = client.head(stream_name)
    write(stream_name, "lost", 10)
    scale(client, stream_name, 0.0, 0.4, 1.0)
    write(stream_name, "lost too", 10)
    client.truncate(client.tail(stream_name))
    kept = write(stream_name, "kept", 5)
    raw = {"controller": config.controller, "stream": str(stream_name), "fail_on_data_loss": fail, "columns": "event"}
    options = parse_options(SourceOptions, raw | {"start_stream_cut": head.to_text()})
    reader = PravegaBatchReader(options, pa.schema(decoded_fields(options, None)), None)
    if fail == "true":
        with pytest.raises(DataLossError, match=f"{20 * SIZE:,} bytes in total"):
            reader.partitions()
        return
    events = [e for part in reader.partitions() for rows in reader.read(part) for e in rows.column(0).to_pylist()]
    assert sorted(events) == sorted(kept)


# ---- truncation that passes a fixed end ----


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("scaled", [False, True])
def test_truncation_past_the_end_of_the_query(client, stream_name, query, write, caplog, fail, scaled):
    """Nothing is left to read, and what the query was to read is the loss; what follows its end is none."""
    write(stream_name, "lost", 17)
    end = client.tail(stream_name)
    write(stream_name, "after the end", 5)
    if scaled:
        scale(client, stream_name, 0.0, 0.3, 1.0)
        write(stream_name, "long after the end", 3)
    client.truncate(client.tail(stream_name))
    write(stream_name, "kept", 2)
    query.restart(fail_on_data_loss=fail, end_stream_cut=end.to_text())
    if fail == "true":
        with pytest.raises(DataLossError, match=f"{17 * SIZE:,} bytes in total"):
            query.run()
        return
    with caplog.at_level(logging.WARNING):
        assert query.run() == []
    assert query.report["lost"]["bytes"] == 17 * SIZE
    assert caplog.text.count("[PRAVEGA-DATA-LOSS]") == 2
    query.restart()
    assert query.run() == [], "the next run resumes after its end"


def test_truncation_past_a_part_of_the_end_of_the_query(client, stream_name, query, write):
    """The segments that truncation has not passed are read up to the end."""
    write(stream_name, "before", 20)
    end = client.tail(stream_name)
    write(stream_name, "after the end", 20)
    passed, head = client.tail(stream_name).positions[0], query.offset["streams"][str(stream_name)]["1.#epoch.0"]
    client.truncate(StreamCut(stream_name, {0: passed, 1: head}))
    left = end.positions[1] - head
    query.restart(fail_on_data_loss="false", end_stream_cut=end.to_text())
    assert len(query.run()) == left // SIZE
    query.restart()
    assert query.run() == []


@pytest.mark.parametrize("fail", ["true", "false"])
def test_truncation_while_a_run_to_the_present_end_is_under_way(client, stream_name, query, write, fail):
    query.restart(fail_on_data_loss=fail, max_bytes_per_trigger=4 * SIZE)
    write(stream_name, "lost", 17)
    query.planner.prepareForTriggerAvailableNow()
    end = query.plan()
    read = query.read(end)
    query.offset = end
    client.truncate(client.tail(stream_name))
    write(stream_name, "later", 5)
    client.truncate(client.tail(stream_name))
    if fail == "true":
        with pytest.raises(DataLossError):
            query.run()
        return
    assert query.run() == []
    assert query.report["lost"]["bytes"] == (17 - len(read)) * SIZE


def test_a_query_that_has_reached_its_end_loses_nothing(client, stream_name, query, write):
    write(stream_name, "read", 17)
    query.restart(end_stream_cut=client.tail(stream_name).to_text())
    assert len(query.run()) == 17
    write(stream_name, "after the end", 5)
    client.truncate(client.tail(stream_name))
    query.restart()
    assert query.run() == []


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("of", [Query.run, Query.read_at_once])
def test_a_query_whose_whole_range_was_truncated(config, client, stream_name, query, write, fail, of):
    end = client.tail(stream_name)
    write(stream_name, "after the end", 9)
    client.truncate(client.tail(stream_name))
    late = Query(config, str(stream_name), fail_on_data_loss=fail, end_stream_cut=end.to_text())
    if fail == "true":
        with pytest.raises(DataLossError, match=f"{40 * SIZE:,} bytes in total"):
            of(late)
        return
    assert of(late) == []


def test_an_end_before_the_start_is_an_error_all_the_same(config, client, stream_name, query, write):
    end = client.tail(stream_name)
    write(stream_name, "after the end", 9)
    late = Query(config, str(stream_name), start_stream_cut="latest", end_stream_cut=end.to_text())
    with pytest.raises(MalformedStreamCutError, match="swap them"):
        late.run()


@pytest.mark.parametrize("end", ["", "latest"])
def test_a_stream_that_was_created_again_is_read_from_its_head(config, client, stream_name, query, write, end):
    """Also by a run that ends where the stream ends."""
    delete(client, stream_name)
    client.create_stream(stream_name, 1)
    new = write(stream_name, "new", 4)
    query.restart(fail_on_data_loss="false")
    if end:
        query.planner.prepareForTriggerAvailableNow()
    assert sorted(query.run()) == sorted(new)


def test_through_spark(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, stream_name: StreamName, checkpoint: str, write
):
    """The error reaches the user; without failing, the progress has the loss."""
    client.create_stream(stream_name, 2)
    sink: list[bytes] = []

    def run(**options: str) -> dict:
        reader = spark.readStream.format("pravega").option("controller", config.controller)
        frame = reader.options(**({"start_stream_cut": "earliest"} | options)).load(str(stream_name))
        writer = frame.writeStream.foreachBatch(lambda batch, _: sink.extend(bytes(r.event) for r in batch.collect()))
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        reports = [source["latestOffset"] for p in query.recentProgress for source in json.loads(p.json)["sources"]]
        return reports[-1]

    write(stream_name, "read", 40)
    run()
    write(stream_name, "lost", 17)
    client.truncate(client.tail(stream_name))
    kept = write(stream_name, "kept", 9)
    with pytest.raises(
        StreamingQueryException, match=rf"\[PRAVEGA-DATA-LOSS\] stream {stream_name}, segment 0, offset"
    ):
        run()
    sink.clear()
    report = run(fail_on_data_loss="false")
    assert sorted(sink) == sorted(kept)
    if HAS_ADMISSION:
        assert report["lost"]["bytes"] == 17 * SIZE
        assert report["behind"]["bytes"] == 0
    else:  # Spark has only the offset
        assert "streams" in report
    assert Path(checkpoint, "commits").is_dir()


def test_a_cut_that_covers_a_part_only_is_not_a_position(client, stream_name, query):
    """The offset stays a cut that the server knows, after a loss as well."""
    scale(client, stream_name, 0.0, 0.3, 1.0)
    client.truncate(client.tail(stream_name))
    query.restart(fail_on_data_loss="false")
    query.run()
    positions = query.offset["streams"][str(stream_name)]
    cut = StreamCut(
        stream_name, {int(s.split(".#epoch.")[1]) << 32 | int(s.split(".")[0]): at for s, at in positions.items()}
    )
    assert client.controller.is_cut_valid(cut)

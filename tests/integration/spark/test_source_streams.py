"""Several streams in one query: named, by a pattern, in several scopes; streams that come while it runs."""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.errors import StreamingQueryException

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import ConfigError, DataLossError, StreamNotFoundError
from pravega_connector.exactly_once.batch_commit.state import Ledger
from pravega_connector.operations.ingest import ingest
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.versions import HAS_ADMISSION
from pravega_connector.wire import StreamName
from tests.support.micro_batches import MicroBatches

Fill = Callable[..., StreamName]


@pytest.fixture
def fill(client: PravegaClient, scope: str) -> Fill:
    """``fill(name, count, first=0, segments=2)``: a stream with that many more numbers, each with its own key."""

    def fill(name: str, count: int = 0, first: int = 0, segments: int = 2) -> StreamName:
        stream = StreamName.parse(name) if "/" in name else StreamName(scope, name)
        client.create_stream(stream, segments)
        with client.writer(stream) as writer:
            for n in range(first, first + count):
                writer.write(b"%s %d" % (stream.stream.encode(), n), routing_key=str(n))
        return stream

    return fill


def counted(query: MicroBatches, **options: str) -> Counter[str]:
    """Events by stream, over all batches of a run; every event once."""
    rows = [row for batch in query.run(**options) for row in batch.rows]
    assert len({(row.scope, row.stream, row.event) for row in rows}) == len(rows)
    return Counter(f"{row.scope}/{row.stream}" for row in rows)


@pytest.fixture
def options(config: PravegaConfig) -> dict[str, str]:
    return {"controller": config.controller, "start_stream_cut": "earliest"}


@pytest.mark.parametrize("form", ["{0}, {1}", '["{0}","{1}"]', "['{0}', '{1}']"])
def test_streams_of_two_scopes_by_name(fill, scope, options, form):
    one, two = fill("one", 30), fill(f"{scope}b/two", 50)
    query = MicroBatches()
    assert counted(query, **options, path=form.format(one, two)) == {str(one): 30, str(two): 50}
    fill("one", 5, 30)
    assert counted(query, **options, path=form.format(one, two)) == {str(one): 5}


def test_a_batch_query_reads_all_of_them(spark, fill, scope, config):
    one, two = fill("one", 30), fill(f"{scope}b/two", 50)
    expected = {(one.scope, "one"): 30, (two.scope, "two"): 50}
    reader = spark.read.format("pravega").option("controller", config.controller)
    for frame in (
        reader.load(f"{one}, {two}"),
        reader.load([str(one), str(two)]),
        reader.option("stream_pattern", f"{scope}*/*").load(),
    ):
        assert Counter((row.scope, row.stream) for row in frame.collect()) == expected


@pytest.mark.parametrize(
    ("pattern", "more", "expected"),
    [
        ("orders-*", {"scope": "{0}"}, {"{0}/orders-a", "{0}/orders-b"}),
        ("orders-*", {"scope": "{0},{0}x"}, {"{0}/orders-a", "{0}/orders-b", "{0}x/orders-c"}),
        ("{0}x/*, {0}/*-b", {}, {"{0}x/orders-c", "{0}/orders-b"}),
        ("{0}*/orders-[ac]", {}, {"{0}/orders-a", "{0}x/orders-c"}),
        pytest.param("regex:{0}x?/orders-(a|c)", {}, {"{0}/orders-a", "{0}x/orders-c"}, marks=pytest.mark.long),
        ("{0}/*", {}, {"{0}/orders-a", "{0}/orders-b", "{0}/other", "{0}/some-ledger"}),
    ],
)
def test_patterns(fill, client, scope, options, pattern, more, expected):
    for name in ("orders-a", "orders-b", "other", f"{scope}x/orders-c", "some-ledger"):
        fill(name, 3, segments=1)
    fill("orders-a-ledger", 3, segments=1)  # next to its target: an exactly-once sink's
    more = {name: value.format(scope) for name, value in more.items()}
    found = counted(MicroBatches(), **options, stream_pattern=pattern.format(scope), **more)
    assert set(found) == {each.format(scope) for each in expected}
    assert set(found.values()) == {3}


def test_streams_are_chosen_by_tag(client, fill, scope, options):
    """A new stream with the tag is read from its head; one that loses the tag keeps its position."""
    one, other, elsewhere = fill("one", 3), fill("other", 5), fill(f"{scope}b/one", 7)
    for stream in (one, elsewhere):
        client.update_stream(stream, tags=["sales", "new york"])
    query, sales = MicroBatches(), options | {"stream_pattern": "tag:sales", "scope": scope}
    assert counted(query, **sales) == {str(one): 3}
    both = options | {"stream_pattern": "tag:new york", "scope": f"{scope}, {scope}b"}
    assert counted(MicroBatches(), **both) == {str(one): 3, str(elsewhere): 7}
    assert counted(MicroBatches(), **options, stream_pattern="tag:none") == {}
    client.update_stream(other, tags=["sales"])
    client.update_stream(one, tags=[])
    fill("one", 2, 10)
    assert counted(query, **sales) == {str(other): 5}
    client.update_stream(one, tags=["sales"])
    assert counted(query, **sales) == {str(one): 2}
    fill("one", 1, 20)
    client.delete_stream(one)
    with pytest.raises(DataLossError, match=f"stream {one}"):
        counted(query, **sales)


def test_the_projects_own_state_is_not_an_event(client, fill, scope, options, tmp_path):
    """Ledgers, ingestion states and group positions match a pattern by their names, and are left out by their tag."""
    orders, dropped = fill("orders", 3, segments=1), fill("dropped", 0, segments=1)
    query = MicroBatches()
    options |= {"stream_pattern": f"{scope}/*"}
    assert counted(query, **options) == {str(orders): 3}
    for name in ("a-name-of-its-own", "dropped-ledger"):
        with Ledger(client.stores, StreamName(scope, name)):
            pass
    client.delete_stream(dropped)
    file = tmp_path / "lines.jsonl"
    file.write_text('{"n": 1}\n')
    ingest(file, orders, client=client)
    with client.reader_group(f"{scope}/group", [orders]) as group, group.exactly_once("reader", to=orders):
        pass
    state = {"a-name-of-its-own", "dropped-ledger", "orders-ingest", "group-positions"}
    assert {name.stream for name in client.controller.list_streams(scope, tag=STATE_TAG)} == state
    assert counted(query, **options, fail_on_data_loss="false") == {str(orders): 1}
    assert counted(MicroBatches(), **options) == {str(orders): 4}
    named = options | {"stream_pattern": f"{scope}/orders*, {scope}/orders-ingest"}
    assert counted(MicroBatches(), **named).keys() == {str(orders), f"{scope}/orders-ingest"}
    client.update_stream(f"{scope}/orders-ingest", tags=["all", STATE_TAG])
    client.update_stream(orders, tags=["all"])
    assert counted(MicroBatches(), **options | {"stream_pattern": "tag:all", "scope": scope}) == {str(orders): 4}


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("others", [True, False])
def test_a_stream_of_a_pattern_that_was_deleted_is_a_loss(client, fill, scope, options, fail, others):
    """The stream had five unread events; ``others`` is whether another stream still matches."""
    gone = fill("orders-a", 10)
    options |= {"stream_pattern": f"{scope}/orders-*", "fail_on_data_loss": fail}
    query = MicroBatches()
    assert counted(query, **options) == {str(gone): 10}
    fill("orders-a", 5, 10)
    client.delete_stream(gone)
    if others:
        fill("orders-b", 3)
    if fail == "true":
        with pytest.raises(DataLossError, match=f"stream {gone}, segment 0, offset .* deleted with the stream"):
            counted(query, **options)
        return
    assert counted(query, **options) == ({f"{scope}/orders-b": 3} if others else {})
    assert counted(query, **options) == {}
    fill("orders-a", 2)
    assert counted(query, **options) == {str(gone): 2}


def test_streams_of_a_pattern_that_were_all_deleted_are_in_the_progress(client, fill, scope, options, caplog):
    gone = fill("orders-a", 10)
    options |= {"stream_pattern": f"{scope}/orders-*", "fail_on_data_loss": "false"}
    query = MicroBatches()
    assert counted(query, **options) == {str(gone): 10}
    client.delete_stream(gone)
    source = PravegaDataSource(options)
    reader = source.streamReader(source.schema())
    end = json.loads(query.offsets[-1])
    with caplog.at_level(logging.WARNING):
        assert reader.latestOffset(end) == end
    report = reader.reportLatestOffset()
    assert report is not None
    assert {loss["reason"] for loss in report["lost"]["segments"]} == {"deleted"}
    assert f"[PRAVEGA-DATA-LOSS] stream {gone}" in caplog.text


def test_a_deleted_stream_of_a_pattern_through_spark(spark, client, fill, scope, config, checkpoint):
    fill("orders-a", 10)
    fill("orders-b", 3)
    sink: list[str] = []

    def run(**options: str) -> list[dict]:
        reader = spark.readStream.format("pravega").option("controller", config.controller)
        frame = reader.options(start_stream_cut="earliest", stream_pattern=f"{scope}/orders-*", **options).load()
        writer = frame.writeStream.foreachBatch(lambda batch, _: sink.extend(row.stream for row in batch.collect()))
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        return [source["latestOffset"] for p in query.recentProgress for source in json.loads(p.json)["sources"]]

    run()
    assert Counter(sink) == {"orders-a": 10, "orders-b": 3}
    fill("orders-a", 5, 10)
    fill("orders-b", 2, 10)
    client.delete_stream(f"{scope}/orders-a")
    with pytest.raises(StreamingQueryException, match=rf"\[PRAVEGA-DATA-LOSS\] stream {scope}/orders-a"):
        run()
    sink.clear()
    reports = run(fail_on_data_loss="false")
    assert Counter(sink) == {"orders-b": 2}
    if HAS_ADMISSION:  # an older Spark has only the offset in its progress
        assert {loss["stream"] for loss in reports[-1]["lost"]["segments"]} == {f"{scope}/orders-a"}


def test_streams_that_come_later_are_read_from_their_head(fill, client, scope, options):
    fill("orders-a", 10)
    query = MicroBatches()
    options = options | {"stream_pattern": f"{scope}/orders-*"}
    assert counted(query, **options) == {f"{scope}/orders-a": 10}
    late = fill("orders-b", 10)
    client.truncate(client.tail(late))
    fill("orders-b", 7, 10)
    fill("orders-a", 2, 10)
    assert counted(query, **options) == {f"{scope}/orders-a": 2, str(late): 7}
    assert json.loads(query.offsets[1])["from"].keys() == {str(late)}
    assert counted(query, **options) == {}


def test_a_running_query_finds_them_at_the_interval(fill, scope, options):
    fill("orders-a", 10)
    query = MicroBatches()
    options = options | {"stream_pattern": f"{scope}/orders-*", "discovery_interval_ms": "100"}
    seen = Counter[str]()
    for batch in query.run(available_now=False, **options):
        seen.update(row.stream for row in batch.rows)
        if len(seen) < 4:  # a new one after each batch, which is found before the next one is planned
            fill(f"orders-{len(seen)}", 5)
            time.sleep(0.11)  # the interval passes: there is nothing else to await
    assert seen == {"orders-a": 10, "orders-1": 5, "orders-2": 5, "orders-3": 5}


def test_an_available_now_run_ends_though_streams_keep_coming(fill, scope, options):
    fill("orders-a", 10)
    query = MicroBatches()
    options = options | {"stream_pattern": f"{scope}/orders-*", "discovery_interval_ms": "100"}
    for number, batch in enumerate(query.run(**options, max_rows_per_trigger="2")):
        assert {row.stream for row in batch.rows} == {"orders-a"}
        fill(f"orders-{number}", 1)
        fill("orders-a", 1, 100 + number)
    assert query.committed == 5
    assert sum(counted(query, **options).values()) == 10


def test_a_stream_that_is_not_named_any_more_keeps_its_position(fill, options):
    one, two = fill("one", 10), fill("two", 10)
    query = MicroBatches()
    both = f"{one},{two}"
    assert counted(query, **options, path=both) == {str(one): 10, str(two): 10}
    fill("one", 5, 10)
    fill("two", 5, 10)
    assert counted(query, **options, path=str(one)) == {str(one): 5}
    assert counted(query, **options, path=both) == {str(two): 5}


def test_says_what_is_wrong(fill, scope, options):
    one = fill("one", 1)
    with pytest.raises(StreamNotFoundError, match="nowhere"):
        PravegaDataSource({**options, "path": f"{one},{scope}/nowhere"}).schema()
    with pytest.raises(ConfigError, match="set only one"):
        counted(MicroBatches(), **options, path=str(one), stream_pattern="*")
    with pytest.raises(ConfigError, match="different streams"):
        counted(MicroBatches(), **options, path=f"{one},{scope}/two", stream=str(one))
    with pytest.raises(ConfigError, match="no scope"):
        counted(MicroBatches(), **options, stream_pattern="one*")
    with pytest.raises(ConfigError, match="invalid regular expression"):
        counted(MicroBatches(), **options, stream_pattern="regex:(")
    query, other = MicroBatches(), fill("other", 1)
    counted(query, **options, path=str(one))
    with pytest.raises(ConfigError, match="another stream"):
        counted(query, **options, path=str(other))


def test_formats_give_the_same_columns_for_all_streams(spark, client, fill, config):
    names = [fill("one"), fill("two")]
    for name in names:
        with client.writer(name) as writer:
            writer.write(b'{"id": 1, "item": "tea"}')
    reader = spark.read.format("pravega").option("controller", config.controller).option("format", "json")
    rows = (
        reader.option("columns", "stream")
        .schema("id BIGINT, item STRING, stream STRING")
        .load(",".join(map(str, names)))
    )
    assert sorted(map(tuple, rows.collect())) == [(1, "tea", "one"), (1, "tea", "two")]

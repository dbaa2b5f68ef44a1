"""Events that cannot be decoded: each once in a stream or in files, through repetitions and kills."""

import base64
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import EventPointer, PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.deadletters import LETTER_SCHEMA
from pravega_connector.wire import StreamName
from tests.integration.spark.test_streaming import forget_batch

COUNT = 600
Letters = Callable[[], list[dict[str, object]]]


def event(number: int) -> bytes:
    """Every third cannot be decoded; one of those is not a text, either."""
    if number % 3:
        return b'{"n": %d}' % number
    return b'{"n": "%d"}' % number if number % 2 else b"\xff%d" % number


GOOD = [number for number in range(COUNT) if number % 3]
BAD = [event(number) for number in range(COUNT) if number % 3 == 0]


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name, 2)
    client.create_stream(StreamName(stream_name.scope, "letters"), 3)
    with client.writer(stream_name) as writer:
        for number in range(COUNT):
            writer.write(event(number), routing_key=str(number % 20))
    return stream_name


@pytest.fixture(params=["stream", "path"])
def box(
    request: pytest.FixtureRequest, client: PravegaClient, stream: StreamName, tmp_path: Path
) -> tuple[dict[str, str], Letters]:
    """(options, what the letters say), for both places that letters can go to."""
    folder = tmp_path / "letters"

    def lines() -> list[bytes]:
        if request.param == "stream":
            return list(client.read(StreamName(stream.scope, "letters")))
        assert not [path.name for path in folder.iterdir() if path.suffix != ".jsonl"]
        files = sorted(folder.iterdir(), key=lambda path: int(path.name.split("-")[2]))  # by where the slices begin
        return [line for path in files for line in path.read_bytes().splitlines()]

    options = {"dead_letter_stream": "letters"} if request.param == "stream" else {"dead_letter_path": str(folder)}
    return options, lambda: [json.loads(line) for line in lines()]


@pytest.fixture(params=["python", "jvm"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    return spark if request.param == "python" else request.getfixturevalue("jvm_session")


@pytest.fixture
def options(
    request: pytest.FixtureRequest, session: SparkSession, config: PravegaConfig, box: tuple[dict[str, str], Letters]
) -> dict[str, str]:
    reader = "python" if session is request.getfixturevalue("spark") else "jvm"
    return {"controller": config.controller, "format": "json", "raw_reader": reader, **box[0]}


@pytest.fixture
def load(session: SparkSession, stream: StreamName, options: dict[str, str]) -> Callable[..., DataFrame]:
    def load(schema: str = "n INT", **more: str) -> DataFrame:
        return session.read.format("pravega").options(**(options | more)).schema(schema).load(str(stream))

    return load


@pytest.fixture
def each_once(client: PravegaClient, stream: StreamName, box: tuple[dict[str, str], Letters]) -> Callable[[], None]:
    """Check that there is a letter for each bad event, which tells its place."""

    def check() -> None:
        letters = box[1]()
        assert sorted(base64.b64decode(str(letter["event"])) for letter in letters) == sorted(BAD)
        places = {
            (batch.segment_id, int(offset)): value
            for batch in client.read_columns(stream)
            for offset, value in zip(batch.offsets, batch.events.to_pylist(), strict=True)
        }
        for letter in letters:
            found = places[letter["segment_id"], letter["offset"]]
            assert (base64.b64decode(str(letter["event"])), letter["size"]) == (found, len(found))
            assert (letter["scope"], letter["stream"]) == (stream.scope, stream.stream)
            assert letter["code"] == "PRAVEGA-DESERIALIZATION"
        assert {letter["field"] for letter in letters} == {None, "$.n"}
        for segment in {letter["segment_id"] for letter in letters}:
            own = [letter["offset"] for letter in letters if letter["segment_id"] == segment]
            assert own == sorted(own)

    return check


def test_a_batch_continues_without_the_bad_ones_however_often_it_is_read(load, each_once):
    assert sorted(row.n for row in load().collect()) == GOOD
    assert load().where("n >= 0").count() == len(GOOD)
    each_once()


def test_an_event_too_large_for_a_letter_is_fetched_at_its_pointer(load, box, client, stream):
    large = b"\xff" * (7 << 20)
    client.write(stream, large)
    assert load().count() == len(GOOD)
    (letter,) = [letter for letter in box[1]() if letter["event"] is None]
    assert letter["size"] == len(large)
    assert client.fetch(EventPointer.of(letter)) == large
    rows = load(
        "n INT, scope STRING, stream STRING, segment_id BIGINT, offset BIGINT", columns="scope,stream,segment_id,offset"
    ).collect()
    found = client.fetch_all(map(EventPointer.of, rows), "json")
    assert [row.n for row in rows] == [event["n"] for event in found]


def test_permissive_rows_and_letters(load, each_once):
    rows = load("n INT, _corrupt_record BINARY", mode="PERMISSIVE").collect()
    assert sorted(row.n for row in rows if row.n is not None) == GOOD
    assert sorted(row._corrupt_record for row in rows if row._corrupt_record is not None) == sorted(BAD)
    each_once()


@pytest.mark.parametrize("more", [{}, {"min_partitions": "2"}], ids=["one task", "several"])
def test_a_task_that_is_tried_again(load, each_once, tmp_path, more):
    failed = tmp_path / "failed"
    failed.mkdir()

    def fail_once(batches):
        rows = sum(batch.num_rows for batch in batches)
        context = TaskContext.get()
        if context.attemptNumber() == 0:
            (failed / str(context.partitionId())).touch()
            raise RuntimeError("the first attempt fails when all was read")
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    assert sum(row.rows for row in load(**more).mapInArrow(fail_once, "rows BIGINT").collect()) == len(GOOD)
    assert (len(os.listdir(failed)) > 1) is bool(more)
    each_once()


@pytest.fixture
def query(
    session: SparkSession, stream: StreamName, options: dict[str, str], checkpoint: str
) -> Callable[[], list[int]]:
    """Run the query until it has all, in batches of 200; the numbers that it gave in this run."""

    def run() -> list[int]:
        found: list[int] = []
        reader = session.readStream.format("pravega").options(
            **options, start_stream_cut="earliest", max_rows_per_trigger="200"
        )
        started = (
            reader.schema("n INT")
            .load(str(stream))
            .writeStream.foreachBatch(lambda frame, _: found.extend(row.n for row in frame.collect()))
            .trigger(availableNow=True)
            .start(checkpointLocation=checkpoint)
        )
        assert started.awaitTermination(120)
        return sorted(found)

    return run


def test_a_batch_that_is_replayed(query, each_once, checkpoint):
    assert query() == GOOD
    each_once()
    forget_batch(checkpoint, 2)
    assert 0 < len(query()) < len(GOOD), "a batch was replayed"
    each_once()


# Runs the query below and kills itself when the tasks of batch 1 are done.
KILLED = """
import os, sys
from pyspark.sql import SparkSession
from pravega_connector.spark.data_source import PravegaDataSource
stream, checkpoint, options = sys.argv[1], sys.argv[2], dict(pair.split("=", 1) for pair in sys.argv[3:])
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.log.level", "OFF").getOrCreate())
if options["raw_reader"] == "jvm":
    from pyspark_pravega import configure
    configure(spark)
else:
    spark.dataSource.register(PravegaDataSource)
def each(frame, batch):
    print(batch, frame.count(), flush=True)
    if batch == 1:
        os.kill(os.getpid(), 9)
(spark.readStream.format("pravega").options(**options, start_stream_cut="earliest", max_rows_per_trigger="200")
 .schema("n INT").load(stream).writeStream.foreachBatch(each).trigger(availableNow=True)
 .start(checkpointLocation=checkpoint).awaitTermination())
"""


@pytest.mark.long
@pytest.mark.parametrize("box", ["stream"], indirect=True)
@pytest.mark.timeout(600)  # its own Spark takes its time on a machine that has other work
def test_a_driver_that_is_killed(query, each_once, box, options, stream, checkpoint, start_python):
    killed = start_python(KILLED, stream, checkpoint, *(f"{name}={value}" for name, value in options.items()))
    output, errors = killed.communicate(timeout=480)
    assert killed.returncode == -signal.SIGKILL, errors
    assert [line.split()[0] for line in output.splitlines()] == ["0", "1"]
    before = len(box[1]())
    assert 0 < before < len(BAD), "some letters were written before"
    assert 0 < len(query()) < len(GOOD)
    each_once()


# ---------------------------------------------------------------- once, in each kind of store


@pytest.mark.parametrize("box", ["stream"], indirect=True)
def test_letters_are_rows_again(spark, load, config, scope):
    assert load().count() == len(GOOD)
    letters = spark.read.format("pravega").options(controller=config.controller, format="json").schema(LETTER_SCHEMA)
    rows = letters.load(f"{scope}/letters").collect()
    assert sorted(bytes(row.event) for row in rows) == sorted(BAD)
    assert all(row.error and row.code for row in rows)


@pytest.mark.parametrize("box", ["stream"], indirect=True)
def test_the_stream_of_letters_scales_between_two_readings(client, load, each_once, stream):
    assert load().count() == len(GOOD)
    letters = StreamName(stream.scope, "letters")
    for segment in client.controller.current_segments(letters):
        middle = (segment.low + segment.high) / 2
        ranges = [(segment.low, middle), (middle, segment.high)]
        client.controller.scale_stream(letters, [segment.id], ranges)
    assert load().count() == len(GOOD)
    each_once()


@pytest.mark.parametrize("box", ["stream"], indirect=True)
def test_each_reader_finds_the_letters_of_the_other(spark, jvm_session, config, stream, box, each_once):
    for session, reader in (spark, "python"), (jvm_session, "jvm"), (spark, "python"):
        source = session.read.format("pravega").options(controller=config.controller, format="json", raw_reader=reader)
        assert source.options(**box[0]).schema("n INT").load(str(stream)).count() == len(GOOD)
        each_once()


@pytest.mark.parametrize("box", ["stream"], indirect=True)
def test_other_columns_have_their_own_letters(load, box):
    """The columns decide which records are malformed: the numbers of other letters must not count as repetitions."""
    assert load("m INT").count() == COUNT - sum(b"\xff" in value for value in BAD)
    assert load().count() == len(GOOD)
    found = [base64.b64decode(str(letter["event"])) for letter in box[1]()]
    assert sorted(set(found)) == sorted(BAD)


@pytest.mark.parametrize(
    ("box", "more", "said"),
    [
        ("stream", {"dead_letter_stream": "missing"}, "PRAVEGA-STREAM-NOT-FOUND"),
        ("stream", {"dead_letter_stream": "{stream}"}, "would be read again"),
        ("stream", {"dead_letter_path": "/tmp"}, "set only one"),
        ("path", {"dead_letter_path": "/dev/null/folder"}, "PRAVEGA-OUTPUT-FILE"),
    ],
    indirect=["box"],
)
def test_what_cannot_be_is_said_before_the_first_event(load, stream, more, said):
    with pytest.raises(Exception, match=said):
        load(**{name: value.format(stream=stream) for name, value in more.items()}).collect()

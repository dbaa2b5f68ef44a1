"""Arguments of a wrong kind: one line at the call says what it takes, before anything is asked of a server."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper
from pravega_serde import PravegaError
from pravega_serde.json import JsonSerializer

CUT = StreamCut(StreamName("s", "x"), {0: 5})
WRONG = {
    "a text for the controller": (
        lambda c: c.controller.scale_stream("s/x", [0], [(0.0, 1.0)]),
        "take a StreamName, not 's/x': write client.name('s/x')",
    ),
    "a stream by a number": (lambda c: c.writer(5), "a stream must be 'scope/stream' or a StreamName, not 5"),
    "a stream without a scope": (lambda c: c.read("x"), "write 'scope/stream', or set the client's scope"),
    "no stream": (lambda c: c.read([]), "no stream is set"),
    "a stream twice": (lambda c: c.follow(["s/x", "s/x"]), "listed twice"),
    "a serializer by a number": (lambda c: c.writer("s/x", 5), "'json', 'protobuf', 'string') or an object with"),
    "a serializer's class": (lambda c: c.read("s/x", JsonSerializer), "JsonSerializer is a class: pass an instance"),
    "an unknown format": (lambda c: c.read("s/x", "jsn"), "did you mean 'json'?"),
    "a format that needs options": (lambda c: c.read("s/x", "avro"), "format 'avro' requires the option 'schema'"),
    "a cut for a serializer": (lambda c: c.follow("s/x", CUT), "write start=cut"),
    "a start by a number": (lambda c: c.read("s/x", start=5), "argument 'start' must be 'earliest', 'latest'"),
    "a start by a number with a point": (
        lambda c: c.read("s/x", start=1.5),
        "'timestamp:2026-11-21T10:00:00Z', or a list",
    ),
    "a start by a datetime": (
        lambda c: c.read("s/x", start=datetime(2026, 11, 21, 10, tzinfo=UTC)),
        "write 'timestamp:2026-11-21T10:00:00+00:00' (without a zone, the time is UTC)",
    ),
    "a handler of errors by a word": (
        lambda c: c.read_columns("s/x", on_error="null"),
        (
            "argument 'on_error' must be a function that accepts the error of each malformed event (such as "
            "errors.append), not 'null'"
        ),
    ),
    "an unknown place": (lambda c: c.follow("s/x", start="earlyest"), "did you mean 'earliest'?"),
    "an end that is unknown": (lambda c: c.read("s/x", start=CUT, end="unbound"), "did you mean 'unbounded'?"),
    "a time that is none": (
        lambda c: c.read("s/x", start=CUT, end="timestamp:x"),
        "argument 'end' has an invalid time",
    ),
    "a cut of another stream": (lambda c: c.read("s/y", start=CUT), "is of stream s/x, not of s/y"),
    "a limit by a word": (lambda c: c.read("s/x", limit="many"), "argument 'limit' must be a whole number"),
    "a limit below zero": (lambda c: c.read("s/x", limit=-1), "of at least 0, not -1"),
    "a name of Kafka's": (lambda c: c.writer("s/x", value_serializer="string"), "did you mean 'serializer'?"),
    "a misspelt name": (
        lambda c: c.writer("s/x", routr=None),
        "did you mean 'router'?; its arguments: stream, serializer",
    ),
    "a name of another client's": (lambda c: c.create_stream("s/x", partitions=2), "did you mean 'segments'?"),
    "the binding's name": (lambda c: c.create_stream("s/x", num_segments=2), "did you mean 'segments'?"),
    "a name of a tool's": (
        lambda c: c.read("s/x", from_beginning=True),
        "no argument 'from_beginning'; did you mean 'start'",
    ),
    "a name of the options": (lambda c: c.follow("s/x", start_stream_cut="earliest"), "did you mean 'start'?"),
    "a key": (lambda c: c.write("s/x", b"x", key="k"), "did you mean 'routing_key'?"),
    "segments of a table": (lambda c: c.create_table("s/t", primary_key=8, segments=2), "did you mean 'partitions'?"),
    "a misspelt name of a call": (lambda c: c.scale_stream("s/x", segmants=2), "did you mean 'segments'?"),
    "a writer's mode": (lambda c: c.writer("s/x", mode="exactly_once"), "client.transactions(stream, serializer)"),
    "segments by a word": (lambda c: c.create_stream("s/x", "three"), "a number of segments or a ScalingPolicy"),
    "a retention by a number": (lambda c: c.create_stream("s/x", 1, 5), "RetentionPolicy.by_time(ms)"),
    "tags that are none": (lambda c: c.create_stream("s/x", tags=5), "argument 'tags' must be a list of words"),
    "if it exists": (lambda c: c.create_stream("s/x", if_exists="fail"), "'if_exists' must be 'ignore' or 'error'"),
    "if it is missing": (lambda c: c.delete_stream("s/x", if_missing=True), "'if_missing' must be 'ignore' or 'error'"),
    "a change of nothing": (lambda c: c.update_stream("s/x", segment=5), "did you mean 'segments'?"),
    "a number of no segments": (lambda c: c.scale_stream("s/x", 0), "argument 'segments' must be a whole number"),
    "nothing to truncate at": (
        lambda c: c.truncate("s/x"),
        "truncate requires a StreamCut, or a stream and a position",
    ),
    "a lease by a word": (lambda c: c.transactions("s/x", lease="long"), "argument 'lease' must be a positive number"),
    "a transaction by a text": (lambda c: c.transaction("s/x", "id"), "must be a uuid.UUID, not 'id'"),
    "its lease by a word": (lambda c: c.transaction("s/x", uuid.uuid4(), lease="x"), "argument 'lease'"),
    "a subscriber by a number": (lambda c: c.subscriber("s/x", 5), "the name of a subscriber must be a str, not 5"),
    "a time by a word": (lambda c: c.cut_at("s/x", "noon"), "argument 'millis' must be a whole number"),
    "a window of a word": (lambda c: c.time_window("tail"), "argument 'position' must be a StreamCut"),
    "a serializer for one way": (lambda c: c.revisioned("s/x", print), "an object with serialize and deserialize"),
    "no scope": (lambda c: c.streams(), "no scope is set"),
    "pointers by a number": (lambda c: c.fetch_all(5), "argument 'pointers' must be a list or another iterable, not 5"),
}


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    """Servers for ``pravega_client`` and ``pravega_stream``, also if other tests use real ones."""
    with InProcessPravega() as servers:
        yield servers


@pytest.mark.parametrize(("call", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_one_line_that_says_what_is_taken(call, says):
    with PravegaClient("tcp://localhost:1") as client, pytest.raises(PravegaError) as caught:  # no server answers there
        call(client)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None  # a notebook shows each cause with all its places


@pytest.mark.parametrize(
    ("arguments", "named", "says"),
    [
        ((5,), {}, "a controller URI such as 'tcp://localhost:9090' or a PravegaConfig, not a int"),
        ((), {"timeout": "long"}, "argument 'timeout' must be a positive number of seconds, not 'long'"),
        ((), {"failover_timeout": None}, "argument 'failover_timeout' must be a positive number of seconds, not None"),
        ((), {"contoller": "tcp://a"}, "did you mean 'controller'?"),
        (("tcp://a",), {"controller": "tcp://b"}, "the controller is set twice"),
        ((PravegaConfig(),), {"scope": "s"}, "the setting 'scope' belongs to the PravegaConfig"),
    ],
)
def test_a_client_says_what_it_is_made_of(arguments, named, says):
    with pytest.raises(ConfigError, match=r"^\[PRAVEGA-CONFIG\] ") as caught:
        PravegaClient(*arguments, **named)
    assert says in str(caught.value)


def test_a_client_takes_settings_by_name(monkeypatch):
    monkeypatch.setenv("PRAVEGA_SCOPE", "other")
    client = PravegaClient(controller="tcp://a:1", scope="s", username="ann", password="secret")
    assert client.config == PravegaConfig(controller="tcp://a:1", scope="s").with_credentials("ann", "secret")
    assert PravegaClient("tcp://a:1").config == PravegaConfig(controller="tcp://a:1", scope="other")


def test_a_writer_says_what_its_events_and_keys_are(client, stream):
    with client.writer(stream.name) as writer:
        with pytest.raises(
            PravegaError, match="without a serializer, events must be bytes, not str: pass a serializer"
        ):
            writer.write("text")
        with pytest.raises(ConfigError, match=r"write has no argument 'key'; did you mean 'routing_key'\?"):
            writer.write(b"text", key="k")
        with pytest.raises(ConfigError, match="argument 'timeout' must be a number of seconds, not 'long'"):
            writer.flush(timeout="long")
    with pytest.raises(ConfigError, match=r"'router' must be a EventRouter \(ByColumn"):
        client.writer(stream.name, router="name")


#: Call with a client and a stream of one segment, and words of the error.
OF_A_STREAM = {
    "a time as a datetime": (
        lambda c, s: c.writer(s).note_time(datetime(2026, 11, 21, tzinfo=UTC)),
        r"'millis' must be a whole number of milliseconds.*round\(moment.timestamp\(\) \* 1000\)",
    ),
    "no time of a cut": (lambda c, s: c.cut_at(s, None), "'millis' must be a whole number of milliseconds"),
    "no position of a time": (lambda c, s: c.time_window(None), "'position' must be a StreamCut"),
    "the text of a transaction's id": (
        lambda c, s: c.transactions(s).join(str(uuid.uuid4())),
        r"'transaction' must be a UUID \(transaction.id, uuid.UUID\(text\)\)",
    ),
    "an id to keep open": (lambda c, s: LeaseKeeper().add(uuid.uuid4()), "'transaction' must be a Transaction"),
    "an id to keep open no longer": (lambda c, s: LeaseKeeper().discard(uuid.uuid4()), "must be a Transaction"),
    "the text of a revision": (
        lambda c, s: c.revisioned(s, "string").entry_after("test/stream/0:0"),
        r"'revision' must be a Revision .*Revision.parse\(text\)",
    ),
    "a position's name to publish": (lambda c, s: c.subscriber(s, "n").publish("tail"), "'cut' must be a StreamCut"),
    "a list as a column": (
        lambda c, s: c.writer(s).write_column([b"x"]),
        r"pyarrow.Array, not list: pa.array\(events\)",
    ),
    "a list as a column of keys": (
        lambda c, s: c.writer(s).write_column(pa.array([b"x"]), ["k"]),
        r"routing keys must be a pyarrow.Array of strings, not a list: write pyarrow.array\(keys\)",
    ),
    "a table as a column of keys": (
        lambda c, s: c.writer(s).write_column(pa.array([b"x"]), pa.table({"k": ["k"]})),
        "routing keys must be a pyarrow.Array of strings, not a Table",
    ),
    "several events by a number": (lambda c, s: c.writer(s).write_all(5), "'values' must be a list .*, not 5"),
    "several events by one text": (
        lambda c, s: c.writer(s, "string").write_all("abc"),
        "'values' must be a list or another iterable, not 'abc'",
    ),
    "no size of events": (lambda c, s: c.writer(s, max_event_size=None), "'max_event_size' must be a whole number"),
    "no size in flight": (lambda c, s: c.writer(s, max_in_flight=None), "'max_in_flight' must be a whole number"),
    "an offset by a number with a point": (
        lambda c, s: c.byte_writer(s).drop_before(0.5),
        "'offset' must be a whole number of at least 0, not 0.5",
    ),
    "a reader by a number": (lambda c, s: c.reader_group("test/group", s).reader(5), "'reader_id' must be a str"),
    "a failed reader by a number": (
        lambda c, s: c.reader_group("test/group", s).reader_offline([]),
        "'reader_id' must be",
    ),
    "a checkpoint by a number": (lambda c, s: c.reader_group("test/group", s).checkpoint(5), "'name' must be a str"),
    "no number of segments": (lambda c, s: c.scale_stream(s, None), "'segments' must be a whole number"),
    "too many segments": (lambda c, s: c.scale_stream(s, 2**40), "and at most 700000, not 1099511627776"),
    "a size above a long": (
        lambda c, s: c.create_stream("test/b", rollover_size_bytes=2**70),
        "and at most 9223372036",
    ),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("case", OF_A_STREAM)
def test_a_wrong_argument_of_a_stream(pravega_client: PravegaClient, pravega_stream: StreamName, case: str) -> None:
    call, words = OF_A_STREAM[case]
    with pytest.raises(PravegaError, match=words):
        call(pravega_client, pravega_stream)


def test_a_commit_with_a_wrong_time_leaves_the_transaction_open(
    pravega_client: PravegaClient, pravega_stream: StreamName
) -> None:
    transaction = pravega_client.transactions(pravega_stream, "string", writer_id="w").begin()
    transaction.write("one")
    with pytest.raises(ConfigError, match="'timestamp' must be a whole number of milliseconds"):
        transaction.commit(timestamp=1.5)
    transaction.write("two")
    transaction.commit(timestamp=1)
    assert list(pravega_client.read(pravega_stream, "string")) == ["one", "two"]


def test_keys_and_changes_of_a_table_are_lists(pravega_client: PravegaClient) -> None:
    pravega_client.create_table("test/table", primary_key=4)
    table = pravega_client.table("test/table")
    with pytest.raises(ConfigError, match="argument 'keys' must be a list or another iterable, not 5"):
        table.get_all(5)
    with pytest.raises(ConfigError, match="argument 'keys' must be a list or another iterable, not a bytes"):
        table.get_all(b"four")
    with pytest.raises(ConfigError, match="argument 'changes' must be a list or another iterable, not None"):
        table.update(None)


@pytest.mark.parametrize("size", [None, 2**70])
def test_a_wrong_number_of_entries(pravega_client: PravegaClient, size: int | None) -> None:
    pravega_client.create_table("test/table", primary_key=4)
    with pytest.raises(ConfigError, match="'batch_size' must be a whole number"):
        list(pravega_client.table("test/table").entries(batch_size=size))

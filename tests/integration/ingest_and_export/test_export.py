"""Streams as files, and back."""

import base64
import errno
import json
import os
import signal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.client import StreamCut
from pravega_connector.errors import ConfigError, OutputFileError, StreamNotFoundError
from pravega_connector.operations.export import export_stream
from pravega_serde import DeserializationError, serializer_for
from tests.support.small_files import no_file_beyond

EVENTS = [f"event {i} ✓".encode() for i in range(5000)] + [b"", bytes(range(256)), bytes(3 << 20)]
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"], "default": None}],
}


@pytest.fixture
def stream(client, stream_name):
    """Three segments, then four, with EVENTS before and after."""
    client.create_stream(stream_name, 3)
    write(client, stream_name)
    (first, *_) = client.controller.current_segments(stream_name)
    middle = (first.low + first.high) / 2
    client.controller.scale_stream(stream_name, [first.id], [(first.low, middle), (middle, first.high)])
    write(client, stream_name)
    return stream_name


def write(client, stream, events=EVENTS, keys=None):
    with client.writer(stream) as writer:
        keys = pa.array(keys or [str(i % 50) for i in range(len(events))])
        writer.write_column(pa.array(events, pa.large_binary()), keys)


@pytest.fixture
def save(config, tmp_path):
    """``save(stream, "a.parquet", …)``: an export into this test's folder."""

    def save(stream, name, **options):
        return export_stream(str(stream), tmp_path / name, controller=config.controller, **options)

    return save


def read_events(path):
    """The column ``event`` of an exported file, by readers that are not ours."""
    if path.suffix == ".parquet":
        return pq.read_table(path).column("event").to_pylist()
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return [row["event"] for row in fastavro.reader(file)]
    return [base64.b64decode(json.loads(line)["event"]) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", ["a.parquet", "a.avro", "a.jsonl"])
def test_raw_events_come_back_byte_for_byte(client, stream, save, name):
    summary = save(stream, name)
    assert (summary.events, summary.rows, summary.left_out) == (2 * len(EVENTS), 2 * len(EVENTS), 0)
    assert summary.size == summary.path.stat().st_size
    assert os.listdir(summary.path.parent) == [name]
    events = read_events(summary.path)
    assert events == list(client.read(stream))
    again = client.name(f"{stream}-again")
    client.create_stream(again)
    write(client, again, events, ["one"] * len(events))
    assert list(client.read(again)) == events


def test_two_cuts_give_the_same_file_again(client, stream, save):
    whole = save(stream, "a.jsonl")
    write(client, stream)
    same = save(stream, "b.jsonl", start_stream_cut=whole.start.to_text(), end_stream_cut=whole.end.to_text())
    rest = save(stream, "c.jsonl", start_stream_cut=whole.end.to_text())
    assert same.path.read_bytes() == whole.path.read_bytes()
    assert rest.rows == len(EVENTS)
    assert StreamCut.from_text(rest.start.to_text()) == whole.end


def test_an_empty_range_is_a_file_without_rows(stream, save):
    summary = save(stream, "a.parquet", start_stream_cut="latest")
    assert summary.rows == 0
    assert pq.read_table(summary.path).column_names == ["event", "scope", "stream", "segment_id", "offset"]


@pytest.fixture
def orders(client, stream_name):
    client.create_stream(stream_name, 2)
    values = [{"id": i, "item": None if i % 5 == 0 else f"tea {i}"} for i in range(3000)]
    return stream_name, values


@pytest.mark.parametrize("name", ["a.parquet", "a.avro", "a.jsonl"])
def test_decoded_columns_and_back_to_the_same_bytes(client, orders, save, name):
    stream, values = orders
    avro = serializer_for("avro", schema=ORDER)
    write(client, stream, [avro.serialize(value) for value in values])
    summary = save(stream, name, format="avro", avro_schema=json.dumps(ORDER))
    if name == "a.parquet":
        rows = pq.read_table(summary.path)
        assert avro.encode_column(rows.to_batches()[0]).to_pylist() == list(client.read(stream))
        found = rows.to_pylist()
    elif name == "a.avro":
        with summary.path.open("rb") as file:
            found = list(fastavro.reader(file))
    else:
        found = [json.loads(line) for line in summary.path.read_text().splitlines()]
    assert sorted(found, key=lambda row: row["id"]) == values


TEA = {"id": 7, "item": "tea"}
LINE = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (["null", ORDER], [TEA, None], [TEA, {"id": None, "item": None}]),
        ([ORDER, "null"], [TEA, None], [TEA, {"id": None, "item": None}]),
        ([ORDER], [TEA], [TEA]),
        (["null", "int"], [7, None], [{"value": 7}, {"value": None}]),
        (
            [ORDER, LINE],
            [TEA, {"n": 5}],
            [{"member0": TEA, "member1": None}, {"member0": None, "member1": {"n": 5}}],
        ),
    ],
    ids=["optional", "optional last", "one type", "optional number", "two records"],
)
def test_avro_files_of_unions(client, stream_name, save, schema, values, expected, mode):
    client.create_stream(stream_name, 1)
    avro = serializer_for("avro", schema=schema)
    write(client, stream_name, [avro.serialize(value) for value in values])
    path = save(stream_name, "a.avro", format="avro", avro_schema=json.dumps(schema), mode=mode).path
    with path.open("rb") as file:
        found = list(fastavro.reader(file))
    assert [{name: row[name] for name in expected[0]} for row in found] == expected


def test_json_lines_of_json_events_are_the_events(client, orders, save):
    stream, values = orders
    events = [serializer_for("json").serialize(value | {"more": {"x": [1.5]}}) for value in values]
    write(client, stream, events)
    path = save(stream, "a.jsonl", format="json").path
    assert path.read_bytes().splitlines() == list(client.read(stream))


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_columns_of_cbor_that_a_schema_names(client, orders, save, name):
    stream, values = orders
    cbor = serializer_for("cbor")
    write(client, stream, [cbor.serialize(value | {"more": {1: b"x"}}) for value in values])
    schema = pa.schema([("id", pa.int64()), ("item", pa.string())])
    path = save(stream, name, format="cbor", schema=schema).path
    if name == "a.parquet":
        found = pq.read_table(path).to_pylist()
    else:
        found = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(found, key=lambda row: row["id"]) == values


def test_fields_of_json_that_come_late_are_columns_too(client, orders, save):
    stream, values = orders
    late = {"id": 1, "when": "2026-01-01T00:00:00Z", "deep": {"a": 1}}
    texts = [json.dumps(value | {"pad": "x" * 1000}).encode() for value in values] + [json.dumps(late).encode()]
    write(client, stream, texts, ["one"] * len(texts))
    table = pq.read_table(save(stream, "a.parquet", format="json").path)
    assert table.schema.field("when").type == pa.string()
    assert table.slice(len(values)).to_pylist() == [{"item": None, "pad": None, **late}]
    only = save(stream, "b.parquet", format="json", schema=pa.schema([("id", pa.int32())]))
    assert pq.read_table(only.path).column_names == ["id"]


def test_json_of_two_kinds_is_text(client, orders, save):
    stream, _ = orders
    write(client, stream, [b'{"id": 1}', b'{"id": "one"}'], ["k", "k"])
    assert pq.read_table(save(stream, "a.parquet", format="json").path).to_pylist() == [{"id": "1"}, {"id": "one"}]


def test_bad_events_by_mode(client, orders, save, tmp_path):
    stream, _ = orders
    write(client, stream, [b"\x02\x00", b"\xff", b"\x04\x00"], ["k"] * 3)
    options = {"format": "avro", "avro_schema": json.dumps(ORDER)}
    with pytest.raises(DeserializationError, match=f"stream {stream}, segment"):
        save(stream, "a.parquet", **options)
    assert os.listdir(tmp_path) == []
    dropped = save(stream, "b.parquet", mode="DROPMALFORMED", **options)
    assert (dropped.rows, dropped.left_out) == (2, 1)
    kept = pq.read_table(save(stream, "c.parquet", mode="PERMISSIVE", **options).path)
    assert kept.column("_corrupt_record").to_pylist() == [None, b"\xff", None]


@pytest.mark.parametrize("name", ["a.parquet", "a.avro", "a.jsonl", "a.jsonl.gz"])
def test_a_full_disk_leaves_what_was_there_and_the_same_again_succeeds(stream, save, tmp_path, name):
    (tmp_path / name).write_bytes(b"before")
    options = {"compression": "none"} if name in ("a.parquet", "a.avro") else {}
    refused = pytest.raises(OutputFileError, match=f"{name} cannot be written: {os.strerror(errno.EFBIG)}")
    with refused, no_file_beyond(2000):
        save(stream, name, overwrite=True, columns="event,offset,segment_id,scope,stream", **options)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"before"
    assert save(stream, name, overwrite=True).rows == 2 * len(EVENTS)


def test_what_cannot_be_is_said_and_leaves_nothing(stream, save, tmp_path, scope):
    (tmp_path / "there.avro").touch()
    with pytest.raises(ConfigError, match="exists already: choose another name"):
        save(stream, "there.avro")
    with pytest.raises(StreamNotFoundError):
        save(f"{scope}/missing", "a.avro")
    with pytest.raises(OutputFileError, match="No such file or directory"):
        save(stream, "no/folder.avro")
    assert os.listdir(tmp_path) == ["there.avro"]


# ---------------------------------------------------------------- the command


def test_the_command_reports_what_it_did(command, client, stream, tmp_path):
    path = tmp_path / "a.parquet"
    done = command("export", stream, path, "--columns", "event", "-o", "timeout_ms=20000")
    output, errors = done.communicate()
    assert (done.returncode, errors) == (0, b"")
    assert f"{2 * len(EVENTS):,} of {2 * len(EVENTS):,} events" in output.decode()
    cuts = [line.split()[1] for line in output.decode().splitlines() if line.split()[0] in ("start", "end")]
    assert [StreamCut.from_text(cut) for cut in cuts] == [client.head(stream), client.tail(stream)]
    again = command("export", stream, path)
    assert b"[PRAVEGA-CONFIG]" in again.communicate()[1]
    assert again.returncode == 1


def test_an_ended_command_leaves_nothing(command, client, stream_name, tmp_path):
    client.create_stream(stream_name)
    for _ in range(8):
        write(client, stream_name, [os.urandom(1 << 20) for _ in range(8)], ["k"] * 8)
    process = command("export", stream_name, tmp_path / "a.jsonl")
    while not os.listdir(tmp_path):  # without a pause: the whole export takes some 100 ms
        assert process.poll() is None
    process.send_signal(signal.SIGSTOP)
    written = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert written < 64 << 20, "the export was almost over before it could be ended"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.communicate()
    assert process.returncode == 143
    assert os.listdir(tmp_path) == []

"""State of earlier versions is read: the samples in ``tests/vectors/state``, by public names."""

import base64
import dataclasses
import json
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from pravega_connector.checkpoint import committed_batch, committed_offset
from pravega_connector.client import EventBatch, PravegaClient, StreamName
from pravega_connector.deadletters import LETTER_SCHEMA, letters_of
from pravega_connector.errors import VersionMismatchError
from pravega_connector.exactly_once.batch_commit import (
    Barrier,
    Committed,
    Content,
    Key,
    Prepared,
    Resolved,
    Snapshot,
    fold,
    from_bytes,
    ledger_name,
    writer_of,
)
from pravega_connector.exactly_once.steps import StepsState, Update
from pravega_connector.local import DetachedServer, detached_registry, detached_server, pravega_jars, registry_jars
from pravega_connector.local.maven import Jar
from pravega_connector.operations.cli import main
from pravega_connector.operations.monitoring import cuts_of, read_cut
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.rows.options import CommonOptions, parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.pickling import VERSION
from pravega_connector.spark.reading import schema_ids_of
from pravega_connector.spark.sink.transactions import TaskPart
from pravega_serde import DeserializationError
from tests.support.state_samples import GENERATIONS, STATE, Log, good_number, lines_of, scope_of

# Nothing listens there: what asks a server fails.
NOWHERE = "tcp://127.0.0.1:1"
EPOCH = 1 << 32


@pytest.fixture(params=GENERATIONS, ids=lambda path: path.name)
def samples(request: pytest.FixtureRequest) -> Path:
    """A folder of samples."""
    return Path(request.param)


@pytest.fixture
def scope(samples: Path) -> str:
    """The scope that the samples are of."""
    return scope_of(samples)


def test_there_are_samples_of_every_format_that_was_ever_written():
    assert [path.name for path in GENERATIONS][:1] == ["1"]
    for path in GENERATIONS:
        assert {each.relative_to(path).parts[0] for each in path.rglob("*") if each.is_file()} == {
            "exchange", "export", "ingest", "jars", "ledger.jsonl", "ledger_compacted.jsonl", "letters",
            "loads_ledger.jsonl", "local", "offsets.jsonl", "query", "table",
        }  # fmt: skip
        assert all(each.stat().st_size < 20_000 for each in path.rglob("*")), "samples are small"
    assert STATE.joinpath("README.md").is_file()


# ---- the source ------------------------------------------------------------------------------------------------------


def pieces(start: str, end: str) -> list[list[Any]]:
    """The plan between two offsets, as Spark asks for it, without a server."""
    columns = StructType([StructField("event", BinaryType()), StructField("offset", LongType())])
    source = PravegaDataSource({"controller": NOWHERE, "stream": "any/stream", "columns": "event,offset"})
    found = source.streamReader(columns).partitions(json.loads(start), json.loads(end))
    assert all(len(task.slices) == 1 for task in found), "tasks were not shared then"
    return [[str(p.stream), p.segment_id, p.start, p.end] for task in found for p in task.slices]


def test_a_batch_between_two_offsets_is_what_it_was(samples, scope):
    lines = lines_of(samples / "offsets.jsonl")
    for line in lines:
        assert pieces(line["start"], line["end"]) == line["slices"], line["case"]
    by_case = {line["case"]: line["slices"] for line in lines}
    assert by_case["scaled"] == [[f"{scope}/scaled", 2 * EPOCH + 4, 0, 64]]
    assert by_case["divided"] == [
        [f"{scope}/two", *piece] for piece in ([0, 0, 76], [0, 76, 124], [1, 0, 75], [1, 75, 138], [1, 138, 186])
    ]
    assert by_case["a pattern, and a new stream"] == [[f"{scope}/wild-b", 0, 0, 60]]
    assert by_case["after a loss"] == [[f"{scope}/lost", 0, 120, 182]]
    ends = [json.loads(line["end"]) for line in lines]
    assert {end["version"] for end in ends} == {1}
    assert {key for end in ends for key in end} == {"streams", "from", "parts", "marks", "version"}


def test_offsets_are_cuts_for_whoever_asks(samples, scope, capsys):
    texts = {line["case"]: line["end"] for line in lines_of(samples / "offsets.jsonl")}
    scaled, two = StreamName(scope, "scaled"), StreamName(scope, "two")
    assert cuts_of(json.loads(texts["scaled"]))[scaled].positions == {1: 282, 2 * EPOCH + 4: 64}
    assert read_cut(texts["two streams"], two).positions == {0: 124, 1: 186}
    with pytest.raises(SystemExit):
        main(["cut", "convert", texts["divided"], "--to", "positions"])
    assert capsys.readouterr().out == f"{two}:0.#epoch.0=124,1.#epoch.0=186\n"


def test_a_checkpoint_of_spark(samples, scope, capsys):
    folder, orders = samples / "query" / "checkpoint", f"{scope}/orders"
    assert committed_batch(folder) == 1
    assert committed_offset(folder)["streams"] == {orders: {"0.#epoch.0": 187, "1.#epoch.0": 440}}
    with pytest.raises(SystemExit):
        main(["cut", "show", f"checkpoint:{folder}", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["stream"], [segment["offset"] for segment in shown["segments"]]) == (orders, [187, 440])
    named = committed_offset(samples / "query" / "checkpoint_v2")
    assert named["streams"] == {f"{scope}/named": {"0.#epoch.0": 150}}


# ---- ledgers ---------------------------------------------------------------------------------------------------------


def test_a_ledger_amounts_to_what_it_did(samples, scope):
    entries = [from_bytes(data) for data in Log.load(samples / "ledger.jsonl").values]
    assert [type(entry) for entry in entries] == [
        *(Prepared, Committed, Barrier, Prepared, Prepared, Committed),
        *(Prepared, Resolved, Prepared, Resolved, Prepared, Committed, Prepared),
    ]
    assert [entry.choice for entry in entries if isinstance(entry, Resolved)] == ["accept", "discard"]
    assert [entry.generation for entry in entries if isinstance(entry, Prepared)] == [0, 0, 1, 0, 0, 0, 0]
    first = entries[0]
    assert isinstance(first, Prepared)
    assert [(part.content.rows, part.content.bytes) for part in first.parts] == [(3, 21), (2, 14)]
    assert (first.content.total, first.time) != (0, 0)

    state = fold(entries)
    target = f"{scope}/target#0"
    assert state.keys() == {Key("query", target), Key("loader", target)}
    query, loader = state[Key("query", target)], state[Key("loader", target)]
    assert (query.query, query.last, query.seen, query.seen_run) == ("query", 2, 1, "run-2")
    contents = [(batch, content.rows, content.bytes) for batch, content in query.recent]
    assert contents == [(0, 5, 35), (1, 4, 28), (2, 2, 12)], "of batch 2, which was accepted, what was prepared"
    assert query.content_of(0) == first.content
    assert query.runs == ("run-1", "run-2", "run-3")
    assert query.open == entries[-1]
    assert isinstance(query.open, Prepared)
    assert (query.open.batch, query.open.run) == (3, "run-3")
    assert [(part.content.rows, part.event_time) for part in query.open.parts] == [(3, None), (2, None)]
    assert (loader.query, loader.last, loader.open) == ("", 7, None)
    assert [part.event_time for part in entries[10].parts] == [1_700_000_000_000]  # type: ignore[union-attr]


def test_a_compacted_ledger(samples, scope):
    log = Log.load(samples / "ledger_compacted.jsonl")
    entries = [from_bytes(data) for data in log.values]
    snapshots = [entry for entry in entries if isinstance(entry, Snapshot)]
    assert [[(app.app, app.last) for app in entry.apps] for entry in snapshots] == [
        [("query", 2)],
        [("other", -1), ("query", 5)],
    ]
    assert [offset for (offset, _), entry in zip(log.entries, entries, strict=True) if entry is snapshots[1]] == [
        log.mark
    ]
    state = fold(entries)
    query, other = state[Key("query", f"{scope}/compacted#0")], state[Key("other", f"{scope}/compacted#0")].open
    assert isinstance(other, Prepared)
    assert [(part.content.rows, part.content.bytes) for part in other.parts] == [(1, 4)]
    assert (query.last, query.runs, query.open) == (7, ("run-1",), None)
    assert fold(entries[entries.index(snapshots[1]) :]) == state, "who begins at the mark knows the same"


# ---- ingestion -------------------------------------------------------------------------------------------------------


def ingested(log: Log) -> Iterator[StepsState]:
    """The states that a state synchronizer comes to, entry by entry; its framing is Java's."""
    state: StepsState | None = None
    for data in log.values:
        (kind,) = struct.unpack_from(">i", data)
        if kind == 1:
            state = StepsState.from_json(json.loads(data[4:]))
        else:
            assert state is not None
            at = 4
            while at < len(data):
                (size,) = struct.unpack_from(">i", data, at)
                state.apply(Update.from_json(json.loads(data[at + 4 : at + 4 + size])))
                at += 4 + size
        assert state is not None
        yield state.copy()


def positions_of(state: StepsState) -> dict[str, tuple[int, bool]]:
    return {source: (offset, finished) for source, (_, offset, finished) in state.positions.items()}


def test_the_state_of_an_ingestion(samples, scope):
    seen = []
    for state in ingested(Log.load(samples / "ingest" / "samples.jsonl")):
        assert state.life.id == f"{scope}/samples"
        moves = [
            (source, before and before[1], after[1])
            for step in state.steps.values()
            for source, (before, after) in step.moves.items()
        ]
        seen.append((moves, positions_of(state)))
    assert seen == [
        ([], {}),
        ([("000.csv", None, 4)], {}),
        ([("000.csv", 4, 8)], {"000.csv": (4, False)}),
        ([("001.csv", None, 4)], {"000.csv": (6, True)}),
        ([("001.csv", 4, 8)], {"000.csv": (6, True), "001.csv": (4, False)}),
        ([("002.csv", None, 4)], {"000.csv": (6, True), "001.csv": (6, True)}),
        ([("002.csv", 4, 8)], {"000.csv": (6, True), "001.csv": (6, True), "002.csv": (4, False)}),
        ([], {"000.csv": (6, True), "001.csv": (6, True), "002.csv": (6, True)}),
    ]


def test_steps_and_columns_of_an_ingestion(samples):
    states = ingested(Log.load(samples / "ingest" / "samples.jsonl"))
    assert next(states).note == {}, "before the first step nobody knows the columns"
    state = next(states)
    columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(state.note["schema"])))
    assert columns == pa.schema({"file": pa.int64(), "sample": pa.int64()})
    (step,) = state.steps.values()
    assert (step.note["lease"], step.note["host"]) == (30.0, "sample-host/boot/pid:[1]")
    assert step.note["pid"] > 0
    assert isinstance(step.transaction, UUID)
    mark, _, _ = step.moves["000.csv"][1]
    assert mark.startswith("36 ")
    assert mark.endswith(" 5a6d0e4487694165caa69cb9af9decff")


def test_the_compacted_state_of_an_ingestion(samples):
    log = Log.load(samples / "ingest" / "samples-compacted.jsonl")
    assert log.entries[0][0] > 0, "what lay before is truncated"
    assert log.mark in [offset for offset, _ in log.entries]
    *_, last = ingested(log)
    assert positions_of(last) == dict.fromkeys(("000.csv", "001.csv", "002.csv"), (6, True))
    assert last.steps == {}


# ---- dead letters ----------------------------------------------------------------------------------------------------


def test_dead_letters_of_the_source(samples, scope):
    names = [field.split()[0] for field in LETTER_SCHEMA.split(", ")]
    found = {}
    for path in (samples / "letters" / "files").iterdir():
        for letter in lines_of(path):
            assert list(letter) == names
            event = base64.b64decode(letter["event"])
            assert (letter["scope"], letter["stream"], letter["size"]) == (scope, "bad", len(event))
            assert letter["code"] == DeserializationError.code
            assert good_number(event) is None
            found[letter["segment_id"], letter["offset"]] = event
    assert found == {(0, 45): b'{"n":9', (1, 30): b'{"n":4', (1, 121): b'{"n":14', (1, 168): b'{"n":19'}


def test_a_letter_is_the_same_whoever_writes_it(samples, scope):
    """Repeated reads must write the same text under the same name, or letters come twice."""
    for entry in lines_of(samples / "letters" / "stream.jsonl"):
        stream, _, segment = entry["key"].rpartition("/")
        for offset, text in entry["letters"]:
            said = json.loads(text)
            batch = EventBatch(
                StreamName.parse(stream),
                int(segment),
                pa.array([base64.b64decode(said["event"])], pa.binary()),
                pa.array([offset]).to_numpy(),
            )
            error = DeserializationError(said["error"], row=0)
            assert list(letters_of(batch, [error])) == [(offset, text.encode())]


# ---- names that outlive a process ------------------------------------------------------------------------------------


def test_names(samples, scope):
    target = StreamName(scope, "copies")
    assert str(ledger_name(target)) == str(Log.load(samples / "query" / "ledger.jsonl").stream) == f"{target}-ledger"
    assert writer_of("an application") == "spark-an application"
    with PravegaClient(NOWHERE) as client:
        group = client.subscriber(StreamName(scope, "orders"), "sales").group
    assert [f"{scope}/{group}"] == json.loads((samples / "query" / "subscribers.json").read_text())


# ---- tables ----------------------------------------------------------------------------------------------------------


def test_the_columns_of_a_table_have_its_options(samples, scope):
    columns = StructType.fromJson(json.loads((samples / "table" / "columns.json").read_text()))
    assert columns.names == ["id", "item"]
    assert "secret" not in columns.json()
    # As Spark hands it on: the place that its catalog has for files, and no options.
    reader = PravegaDataSource({"path": "file:/warehouse/orders"}).reader(columns)
    assert str(reader.options.stream_name()) == f"{scope}/table"
    assert reader.options.format == "avro"
    assert reader.options.avro_schema is not None
    assert [field["name"] for field in json.loads(reader.options.avro_schema)["fields"]] == ["id", "item"]
    assert reader.schema.names == ["id", "item"]


def test_columns_have_the_ids_of_their_schemas(samples, scope):
    columns = StructType.fromJson(json.loads((samples / "table" / "registry_columns.json").read_text()))
    options = {"stream": f"{scope}/table", "registry": "http://localhost:9092"}
    assert schema_ids_of(columns, parse_options(SourceOptions, options | {"group": "g"})) == (3, 5)
    assert schema_ids_of(columns, parse_options(SourceOptions, options | {"group": "another"})) is None


# ---- what is not kept, but may come from another version -------------------------------------------------------------


def loaded(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except VersionMismatchError as error:
        return error


def test_pickles_of_a_running_query_are_read_or_refused_in_one_line(samples, scope):
    """Nothing else is kept of a running query. An object that has another shape must have another number too."""
    found = {path.stem: loaded(path.read_bytes()) for path in (samples / "exchange").iterdir()}
    assert found.keys() == {"partition", "prepared", "reader", "writer", "written"}
    refused = [value for value in found.values() if isinstance(value, VersionMismatchError)]
    if refused:
        assert len(refused) == len(found)
        assert all(f"this process version {VERSION})" in str(error) and "\n" not in str(error) for error in refused)
        return
    more = "raise pravega_connector.spark.pickling.VERSION: what is exchanged has changed"
    for value in (found["reader"].options, found["writer"].options, *map(found.get, ("prepared", "written"))):
        carried = {"config"} if isinstance(value, CommonOptions) else set[str]()
        assert vars(value).keys() == {each.name for each in dataclasses.fields(value)} | carried, more
    assert found["partition"].slices == (SegmentSlice(StreamName(scope, "exchanged"), 0, 0, 90),)
    assert str(found["reader"].options.stream_name()) == f"{scope}/exchanged"
    assert found["writer"].mode == "exactly_once"
    prepared = found["prepared"]
    assert (prepared.write.app, prepared.write.batch, prepared.partition) == ("app", 7, 3)
    part = TaskPart(StreamName(scope, "exchanged"), UUID(int=1), Content(2, 30, 7), 0, 1_700_000_000_000)
    assert prepared.parts == (part,)
    assert (found["written"].rows, found["written"].bytes, found["written"].query) == (2, 30, "query")


# ---- exported files --------------------------------------------------------------------------------------------------


def test_exported_files_tell_where_they_are_from(samples, scope):
    import fastavro

    notes: list[dict[str, str]] = []
    table = pq.read_table(samples / "export" / "events.parquet")
    notes.append({key.decode(): value.decode() for key, value in table.schema.metadata.items()})
    with (samples / "export" / "events.avro").open("rb") as file:
        reader = fastavro.reader(file)
        rows = list(reader)
        notes.append(reader.metadata)
    assert rows == table.to_pylist()
    assert {good_number(row["event"]) for row in rows} == set(range(10))
    for said in notes:
        assert said["pravega.stream"] == f"{scope}/exported"
        assert read_cut(said["pravega.start"]).positions == {0: 0}
        assert read_cut(said["pravega.end"]).positions == {EPOCH + 1: 30, EPOCH + 2: 45}


# ---- servers in the background, and their jars -----------------------------------------------------------------------

# Holds a lock, as the supervisor of a server does, until a signal ends it.
HOLDER = """
import fcntl, os, signal, sys
fcntl.flock(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user of his own."""
    monkeypatch.setenv("PRAVEGA_SERDE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_servers_in_the_background(samples, cache, start_python, capsys):
    states, holders = {}, {}
    (cache / "local").mkdir(parents=True)
    for name in ("server", "registry"):
        states[name] = json.loads((samples / "local" / f"{name}.json").read_text())
        holders[name] = start_python(HOLDER, cache / "local" / f"{name}.lock")
        assert holders[name].stdout.readline() == "held\n"
        states[name]["pid"] = holders[name].pid
        (cache / "local" / f"{name}.json").write_text(json.dumps(states[name]))
    assert states["server"]["uri"].startswith("tcp://127.0.0.1:")
    assert states["registry"]["uri"].startswith("http://127.0.0.1:")

    for name, found in (("server", detached_server()), ("registry", detached_registry())):
        state = states[name]
        assert found == DetachedServer(**state)

    def run(*args: str) -> tuple[int, list[str]]:
        with pytest.raises(SystemExit) as ended:
            main(["local", *args])
        return int(ended.value.code or 0), capsys.readouterr().out.splitlines()

    code, lines = run("status")
    assert code == 0
    for line, name in zip(lines, ("server", "registry"), strict=True):
        assert line.startswith(f"{states[name]['uri']}  pid {holders[name].pid}  up ")
        assert line.endswith(f"  log {states[name]['log']}")
    assert run("down")[1] == [
        f"The schema registry at {states['registry']['uri']} is down",
        f"Pravega at {states['server']['uri']} is down, and its data is deleted",
    ]
    assert [holder.wait(120) for holder in holders.values()] == [0, 0]
    assert detached_server() is None


def test_jars_that_exist_are_not_fetched_again(samples, cache, tmp_path, monkeypatch):
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("PRAVEGA_SERDE_MAVEN_REPOSITORY", "http://127.0.0.1:1/")
    monkeypatch.setattr(Jar, "is_at", lambda *_: True)  # their bytes are not at hand
    counts = {}
    for folder in (samples / "jars").iterdir():
        manifest = folder / "manifest.json"
        there = cache / "jars" / folder.name
        there.mkdir(parents=True)
        (there / manifest.name).write_bytes(manifest.read_bytes())
        sizes = json.loads(manifest.read_text())
        for name, size in sizes.items():
            with (there / name).open("wb") as file:
                file.truncate(size)
        counts[folder.name.partition("-")[0]] = len(sizes)
    assert counts == {"pravega": 156, "schemaregistry": 120}
    assert pravega_jars().name.startswith("pravega-standalone-0.13.0-")
    assert registry_jars().name.startswith("schemaregistry-0.6.0-")
    for jars in (pravega_jars(), registry_jars()):
        assert (jars / "manifest.json").read_bytes() == (samples / "jars" / jars.name / "manifest.json").read_bytes()

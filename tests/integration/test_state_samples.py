"""State of earlier versions on servers and disks is used: the samples in ``tests/vectors/state``, put back."""

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.exactly_once.batch_commit import fold, from_bytes
from pravega_connector.operations.cli import main
from pravega_connector.operations.export import export_stream
from pravega_connector.operations.ingest import FileOptions, FileSource, Sizes, ingest, plan
from pravega_connector.single_segment.conditional_append import NumberedAppender
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.writer.transactions import OpenTransaction
from tests.support.state_samples import GENERATIONS, Log, Script, good_number, lines_of, scope_of

RECOVER_COLUMNS = ("application", "last batch", "rows", "last written", "open batch", "transactions", "state")


@pytest.fixture(params=GENERATIONS, ids=lambda path: path.name)
def samples(request: pytest.FixtureRequest) -> Path:
    """A folder of samples."""
    return Path(request.param)


@pytest.fixture
def cli(
    config: PravegaConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """``cli("recover", …)``: what the command prints; it must end well."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", config.controller)

    def run(*args: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(args)
        assert not ended.value.code
        return capsys.readouterr().out

    return run


# ---- ledgers ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[("ledger.jsonl", "target"), ("ledger_compacted.jsonl", "compacted")], ids=lambda each: each[1])
def target(request: pytest.FixtureRequest, client: PravegaClient, samples: Path) -> StreamName:
    """Its open batch has transactions of this server, with one event each."""
    file, name = request.param
    target = StreamName(scope_of(samples), name)
    client.create_stream(target, 2)
    log = Log.load(samples / file)
    (open_,) = [app.open for app in fold(map(from_bytes, log.values)).values() if app.open is not None]
    ids = {str(part.transaction.id): begin(client, target, b"open").id for part in open_.parts}
    log.with_transactions(ids).restore(client)
    return target


def begin(client: PravegaClient, stream: StreamName, *events: bytes, key: str | None = None) -> OpenTransaction[bytes]:
    """Events in a transaction that is left open."""
    transaction: OpenTransaction[bytes] = client.transactions(stream, lease=60).begin()
    for event in events:
        transaction.write(event, key)
    transaction.detach()
    return transaction


def test_recover_shows_and_finishes_what_is_open(client, target, cli, eventually):
    def rows(*args: str) -> list[list[str]]:
        title, *lines = cli("recover", str(target), *args).splitlines()
        starts = [title.index(column) for column in RECOVER_COLUMNS]
        table = [line for line in lines if not line.startswith("left open")]
        return [[line[a:b].strip() for a, b in pairwise([*starts, None])] for line in table]

    of_query, of_open, parts = (
        (["query", "2", "2"], "query", 2) if target.stream == "target" else (["query", "7", "1"], "other", 1)
    )
    before = {row[0]: row for row in rows()}
    assert before["query"][:3] == of_query
    assert before[of_open][5:] == [f"{parts} open", "all live"]
    if of_open == "query":
        assert before["loader"][:3] + before["loader"][4:] == ["loader", "7", "4", "", "", "nothing to do"]
    told = json.loads(cli("recover", str(target), "--json"))["applications"]
    assert {each["application"]: each["state"] for each in told} == {app: row[6] for app, row in before.items()}
    assert f"{of_open}: committed" in cli("recover", str(target), "--finish")
    eventually(lambda: len(list(client.read(target))) == parts)
    after = {row[0]: row for row in rows()}
    assert after[of_open][1] == {"query": "3", "other": "0"}[of_open]
    assert {row[6] for row in after.values()} == {"nothing to do"}
    assert list(client.read(target)) == [b"open"] * parts


# ---- ingestion -------------------------------------------------------------------------------------------------------

# File, entries of it that there are, and for the sources what the state says is in the stream; the step that is open.
CUTS = [
    ("samples", 1, {}, None),
    ("samples", 2, {}, ("000.csv", 0, 4)),
    ("samples", 4, {"000.csv": 6}, ("001.csv", 0, 4)),
    ("samples", 7, {"000.csv": 6, "001.csv": 6, "002.csv": 4}, ("002.csv", 4, 8)),
    ("samples", 8, {"000.csv": 6, "001.csv": 6, "002.csv": 6}, None),
    ("samples-compacted", 1, {"000.csv": 6, "001.csv": 6}, ("002.csv", 0, 4)),
    ("samples-compacted", 2, {"000.csv": 6, "001.csv": 6, "002.csv": 4}, ("002.csv", 4, 8)),
    ("samples-compacted", 3, {"000.csv": 6, "001.csv": 6, "002.csv": 6}, None),
    ("samples-compacted", 4, {"000.csv": 6, "001.csv": 6, "002.csv": 6}, None),
]
CASES = [(*cut, fate) for cut in CUTS for fate in (("committed", "aborted", "open") if cut[3] else ("",))]


@pytest.fixture
def cleared(client: PravegaClient) -> Iterator[list[StreamName]]:
    """Streams to delete after the test: each test makes them again."""
    streams: list[StreamName] = []
    yield streams
    for stream in streams:
        client.controller.seal_stream(stream)
        client.controller.delete_stream(stream)


def records(samples: Path, file: str) -> list[bytes | None]:
    """The events that a file's records are; None for the bad one."""
    with (samples / "ingest" / "files" / file).open() as lines:
        return [
            b'{"file":%s,"sample":%s}' % (row["file"].encode(), row["sample"].encode())
            if row["sample"].isdigit()
            else None
            for row in csv.DictReader(lines)
        ]


def transaction_of(entry: bytes) -> str:
    """The transaction of the step that an entry has."""
    value = json.loads(entry[entry.index(b"{") :])
    (step,) = value["steps"].values() if "steps" in value else [value["step"]]
    return str(step["transaction"])


@pytest.mark.long  # tests/integration/ingest has the same of a state that it makes
@pytest.mark.usefixtures("soon_sure")
@pytest.mark.parametrize(
    ("name", "count", "there", "step", "fate"), CASES, ids=[f"{name}-{count}-{fate}" for name, count, *_, fate in CASES]
)
def test_an_ingestion_continues(client, samples, tmp_path, cleared, name, count, there, step, fate):
    target = StreamName(scope_of(samples), name)
    log = Log.load(samples / "ingest" / f"{name}.jsonl").first(count)
    client.create_stream(target, 2)
    cleared += [target, log.stream]
    with client.writer(target) as writer:
        for file, end in there.items():
            for event in filter(None, records(samples, file)[:end]):
                writer.write(event, file)
    ids = {}
    if step is not None:
        file, first, end = step
        transaction = begin(client, target, *filter(None, records(samples, file)[first:end]), key=file)
        if fate != "open":
            getattr(transaction, {"committed": "commit", "aborted": "abort"}[fate])()
        ids[transaction_of(log.values[-1])] = transaction.id
    log.with_transactions(ids).restore(client)

    folder = samples / "ingest" / "files"
    options = FileOptions(base=str(folder), reject=True, types={"file": pa.int64(), "sample": pa.int64()})
    source = FileSource([folder], options)
    planned = plan(source, target, client=client)
    assert (planned.open_step, planned.done) == (step is not None, sum(end == 6 for end in there.values()))
    summary = ingest(
        FileSource([folder], options),
        target,
        client=client,
        sizes=Sizes(variant="count", records=4),
        dead_letters=tmp_path / "letters",
        takeover_after=0.1,
    )
    assert summary.counts.recovered == (step is not None)
    assert not summary.changed
    by_file: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    for event in client.read(target):
        by_file[json.loads(event)["file"]].append(event)
    for number, events in by_file.items():
        assert events == list(filter(None, records(samples, f"{number:03}.csv")))
    # A step that is done again writes its bad records again, under the same name.
    letters = {path.name: path.read_bytes() for path in (tmp_path / "letters").iterdir()}
    kept = {path.name: path.read_bytes() for path in (samples / "ingest" / "dead_letters").iterdir()}
    again = there.get("001.csv", 0) == 0 and not (step is not None and step[0] == "001.csv" and fate == "committed")
    assert letters == (kept if again else {})
    assert not plan(source, target, client=client).pending


# ---- dead letters ----------------------------------------------------------------------------------------------------


def test_letters_that_exist_are_not_written_again(client, samples, tmp_path):
    script = Script.load(samples / "letters" / "source.jsonl")
    script.perform(client)
    letters = StreamName(script.stream.scope, "bad-letters")
    client.create_stream(letters)
    written = []
    for entry in lines_of(samples / "letters" / "stream.jsonl"):
        numbered = [(offset, text.encode()) for offset, text in entry["letters"]]
        written += [text for _, text in numbered]
        appender = NumberedAppender(client.stores, letters, entry["key"], UUID(entry["writer"]).bytes)
        appender.append(numbered)
        appender.close()
    folder = tmp_path / "letters"
    shutil.copytree(samples / "letters" / "files", folder)

    def read(**box: str) -> list[int]:
        options = {"controller": client.config.controller, "path": str(script.stream), "format": "json", **box}
        reader = PravegaDataSource(options).reader(StructType([StructField("n", IntegerType())]))
        batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
        return sorted(number for batch in batches for number in batch.column("n").to_pylist())

    good = [number for number in range(20) if number % 5 != 4]
    assert read(dead_letter_stream="bad-letters") == read(dead_letter_path=str(folder)) == good
    assert list(client.read(letters)) == written
    kept = {path.name: path.read_bytes() for path in (samples / "letters" / "files").iterdir()}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept

    Script(script.stream, 2, ({"key": "key 0", "event": "{"},)).go_on(client)
    assert read(dead_letter_stream="bad-letters") == good
    *before, last = client.read(letters)
    assert before == written, "those that were there, and the new one"
    assert json.loads(last)["event"] == "ew=="


# ---- exported files --------------------------------------------------------------------------------------------------


def test_an_exported_file_says_how_to_export_it_again(client, samples, tmp_path):
    script = Script.load(samples / "export" / "source.jsonl")
    script.perform(client)
    Script(script.stream, 1, ({"key": "later", "event": "{}"},)).go_on(client)
    path = samples / "export" / "events.parquet"
    notes = {key.decode(): value.decode() for key, value in pq.read_schema(path).metadata.items()}
    with (samples / "export" / "events.avro").open("rb") as file:
        assert fastavro.reader(file).metadata.items() >= notes.items()
    again = export_stream(
        notes["pravega.stream"],
        tmp_path / "again.parquet",
        controller=client.config.controller,
        columns="event,segment_id,offset",
        start_stream_cut=notes["pravega.start"],
        end_stream_cut=notes["pravega.end"],
    )
    assert again.rows == 10
    table = pq.read_table(again.path)
    assert table.equals(pq.read_table(path))
    assert {good_number(event) for event in table.column("event").to_pylist()} == set(range(10))

"""Writes a folder of state samples: ``python -m tests.vectors.generate.state FOLDER [scene …]``, on separate servers.

Each scene does with the real parts what leaves a kind of state behind, and keeps that. Where a crash is wanted, the
scene comes to its end, and what would not be there after the crash is left out. See ``../state/README.md``.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.exactly_once.batch_commit import (
    Commit,
    Content,
    Ledger,
    Phase,
    Recovery,
    Role,
    carry_out,
    ledger_name,
)
from pravega_connector.local import LocalPravega, pravega_jars, registry_jars
from pravega_connector.operations.export import export_stream
from pravega_connector.operations.ingest import FileOptions, FileSource, Sizes, ingest
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.single_segment.conditional_append import NumberedAppender
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.reading import with_schema_ids
from tests.integration.exactly_once.conftest import Target
from tests.support.micro_batches import MicroBatches
from tests.support.state_samples import Script, dump, write_lines

NUMBERS = StructType([StructField("n", IntegerType())])


class Maker:
    """One folder of samples, and the client of the server that they come from."""

    def __init__(self, folder: Path, client: PravegaClient) -> None:
        self.folder, self.client = folder, client
        self.scope = f"state-{folder.name}"
        self.controller = client.config.controller

    def name(self, stream: str) -> StreamName:
        return StreamName(self.scope, stream)

    def save(self, path: str, value: Any) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(value, indent=1) + "\n")

    def script(self, stream: str, segments: int, *steps: dict[str, Any]) -> Script:
        script = Script(self.name(stream), segments, steps)
        script.perform(self.client)
        return script


def events(numbers: range, *, bad_every: int = 0) -> list[dict[str, Any]]:
    """Steps of a script: ``{"n":7}`` with seven keys; every ``bad_every``-th is malformed."""
    return [
        {"key": f"key {n % 7}", "event": f'{{"n":{n}' + ("" if bad_every and n % bad_every == 4 else "}")}
        for n in numbers
    ]


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"event %d" % n for n in range(first, first + count)]


# ---- offsets of the source -------------------------------------------------------------------------------------------


def offsets(maker: Maker) -> None:
    """Offsets as text, pair by pair, and what the batch between them reads."""
    found: list[dict[str, Any]] = []
    client = maker.client

    def note(case: str, queries: MicroBatches, **options: str) -> None:
        """Run a query to the end, and keep each of its batches."""
        batches = list(queries.run(controller=maker.controller, start_stream_cut="earliest", **options))
        source = PravegaDataSource({"controller": maker.controller, **options})
        reader = source.streamReader(source.schema())
        for batch in batches:
            start = queries.offsets[batch.number - 1] if batch.number else queries.first
            tasks = reader.partitions(json.loads(start), json.loads(batch.end))
            pieces = [piece for task in tasks for piece in task.slices]
            slices = [[str(p.stream), p.segment_id, p.start, p.end] for p in pieces]
            found.append({"case": case, "start": start, "end": batch.end, "slices": slices})

    one = maker.script("one", 1, *events(range(10)))
    note("one segment", MicroBatches(), path=str(one.stream), max_rows_per_trigger="6")
    two = maker.script("two", 2, *events(range(20)))
    note("two streams", MicroBatches(), path=f"{one.stream},{two.stream}")
    note("divided", MicroBatches(), path=str(two.stream), min_partitions="4")

    middle = {"seal": [0], "ranges": [[0.0, 0.25], [0.25, 0.5]]}
    merged = {"seal": [(1 << 32) + 2, (1 << 32) + 3], "ranges": [[0.0, 0.5]]}
    steps = [*events(range(10)), middle, *events(range(10, 20)), merged, *events(range(20, 30))]
    scaled = maker.script("scaled", 2, *steps)
    note("scaled", MicroBatches(), path=str(scaled.stream))
    client.controller.seal_stream(scaled.stream)
    note("sealed", MicroBatches(), path=str(scaled.stream))

    pattern = MicroBatches()
    wild = {"stream_pattern": f"{maker.scope}/wild-*", "discovery_interval_ms": "100"}
    maker.script("wild-a", 1, *events(range(4)))
    note("a pattern", pattern, **wild)
    maker.script("wild-b", 1, *events(range(4)))
    note("a pattern, and a new stream", pattern, **wild)

    lost = MicroBatches()
    gone = maker.script("lost", 1, *events(range(4)))
    note("before a loss", lost, path=str(gone.stream))
    Script(gone.stream, 1, tuple(events(range(4, 8)))).go_on(client)
    client.controller.truncate_stream(client.tail(gone.stream))
    Script(gone.stream, 1, tuple(events(range(8, 12)))).go_on(client)
    note("after a loss", lost, path=str(gone.stream), fail_on_data_loss="false")

    timed = maker.name("timed")
    client.create_stream(timed)
    with client.writer(timed, writer_id="w") as writer:
        for n in range(4):
            writer.write(b'{"n":%d}' % n, "key")
        writer.note_time(1000)
    while not client.watermarks(timed):
        time.sleep(0.5)
    columns = "event,scope,stream,segment_id,offset,event_time_low"
    note_of = MicroBatches()
    for batch in note_of.run(
        controller=maker.controller, start_stream_cut="earliest", path=str(timed), columns=columns
    ):
        slices = [[str(timed), 0, 0, batch.bytes]]
        found.append({"case": "event time", "start": note_of.first, "end": batch.end, "slices": slices})
    write_lines(maker.folder / "offsets.jsonl", found)


# ---- ledgers ---------------------------------------------------------------------------------------------------------


def ledger(maker: Maker) -> None:
    """All kinds of entries, and a batch that is left open; then a ledger that was compacted twice."""
    target = Target(maker.client, maker.name("target"))

    def lose(batch: int, *, run: str) -> None:
        """Leave a batch with one committed and one lost transaction."""
        kept, lost = target.write(b"kept %d" % batch), target.write(b"lost %d" % batch)
        target.crash(Phase.COMMIT_REST, batch, kept, lost, run=run)
        target.abort(lost)

    target.commit(0, target.write(*numbered(3)), target.write(*numbered(2, 3)))
    target.commit(0, role=Role.BYSTANDER, run="")
    early = [target.write(*numbered(2, 5)), target.write(*numbered(2, 7))]
    target.crash(Phase.COMMIT_PILOT, 1, *early)
    for part in early:
        target.abort(part)
    target.commit(1, target.write(*numbered(2, 5)), target.write(*numbered(2, 7)), run="run-2")
    recovery = Recovery(maker.client.stores, target.stream, target.ledger)
    for batch, choice in ((2, "accept"), (3, "discard")):
        lose(batch, run="run-2")
        recovery.resolve("query", choice)
    timed = replace(target.write(*numbered(4, 9)), event_time=1_700_000_000_000)
    job = replace(target.job(7, timed, run="run-of-loader"), app="loader", query="")
    carry_out(Commit(job), target.servers())
    target.crash(Phase.COMMIT_PILOT, 3, target.write(*numbered(3, 13)), target.write(*numbered(2, 16)), run="run-3")
    dump(maker.client, ledger_name(target.stream)).save(maker.folder / "ledger.jsonl")

    compacted = Target(maker.client, maker.name("compacted"))
    importlib.import_module(Ledger.__module__).COMPACT_AFTER = 6  # type: ignore[attr-defined]
    for batch in range(8):
        compacted.commit(batch, compacted.write(b"event %d" % batch))
        if batch == 3:  # the next snapshot holds an open batch too
            open_ = compacted.write(b"open")
            servers = compacted.servers()
            machine = Commit(replace(compacted.job(0, open_), app="other"))
            while machine.phase is not Phase.COMMIT_PILOT:
                machine = machine.answered(servers.answer(machine.request()))
        compacted.ledger.compact()
    log = dump(maker.client, ledger_name(compacted.stream))
    assert log.entries[0][0] > 0, "nothing was truncated"
    assert log.mark is not None
    log.save(maker.folder / "ledger_compacted.jsonl")


# ---- ingestion -------------------------------------------------------------------------------------------------------


def ingestion(maker: Maker) -> None:
    """Three small files in steps of four records, with one bad record; then the same, compacted on the way."""
    files = maker.folder / "ingest" / "files"
    files.mkdir(parents=True, exist_ok=True)
    for file in range(3):
        lines = [f"{file},{sample}" for sample in range(6)]
        if file == 1:
            lines[2] = "1,two"
        (files / f"{file:03}.csv").write_text("\n".join(["file,sample", *lines]) + "\n")
    types = {"file": pa.int64(), "sample": pa.int64()}
    options = FileOptions(base=str(files), reject=True, types=types)
    sizes = Sizes(variant="count", records=4)

    def run(target: str, **more: Any) -> None:
        maker.client.create_stream(maker.name(target))
        ingest(FileSource([files], options), maker.name(target), client=maker.client, sizes=sizes, **more)
        dump(maker.client, maker.name(f"{target}-ingest")).save(maker.folder / "ingest" / f"{target}.jsonl")

    # Of the machine nothing is kept.
    importlib.import_module("pravega_connector.exactly_once.steps.takeover")._host = lambda: "sample-host/boot/pid:[1]"
    run("samples", dead_letters=maker.folder / "ingest" / "dead_letters")
    runner = importlib.import_module("pravega_connector.exactly_once.steps.log")
    runner._COMPACT_AFTER, runner._CHECK_EVERY = 600, 2  # type: ignore[attr-defined]
    run("samples-compacted")
    assert dump(maker.client, maker.name("samples-compacted-ingest")).entries[0][0] > 0, "nothing was truncated"


# ---- dead letters ----------------------------------------------------------------------------------------------------


def letters(maker: Maker) -> None:
    """The letters of one batch read, in files and in a stream, which take each letter once."""
    script = maker.script("bad", 2, *events(range(20), bad_every=5))
    script.save(maker.folder / "letters" / "source.jsonl")
    maker.client.create_stream(maker.name("bad-letters"))
    folder = maker.folder / "letters" / "files"
    for box in ({"dead_letter_path": str(folder)}, {"dead_letter_stream": "bad-letters"}):
        options = {"controller": maker.controller, "path": str(script.stream), "format": "json"}
        reader = PravegaDataSource(options | box).reader(NUMBERS)
        for partition in reader.partitions():
            for _ in reader.read(partition):
                pass
    entries = []
    for path in sorted(folder.iterdir()):
        reading = uuid.UUID(path.name.removesuffix(".jsonl")[-36:])
        lines = path.read_text().splitlines()
        segment = json.loads(lines[0])["segment_id"]
        key = f"{script.stream}/{segment}"
        numbered_lines = [(json.loads(line)["offset"], line) for line in lines]
        # The server knows the numbers under this very id: what has them is not taken again.
        appender = NumberedAppender(maker.client.stores, maker.name("bad-letters"), key, reading.bytes)
        appender.append([(offset, b"again") for offset, _ in numbered_lines])
        appender.close()
        entries.append({"writer": str(reading), "key": key, "letters": numbered_lines})
    found = sorted(event.decode() for event in maker.client.read(maker.name("bad-letters")))
    assert found == sorted(line for entry in entries for _, line in entry["letters"])
    write_lines(maker.folder / "letters" / "stream.jsonl", entries)


# ---- a query, and batch writes ---------------------------------------------------------------------------------------


def spark_session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.log.level", "OFF").config("spark.sql.session.timeZone", "UTC").getOrCreate()


def query(maker: Maker) -> None:
    """A query from a stream that scaled to another one, which died when its last batch was in the ledger."""
    folder = maker.folder / "query"
    scaling = {"seal": [0], "ranges": [[0.0, 0.25], [0.25, 0.5]]}
    script = maker.script("orders", 2, *events(range(30), bad_every=10), scaling, *events(range(30, 60), bad_every=10))
    script.save(folder / "source.jsonl")
    maker.client.create_stream(maker.name("copies"), 2)
    with tempfile.TemporaryDirectory() as checkpoint:
        options = {
            "controller": maker.controller,
            "start_stream_cut": "earliest",
            "format": "json",
            "max_rows_per_trigger": "20",
            "dead_letter_path": str(folder / "letters"),
            "publish_position": "sales",
        }
        frame = spark_session().readStream.format("pravega").options(**options).schema("n INT").load(str(script.stream))
        writer = frame.selectExpr("CAST(CAST(n AS STRING) AS BINARY) AS event").writeStream.format("pravega")
        writer = writer.option("controller", maker.controller).trigger(availableNow=True)
        started = writer.start(str(maker.name("copies")), checkpointLocation=checkpoint)
        assert started.awaitTermination(240)
        assert started.exception() is None
        # Without the checksums of Spark's file system, and what its own operators keep.
        shutil.copytree(checkpoint, folder / "checkpoint", ignore=shutil.ignore_patterns(".*", "sources", "state"))
    last = max(int(path.name) for path in (folder / "checkpoint" / "offsets").iterdir())
    (folder / "checkpoint" / "commits" / str(last)).unlink(missing_ok=True)
    dump(maker.client, ledger_name(maker.name("copies"))).save(folder / "ledger.jsonl")
    maker.save("query/target.json", sorted(map(int, maker.client.read(maker.name("copies")))))
    maker.save("query/subscribers.json", maker.client.controller.subscribers(script.stream))


def newer_checkpoint(maker: Maker) -> None:
    """A checkpoint with version 2 of Spark's offset log, in which sources have names."""
    script = maker.script("named", 1, *events(range(10)))
    spark = spark_session()
    spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    with tempfile.TemporaryDirectory() as checkpoint:
        options = {"controller": maker.controller, "start_stream_cut": "earliest"}
        writer = spark.readStream.format("pravega").options(**options).load(str(script.stream)).writeStream
        started = writer.format("noop").trigger(availableNow=True).start(checkpointLocation=checkpoint)
        assert started.awaitTermination(240)
        target = maker.folder / "query" / "checkpoint_v2"
        shutil.copytree(checkpoint, target, ignore=shutil.ignore_patterns(".*", "sources", "state"))
    spark.conf.unset("spark.sql.streaming.offsetLog.formatVersion")
    assert (target / "offsets" / "0").read_text().startswith("v2\n")


def loads(maker: Maker) -> None:
    """Batch writes of one application, whose digests tell its rows."""
    target = maker.name("loads")
    maker.client.create_stream(target, 2)
    spark = spark_session()
    for version in (1, 2, 3):
        rows = spark.range(10 * version, 10 * version + 10, numPartitions=2)
        rows = rows.selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS event", "CAST(id % 3 AS STRING) AS routing_key")
        options = {"controller": maker.controller, "txn_app_id": "loader", "txn_version": str(version)}
        rows.write.format("pravega").mode("append").options(**options).save(str(target))
    dump(maker.client, ledger_name(target)).save(maker.folder / "loads_ledger.jsonl")


def table(maker: Maker) -> None:
    """The columns of an SQL table as a catalog keeps them, and of a read through a registry."""
    stream = maker.name("table")
    maker.client.create_stream(stream)
    spark = spark_session()
    fields = '[{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]'
    avro = f'{{"type": "record", "name": "Order", "fields": {fields}}}'
    spark.sql(
        f"CREATE TABLE orders USING pravega OPTIONS (controller '{maker.controller}', stream '{stream}', "
        f"format 'avro', avro_schema '{avro}', password 'secret')"
    )
    options = {"controller": maker.controller, "stream": str(stream), "format": "avro", "avro_schema": avro}
    given = {**options, "password": "secret"}
    given |= {f"option.{name}": value for name, value in given.items()}
    source = PravegaDataSource({"provider": "pravega", "path": "file:/warehouse", **given})
    # As Spark hands it to the source: a VARCHAR of the catalog is a STRING by then.
    kept = json.loads(spark.table("orders").schema.json())
    assert [each["metadata"]["pravega.options"] for each in kept["fields"]] == [
        each.metadata["pravega.options"] for each in source.schema()
    ]
    spark.sql("DROP TABLE orders")
    maker.save("table/columns.json", kept)
    of_registry = parse_options(
        SourceOptions, {"stream": str(stream), "registry": "http://localhost:9092", "group": "g"}
    )
    with_ids = with_schema_ids(StructType([StructField("item", StringType())]), of_registry, (3, 5))
    maker.save("table/registry_columns.json", json.loads(with_ids.json()))


# ---- files, and servers in the background ----------------------------------------------------------------------------


def exports(maker: Maker) -> None:
    """Files that say from where to where they are."""
    scaling = {"seal": [0], "ranges": [[0.0, 0.5], [0.5, 1.0]]}
    script = maker.script("exported", 1, *events(range(5)), scaling, *events(range(5, 10)))
    script.save(maker.folder / "export" / "source.jsonl")
    for suffix in ("parquet", "avro"):
        path = maker.folder / "export" / f"events.{suffix}"
        export_stream(str(script.stream), path, controller=maker.controller, columns="event,segment_id,offset")


def local(maker: Maker) -> None:
    """State of ``local up`` for the next command, and the manifests of the jars."""
    with tempfile.TemporaryDirectory() as cache:
        Path(cache, "jars").symlink_to(pravega_jars().parent)
        environment = {**os.environ, "PRAVEGA_SERDE_CACHE": cache}
        run = [sys.executable, "-c", "from pravega_connector.operations.cli import main; main()", "local"]
        try:
            up = ["up", "--port", "0", "--registry", "--registry-port", "0"]
            subprocess.run([*run, *up], env=environment, check=True)
            (maker.folder / "local").mkdir(exist_ok=True)
            for name in ("server", "registry"):
                state = json.loads(Path(cache, "local", f"{name}.json").read_text())
                # Unchanged there, but for the folder's name, which is this machine's.
                state["log"] = f"/tmp/pravega-serde-sample/{name}.log"
                (maker.folder / "local" / f"{name}.json").write_text(json.dumps(state))
        finally:
            subprocess.run([*run, "down"], env=environment, check=True)
    for folder in (pravega_jars(), registry_jars()):
        target = maker.folder / "jars" / folder.name / "manifest.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "manifest.json", target)


def exchanged(maker: Maker) -> None:
    """Objects that the processes of a query exchange, as pickles."""
    stream = maker.name("exchanged")
    maker.client.create_stream(stream)
    columns = StructType([StructField("event", BinaryType())])
    source = PravegaDataSource({"controller": maker.controller, "stream": str(stream), "columns": "event"})
    reader = source.streamReader(columns)
    start, end = ({"streams": {str(stream): {"0.#epoch.0": at}}, "version": 1} for at in (0, 90))
    (partition,) = reader.partitions(start, end)
    sink = importlib.import_module("pravega_connector.spark.sink.transactions")
    part = sink.TaskPart(stream, uuid.UUID(int=1), Content(2, 30, 7), 0, 1_700_000_000_000)
    messages = {
        "prepared": sink.TaskPrepared(sink.WriteId("app", "query", "run", 7), 3, (part,)),
        "written": importlib.import_module("pravega_connector.spark.sink.writers").TaskWritten(2, 30, query="query"),
    }
    objects = {"reader": reader, "partition": partition, "writer": source.streamWriter(columns, False), **messages}
    (maker.folder / "exchange").mkdir(exist_ok=True)
    for name, value in objects.items():
        (maker.folder / "exchange" / f"{name}.pickle").write_bytes(pickle.dumps(value))


SCENES: dict[str, Callable[[Maker], None]] = {
    scene.__name__: scene
    for scene in (offsets, ledger, ingestion, letters, exports, exchanged, local, query, loads, table, newer_checkpoint)
}


def main(folder: str, *scenes: str) -> None:
    """Write the samples of some scenes, of all if none is named."""
    path = Path(folder).absolute()
    if not scenes:
        shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True, exist_ok=True)
    with LocalPravega() as server, closing(PravegaClient(server.config)) as client:
        maker = Maker(path, client)
        client.controller.create_scope(maker.scope)
        for name in scenes or SCENES:
            SCENES[name](maker)
            print(name)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Kill runs of ``tier`` before and after their commits, and count the events in the table afterwards.

Keys write numbered events into a stream that is scaled. In the meantime, runs are killed at a commit or at any moment,
every second one together with a run that competes. At the end, polars, DuckDB and Spark must find each event once, and
in order. With ``--truncate``, each run also truncates the stream, and table and stream together must have all events
after each kill. ``--memory`` lets one run follow the stream for this number of seconds, and shows its memory.

For ``merge``, the events are change events of Debezium, and for ``merge-ordered`` some of them are repeated later. Each
version of the table must be the last change of each key before the stream cut of the version, and no change may be
missing or counted twice between two cuts.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import click
import duckdb
import numpy as np
import polars
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.table import TableMerger
from pyiceberg.catalog import load_catalog

from pravega_connector.client import PravegaClient
from pravega_connector.errors import FencedError
from pravega_connector.operations.tier import (
    TierMerge,
    TierPosition,
    TierSettings,
    delta,
    read_table_and_tail,
    spark_table_and_tail,
    tier,
    tier_status,
)
from pravega_connector.operations.tier.iceberg import IcebergTable
from pravega_connector.stream_cuts import compare_cuts
from pravega_connector.testing import InProcessPravega

STREAM: Final = "lake/events"
KEYS: Final = 64
_FENCED: Final = 3  # exit code
_FORKS: Final = multiprocessing.get_context("forkserver")
_COLUMNS: Final = ["key", "number", "segment_id", "offset"]
_IDS: Final = 16  # of each key, in the rows of merges
_REPEATED: Final = 1  # last rounds that are written again after each block
_MERGES: Final = {
    "merge": TierMerge(key=("id",)),
    "merge-ordered": TierMerge(key=("id",), order="position", keep_deleted=True),
}


def _say(text: str) -> None:
    print(text, flush=True)


class _Table:
    """Table of one kind in a folder."""

    def __init__(self, kind: str, folder: str, controller: str) -> None:
        self.kind, self.folder, self.controller = kind, folder, controller
        self.merge = _MERGES.get(kind)
        self.name = "iceberg:main.shop.orders" if kind == "iceberg" else f"delta:{folder}/table"
        catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        self.storage = catalog if kind == "iceberg" else {}

    def run(self, **settings: Any) -> None:
        tier(STREAM, self.name, **self.options(), settings=TierSettings(merge=self.merge, **settings))

    def options(self) -> dict[str, Any]:
        own = {"storage": self.storage, "controller": self.controller, "format": "json"}
        return own if self.merge is None else {**own, "unwrap": "debezium"}

    def commits(self) -> list[tuple[Any, str]]:
        """Return the functions that commit to the table, as owner and name."""
        if self.merge is not None:
            return [(TableMerger, "execute"), (delta, "write_deltalake")]
        return [(IcebergTable if self.kind == "iceberg" else delta.DeltaLakeTable, "commit")]

    def readers(self) -> dict[str, Callable[[], pa.Table]]:
        """Return the reads of other programs."""
        if self.kind == "delta":
            table = DeltaTable(f"{self.folder}/table")
            data = table.to_pyarrow_dataset()
            lazy = polars.scan_delta(f"{self.folder}/table")
        else:
            loaded = load_catalog("main", **self.storage).load_table("shop.orders")
            data = loaded.scan().to_arrow()
            lazy = polars.scan_iceberg(loaded)
        return {
            "polars": lambda: lazy.select(_COLUMNS).collect().to_arrow(),
            "DuckDB": lambda: duckdb.from_arrow(data).to_arrow_table().select(_COLUMNS),
            "Spark": self._spark,
        }

    def _spark(self) -> pa.Table:
        from tests.support.spark_session import spark_session  # it starts a JVM

        os.environ["PYSPARK_PYTHON"] = sys.executable
        frame = spark_table_and_tail(spark_session(Path(self.folder)), STREAM, self.name, **self.options())
        return frame.select(_COLUMNS).toArrow()


def _child(given: dict[str, Any], commits: Connection) -> None:
    """Run until killed, and send the number of each commit. The process kills itself before or after a commit."""
    table = _Table(given["kind"], given["folder"], given["controller"])
    left = given["commit"]

    def counted(commit: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and given["point"] == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = commit(*args, **options)
            if left == 0 and given["point"] == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            commits.send(left)
            return result

        return call

    for owner, name in table.commits():
        setattr(owner, name, counted(getattr(owner, name)))
    truncate = 0.0 if given["truncate"] else None
    try:
        table.run(follow=True, target_bytes=given["bytes"], max_interval=0.2, truncate_after=truncate)
    except FencedError:
        sys.exit(_FENCED)


class _Run:
    """Process of a run, a fork of one that has imported the modules."""

    def __init__(self, table: _Table, **given: Any) -> None:
        self._commits, sent = _FORKS.Pipe(duplex=False)
        settings = {"kind": table.kind, "folder": table.folder, "controller": table.controller, **given}
        self.process = _FORKS.Process(target=_child, args=(settings, sent), daemon=True)
        self.process.start()
        sent.close()

    def wait(self, commits: int) -> None:
        """Wait for a number of commits, for the end of the process, or until nothing is left to commit."""
        try:
            for _ in range(commits):
                if not self._commits.poll(20):
                    return  # the competing run has committed all
                self._commits.recv()
        except EOFError:
            pass

    def kill(self) -> int:
        """Kill the process, and return its exit code."""
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        assert code is not None
        return code


def _event(kind: str, key: int, number: int) -> str:
    """Return an event of a key as JSON. Of the changes of an id, one of five deletes it."""
    if kind not in _MERGES:
        return json.dumps({"key": f"k{key}", "number": number, "text": "x" * 20})
    row = {"id": key + KEYS * (number % _IDS), "number": number}
    deletes = (number // _IDS + key) % 5 == 4
    sides = {"op": "d", "before": row} if deletes else {"op": "u", "after": row}
    source = {"connector": "postgresql", "ts_ms": 0, "table": "orders", "sequence": f'["{number}","{number}"]'}
    return json.dumps({"before": None, "after": None, **sides, "source": source})


class _Writing:
    """Writer of numbered events, in the background."""

    def __init__(self, client: PravegaClient, kind: str, rounds: int, block: int) -> None:
        self._client, self._kind, self._rounds, self._block = client, kind, rounds, block
        self.written = 0
        self.may = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self) -> None:
        repeated = _REPEATED if self._kind == "merge-ordered" else 0
        with self._client.writer(STREAM, "string") as writer:
            for number in range(self._rounds):
                if number % self._block == 0:
                    self.may.acquire()
                for key in range(KEYS):
                    writer.write(_event(self._kind, key, number), routing_key=f"k{key}")
                if number % (self._rounds // 7) == 1:
                    self._client.scale_stream(STREAM, 3 + number % 4)
                if (number + 1) % self._block == 0:
                    writer.flush()
                    self.written = number + 1
                    time.sleep(repeated)  # a run has committed by then, and gets nothing but repeated changes
                    for again in range(number - repeated, number):
                        for key in range(KEYS):
                            writer.write(_event(self._kind, key, again), routing_key=f"k{key}")
                    writer.flush()
            writer.flush()
            self.written = self._rounds


def _check(rows: pa.Table, least: int, what: str) -> int:
    """Return the events of each key, which are in order and each once, and are at least ``least``."""
    segments, offsets = rows["segment_id"].to_numpy(), rows["offset"].to_numpy()
    keys = np.array([int(key[1:]) for key in rows["key"].to_pylist()])
    order = np.lexsort((offsets, segments, segments >> 32, keys))
    keys, numbers = keys[order], rows["number"].to_numpy()[order]
    counts = np.bincount(keys, minlength=KEYS)
    wanted = np.concatenate([np.arange(count) for count in counts])
    if not np.array_equal(numbers, wanted) or counts.min() < least:
        raise SystemExit(f"{what}: the events are not those of the stream: {rows.num_rows} rows, at least {least} each")
    return int(counts.min())


def _check_merges(table: _Table, client: PravegaClient) -> None:
    """Compare each version of the table with the last change of each id before its cut, which the stream has."""
    merged = DeltaTable(f"{table.folder}/table")
    state: dict[int, tuple[int, int, bool]] = {}  # number of the position and of the row, and whether it was deleted
    cut, events, empty, number = client.head(STREAM), 0, 0, 0
    for number, entry in enumerate(reversed([each for each in merged.history() if "pravega.tier" in each]), 1):
        position = TierPosition.from_text(entry["pravega.tier"], table.name)
        for change in client.read(STREAM, "json", start=cut, end=position.stream_cut()):
            events += 1
            row = change["after"] or change["before"]
            if row["number"] >= state.get(row["id"], (0, 0, False))[0]:
                state[row["id"]] = (row["number"], row["number"], change["op"] == "d")
        cut = position.stream_cut()
        empty += entry["operation"] != "MERGE"
        merged.load_as_version(entry["version"])
        rows = merged.to_pyarrow_table().to_pylist()
        found = {row["id"]: bool(row.get("deleted")) or row["number"] for row in rows}
        kept = table.merge is not None and table.merge.keep_deleted
        wanted = {each: gone or last for each, (_, last, gone) in state.items() if kept or not gone}
        if len(rows) != len(found) or found != wanted or (position.events, position.version) != (events, number):
            raise SystemExit(f"{table.kind}: version {entry['version']} is not the last change of each id: {position}")
    if compare_cuts(cut, client.tail(STREAM), client).bytes:
        raise SystemExit(f"{table.kind}: the table lacks changes after {cut}")
    deleted = sum(gone for *_, gone in state.values())
    _say(
        f"{table.kind}: {events:,} changes of {len(state):,} ids ({deleted} deleted) are in {number} commits ({empty} "
        "without a row), and each version has the last change of each id"
    )


def _kills(table: _Table, client: PravegaClient, events: int, kills: int, *, truncate: bool) -> None:
    choice, begin = random.Random(7), time.monotonic()
    rounds = max(events // KEYS, kills)
    writing = _Writing(client, table.kind, rounds, rounds // kills)
    points: dict[str, int] = {}
    fenced = 0
    for number in range(kills):
        writing.may.release()
        point = choice.choice(("before", "after", "at any moment"))
        points[point] = points.get(point, 0) + 1
        commits = choice.randrange(1, 4)
        given = {"truncate": truncate, "bytes": 15 * events // kills, "point": point, "commit": commits}
        runs = [_Run(table, **given) for _ in range(1 + number % 2)]
        runs[0].wait(commits)
        time.sleep(choice.random() * 0.3 if point == "at any moment" else 0)
        codes = [each.kill() for each in runs]
        if not {-signal.SIGKILL, _FENCED}.issuperset(codes):
            raise SystemExit(f"{table.kind}: a run has ended with an error: exit codes {codes}")
        fenced += codes.count(_FENCED)
        if truncate:
            rows = read_table_and_tail(STREAM, table.name, **table.options()).read_all()
            _check(rows, writing.written, f"table and stream after kill {number + 1}")
    writing.may.release()
    writing.thread.join()
    assert writing.written == rounds, "the writer has ended early"
    table.run(target_bytes=4 << 20)
    position, lag = tier_status(STREAM, table.name, **table.options())
    assert position is not None
    assert lag is not None
    _say(f"{table.kind}: {kills} kills {points}, {fenced} runs fenced, {position.version} commits, lag {lag.bytes}")
    if table.merge is not None:
        _check_merges(table, client)
    for name, read in ({} if table.merge is not None else table.readers()).items():
        found = read()
        _check(found, writing.written, name)
        _say(f"{table.kind}: {name} reads {found.num_rows:,} events, each once and in order")
    head, tail = client.head(STREAM), client.tail(STREAM)
    _say(f"{table.kind}: the stream has {compare_cuts(head, tail, client).bytes} bytes")
    _say(f"{table.kind}: {time.monotonic() - begin:.0f} s")


def _memory(table: _Table, client: PravegaClient, seconds: int) -> None:
    given = {"truncate": True, "bytes": 4 << 20, "point": "never", "commit": 0}
    run = _Run(table, **given)
    status = Path(f"/proc/{run.process.pid}/status")
    until, sizes, written = time.monotonic() + seconds, [], 0
    with client.writer(STREAM, "json") as writer:
        while time.monotonic() < until:
            shown = time.monotonic() + seconds / 12
            while time.monotonic() < shown:
                for key in range(KEYS):
                    writer.write({"key": f"k{key}", "number": written, "text": "x" * 100}, routing_key=f"k{key}")
                written += 1
                time.sleep(0.01)
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            sizes.append(int(lines["VmRSS"].split()[0]) >> 10)
    run.kill()
    position, _ = tier_status(STREAM, table.name, **table.options())
    assert position is not None
    _say(f"{table.kind}: MiB over {seconds} s: {sizes}; {position.events:,} events in {position.version} commits")


@click.command(help=__doc__)
@click.argument("kind", type=click.Choice(["delta", "iceberg", *_MERGES]))
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--kills", default=30, show_default=True)
@click.option("--truncate", is_flag=True)
@click.option("--memory", type=int, metavar="SECONDS")
def main(kind: str, events: int, kills: int, truncate: bool, memory: int | None) -> None:
    if truncate and kind in _MERGES:
        raise click.UsageError("a merged table has no rest of the stream to read with it")
    _FORKS.set_forkserver_preload(["tests.faults.lake"])
    with tempfile.TemporaryDirectory() as folder, InProcessPravega() as server, server.client() as client:
        client.create_stream(STREAM, 3)
        table = _Table(kind, folder, client.config.controller)
        if memory is not None:
            _memory(table, client, memory)
        else:
            _kills(table, client, events, kills, truncate=truncate)


if __name__ == "__main__":
    main()

"""How what a Spark query takes grows: with events, with segments, with streams, and with the bytes of one task.

Each curve has a real server of its own, so that what the ones before it left is not in the way; all share one Spark of
two cores. A query counts its events and their bytes, which are compared with what was written.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Final, Self

import pyarrow as pa

from benchmarks._cpu import cpu_seconds, tree_cpu_seconds
from benchmarks._spark_data import KINDS, Place, fill
from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.core.io import side_by_side
from pravega_connector.local import LocalPravega
from tests.support.processes import stat_of

__all__ = ["CURVES", "Curve", "Point", "Workbench", "growth"]

_SCOPE: Final = "scale"
_ROUNDS: Final = 3
_WARM_UP: Final = 1_000
# Written at most so fast: the server has what it is ahead of its disk in memory.
_BYTES_PER_SECOND: Final = 50_000_000
_STEP_BYTES: Final = 50_000_000
_FEW_BYTES: Final = 500_000_000  # up to so many are read several times
_READ_SECONDS: Final = 900.0
_MAKERS: Final = 8
_PER_STREAM: Final = 100
# A last step that grows no more than this is none; one that grows faster than its size by more is not linear.
_CONSTANT: Final = 1.3
_LINEAR: Final = 1.15

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Point:
    """One size of a curve: seconds of the look at the columns, the plan and the read, the least of some rounds."""

    size: int
    events: int
    bytes: int
    """Of the events, without what frames them."""
    look: float
    plan: float
    read: float
    spark_cpu: float
    """CPU seconds of the read in Spark, its tasks included."""
    server_cpu: float
    task_mib: float
    """Most memory that a process of a task held, libraries that it shares with others included."""

    def micros(self, seconds: float) -> float:
        """Microseconds for an event."""
        return seconds / self.events * 1e6

    @property
    def rate(self) -> float:
        """Megabytes of events that the read took a second."""
        return self.bytes / self.read / 1e6


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one question, by rising size."""

    name: str
    title: str
    unit: str
    points: tuple[Point, ...]

    def __str__(self) -> str:
        columns = f"{'look s':>8} {'plan s':>8} {'read s':>8} {'µs/event':>9} {'CPU Spark':>10} {'server':>8}"
        lines = [self.title, f"{self.unit:>16} {columns} {'MB/s':>7} {'task MiB':>9}"]
        lines += [
            f"{p.size:>16,} {p.look:>8.2f} {p.plan:>8.2f} {p.read:>8.2f} {p.micros(p.read):>9.2f} "
            f"{p.micros(p.spark_cpu):>10.2f} {p.micros(p.server_cpu):>8.2f} {p.rate:>7.0f} {p.task_mib:>9.0f}"
            for p in self.points
        ]
        lines += [f"  {what}: {said}" for what, said in self.verdicts().items()]
        return "\n".join(lines)

    def verdicts(self) -> dict[str, str]:
        """How the plan, the read, its CPU time in Spark and the memory grow."""
        sizes, asked = [p.size for p in self.points], ("plan", "read", "spark_cpu", "task_mib")
        return {what: growth(sizes, [getattr(p, what) for p in self.points]) for what in asked}

    def to_json(self) -> dict[str, Any]:
        """The curve with all its numbers."""
        points = [asdict(point) for point in self.points]
        about = {"name": self.name, "title": self.title, "unit": self.unit}
        return {**about, "points": points, "growth": self.verdicts()}


def growth(sizes: Sequence[int], values: Sequence[float]) -> str:
    """What the last step says: constant, linear, less (a fixed part is still most of it), or more than that."""
    if len(sizes) < 2:
        return "one point says nothing"
    wider, more = sizes[-1] / sizes[-2], values[-1] / values[-2]
    step = f"the last step is {wider:.3g} × the size and {more:.2f} × the value"
    if values[-1] <= _CONSTANT * min(values):
        return f"constant ({step})"
    if more > _LINEAR * wider:
        return f"NOT LINEAR ({step})"
    return f"{'linear' if more * _LINEAR >= wider else 'less than linear'} ({step})"


class Workbench:
    """Spark of two cores, and a server for each curve. Context manager."""

    def __init__(self, note: Note, *, quick: bool) -> None:
        self.note, self.quick = note, quick
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        conf = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.adaptive.enabled": "false",  # the plan is then made before it is run, and can be timed
            "spark.sql.shuffle.partitions": "1",
            "spark.log.level": "ERROR",
        }
        builder = SparkSession.builder.master("local[2]")
        for name, value in conf.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self._stack.callback(self.spark.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def server(self) -> Iterator[PravegaClient]:
        """A client of a new server, on which one query has been made that does not count."""
        with LocalPravega() as server, PravegaClient(server.config, timeout=60.0) as client:
            self._server = server.pid
            client.create_scope(_SCOPE)
            self._read(client, self.filled(client, "warm-up", 1, "100 B", _WARM_UP))
            yield client

    def filled(self, client: PravegaClient, name: str, segments: int, kind: str, events: int) -> dict[str, str]:
        """Options of a query over a new stream of so many events."""
        stream = StreamName(_SCOPE, name)
        client.create_stream(stream, segments)
        pool = KINDS[kind](Place(Path(), "", "")).events
        step = _STEP_BYTES // len(pool[0])
        for first in range(0, events, step):
            count, began = min(step, events - first), time.monotonic()
            fill(client.config.controller, stream, pool, count)
            left = count * len(pool[0]) / _BYTES_PER_SECOND - (time.monotonic() - began)
            if first + step < events and left > 0:
                time.sleep(left)
        return {"path": str(stream)}

    def point(self, client: PravegaClient, size: int, events: int, event_bytes: int, options: dict[str, str]) -> Point:
        """Query it some times, a long one once. AssertionError if an event is missing or another one than written."""
        total = events * event_bytes
        rounds, peaks = [], []
        for _ in range(_ROUNDS if total <= _FEW_BYTES else 1):
            _forget_peaks()
            seconds, found = self._read(client, options)
            assert found == (events, total), f"{found} events and bytes instead of {(events, total)}"
            rounds.append(seconds)
            peaks.append(_peak_mib())
        point = Point(size, events, total, *map(min, zip(*rounds, strict=True)), max(peaks))
        self.note(f"  {size:,}: plan {point.plan:.2f} s, read {point.read:.2f} s, load {os.getloadavg()[0]:.0f}")
        return point

    def _read(self, client: PravegaClient, options: dict[str, str]) -> tuple[tuple[float, ...], tuple[int, int]]:
        """Seconds as a :class:`Point` has them; events and bytes."""
        given = {"controller": client.config.controller, "columns": "event", **options}
        limit = Timer(_READ_SECONDS, self.spark.sparkContext.cancelAllJobs)
        limit.start()
        try:
            began = time.perf_counter()
            frame = self.spark.read.format("pravega").options(**given).load()
            frame = frame.selectExpr("count(event) AS events", "sum(octet_length(event)) AS bytes")
            looked = time.perf_counter()
            frame._jdf.queryExecution().toRdd()  # asks the source for its tasks, and runs none
            planned, cpu = time.perf_counter(), self._cpu()
            ((events, size),) = frame.collect()
            read = time.perf_counter() - planned
            spent = (after - before for before, after in zip(cpu, self._cpu(), strict=True))
            return (looked - began, planned - looked, read, *spent), (events, size)
        finally:
            limit.cancel()

    def _cpu(self) -> tuple[float, float]:
        """CPU seconds so far of Spark with its tasks, and of the server."""
        server = cpu_seconds(self._server)
        return tree_cpu_seconds(os.getpid()) - server, server


def _by_events(bench: Workbench) -> Curve:
    sizes = (1_000, 10_000, 100_000) if bench.quick else (10_000, 100_000, 1_000_000, 10_000_000)
    with bench.server() as client:
        points = [
            bench.point(client, size, size, 100, bench.filled(client, f"events-{size}", 3, "100 B", size))
            for size in sizes
        ]
    return Curve("events", "Events of 100 B in 3 segments", "events", tuple(points))


def _by_segments(bench: Workbench) -> Curve:
    sizes, events = ((1, 4), 10_000) if bench.quick else ((1, 4, 16, 64), 1_000_000)
    with bench.server() as client:
        points = [
            bench.point(client, size, events, 100, bench.filled(client, f"wide-{size}", size, "100 B", events))
            for size in sizes
        ]
    return Curve("segments", f"{events:,} events of 100 B in so many segments", "segments", tuple(points))


def _by_streams(bench: Workbench) -> Curve:
    sizes = (3, 10) if bench.quick else (10, 100, 1000)
    column = pa.array([b"%0100d" % number for number in range(_PER_STREAM)], pa.binary())

    def make(stream: StreamName) -> None:
        client.create_stream(stream)
        with client.writer(stream) as writer:
            writer.write_column(column)

    points, there = [], 0
    with bench.server() as client:
        client.create_scope("many")
        for size in sizes:
            side_by_side(make, [StreamName("many", f"s{number}") for number in range(there, size)], _MAKERS)
            there = size
            points.append(bench.point(client, size, size * _PER_STREAM, 100, {"stream_pattern": "many/*"}))
    return Curve("streams", f"Streams of a pattern, {_PER_STREAM} events of 100 B each", "streams", tuple(points))


def _by_bytes(bench: Workbench) -> Curve:
    sizes = (1_000_000, 10_000_000) if bench.quick else (100_000_000, 1_000_000_000, 10_000_000_000)
    points = []
    for size in sizes:
        # What is read back lies on the disk; what is deleted goes with the server.
        free = shutil.disk_usage(tempfile.gettempdir()).free
        if free < 2 * size:
            bench.note(f"  {size:,} bytes are left out: {free:,} are free in {tempfile.gettempdir()}")
            continue
        with bench.server() as client:
            events = size // 1024
            options = bench.filled(client, "one-task", 1, "1 KiB", events)
            points.append(bench.point(client, size, events, 1024, options))
    return Curve("bytes", "Bytes of events of 1 KiB in one segment, which one task reads", "bytes", tuple(points))


#: Each curve by its name.
CURVES: Final = {"events": _by_events, "segments": _by_segments, "streams": _by_streams, "bytes": _by_bytes}


# ---- memory of Spark's tasks -----------------------------------------------------------------------------------------


def _task_processes() -> list[Path]:
    """Of Spark's workers of tasks that descend from this process: their folders in /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes().rstrip(b"\0").endswith(b"pyspark.worker") and _is_ours(folder):
                found.append(folder)
    return found


def _is_ours(folder: Path) -> bool:
    pid = int(folder.name)
    while pid > 1 and (state := stat_of(pid)):
        pid = int(state[1])
        if pid == os.getpid():
            return True
    return False


def _forget_peaks() -> None:
    """Let the peaks of workers that are there already begin anew: Spark uses them for the next tasks."""
    for folder in _task_processes():
        with contextlib.suppress(OSError):
            (folder / "clear_refs").write_text("5")


def _peak_mib() -> float:
    """Most memory of a worker; not a number if there is none any more."""
    peaks = []
    for folder in _task_processes():
        with contextlib.suppress(OSError):
            status = (folder / "status").read_text()
            peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")]
    return max(peaks, default=math.nan)

"""Delay of an event in Spark's real-time mode: from the call that writes it until a sink gets its row."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks._drive import Peer
from benchmarks._server import SCOPE, Server
from pravega_connector.client import EventWriter, PravegaClient
from pravega_serde import AvroSerializer

_EVENTS: Final = 1_000
_FEW_EVENTS: Final = 100
_FIRST: Final = 100  # which start processes and compile
_EACH_SECOND: Final = (10, 100, 1_000)
#: Rates with a flush after each event. Without one, the writer collects events for some milliseconds.
_FLUSHED: Final = (10, 100)
#: The modes, with Spark's trigger.
_MODES: Final = {"real-time mode": {"realTime": "10 minutes"}, "micro-batches": {"processingTime": "0 seconds"}}
_ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "written", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "prices", "type": {"type": "array", "items": "double"}},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}},
    ],
}
#: Events -> options of the source, and the expression with the time in which an event was written.
_EVENTS_OF: Final = {
    "raw events": ({}, "event"),
    "Avro": ({"format": "avro", "avro_schema": json.dumps(_ORDER)}, "written"),
}
_SERIALIZER: Final = AvroSerializer(_ORDER)
_START_SECONDS: Final = 300.0
_WAIT_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays of one rate in one mode, in milliseconds, in the order of the events."""

    mode: str
    events: str
    each_second: int
    milliseconds: list[float]

    def __str__(self) -> str:
        ordered = sorted(self.milliseconds)
        late = ordered[len(ordered) * 99 // 100]
        found = f"median {statistics.median(ordered):.1f} ms, p99 {late:.1f} ms, largest {ordered[-1]:.1f} ms"
        return f"{self.mode}, {self.events}, {self.each_second:,} events/s: {found} of {len(ordered):,} events"


def run_real_time(*, quick: bool, note: Callable[[str], None]) -> Iterator[Delays]:
    """Yield the delays of each mode and rate. The reader is the one inside the JVM, the sink is a Java class."""
    command = [sys.executable, "-m", "benchmarks.peers.spark_app", "pravega", "--configure", "--memory", "3g"]
    with (
        Server(note) as server,
        Peer("ours", command, start_timeout=_START_SECONDS) as spark,
        tempfile.TemporaryDirectory(prefix="benchmarks-") as folder,
    ):
        kinds = itertools.product(_MODES.items(), _EVENTS_OF.items(), _EACH_SECOND)
        for (mode, trigger), (events, (decoded, event)), each_second in kinds:
            note(f"{mode}, {events}, {each_second:,} events/s")
            stream, rows = server.stream(_EVENTS, 20, segments=1), Path(folder, f"{mode}-{events}-{each_second}")
            options = {
                "controller": server.uri,
                "scope": SCOPE,
                "stream": stream.stream,
                "raw_reader": "auto",
                **decoded,
            }
            spark.ask("start_rows", options=options, trigger=trigger, file=str(rows), event=event)
            with PravegaClient(server.uri) as client, client.writer(stream) as writer:
                encoded = _avro if decoded else _text
                for _ in range(_FIRST):
                    _write(writer, encoded, flushed=True)
                _await(rows, _FIRST)
                count = _FEW_EVENTS if quick else _EVENTS
                begin = time.monotonic()
                for number in range(count):
                    time.sleep(max(0.0, begin + number / each_second - time.monotonic()))
                    _write(writer, encoded, flushed=each_second in _FLUSHED)
                writer.flush()
                found = _await(rows, _FIRST + count)[_FIRST:]
            spark.ask("stop_rows")
            yield Delays(mode, events, each_second, found)


def _text() -> bytes:
    return b"%d" % time.monotonic_ns()


def _avro() -> bytes:
    order = {"item": "green tea", "prices": [3.25, 4.5], "place": {"city": "Zürich"}}
    return _SERIALIZER.serialize({"written": time.monotonic_ns(), **order})


def _write(writer: EventWriter[bytes], event: Callable[[], bytes], *, flushed: bool) -> None:
    """Write an event with the present time."""
    writer.write(event())
    if flushed:
        writer.flush()


def _await(file: Path, rows: int) -> list[float]:
    """Return the delays of the rows in the file, when it has this number of them."""
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= rows:
            found = [json.loads(line)[1] for line in lines]
            # Java's nanoTime and Python's monotonic_ns read the same clock.
            return [(int(row["arrived"]) - int(row["event"])) / 1e6 for row in found]
        time.sleep(0.05)
    raise TimeoutError(f"not {rows} rows in {file} within {_WAIT_SECONDS:.0f} s")

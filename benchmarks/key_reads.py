"""Cost of reading one routing key: segments, bytes and time, compared with a read of the whole stream.

python -m benchmarks.key_reads --events 10000000

It starts a server, writes JSON events of 100 bytes with 1,000 keys to 16 segments, and reads one key in both ways. The
rows of both must be equal. With ``--scale``, the stream is scaled to 24 segments after half of the events.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector import metrics
from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.reader.event_columns import EventColumns
from pravega_connector.wire import StreamName
from pravega_serde import ByField, JsonSerializer

SIZE = 100
BLOCK = 100_000
SERIALIZER = JsonSerializer(arrow_type=pa.schema([("camera", pa.string()), ("n", pa.int64())]))
PADDED = '{{"camera":"camera {:03d}","n":{:d},"text":"{}"}}'
FIRST = 10**9  # every number has ten digits
TEXT = "x" * (SIZE - len(PADDED.format(0, FIRST, "")))


@dataclass(frozen=True)
class Read:
    """Cost of one read."""

    segments: int
    bytes: int
    events: int
    seconds: float
    cpu_seconds: float


def blocks(events: int, keys: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield columns of events and of their routing keys."""
    rng = np.random.default_rng(1)
    for first in range(0, events, BLOCK):
        chosen = rng.integers(0, keys, min(BLOCK, events - first)).tolist()
        payloads = [PADDED.format(key, FIRST + first + row, TEXT).encode() for row, key in enumerate(chosen)]
        yield pa.array(payloads), pa.array([f"camera {key:03d}" for key in chosen])


def read(columns: EventColumns, stream: StreamName, key: str) -> tuple[Read, pa.Table]:
    """Return the cost of a read, and its rows of the key."""
    before = _consumed(stream)
    segments: set[int] = set()
    found = []
    start, cpu = time.perf_counter(), time.process_time()
    for batch in columns.record_batches():
        segments.update(pc.unique(batch.column("segment_id")).to_pylist())
        found.append(batch.filter(pc.equal(batch.column("camera"), key)))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    read_bytes, events = (int(now - then) for now, then in zip(_consumed(stream), before, strict=True))
    return Read(len(segments), read_bytes, events, round(seconds, 3), round(cpu, 3)), pa.Table.from_batches(found)


def _consumed(stream: StreamName) -> tuple[float, float]:
    counters = (metrics.CONSUMED_BYTES, metrics.CONSUMED_EVENTS)
    numbers = [dict(counter.series()).get((str(stream),), 0) for counter in counters]
    return numbers[0], numbers[1]


@click.command(help=__doc__)
@click.option("--events", type=click.IntRange(min=1), default=1_000_000, show_default=True)
@click.option("--keys", type=click.IntRange(1, 1000), default=1_000, show_default=True)
@click.option("--segments", type=click.IntRange(min=1), default=16, show_default=True)
@click.option("--scale", is_flag=True, help="Scale the stream by half after half of the events.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--controller", help="A running Pravega, instead of one that is started here.")
def main(events: int, keys: int, segments: int, scale: bool, rounds: int, controller: str | None) -> None:
    with ExitStack() as stack:
        if controller is None:
            controller = stack.enter_context(LocalPravega()).controller_uri
        client = stack.enter_context(PravegaClient(controller))
        stream = StreamName("bench", f"keys-{time.time_ns()}")
        client.create_stream(stream, segments)
        stack.callback(client.delete_stream, stream)
        with client.writer(stream) as writer:
            for number, columns in enumerate(blocks(events, keys)):
                if scale and number == events // BLOCK // 2:
                    writer.flush()
                    client.scale_stream(stream, segments * 3 // 2)
                writer.write_column(*columns)
        key = f"camera {keys // 2:03d}"
        places = ["segment_id", "offset"]
        for _ in range(rounds):
            whole, expected = read(client.read_columns(stream, SERIALIZER, metadata=places), stream, key)
            by_key = client.read_columns(stream, SERIALIZER, metadata=places, key=key, router=ByField("camera"))
            one, rows = read(by_key, stream, key)
            assert rows.sort_by([("n", "ascending")]).equals(expected.sort_by([("n", "ascending")]))
            assert rows.num_rows > 0
            parts = {name: round(getattr(one, name) / getattr(whole, name), 4) for name in asdict(one)}
            line = {"rows": rows.num_rows, "whole stream": asdict(whole), "one key": asdict(one), "ratio": parts}
            json.dump(line, sys.stdout)
            print(flush=True)


if __name__ == "__main__":
    main()

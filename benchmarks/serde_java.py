"""``python -m benchmarks.serde_java [--rounds N]``: Java object streams by row and column, javaobj's and Java's.

Every peer decodes (or encodes) the same events in turn; the rates are single-threaded. The aims are those of the
project: strings by row 20 times javaobj, flat objects by row 10 times, columns at least as fast as Java.
"""

from __future__ import annotations

import random
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa
from rich.console import Console

from benchmarks._alternate import Case, run_case
from benchmarks._stats import as_table
from connector.local._java import find_java
from pravega_serde.java import ClassDescriptor, JavaSerializer

COUNT: Final = 50_000
SLOW_COUNT: Final = 5_000
"""Events for javaobj, which would take minutes for all of them."""

SOURCES: Final = Path(__file__).parents[1] / "tests/interop/java_serde"
FLAT: Final = {"id": "long", "count": "int", "value": "double", "ok": "boolean", "name": "java.lang.String"}
FIELDS: Final = {
    **FLAT,
    "grade": "char",
    "small": "short",
    "tiny": "byte",
    "ratio": "float",
    "unit": "java.lang.String",
}
BOXES: Final = {"seen": "java.lang.Long", "level": "java.lang.Integer", "limit": "java.lang.Double"}

Once = Callable[[], dict[str, Any]]


class JavaPeer:
    """``Measure.java`` in one JVM, which stays warm."""

    def __init__(self, folder: Path) -> None:
        java = str(find_java().path)
        sources = [str(source) for source in sorted(SOURCES.glob("*.java"))]
        subprocess.run(["javac", "-nowarn", "-d", str(folder), *sources], check=True, capture_output=True)
        self._folder = folder
        self._process = subprocess.Popen(
            [java, "-Xmx512m", "-cp", str(folder), "Measure"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def once(self, verb: str, name: str, events: Sequence[bytes]) -> Once:
        """A run over events, which Java reads from a file."""
        file = self._folder / f"{name}.events"
        file.write_bytes(b"".join(struct.pack(">i", len(event)) + event for event in events))

        def run() -> dict[str, Any]:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(verb, file, file=self._process.stdin, flush=True)
            return {"seconds": float(self._process.stdout.readline()), "events": len(events)}

        return run

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def timed(work: Callable[[], object], count: int) -> Once:
    def run() -> dict[str, Any]:
        start = time.perf_counter()
        work()
        return {"seconds": time.perf_counter() - start, "events": count}

    return run


def by_javaobj(events: Sequence[bytes]) -> dict[str, Once]:
    """javaobj-py3, where it is installed."""
    try:
        import javaobj.v1 as javaobj  # noqa: PLC0415
    except ImportError:
        return {}
    some = events[:SLOW_COUNT]
    return {"javaobj rows": timed(lambda: [javaobj.loads(event) for event in some], len(some))}


def decoding(name: str, serializer: JavaSerializer, column: pa.BinaryArray, java: JavaPeer, times: float) -> Case:
    events = column.to_pylist()
    peers: dict[str, Once] = {
        **by_javaobj(events),
        "Java": java.once("read", name, events),
        "our rows": timed(lambda: [serializer.deserialize(event) for event in events], len(events)),
        "our column": timed(lambda: serializer.decode_column(column), len(events)),
    }
    baseline = "javaobj rows" if "javaobj rows" in peers else "Java"
    aims = {"our rows": times} if baseline != "Java" else {"our column": 1.0}
    return Case(name=name, event_size=len(events[0]), baseline=baseline, peers=peers, aims=aims)


def encoding(name: str, serializer: JavaSerializer, column: pa.BinaryArray, java: JavaPeer) -> Case:
    events = column.to_pylist()
    values = [serializer.deserialize(event) for event in events]
    arrow = serializer.decode_column(column)
    peers: dict[str, Once] = {
        "Java": java.once("write", name, events),
        "our rows": timed(lambda: [serializer.serialize(value) for value in values], len(events)),
        "our column": timed(lambda: serializer.encode_column(arrow), len(events)),
    }
    return Case(name=f"write {name}", event_size=len(events[0]), baseline="Java", peers=peers, aims={"our column": 1.0})


def flat_events() -> tuple[JavaSerializer, pa.BinaryArray]:
    descriptor = ClassDescriptor.of("Model$Flat", 5, {**FIELDS, **BOXES})
    serializer, source = JavaSerializer(descriptor), random.Random(0)
    made = [
        descriptor.new(id=i, count=i % 99, value=source.random(), ok=i % 2 == 0, name=f"sensor-{i % 1000}", unit="C")
        for i in range(COUNT)
    ]
    return serializer, pa.array([serializer.serialize(each) for each in made], pa.binary())


def cases(java: JavaPeer) -> list[Case]:
    text = JavaSerializer("java.lang.String")
    strings = text.encode_column(pa.array([f"a reading of sensor {i:05}" for i in range(COUNT)]))
    longs = JavaSerializer("java.lang.Long")
    numbers = longs.encode_column(pa.array(range(COUNT), pa.int64()))
    flat, objects = flat_events()
    return [
        decoding("strings", text, strings, java, 20),
        decoding("longs", longs, numbers, java, 10),
        decoding("flat", flat, objects, java, 10),
        encoding("strings", text, strings, java),
        encoding("longs", longs, numbers, java),
        encoding("flat", flat, objects, java),
    ]


@click.command(help=__doc__)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        java = JavaPeer(Path(folder))
        try:
            results = [run_case(case, rounds=rounds, warm_ups=2) for case in cases(java)]
        finally:
            java.close()
    Console(width=140).print(as_table(results, "Java object streams"))


if __name__ == "__main__":
    main()

"""Mutated Java object streams against the reader, for as long as one likes: not a part of the test runs.

``python -m tests.fuzz_java --inputs 1000000 [--seed N]`` mutates the golden vectors (bytes changed, removed, repeated,
spliced, tokens and handles put in) and reads each result as a row, and as columns. It stops at the first input that
raises anything but ``DeserializationError`` or takes longer than a second, and prints it in hex.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa

from pravega_serde import DeserializationError
from pravega_serde.java import JavaSerializer

VECTORS = Path(__file__).parent / "vectors/java_serializer.jsonl"
LONGEST_SECONDS = 1.0
BATCH = 1000
TOKENS = [bytes([token]) for token in range(0x70, 0x7F)] + [b"\x71\x00\x7e\x00" + bytes([n]) for n in range(12)]
LENGTHS = [b"\0\0\0\0", b"\0\0\0\1", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0", b"\xff\xff"]


def corpus() -> list[bytes]:
    lines = map(json.loads, VECTORS.read_text().splitlines())
    return [bytes.fromhex(line["hex"]) for line in lines if 0 < len(line.get("hex", "")) < 20_000]


def mutate(event: bytes, other: bytes, source: random.Random) -> bytes:
    raw = bytearray(event)
    for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
        at = source.randrange(4, len(raw) + 1)
        kind = source.randrange(8)
        if kind < 3 and at < len(raw):
            raw[at] = source.randrange(256)
        elif kind == 3:
            raw[at : at + source.randrange(4)] = source.choice(TOKENS)
        elif kind == 4:
            piece = source.choice(LENGTHS)
            raw[at : at + len(piece)] = piece
        elif kind == 5:
            raw[at:at] = raw[at : at + source.randrange(1, 60)]
        elif kind == 6:
            del raw[at : at + source.randrange(1, 12)]
        else:
            start = source.randrange(4, len(other))
            raw[at:at] = other[start : start + source.randrange(1, 80)]
    return bytes(raw)


def read_all(serializer: JavaSerializer, events: list[bytes]) -> tuple[int, float]:
    """Number of events that are good, and the longest time that one took."""
    good, longest = 0, 0.0
    for event in events:
        start = time.process_time()
        try:
            serializer.deserialize(event)
            good += 1
        except DeserializationError:
            pass
        except BaseException:
            print(f"escaped: {event.hex()}", file=sys.stderr)
            raise
        longest = max(longest, time.process_time() - start)
        if longest > LONGEST_SECONDS:
            raise SystemExit(f"{longest:.1f} s: {event.hex()}")
    return good, longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    source, events, good, longest = random.Random(options.seed), corpus(), 0, 0.0
    columns = [JavaSerializer(kind) for kind in ("java.lang.String", "java.lang.Long", "byte[]")]
    columns.append(
        JavaSerializer(sample=next(event for event in events if b"SensorEvent" in event and event[4] == 0x73))
    )
    serializer = JavaSerializer()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for start in range(0, options.inputs, BATCH):
        batch = [mutate(source.choice(events), source.choice(events), source) for _ in range(BATCH)]
        found, slowest = read_all(serializer, batch)
        good, longest = good + found, max(longest, slowest)
        for column in columns:
            column.decode_column(pa.array(batch, pa.binary()), on_error=lambda _: None)
        if start % (50 * BATCH) == 0:
            print(f"{start + BATCH:>10,} inputs, {good:,} of them good, slowest {longest * 1000:.1f} ms", flush=True)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{options.inputs:,} inputs: nothing escaped; slowest {longest * 1000:.1f} ms, memory grew by {grown:.0f} MiB"
    )


if __name__ == "__main__":
    main()

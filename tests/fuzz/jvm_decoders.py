"""Decoders of the JVM reader against Python: ``python -m tests.fuzz.jvm_decoders [--events N] [--seed S] [FORMAT …]``.

A format with ``-registry`` after its name has events with the header of a schema registry, of several versions.

Random and mutated events are decoded by both, in Java without Spark. A decoder may leave any event to Python. An event
that it accepts must have the same values in Python, for all columns and for some of them. Exit status 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from pravega_connector.reader.rows import value_fields
from pravega_connector.spark.jvm.decoding import check_columns, narrowed, steps
from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_connector.spark.jvm.session import JAR
from pravega_serde.errors import PravegaError
from tests.fuzz import jvm_schemas
from tests.fuzz._mutate import mutate
from tests.fuzz._target import Target
from tests.fuzz.jvm_registry import Framed, framed
from tools import jvm

FORMATS: Final = (
    *("avro", "json", "protobuf", "string", "java"),
    *("avro-registry", "json-registry", "protobuf-registry"),
)
_HARNESS: Final = Path(__file__).parents[2] / "tests/unit/spark/java/DecodeEvents.java"
_AT_ONCE: Final = 150
_GOOD: Final = 0.4


class Java:
    """Process that decodes events. Use it in a ``with`` block."""

    def __enter__(self) -> Self:
        javac = jvm.compiler()
        assert javac is not None, "a JDK is necessary"
        jvm.main()
        jars = f"{JAR}:{Path(pyspark.__file__).with_name('jars')}/*"
        self._folder = tempfile.TemporaryDirectory()
        subprocess.run([javac, "--release", "17", "-cp", jars, "-d", self._folder.name, str(_HARNESS)], check=True)
        command = [
            str(Path(javac).with_name("java")),
            *("-Xmx1g", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.nio=ALL-UNNAMED"),
            *("-cp", f"{self._folder.name}:{jars}", "pravegaserde.spark.DecodeEvents"),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(struct.pack(">i", -1))
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def decode(self, plan: dict[str, Any], columns: pa.Schema, events: Sequence[bytes]) -> list[str | None]:
        """Return the values of each event as text, or None if the decoder leaves it to Python."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for part in (json.dumps(plan).encode(), from_arrow_schema(columns).json().encode()):
            self._process.stdin.write(struct.pack(">i", len(part)) + part)
        self._process.stdin.write(struct.pack(">i", len(events)))
        for event in events:
            self._process.stdin.write(struct.pack(">i", len(event)) + event)
        self._process.stdin.flush()
        lines = [self._process.stdout.readline().decode().rstrip("\n") for _ in events]
        if any(not line for line in lines):
            raise RuntimeError("the Java process has ended")
        return [None if line == "?" else line for line in lines]


def text_of(value: Any, kind: pa.DataType) -> str:
    """Return a value of Arrow as the text that Java writes."""
    t = pa.types
    if value is None:
        return "n"
    if t.is_struct(kind):
        return f"({''.join(text_of(value[f.name], f.type) + ' ' for f in kind)})"
    if t.is_map(kind):
        keys, items = zip(*value, strict=True) if value else ((), ())
        return _texts(keys, kind.key_type) + _texts(items, kind.item_type)
    if t.is_list(kind):
        return _texts(value, kind.value_type)
    if t.is_string(kind):
        return str(value.encode().hex())
    if t.is_binary(kind):
        return str(value.hex())
    if t.is_decimal(kind):
        return str(int(Decimal(value).scaleb(kind.scale, _EXACT)))
    if t.is_float32(kind):
        return format(int(np.float32(value).view(np.uint32)) if value == value else 0x7FC00000, "x")
    if t.is_float64(kind):
        return format(int(np.float64(value).view(np.uint64)) if value == value else 0x7FF8 << 48, "x")
    return str(value).lower()


_EXACT: Final = Context(prec=80)


def _texts(values: Sequence[Any], kind: pa.DataType) -> str:
    return f"[{''.join(text_of(each, kind) + ' ' for each in values)}]"


def plain(values: pa.Array) -> pa.Array:
    """Return values with times as numbers, at any depth: Python's types do not have all of them."""
    return values.cast(_plain(values.type), safe=False) if _plain(values.type) != values.type else values


def _plain(kind: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain(f.type)) for f in kind])
    if t.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if t.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain(kind.value_type)))
    if t.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if t.is_date32(kind) else kind


def some_of(kind: pa.DataType, chance: random.Random) -> pa.DataType:
    """Return a type with only some fields of its structs."""
    t = pa.types
    if t.is_struct(kind):
        kept = [f for f in kind if chance.random() < 0.6] or list(kind)[:1]
        return pa.struct([pa.field(f.name, some_of(f.type, chance)) for f in kept])
    if t.is_map(kind):
        return pa.map_(kind.key_type, some_of(kind.item_type, chance))
    if t.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, some_of(kind.value_type, chance)))
    return kind


def compare(
    java: Java, target: Target, plan: _Plan, events: Sequence[bytes], chance: random.Random, seen: Counter[str]
) -> Iterator[str]:
    """Yield the differences for some events of a target, decoded by a plan."""
    serializer = target.serializer
    errors: dict[int, str] = {}
    values = serializer.decode_column(
        pa.array(events, pa.binary()), on_error=lambda error: errors.setdefault(error.row or 0, str(error))
    )
    kind = values.type
    whole = pa.schema(value_fields(kind))
    if not pa.types.is_struct(kind):
        values = pa.StructArray.from_arrays([values], fields=list(whole))
    columns = values.flatten() if values.null_count else [values.field(i) for i in range(len(whole))]
    table = pa.StructArray.from_arrays(columns, fields=list(whole)) if len(whole) else values
    part = pa.struct(list(whole))
    for used in (part, some_of(part, chance), pa.struct([])):
        found = java.decode(plan, pa.schema(list(used)), events)
        if len(used):
            expected = plain(narrowed(table, used))
            rows = [text_of(each, expected.type) for each in expected.to_pylist(maps_as_pydicts=None)]
        else:
            rows = ["()"] * len(events)
        for row, line in enumerate(found):
            if line is None:
                seen["doubts of bad events" if row in errors else "doubts of good events"] += 1
            elif row in errors:
                yield f"{target.name}: Java accepts {events[row]!r} as {line}; Python: {errors[row]}"
            elif line != rows[row]:
                yield f"{target.name}: {events[row]!r} is {line} in Java, {rows[row]} in Python ({used})"
            seen["compared"] += 1


def _events(target: Target, tokens: Sequence[bytes], chance: random.Random, count: int, keep: int) -> list[bytes]:
    late = list(target.late()) if isinstance(target, Framed) and chance.random() < _LATE else []
    good = [event for event in (*target.corpus, *late) if len(event) < 1 << 16]
    keep = chance.choice((0, _HEADER, _HEADER)) if isinstance(target, Framed) else keep
    return [
        chance.choice(good)
        if chance.random() < _GOOD
        else mutate(chance.choice(good), chance.choice(good), tokens, chance, keep=keep)[: 1 << 17]
        for _ in range(count)
    ]


_LATE: Final = 0.25
_HEADER: Final = 5


def _targets(name: str, chance: random.Random) -> tuple[Iterator[tuple[Target, _Plan]], Sequence[bytes], int]:
    """Return the targets of a format without end, the tokens of mutations, and the bytes that they do not change."""
    name, _, registry = name.partition("-")
    made = import_module(f"tests.fuzz.{name}").FORMAT
    known = [] if registry else [target for target in made.targets if target.columns and target.corpus]

    def targets() -> Iterator[Target]:
        while True:
            yield from known
            for _ in range(2 * len(known) + 2):
                yield framed(name, chance) if registry else jvm_schemas.RANDOM[name](chance)

    planned = ((target, plan) for target in targets() if (plan := _plan(target)) is not None and target.corpus)
    return planned, made.tokens, made.keep


_Plan = dict[str, Any]


def _plan(target: Target) -> _Plan | None:
    """Return the plan of a target's decoders, or None if Python reads its events."""
    try:
        plan = steps(target.serializer)
        fields = value_fields(target.serializer.arrow_type)  # type: ignore[attr-defined]
        check_columns(from_arrow_schema(pa.schema(fields)))
    except (NotInJvmError, PravegaError):
        return None
    except PySparkException:  # Spark has no such type
        return None
    return plan


def run(java: Java, name: str, count: int, seed: int, seen: Counter[str]) -> Iterator[str]:
    """Yield the differences of ``count`` events of a format."""
    chance = random.Random(seed)
    targets, tokens, keep = _targets(name, chance)
    done = 0
    for target, plan in targets:
        if done >= count:
            return
        events = _events(target, tokens, chance, min(_AT_ONCE, count - done), keep)
        done += len(events)
        seen[f"events of {name}"] += len(events)
        seen["headers"] += sum(len(each["headers"]) for each in plan["decoders"])
        yield from compare(java, target, plan, events, chance, seen)


def main() -> int:
    """Compare the formats; 1 if an event differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", default=FORMATS)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    findings = 0
    with Java() as java:
        for name in options.formats:
            seen: Counter[str] = Counter()
            start = time.monotonic()
            for finding in run(java, name, options.events, options.seed, seen):
                findings += 1
                if findings <= 20:
                    print(finding[:2000])
            print(f"{name}: {findings} differences, {time.monotonic() - start:.0f} s, {dict(seen)}", flush=True)
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())

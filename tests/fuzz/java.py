"""Java object streams: the golden vectors, as any object and in the columns of several classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow as pa

from pravega_serde.java import JavaSerializer
from tests.fuzz._target import Format, Target
from tests.fuzz.java_bombs import BOMBS

__all__ = ["FORMAT"]

_VECTORS: Final = Path(__file__).parents[2] / "tests/vectors/java_serializer.jsonl"
_LONGEST: Final = 10_000
_HEADER: Final = 4


def _vectors() -> list[bytes]:
    lines = map(json.loads, _VECTORS.read_text().splitlines())
    return [bytes.fromhex(line["hex"]) for line in lines if 0 < len(line.get("hex", "")) < 2 * _LONGEST]


def _column(name: str, serializer: JavaSerializer, events: list[bytes]) -> Target:
    """A column of one class: events of others are bad in it, and good as rows."""
    wrong: list[int | None] = []
    serializer.decode_column(pa.array(events, pa.binary()), on_error=lambda error: wrong.append(error.row))
    right = [event for row, event in enumerate(events) if row not in wrong]
    return Target(name=name, serializer=serializer, corpus=right * 3 + events[:30], rows_take_more=True)


def _format() -> Format:
    events = _vectors()
    sample = next(event for event in events if b"SensorEvent" in event and event[_HEADER] == 0x73)
    kinds = ("java.lang.String", "java.lang.Long", "java.lang.Double", "java.lang.Character", "byte[]")
    columns = [_column(kind, JavaSerializer(kind), events) for kind in kinds]
    anything = Target(name="anything", serializer=JavaSerializer(), corpus=events, bombs=BOMBS, columns=False)
    flat = _column("SensorEvent", JavaSerializer(sample=sample), events)
    return Format(targets=[anything, anything, anything, flat, *columns], tokens=_TOKENS, keep=_HEADER)


_TOKENS: Final = [
    *(bytes([token]) for token in range(0x70, 0x7F)),
    *(b"\x71\x00\x7e\x00" + bytes([handle]) for handle in range(12)),
    *(b"\0\0\0\0", b"\0\0\0\1", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0", b"\xff\xff", b"\0\1\0\0"),
]

FORMAT: Final = _format()

"""Java object streams: strings, boxed longs, flat objects, compared with javaobj-py3 and Java's own streams."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from benchmarks.serde._subject import Subject, Work
from pravega_serde.java import ClassDescriptor, JavaSerializer

__all__ = ["PACKAGES", "subjects"]

PACKAGES: Final = ("javaobj-py3",)
_JAVAOBJ_EVENTS: Final = 2_000

#: The same class as in SerdePeer.java.
_READING: Final = dict(  # noqa: C408 -- names without quotes
    id="long",
    count="int",
    value="double",
    ok="boolean",
    name="java.lang.String",
    grade="char",
    small="short",
    tiny="byte",
    ratio="float",
    unit="java.lang.String",
    seen="java.lang.Long",
    level="java.lang.Integer",
    limit="java.lang.Double",
)


def _by_javaobj(events: list[bytes]) -> Work:
    import javaobj.v1 as javaobj

    return lambda: [javaobj.loads(event) for event in events]


def subjects(count: int) -> Iterator[Subject]:
    """Return events in which only class descriptors repeat."""
    text = JavaSerializer("java.lang.String")
    strings = pa.array([f"a reading of sensor {i:05}" for i in range(count)])
    yield _subject("strings", text, strings, rows=20, columns=1)
    yield _subject("longs", JavaSerializer("java.lang.Long"), pa.array(range(count), pa.int64()))
    flat = JavaSerializer(ClassDescriptor.of("Reading", 5, _READING))
    yield _subject("flat objects", flat, pa.array(_readings(count), flat.arrow_type), rows=10, columns=1)


def _readings(count: int) -> list[dict[str, Any]]:
    source = random.Random(0)
    same = {"grade": "A", "small": 7, "tiny": 1, "ratio": 0.5, "unit": "C", "level": None, "limit": None}
    return [
        {"id": i, "count": i % 99, "value": source.random(), "ok": i % 2 == 0, "name": f"sensor-{i % 1000}", "seen": i}
        | same
        for i in range(count)
    ]


def _subject(
    name: str, serializer: JavaSerializer, values: pa.Array, *, rows: float = 0, columns: float = 0
) -> Subject:
    """Return a subject with the aims for decoding: the ratio to javaobj by row, and to Java by column."""
    return Subject(
        name=f"Java {name}",
        serializer=serializer,
        events=serializer.encode_column(values).to_pylist(),
        slow={"decode rows": (_JAVAOBJ_EVENTS, _by_javaobj)},
        slow_name="javaobj-py3",
        extras=False,
        java="java",
        aims={"decode rows": ("javaobj-py3", rows), "decode columns": ("Java", columns), "encode columns": ("Java", 0)},
    )

"""Trips, which every party writes and expects to read, and the formats in which they are exchanged."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FORMATS", "SAMPLE", "Format", "expected", "key", "trip"]

_ZONES: Final = ("CITY", "AIRPORT", "BEACH")
#: Number of a trip that has something in each of its fields.
SAMPLE: Final = 3


@dataclass(frozen=True, slots=True)
class Format:
    """How events are written, for all parties."""

    base: str
    """Name of the format."""
    registry: bool = False
    """Whether a schema registry has the schema."""
    codec: str | None = None

    @property
    def name(self) -> str:
        """Name in the table; with ``-`` for spaces: the registry's group."""
        parts = (["registry"] if self.registry else []) + [self.base] + ([self.codec] if self.codec else [])
        return " ".join(parts)

    @property
    def group(self) -> str:
        """Group in the registry, and the last part of the names of streams."""
        return self.name.replace(" ", "-")


FORMATS: Final = (
    *(Format(base) for base in ("string", "bytes", "java", "avro", "protobuf", "json")),
    *(Format(base, registry=True) for base in ("avro", "protobuf", "json")),
    *(Format("avro", registry=True, codec=codec) for codec in ("gzip", "snappy")),
)


def key(number: int) -> str:
    """Routing key of the trip with a number."""
    return f"k{number % 7}"


def trip(number: int) -> dict[str, Any]:
    """The trip with a number; Java makes the same ones by the same rules (java/Trip.java)."""
    return {
        "number": number,
        "zone": _ZONES[number % 3],
        "fare": number * 0.37 - 75,
        "stops": [f"stop {stop} é😀" for stop in range(number % 4)],
        "extras": {f"e{number % 5}": number / 4},
        "driver": {"name": f"d{number % 11}", "rating": None if number % 4 == 0 else number % 6},
    }


def expected(form: Format, number: int) -> Any:
    """Value of the event with a number, as in JSON; bytes in hex digits."""
    if form.base == "string":
        return f"trip {number} é😀"
    if form.base == "bytes":
        return (struct.pack(">q", number) + bytes((8 + i) * 31 % 256 for i in range(number % 17))).hex()
    return trip(number)

"""Field of a schema that was inferred from events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Milliseconds since 1970 of the times from 2001 to 2039.
MILLIS: Final = range(978_307_200_000, 2_208_988_800_000)


@dataclass(frozen=True, slots=True)
class SniffedField:
    """Field of JSON, CBOR or Protobuf events, or of one of their nested values."""

    path: str
    """``order.lines[].price``; for Protobuf, numbers: ``1``, ``7[].2``. ``{}`` is any key of a map."""
    types: tuple[str, ...]
    """Types of the values, the most frequent one first."""
    optional: bool
    """True if an examined event, or the object around it, lacks the field or has null."""
    logical: str = ""
    """Meaning of all values: ``timestamp``, ``local-timestamp``, ``date``, ``uuid``, ``decimal``, ``epoch-millis``,
    ``epoch-seconds``; empty if they have none in common."""

    def to_dict(self) -> dict[str, object]:
        """Return the attributes for JSON."""
        return {"path": self.path, "types": list(self.types), "optional": self.optional, "logical": self.logical}

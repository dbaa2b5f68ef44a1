"""Value of an event in an envelope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Envelope(Generic[T]):
    """Value with the key, time and headers of its event."""

    value: T | None
    """Value of the inner serializer; None for an event without data."""
    key: str | None = None
    """Key, such as the routing key: the attribute ``partitionkey`` of a CloudEvent."""
    time: datetime | None = None
    """Time of the occurrence, with a time zone. It is read in UTC, in microseconds."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """All other attributes as text, such as ``id``, ``source``, ``type``, ``subject`` and extensions."""

"""Entries and versions of a key-value table, and the changes that an update makes.

The structs are msgspec's: to create a frozen dataclass takes three times as long, and an iteration creates two for each
entry.
"""

from __future__ import annotations

import re
from typing import Any, Final, Generic, TypeVar

import msgspec

from pravega_connector.errors import ConfigError

V_co = TypeVar("V_co", covariant=True)

_VERSION: Final = re.compile(r"([0-9]{1,19}):([0-9]{1,19})")


class Version(msgspec.Struct, frozen=True):
    """Version of an entry. Each change of the entry gives it another one.

    ``str()`` returns the text of Java's ``Version``, and :meth:`parse` reads it.
    """

    segment_id: int
    """Segment of the table that has the entry."""
    number: int
    """Number that grows with each change in the segment."""

    def __str__(self) -> str:
        return f"{self.segment_id}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parse the text of a version, also from Java. Raises ConfigError."""
        match = _VERSION.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ConfigError(f"invalid version {text!r}: write segment:number, such as '0:27'")
        return cls(int(match[1]), int(match[2]))


class TableEntry(msgspec.Struct, Generic[V_co], frozen=True):
    """Entry of a table."""

    key: Any
    """Primary key, or the tuple (primary key, secondary key) in a table with secondary keys."""
    value: V_co
    """Value of the key."""
    version: Version
    """Version, as a condition for an update of the entry."""


class Insert(msgspec.Struct, frozen=True):
    """Change that adds an entry. It is refused if the key exists."""

    key: Any
    """Primary key, or the tuple (primary key, secondary key)."""
    value: Any
    """Value of the key."""


class Put(msgspec.Struct, frozen=True):
    """Change that sets an entry, and adds it if the key does not exist."""

    key: Any
    """Primary key, or the tuple (primary key, secondary key)."""
    value: Any
    """Value of the key."""
    version: Version | None = None
    """Version that the entry must have; otherwise the change is refused. None: any, or no entry."""


class Remove(msgspec.Struct, frozen=True):
    """Change that removes an entry, if there is one."""

    key: Any
    """Primary key, or the tuple (primary key, secondary key)."""
    version: Version | None = None
    """Version that the entry must have; otherwise the change is refused. None: any, or no entry."""


#: Change of an entry.
Change = Insert | Put | Remove

"""Routing keys of events that are bytes: out of JSON text, or by a regular expression."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from connector.errors import ConfigError
from pravega_serde import SerdeError
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import ByField

__all__ = ["ByJsonField", "ByPattern"]

_EVENT = "event"
_parse = JsonSerializer().deserialize


class _OfBytes:
    """A router of the column ``event``, one event after the other."""

    def key(self, value: Any) -> str | None:
        """Key of an event."""
        raise NotImplementedError

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Keys of the column ``event``; null where an event has none."""
        return pa.array(map(self.key, batch.column(_EVENT).to_pylist()), pa.string(), size=batch.num_rows)

    def check(self, schema: pa.Schema) -> None:
        """Any events may have a key, or none."""


@dataclass(frozen=True)
class ByJsonField(_OfBytes):
    """The key is a field of the JSON text, named by a path with dots; none where there is no such field, or no JSON."""

    path: str

    def key(self, value: Any) -> str | None:
        """The field's text, as Java's ``String.valueOf`` has it."""
        try:
            return ByField(self.path).key(_parse(value))
        except SerdeError:
            return None


@dataclass(frozen=True)
class ByPattern(_OfBytes):
    """The key is what a regular expression finds first: its group ``key``, else its first group, else all of it."""

    pattern: str
    _compiled: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ConfigError for what is no regular expression."""
        try:
            compiled = re.compile(self.pattern.encode())
        except re.error as error:
            raise ConfigError(f"the key's pattern {self.pattern!r} is no regular expression: {error}") from None
        object.__setattr__(self, "_compiled", compiled)

    def key(self, value: Any) -> str | None:
        """What was found, as UTF-8; None if nothing was."""
        found = self._compiled.search(value)
        if found is None:
            return None
        group: Any = "key" if "key" in self._compiled.groupindex else min(1, self._compiled.groups)
        text = found.group(group)
        return None if text is None else text.decode(errors="replace")

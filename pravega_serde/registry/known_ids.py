"""Readers of all ids that the registries of a reader have now, for decoders that do not ask the registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pravega_serde.errors import LimitExceededError
from pravega_serde.registry.encodings import Entry
from pravega_serde.registry.reading import RegistryDeserializer


@dataclass(frozen=True, slots=True)
class KnownIds:
    """Bytes before the payloads of each id, in the order of the ids, with the entry that reads their columns."""

    entries: dict[bytes, Entry]
    per_type: bool
    """True if each type of events has a separate column."""
    others_are_null: bool
    """True if events of types without columns are null. Otherwise they are errors."""


def known_ids(reader: RegistryDeserializer, most: int) -> KnownIds:
    """Return the readers of all ids of a reader's registries, at most ``most`` ids of each framing.

    An id is left out if its events raise an error. Other ids may follow at any time. Raises RegistryErrors, and
    :class:`LimitExceededError` for a registry with more ids.
    """
    columns = reader._columns
    return KnownIds(dict(_entries(reader, most)), columns.per_type, columns.others_are_null)


def _entries(reader: RegistryDeserializer, most: int) -> Iterator[tuple[bytes, Entry]]:
    if not reader._config.write_encoding_header:
        return
    for entries in reader._entries.values():
        for count, encoding_id in enumerate(entries.ids()):
            if count == most:
                raise LimitExceededError(f"the group {reader._config.group!r} has more than {most} ids")
            yield from entries.known(encoding_id)

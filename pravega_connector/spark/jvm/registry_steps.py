"""Steps of the JVM's decoders for events with the header of a schema registry.

The driver asks the registries for all ids that events may have, and sends the steps of each id. A streaming query asks
again while it runs. Until then, an event with a later id is in doubt, so Python decodes its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_serde.errors import LimitExceededError, RegistryError
from pravega_serde.registry.header import PRAVEGA
from pravega_serde.registry.known_ids import known_ids
from pravega_serde.registry.reading import RegistryDeserializer
from pravega_serde.serializer_interface import Serializer

Steps = dict[str, Any]

#: Ids of a framing: each costs a request for the schema, or two, before the first batch.
_MOST_IDS: Final = 50


def decoders_by_id(reader: RegistryDeserializer, steps: Callable[[Serializer[Any]], Steps]) -> list[Steps]:
    """Return the decoders of a reader's events. ``steps`` returns the steps of a payload.

    Raises NotInJvmError if Python must decode most of the events, or may have to leave out some rows.
    """
    try:
        known = known_ids(reader, _MOST_IDS)
    except (RegistryError, LimitExceededError) as error:
        raise NotInJvmError(f"a registry whose ids are not listed: {error.message}") from error
    if known.per_type:
        raise NotInJvmError("a column for each type of the registry's group")
    codec, found = "", dict[int, tuple[Serializer[Any], list[str]]]()
    for header, entry in known.entries.items():
        if entry.target is None and known.others_are_null:
            raise NotInJvmError("other types in the registry's group, whose events have no rows")
        if entry.target is None or entry.payloads is None:
            continue  # the events are malformed
        if entry.rules is not None:
            raise NotInJvmError("rules of the registry's schemas")
        if entry.narrow is not None:
            raise NotInJvmError(f"wider numbers of another version of {entry.encoding.schema.type!r}")
        if header[0] == PRAVEGA.first_byte:
            codec = entry.codec.name
        if entry.codec.name:
            continue
        found.setdefault(id(entry.payloads), (entry.payloads, []))[1].append(header.hex())
    if codec:
        raise NotInJvmError(f"codec {codec!r} of the latest encoding in the registry's group")
    if not found:
        raise NotInJvmError("a registry's group without encodings of these columns")
    decoders = [steps(payloads) | {"headers": headers} for payloads, headers in found.values()]
    if known.others_are_null and any(map(_may_be_null, decoders)):
        raise NotInJvmError("option 'registry_type' for events that may be null")
    return decoders


def _may_be_null(decoder: Steps) -> bool:
    """Return True if an event may be null: such an event has no row if the query selects types."""
    return bool(decoder["format"] == "json" or (decoder["format"] == "avro" and decoder["root"]["op"] != "record"))

"""Framings: bytes before a payload that name its schema, and envelopes of JSON events.

| framing | bytes before the payload |
|---|---|
| pravega-registry | 01, encoding id of 4 bytes |
| confluent | 00, schema id of 4 bytes; for Protobuf, also message indexes |
| apicurio | 00, schema id of 8 bytes |
| avro-single-object | C3 01, fingerprint of 8 bytes |
| aws-glue | 03, 00 or 05, UUID of 16 bytes |
| azure | 00000000, schema id as 32 hex digits |
| grpc | 00 or 01, length of 4 bytes |
| delimited | length as a varint |

Numbers before other data look the same. A framing is therefore accepted if the format of its payloads is recognized.
Otherwise, ids and sizes must be as in a registry: not lengths, times or counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import RFC_4122, UUID

from pravega_serde.errors import DeserializationError
from pravega_serde.framings.layouts import LAYOUTS
from pravega_serde.registry import header
from pravega_serde.sniffing.fields import MILLIS

#: Distinct ids of a stream; more are numbers of another kind.
MAX_IDS: Final = 64
#: Events with a framing, among others: at least this many, and a tenth of all or this many.
_FEWEST_OF_MANY: Final = 3
_CERTAINLY_MANY: Final = 20


@dataclass(frozen=True, slots=True)
class Framed:
    """Event without its framing."""

    event: bytes
    id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Framing:
    """Kind of framing by its name. ``split`` returns None for an event without it."""

    name: str
    split: Callable[[bytes], Framed | None]
    fewest: int
    """Events that must have it, if the format of their payloads is unknown."""
    largest_id: int
    """Largest id, if the format of the payloads is unknown."""
    names_format: str = ""
    """Format of all payloads."""
    is_certain: bool = False
    """True if no numbers look like its header."""
    show: Callable[[int], int | str] = int
    """Id as the registry writes it."""

    def is_plausible(self, found: Sequence[Framed], total: int, *, recognized: bool) -> bool:
        """True if events have this framing, of ``total`` events that show no format by themselves.

        ``recognized`` is true if the format of most payloads is known.
        """
        if not found or _are_lengths(found):
            return False
        ids = {each.id for each in found}
        if recognized:
            return len(ids) <= MAX_IDS
        return (
            self._are_enough(len(found), total)
            and max(ids) <= self.largest_id
            and (len(ids) <= max(len(found) // 3, 1) or max(ids) < 16)
            and len(ids) <= MAX_IDS
            and (self.is_certain or not self._are_numbers(found))
        )

    def _are_enough(self, count: int, total: int) -> bool:
        """True if the events are most of all, or too many for a coincidence."""
        if count * 2 >= total:
            return count >= self.fewest
        return count >= _FEWEST_OF_MANY and (count >= _CERTAINLY_MANY or count * 10 >= total)

    def _are_numbers(self, found: Sequence[Framed]) -> bool:
        """True for little-endian numbers, short numbers before a zero, times, and numbers of 4 or 8 bytes each.

        A few other events among them do not change that.
        """
        if len(found) >= 3:
            sizes = Counter(len(each.event) for each in found)
            payloads = [len(each.payload) for each in found]
            if _are_nearly_all(sizes.most_common(1)[0][1], found):
                return True
            if any(_are_nearly_all(sum(size % each == 0 for size in payloads), found) for each in range(4, 17)):
                return True
        return (
            sum(_is_time(each.event) for each in found) * 2 > len(found)
            or _are_nearly_all(sum(each.payload[:3] == b"\0\0\0" for each in found), found)
            or (self.largest_id > 0xFFFF and _are_nearly_all(sum(each.id % 256 == 0 for each in found), found))
        )


def _are_nearly_all(count: int, found: Sequence[Framed]) -> bool:
    return count * 10 >= len(found) * 9


def _are_lengths(found: Sequence[Framed]) -> bool:
    """True if most events begin with a length: of gRPC, of a record with a type, or of 2 or 4 bytes."""
    lengths = sum(
        each.id == len(each.payload)
        or int.from_bytes(each.event[:4], "big") == len(each.event) - 4
        or int.from_bytes(each.event[:2], "big") == len(each.event) - 2
        for each in found
    )
    return _are_nearly_all(lengths, found)


def _is_time(event: bytes) -> bool:
    return len(event) >= 8 and int.from_bytes(event[:8], "big") in MILLIS


def _of_registry(framing: header.Framing) -> Callable[[bytes], Framed | None]:
    def split(event: bytes) -> Framed | None:
        found = framing.find(event)
        return None if found is None else Framed(event, found, event[framing.size :])

    return split


def _single_object(event: bytes) -> Framed | None:
    if len(event) < 10 or event[:2] != b"\xc3\x01":
        return None
    return Framed(event, int.from_bytes(event[2:10], "little"), event[10:])


def _glue(event: bytes) -> Framed | None:
    if len(event) < 18 or event[0] != 3 or event[1] not in (0, 5):
        return None
    found = UUID(bytes=event[2:18])
    # Glue's ids are random UUIDs; other 16 bytes are none.
    return Framed(event, found.int, event[18:]) if found.variant == RFC_4122 and found.version == 4 else None


def _opened(framing: str, event: bytes) -> bytes | None:
    try:
        return LAYOUTS[framing].open(event)
    except DeserializationError:
        return None


def _azure(event: bytes) -> Framed | None:
    payload = _opened("azure", event) if event.startswith(b"\0\0\0\0") else None
    return None if payload is None else Framed(event, int(event[4:36], 16), payload)


#: Every framing with an id. No event has two of them, but an event of Azure's looks like one of Confluent's.
FRAMINGS: Final = (
    Framing("aws-glue", _glue, fewest=3, largest_id=1 << 128, is_certain=True, show=lambda each: str(UUID(int=each))),
    Framing("azure", _azure, fewest=3, largest_id=1 << 128, is_certain=True, show=lambda each: f"{each:032x}"),
    Framing("pravega-registry", _of_registry(header.PRAVEGA), fewest=1, largest_id=1000),
    Framing("confluent", _of_registry(header.CONFLUENT), fewest=3, largest_id=1 << 24),
    Framing("apicurio", _of_registry(header.APICURIO), fewest=3, largest_id=1 << 31),
    Framing("avro-single-object", _single_object, fewest=3, largest_id=1 << 64, names_format="avro"),
)


def _grpc(event: bytes) -> bytes | None:
    # A compressed payload shows its compression by itself.
    is_one = len(event) >= 5 and event[0] <= 1 and int.from_bytes(event[1:5], "big") == len(event) - 5
    return event[5:] if is_one else None


@dataclass(frozen=True, slots=True)
class LengthFraming:
    """Framing that is a length of the payload. ``formats`` are those of payloads that confirm it."""

    name: str
    payload: Callable[[bytes], bytes | None]
    """Payload of an event; None for an event without it."""
    formats: frozenset[str]


LENGTHS: Final = (
    LengthFraming("grpc", _grpc, frozenset({"avro", "cbor", "json", "protobuf"})),
    LengthFraming("delimited", partial(_opened, "delimited"), frozenset({"protobuf"})),
)


def without_message_indexes(payload: bytes) -> bytes | None:
    """Return a Confluent payload without the message indexes before a Protobuf message; None if it has none."""
    count, at = _zigzag(payload, 0)
    if not 0 <= count <= 10:
        return None
    for _ in range(count):
        index, at = _zigzag(payload, at)
        if index < 0:
            return None
    return payload[at:] if at >= 0 else None


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of at most two bytes and the position after it, or -1."""
    if at < 0 or at >= len(data):
        return -1, -1
    value, end = data[at] & 0x7F, at + 1
    if data[at] >= 0x80:
        if end >= len(data) or data[end] >= 0x80:
            return -1, -1
        value, end = value | data[end] << 7, end + 1
    return (value >> 1) ^ -(value & 1), end


# ---- envelopes in JSON ----

_CLOUDEVENTS: Final = ("id", "source", "type")
_OPERATIONS: Final = frozenset("crudtm")


def envelope_of(value: Any) -> str:
    """Return the name of the envelope that a JSON value is, or an empty string."""
    if not isinstance(value, dict):
        return ""
    if value.get("specversion") == "1.0" and all(isinstance(value.get(name), str) for name in _CLOUDEVENTS):
        return "cloudevents"
    if _is_change(value):
        return "debezium"
    if value.keys() == {"schema", "payload"} and isinstance(value["schema"], dict) and "type" in value["schema"]:
        return "debezium" if _is_change(value["payload"]) else "kafka-connect"
    return ""


def _is_change(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("op") in _OPERATIONS
        and isinstance(value.get("source"), dict)
        and ("before" in value or "after" in value)
    )

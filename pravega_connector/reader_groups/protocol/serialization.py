"""Bytes of a group's state and of its updates, as Java's client reads and writes them.

Every value is a list of revisions (:mod:`pravega_connector.wire.versioned`), and each revision a list of fields, all in
``LAYOUTS``. A field of a later revision replaces the same field of an earlier one. Maps are written in the order in
which they were read, so that decoded bytes are written back unchanged. (Java: the serializers inside
``ReaderGroupState``, ``CheckpointState`` and ``ReaderGroupConfig``; ``ReaderGroupStateUpdatesSerializer``.)
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pravega_connector.errors import ConnectorError
from pravega_connector.reader_groups.protocol.state import (
    END_OF_SEGMENT,
    Bound,
    Checkpoints,
    GroupConfig,
    GroupState,
    KeyRange,
    Ranged,
    Retention,
    Segment,
    Written,
    ordered_set,
)
from pravega_connector.reader_groups.protocol.updates import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    Init,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    StateUpdate,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
)
from pravega_connector.wire import StreamCut, StreamName
from pravega_connector.wire.versioned import (
    COMPACT_LONG_MAX,
    CompactReader,
    put_compact_int,
    put_compact_long,
    put_revisions,
)
from pravega_serde.errors import DeserializationError
from pravega_serde.java import protocol

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """Reader and writer of one kind of field."""

    put: Callable[[T], bytes]
    get: Callable[[CompactReader], T]


def _number(form: str) -> Kind[Any]:
    packer = struct.Struct(form)
    return Kind(packer.pack, lambda reader: packer.unpack(reader.take(packer.size))[0])


def _put_utf(text: str) -> bytes:
    plain = text.isascii() and "\0" not in text
    data = text.encode("ascii") if plain else _modified_utf().encode_utf(text)
    if len(data) > 0xFFFF:
        raise ValueError(f"the name {text[:40]!r}... has more than 65535 bytes")
    return len(data).to_bytes(2, "big") + data


def _get_utf(reader: CompactReader) -> str:
    data = reader.take(reader.fixed(2))
    return data.decode("ascii") if data.isascii() else _modified_utf().decode_utf(data)


def _modified_utf() -> Any:
    # Only names of checkpoints can need it, so most processes do not import the package.
    return protocol


def _put_buffer(data: bytes) -> bytes:
    return put_compact_int(len(data)) + data


def _get_buffer(reader: CompactReader) -> bytes:
    return reader.take(reader.compact_int())


def _list(item: Kind[T]) -> Kind[tuple[T, ...]]:
    return Kind(
        lambda items: put_compact_int(len(items)) + b"".join(map(item.put, items)),
        lambda reader: tuple([item.get(reader) for _ in range(reader.compact_int())]),
    )


def _set(item: Kind[T]) -> Kind[Mapping[T, None]]:
    items = _list(item)
    return Kind(lambda values: items.put(tuple(values)), lambda reader: ordered_set(items.get(reader)))


def _map(key: Kind[K], value: Kind[V]) -> Kind[Mapping[K, V]]:
    return Kind(
        lambda pairs: put_compact_int(len(pairs)) + b"".join(key.put(k) + value.put(v) for k, v in pairs.items()),
        lambda reader: {key.get(reader): value.get(reader) for _ in range(reader.compact_int())},
    )


_PAIR: Final = struct.Struct(">dd")


def _put_range(of: KeyRange | None) -> bytes:
    return _PAIR.pack(*(of or (-1.0, -1.0)))


def _get_range(reader: CompactReader) -> KeyRange | None:
    low, high = _PAIR.unpack(reader.take(_PAIR.size))
    return None if low < 0 or high < 0 else KeyRange(low, high)


def _put_ranged(of: Ranged) -> bytes:
    entries = (SEGMENT.put(s) + _put_range(of.ranges.get(s)) + LONG.put(at) for s, at in of.positions.items())
    return put_compact_int(len(of.positions)) + b"".join(entries)


def _get_ranged(reader: CompactReader) -> Ranged:
    entries = [(SEGMENT.get(reader), _get_range(reader), LONG.get(reader)) for _ in range(reader.compact_int())]
    return Ranged({segment: at for segment, _, at in entries}, {segment: keys for segment, keys, _ in entries})


def _put_bound(bound: Bound) -> bytes:
    if bound.data is not None:
        return _put_buffer(bound.data)
    return _put_buffer(b"" if bound.cut is None else bound.cut.to_bytes())


def _get_bound(reader: CompactReader) -> Bound:
    data = _get_buffer(reader)
    return Bound(StreamCut.from_bytes(data) if data else None, data)


def _put_offset(offset: int) -> bytes:
    # A segment that was read to its end has the largest number with a compact form, 2^62 - 2.
    return put_compact_long(COMPACT_LONG_MAX if offset < 0 else offset)


def _get_offset(reader: CompactReader) -> int:
    offset = reader.compact_long()
    return END_OF_SEGMENT if offset == COMPACT_LONG_MAX else offset


LONG: Final = _number(">q")
INT: Final = _number(">i")
FLAG: Final = _number(">?")
UTF: Final = Kind(_put_utf, _get_utf)
UUID: Final = Kind(lambda value: value.bytes, lambda reader: uuid.UUID(bytes=reader.take(16)))
SEGMENT: Final = Kind(lambda segment: _put_utf(str(segment)), lambda reader: Segment.parse(_get_utf(reader)))
STREAM: Final = Kind(lambda stream: _put_utf(str(stream)), lambda reader: StreamName.parse(_get_utf(reader)))
RANGE: Final = Kind(_put_range, _get_range)
POSITIONS: Final = _map(SEGMENT, LONG)
RANGED: Final = Kind(_put_ranged, _get_ranged)
UNRANGED: Final = Kind(lambda ranged: POSITIONS.put(ranged.positions), lambda reader: Ranged.of(POSITIONS.get(reader)))
RETENTION: Final = Kind(lambda value: put_compact_int(value.value), lambda reader: Retention(reader.compact_int()))
BOUNDS: Final = _map(STREAM, Kind(_put_bound, _get_bound))


def _nested(cls: type[Written]) -> Kind[Any]:
    """Return the kind of a frame with its length before it."""
    return Kind(
        lambda value: _put_buffer(b"\0" + put_revisions(_bodies(value))),
        lambda reader: _read_frame(cls, CompactReader(_get_buffer(reader))),
    )


_Fields = tuple[tuple[str, Kind[Any]], ...]

_CONFIG: Final[_Fields] = (("checkpoint_ms", LONG), ("refresh_ms", LONG), ("start", BOUNDS), ("end", BOUNDS))

#: Fields of each revision.
LAYOUTS: Final[Mapping[type[Written], tuple[_Fields, ...]]] = {
    GroupConfig: (
        _CONFIG,
        (*_CONFIG, ("max_outstanding", INT)),
        (("retention", RETENTION), ("generation", LONG), ("id", UUID)),
    ),
    Checkpoints: (
        (
            ("names", _list(UTF)),
            ("waiting", _map(UTF, _set(UTF))),
            ("positions", _map(UTF, POSITIONS)),
            ("last", POSITIONS),
        ),
        (("published", FLAG),),
    ),
    Init: (
        (("config", _nested(GroupConfig)), ("start", UNRANGED), ("end", POSITIONS)),
        (("start", RANGED),),
        (("updating", FLAG),),
    ),
    GroupState: (
        (
            ("config", _nested(GroupConfig)),
            ("checkpoints", _nested(Checkpoints)),
            ("distances", _map(UTF, LONG)),
            ("future", _map(SEGMENT, _set(LONG))),
            ("assigned", _map(UTF, POSITIONS)),
            ("unassigned", POSITIONS),
            ("end", POSITIONS),
        ),
        (("last_read", POSITIONS), ("ranges", _map(SEGMENT, RANGE))),
        (("updating", FLAG),),
    ),
    AddReader: ((("reader", UTF),),),
    RemoveReader: ((("reader", UTF), ("owned", POSITIONS)),),
    ReleaseSegment: ((("reader", UTF), ("segment", SEGMENT), ("offset", LONG)),),
    AcquireSegment: ((("reader", UTF), ("segment", SEGMENT)),),
    UpdateDistanceToTail: ((("reader", UTF), ("distance", LONG)), (("last_read", RANGED),)),
    SegmentCompleted: (
        (("reader", UTF), ("segment", SEGMENT), ("successors", _map(SEGMENT, _list(LONG)))),
        (("ranges", _map(SEGMENT, RANGE)),),
    ),
    CheckpointReader: ((("checkpoint", UTF), ("reader", UTF), ("positions", POSITIONS)),),
    CreateCheckpoint: ((("checkpoint", UTF),),),
    ClearCheckpointsBefore: ((("checkpoint", UTF),),),
    UpdateCheckpointPublished: ((("published", FLAG),),),
    UpdatingConfig: ((("updating", FLAG),),),
    RemoveOutstandingCheckpoints: ((),),
}

#: Types by the second byte of an update or initial value.
TYPES: Final[tuple[type[Written], ...]] = (
    Init,
    GroupState,
    AddReader,
    RemoveReader,
    ReleaseSegment,
    AcquireSegment,
    UpdateDistanceToTail,
    SegmentCompleted,
    CheckpointReader,
    CreateCheckpoint,
    ClearCheckpointsBefore,
    UpdateCheckpointPublished,
    UpdatingConfig,
    RemoveOutstandingCheckpoints,
)
_NUMBERS: Final = {cls: number for number, cls in enumerate(TYPES)}


# ---- frames ----------------------------------------------------------------------------------------------------------


def _bodies(value: Written) -> list[bytes]:
    if isinstance(value, GroupConfig):
        value.check()
    known = [b"".join(kind.put(getattr(value, name)) for name, kind in fields) for fields in LAYOUTS[type(value)]]
    return [*known, *value.later]


def _read_frame(cls: type[Written], reader: CompactReader) -> Any:
    _, bodies = reader.versioned()
    return _read_bodies(cls, reader, bodies)


def _read_bodies(cls: type[Written], reader: CompactReader, bodies: list[CompactReader]) -> Any:
    """Return the value of a frame. Fields of missing revisions have their defaults, if any."""
    if reader.remaining:
        raise ValueError(f"{reader.remaining} bytes follow its end")
    layout, values = LAYOUTS[cls], {}
    for number, (fields, body) in enumerate(zip(layout, bodies, strict=False)):
        for name, kind in fields:
            values[name] = kind.get(body)
        if body.remaining:
            raise ValueError(f"{body.remaining} bytes follow revision {number}")
    later = tuple(body.take(body.remaining) for body in bodies[len(layout) :])
    return cls(**values, later=later)


def _decoded(what: str, data: bytes, read: Callable[[CompactReader], T]) -> T:
    try:
        return read(CompactReader(bytes(data)))
    except (ValueError, ConnectorError, DeserializationError) as error:
        reason = getattr(error, "message", error)
        raise DeserializationError(f"invalid {what} of a reader group ({len(data)} bytes): {reason}") from None


def encode_update(value: StateUpdate) -> bytes:
    """Return the bytes of an update or an initial value.

    Raises ValueError for a name that is too long, and ConfigError for a configuration that Java's clients refuse.
    """
    return bytes((0, _NUMBERS[type(value)])) + put_revisions(_bodies(value))


def decode_update(data: bytes) -> StateUpdate:
    """Return the update or initial value of these bytes.

    Raises DeserializationError, also for an unknown type.
    """
    return _decoded("update", data, _read_update)


def _read_update(reader: CompactReader) -> StateUpdate:
    number, bodies = _read_type(reader)
    update: StateUpdate = _read_bodies(TYPES[number], reader, bodies)
    return update


def _read_type(reader: CompactReader) -> tuple[int, list[CompactReader]]:
    form, number = reader.fixed(1), reader.fixed(1)
    if form != 0 or number >= len(TYPES):
        raise ValueError(f"unknown format {form}, type {number}")
    _, bodies = reader.revisions()
    return number, bodies


def _read_padded(reader: CompactReader) -> StateUpdate:
    number, bodies = _read_type(reader)
    if reader.take(reader.remaining).strip(b"\0"):
        raise ValueError("other bytes than zeros follow its end")
    value: StateUpdate = _read_bodies(TYPES[number], reader, bodies)
    return value


class StateSerializer:
    """Serializer of a group's updates, including initial values."""

    def serialize(self, value: StateUpdate, /) -> bytes:
        """Return the bytes of a value."""
        return encode_update(value)

    def deserialize(self, data: bytes, /) -> StateUpdate:
        """Return the value of these bytes. Raises DeserializationError."""
        return decode_update(data)


class InitSerializer:
    """Serializer of a group's initial values."""

    def serialize(self, value: Init | GroupState, /) -> bytes:
        """Return the bytes of a value."""
        return encode_update(value)

    def deserialize(self, data: bytes, /) -> Init | GroupState:
        """Return the value of these bytes. Raises DeserializationError, also for an update that begins no state.

        Java's clients write such an entry to the end of their buffer (``UpdateOrInitSerializer``), so zeros may follow.
        """
        value = _decoded("update", data, _read_padded)
        if not isinstance(value, Init | GroupState):
            raise DeserializationError(f"invalid beginning of a reader group: {type(value).__name__} begins no state")
        return value


def encode_config(config: GroupConfig) -> bytes:
    """Return the bytes of a configuration (``ReaderGroupConfig.toBytes``).

    Raises ConfigError for a configuration that Java refuses.
    """
    return b"\0" + put_revisions(_bodies(config))


def decode_config(data: bytes) -> GroupConfig:
    """Return the configuration of these bytes. Raises DeserializationError."""
    config: GroupConfig = _decoded("configuration", data, lambda reader: _read_frame(GroupConfig, reader))
    return config


# ---- values exchanged with Java --------------------------------------------------------------------------------------

_OFFSETS: Final = _map(SEGMENT, Kind(_put_offset, _get_offset))
_RANGES: Final = _map(SEGMENT, RANGE)
_CUTS: Final = _map(STREAM, Kind(StreamCut.to_bytes, StreamCut.read))


def encode_position(position: Ranged) -> bytes:
    """Return the bytes of a reader's position, as Java's ``Position.fromBytes`` accepts them."""
    return b"\0" + put_revisions([_OFFSETS.put(position.positions), _RANGES.put(position.ranges)])


def decode_position(data: bytes) -> Ranged:
    """Return a reader's position from the bytes of Java's ``Position.toBytes``.

    Raises DeserializationError.
    """

    def read(reader: CompactReader) -> Ranged:
        _, (first, *others) = reader.versioned()
        positions = _OFFSETS.get(first)
        return Ranged(positions, _RANGES.get(others[0]) if others else dict.fromkeys(positions))

    return _decoded("position", data, read)


def encode_checkpoint(name: str, cuts: Mapping[StreamName, StreamCut]) -> bytes:
    """Return the bytes of a checkpoint, as Java's ``Checkpoint.fromBytes`` accepts them."""
    return b"\0" + put_revisions([UTF.put(name) + _CUTS.put(cuts)])


def decode_checkpoint(data: bytes) -> tuple[str, dict[StreamName, StreamCut]]:
    """Return name and stream cuts of a checkpoint from the bytes of Java's ``Checkpoint.toBytes``.

    Raises DeserializationError.
    """

    def read(reader: CompactReader) -> tuple[str, dict[StreamName, StreamCut]]:
        _, (body, *_) = reader.versioned()
        return UTF.get(body), dict(_CUTS.get(body))

    return _decoded("checkpoint", data, read)

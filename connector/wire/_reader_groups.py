"""The state that a reader group begins with, as Java's client writes it into the stream ``_RG<group>``.

The stream is one of a state synchronizer: ``i32 1 | initial value``, or ``i32 2 | (i32 length | update)*``, and an
initial value may stand where an update does: it replaces the whole state (ReaderGroupState.ReaderGroupStateInit and its
serializer, ReaderGroupConfig's serializer, RevisionDataOutputStream.java)::

    0 type 0, version 0, 3 revisions:   0: configuration, offsets where it begins, offsets where it ends
                                        1: where it begins, with key ranges (which the client does not fill in)
                                        2: whether the configuration is being changed
    configuration, version 0, 3 revisions:
                                        0: i64 checkpoint interval, i64 refresh time, start and end cut of each stream
                                        1: all of this again, i32 most outstanding checkpoints
                                        2: retention type, i64 generation, i64 i64 id

A cut without bounds is no bytes.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connector.wire._compact import put_compact_int
from connector.wire._cuts import StreamCut
from connector.wire._names import StreamName, segment_name

GROUP_PREFIX: Final = "_RG"  # NameUtils.READER_GROUP_STREAM_PREFIX
_INITIAL: Final = struct.pack(">i", 1)
_UPDATES: Final = struct.pack(">i", 2)
_STATE_INIT: Final = 0  # type of ReaderGroupStateInit
_NO_RANGE: Final = struct.pack(">dd", -1.0, -1.0)
_MANUAL: Final = 1  # StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberConfig:
    """Configuration of a reader group that reads one stream without bounds and whose position is published by hand."""

    stream: StreamName
    id: uuid.UUID
    generation: int
    checkpoint_ms: int
    refresh_ms: int
    checkpoints: int


def group_stream(scope: str, group: str) -> StreamName:
    """The stream that holds the state of a reader group."""
    return StreamName(scope, GROUP_PREFIX + group)


def encode_group_init(config: SubscriberConfig, start: StreamCut, *, again: bool) -> bytes:
    """The entry that begins a group's state at a cut; ``again``: that replaces the state that there is."""
    segments = [(_utf(segment_name(start.stream, i)), struct.pack(">q", at)) for i, at in start.positions.items()]
    data = _encode_config(config)
    body = (
        put_compact_int(len(data)) + data + _map(segments) + _map(()),
        _map((name + _NO_RANGE, at) for name, at in segments),
        b"\0",
    )
    value = bytes((0, _STATE_INIT)) + _frame(body)
    return _UPDATES + struct.pack(">i", len(value)) + value if again else _INITIAL + value


def _encode_config(config: SubscriberConfig) -> bytes:
    unbounded = _map([(_utf(str(config.stream)), put_compact_int(0))])
    first = struct.pack(">qq", config.checkpoint_ms, config.refresh_ms) + unbounded + unbounded
    identity = put_compact_int(_MANUAL) + struct.pack(">q", config.generation) + config.id.bytes
    return b"\0" + _frame((first, first + struct.pack(">i", config.checkpoints), identity))


def _frame(revisions: tuple[bytes, ...]) -> bytes:
    """Version 0 and its revisions, without the byte before."""
    parts = (bytes((number,)) + struct.pack(">i", len(body)) + body for number, body in enumerate(revisions))
    return bytes((0, len(revisions))) + b"".join(parts)


def _utf(name: str) -> bytes:
    data = name.encode("ascii")  # names of scopes, streams and segments are
    return struct.pack(">H", len(data)) + data


def _map(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    pairs = [key + value for key, value in entries]
    return put_compact_int(len(pairs)) + b"".join(pairs)

"""Protobuf: all of proto3 and proto2, and the bombs of the wire format."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_serde.protobuf import ProtobufSerializer
from tests.fuzz._messages import fill
from tests.fuzz._target import Format, Target
from tests.interop.java_proto._descriptors import everything, older

__all__ = ["FORMAT"]

_SIZE: Final = (1 << 20) - 64


def _varint(number: int) -> bytes:
    value, out = number & (1 << 64) - 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _framed(number: int, payload: bytes) -> bytes:
    return _tag(number, 2) + _varint(len(payload)) + payload


def _target(name: str, files: FileDescriptorSet, bombs: Mapping[str, Callable[[], bytes]], **more: Any) -> Target:
    serializer, source = ProtobufSerializer(files, message_type=name), random.Random(1)
    events = []
    for _ in range(60):
        message = serializer.message_class()
        fill(message, source, 3)
        events.append(message.SerializeToString())
    # The content of a message is checked on access: a time beyond Python's, a proto2 text that is not UTF-8.
    return Target(name=name, serializer=serializer, corpus=events, bombs=bombs, rows_take_more=True, **more)


def _filled(piece: bytes) -> bytes:
    return piece * (_SIZE // len(piece))


def _packed(number: int, item: bytes) -> bytes:
    return _framed(number, item * ((_SIZE - 16) // len(item)))


def _nested(number: int, levels: int, inside: bytes = b"") -> bytes:
    """A message in a message in a message."""
    for _ in range(levels):
        inside = _framed(number, inside)
    return inside


def _entries(number: int, value: bytes) -> bytes:
    """A map with as many keys as fit."""
    entries, size = [], 0
    while size < _SIZE - 64:
        entries.append(_framed(number, _framed(1, b"%x" % len(entries)) + value))
        size += len(entries[-1])
    return b"".join(entries)


_FLAT: Final[Mapping[str, Callable[[], bytes]]] = {
    "one field, often": lambda: _filled(_tag(1, 0) + b"\1"),
    "unknown fields": lambda: _filled(_tag(99, 0) + b"\1"),
    "unknown fields of no bytes": lambda: _filled(_framed(99, b"")),
    "unknown groups": lambda: _filled(_tag(99, 3) + _tag(99, 4)),
    "groups in groups": lambda: _filled(_tag(99, 3)),
    "groups in groups, ended": lambda: _tag(99, 3) * (_SIZE // 4) + _tag(99, 4) * (_SIZE // 4),
    "huge text": lambda: _tag(2, 2) + _varint((1 << 31) - 1) + b"x",
    "text of a negative length": lambda: _tag(2, 2) + _varint(-1) + b"x",
    "text of nearly 2**64": lambda: _tag(2, 2) + _varint((1 << 64) - 8) + b"x" * 9,
    "long number": lambda: _tag(1, 0) + b"\xff" * _SIZE,
    "padding": lambda: _tag(1, 0) + b"\1" + b"\0" * (_SIZE - 2),
    "long text": lambda: _framed(2, "ü".encode() * (_SIZE // 2 - 8)),
    "text set often": lambda: _filled(_framed(2, b"text")),
}
_ALL: Final[Mapping[str, Callable[[], bytes]]] = {
    "packed": lambda: _packed(41, b"\1"),
    "packed longs": lambda: _packed(42, _varint(300)),
    "packed negative": lambda: _packed(41, b"\xff" * 9 + b"\1"),
    "packed enums": lambda: _packed(56, b"\5"),
    "packed unknown enums": lambda: _packed(56, b"\x63"),
    "packed doubles": lambda: _packed(52, b"\1" * 8),
    "packed bools": lambda: _packed(53, b"\1"),
    "packed, item by item": lambda: _filled(_framed(41, b"\1")),
    "not packed": lambda: _filled(_tag(58, 0) + b"\1"),
    "empty texts": lambda: _filled(_framed(54, b"")),
    "short texts": lambda: _filled(_framed(54, b"ab")),
    "empty messages": lambda: _filled(_framed(57, b"")),
    "messages of one field": lambda: _filled(_framed(57, b"\x08\1")),
    "message merged often": lambda: _filled(_framed(37, b"\x1a\1\1")),
    "empty times": lambda: _filled(_framed(89, b"")),
    "keys": lambda: _entries(61, b""),
    "keys of messages": lambda: _entries(90, _framed(2, b"")),
    "one key": lambda: _filled(_framed(61, b"")),
    "numbers of one hash": lambda: b"".join(
        _framed(65, _tag(1, 0) + _varint((2**61 - 1) * (n % 8) << 1)) for n in range(60_000)
    ),
    "choices": lambda: _filled(_framed(73, b"") + _tag(72, 0) + b"\1"),
    "paths": lambda: _framed(91, _filled(_framed(1, b"a"))[: _SIZE - 20]),
    "huge packed": lambda: _tag(41, 2) + _varint(1 << 31) + b"\1",
}
_TREE: Final[Mapping[str, Callable[[], bytes]]] = {
    "tree in a tree": lambda: _nested(2, 15_000),
    "tree in a map of a tree": lambda: _nested(3, 99),
    "many small trees": lambda: _filled(_framed(2, b"")),
    "many deep trees": lambda: _filled(_nested(2, 90)),
}
_DOCUMENTS: Final[Mapping[str, Callable[[], bytes]]] = {
    "values": lambda: _filled(_framed(4, b"")),
    "nulls": lambda: _filled(_framed(4, b"\x08\0")),
    "lists in lists": lambda: _framed(3, _nested(1, 20) * 20_000)[:_SIZE],
    "list in a list in a list": lambda: b"".join(_framed(3, _framed(1, _framed(6, b""))) for _ in range(100_000)),
}
_OLDER: Final[Mapping[str, Callable[[], bytes]]] = {
    "required": lambda: _filled(_framed(1, b"\x08\1")),
    "required, not there": lambda: _filled(_framed(1, b"")),
}


def _format() -> Format:
    return Format(
        targets=[
            _target("everything.Flat", everything(), _FLAT),
            _target("everything.Everything", everything(), _ALL),
            _target("everything.Documents", everything(), _DOCUMENTS, columns=False),
            _target("everything.Tree", everything(), _TREE, columns=False),
            _target("older.Older", older(), {}),
            _target("older.Holder", older(), _OLDER),
        ],
        tokens=_TOKENS,
    )


_TOKENS: Final = [
    *(_tag(number, wire) for number in (1, 2, 3, 4, 5, 41, 54, 57, 61, 73, 81) for wire in (0, 1, 2, 3, 4, 5)),
    *map(_varint, (0, 1, 127, 128, 300, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, -1)),
    *(
        b"\0",
        b"\7",
        b"\6",
        b"\xff" * 9 + b"\1",
        b"\xff" * 10,
        b"\xff" * 11,
        b"\x80\0",
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
    ),
    *(_framed(57, b""), _framed(61, b"\x0a\1k"), _framed(2, b"ab"), _tag(99, 3) + _tag(99, 4), _framed(41, b"\1\2\3")),
]

FORMAT: Final = _format()

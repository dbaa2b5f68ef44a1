"""Changes to events: bits, bytes, truncation, splices, repetition; as tokens also counts, lengths, a format's words."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

__all__ = ["LARGEST", "inflate", "mutate"]

#: Below the mebibyte for which memory is promised.
LARGEST = (1 << 20) - 1

Change = Callable[[bytearray, int, bytes, Sequence[bytes], random.Random], None]


def _byte(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    raw[at : at + 1] = bytes([source.randrange(256)])


def _bit(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    if at < len(raw):
        raw[at] ^= 1 << source.randrange(8)


def _truncate(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    del raw[at:]


def _insert_token(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    raw[at : at + source.randrange(4)] = source.choice(tokens)


def _write_token(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    token = source.choice(tokens)
    raw[at : at + len(token)] = token


def _repeat(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    raw[at:at] = raw[at : at + source.randrange(1, 60)] * source.choice((1, 1, 2, 30))


def _remove(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    del raw[at : at + source.randrange(1, 12)]


def _splice(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    start = source.randrange(len(other) + 1)
    raw[at:at] = other[start : start + source.randrange(1, 80)]


def _swap_tail(raw: bytearray, at: int, other: bytes, tokens: Sequence[bytes], source: random.Random) -> None:
    raw[at:] = other[source.randrange(len(other) + 1) :]


_CHANGES: Sequence[Change] = (
    *(_byte, _bit, _bit, _insert_token, _insert_token, _write_token, _write_token),
    *(_repeat, _remove, _splice, _swap_tail, _truncate),
)


def mutate(event: bytes, other: bytes, tokens: Sequence[bytes], source: random.Random, *, keep: int = 0) -> bytes:
    """An event changed in one to six places, all after its first ``keep`` bytes."""
    raw = bytearray(event)
    for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
        at = source.randrange(min(keep, len(raw)), len(raw) + 1)
        source.choice(_CHANGES)(raw, at, other, tokens, source)
    return bytes(raw)


def inflate(event: bytes, source: random.Random, *, keep: int = 0) -> bytes:
    """An event of up to a mebibyte: one piece of it is repeated as often as fits."""
    at = source.randrange(min(keep, len(event)), len(event) + 1)
    piece = event[at : at + source.randrange(1, 40)] or b"\0"
    room = (LARGEST - len(event)) // source.choice((1, 1, 4, 16))
    return event[:at] + piece * (room // len(piece)) + event[at:]

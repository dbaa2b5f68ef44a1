"""Protobuf messages without a schema: recognition, and statistics of their fields.

A message does not name its type. Many byte strings are also messages by chance. The evidence is therefore counted over
all events: each position at which a tag is expected and found counts once, and so does printable text in a field.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from pravega_serde.columnar import MalformedError
from pravega_serde.protobuf.wire import FIXED32, FIXED64, GROUP, LENGTH, MAX_DEPTH, VARINT, Walker
from pravega_serde.sniffing.evidence import PER_CHARACTER, is_significant
from pravega_serde.sniffing.fields import MILLIS, SniffedField

#: Fields of a message that are examined; a message with more is not recognized.
_MOST_FIELDS: Final = 1000
_MOST_NUMBERS: Final = 200
#: Messages whose fields count as evidence, and are described.
_MOST_MESSAGES: Final = 300
_LARGEST_NUMBER: Final = 1 << 19
#: Messages inside messages that are described, and values of a field that are examined for it.
_DEPTH: Final = 4
_VALUES: Final = 300
#: Share of the events that must have a tag, so that it is part of the messages.
_COMMON: Final = 0.02


class _Found(NamedTuple):
    """Field of one message. Positions are in bytes: of its tag, and of its value."""

    number: int
    wire: int
    at: int
    start: int
    end: int


class _Message(NamedTuple):
    data: bytes
    fields: tuple[_Found, ...]


def members(events: Sequence[bytes], *, padded: bool = False) -> list[int]:
    """Return the positions of the events that are Protobuf messages, or none if that can be a coincidence.

    With ``padded``, zeros may follow a message, as after Java's decompression.
    """
    tags = {
        at: frozenset((each.number, each.wire) for each in found.fields)
        for at, data in enumerate(events)
        if (found := _message(data, padded=padded)) is not None
    }
    counts = Counter(tag for found in tags.values() for tag in found)
    least = max(2, _COMMON * len(tags)) if len(tags) >= 10 else 1
    common = {tag for tag, count in counts.items() if count >= least}
    chosen = [at for at, found in tags.items() if found <= common]
    bits = _evidence(_messages((events[at] for at in chosen), padded=padded), len(common))
    return chosen if is_significant(bits, len(chosen), len(events)) else []


def evidence(events: Sequence[bytes], *, padded: bool = False) -> float:
    """Return the bits of evidence that events, all of them messages, are Protobuf."""
    messages = _messages(events, padded=padded)
    return _evidence(messages, len({(each.number, each.wire) for found in messages for each in found.fields}))


def _messages(events: Iterable[bytes], *, padded: bool) -> list[_Message]:
    """Return the messages among the first events."""
    parsed = (_message(data, padded=padded) for data in islice(events, _MOST_MESSAGES))
    return [found for found in parsed if found is not None]


def _message(data: bytes, *, padded: bool = False) -> _Message | None:
    """Return the fields of a message; None for other bytes, for groups, and for too many or too high fields."""
    fields: list[_Found] = []
    at = 0
    try:
        for number, wire, start, end in Walker(data).fields(0, len(data), depth=MAX_DEPTH):
            if wire == GROUP or number > _LARGEST_NUMBER or len(fields) == _MOST_FIELDS:
                return None
            fields.append(_Found(number, wire, at, start, end))
            at = end
    except MalformedError:
        return None
    if not fields or (at != len(data) and not padded):
        return None
    return _Message(data, tuple(fields))


def _evidence(messages: Sequence[_Message], tags: int) -> float:
    """Return the bits of evidence of messages whose fields have ``tags`` different tags.

    A tag is expected at each position where a field ends. One in four bytes can be a tag. A known tag is one of
    ``tags`` among 256 bytes. Writers order fields by number, mostly without large gaps.
    """
    known: set[tuple[int, int]] = set()
    positions: set[tuple[int, int, int]] = set()
    texts: set[bytes] = set()
    bits = 0.0
    per_known_tag = max(8.0 - math.log2(max(tags, 1)), 0.0)
    for message in messages:
        previous = 0
        for each in message.fields:
            position = each.number, each.wire, each.at
            if (each.number, each.wire) not in known:
                known.add((each.number, each.wire))
                bits += 2.0 + _order_bits(each.number - previous)
            elif position not in positions:
                bits += per_known_tag
            positions.add(position)
            previous = each.number
            if each.wire == LENGTH and each.end - each.start >= 3 and len(texts) < _VALUES:
                texts.add(message.data[each.start : each.end][:40])
    return bits + sum(PER_CHARACTER * len(text) for text in texts if _is_text(text))


def _order_bits(gap: int) -> float:
    return max(5.0 - 2.0 * math.log2(gap), 0.0) if gap > 0 else -2.0


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return text.isprintable()


# ---- description ----


def describe(events: Sequence[bytes], *, padded: bool = False) -> tuple[SniffedField, ...]:
    """Return the fields of messages, with those of messages inside them."""
    return tuple(_described(_messages(events, padded=padded), "", _DEPTH))


def _described(messages: Sequence[_Message], prefix: str, depth: int) -> Iterator[SniffedField]:
    """Yield the fields of messages of one type, by number."""
    counts: Counter[int] = Counter()
    most: Counter[int] = Counter()
    values: dict[int, list[tuple[int, bytes]]] = {}
    for message in messages:
        inside = Counter(each.number for each in message.fields)
        for number, count in inside.items():
            counts[number] += 1
            most[number] = max(most[number], count)
        for each in message.fields:
            kept = values.setdefault(each.number, []) if len(values) < _MOST_NUMBERS else values.get(each.number, [])
            if len(kept) < _VALUES:
                kept.append((each.wire, message.data[each.start : each.end]))
    for number in sorted(values):
        path = f"{prefix}{number}" + ("[]" if most[number] > 1 else "")
        types, inner = _types(values[number], depth)
        yield SniffedField(path, types, counts[number] < len(messages), _logical(values[number]))
        if inner:
            yield from _described(inner, f"{path}.", depth - 1)


def _types(values: Sequence[tuple[int, bytes]], depth: int) -> tuple[tuple[str, ...], list[_Message]]:
    wires = Counter(wire for wire, _ in values)
    names: list[str] = []
    inner: list[_Message] = []
    for wire, _ in wires.most_common():
        contents = [data for each, data in values if each == wire]
        if wire == LENGTH:
            name, inner = _length_delimited(contents, depth)
        else:
            name = _number(wire, contents)
        names.append(name)
    return tuple(names), inner


def _length_delimited(contents: Sequence[bytes], depth: int) -> tuple[str, list[_Message]]:
    filled = [data for data in contents if data]
    if not filled or all(map(_is_text, filled)):
        return "text", []
    messages = [found for data in filled if (found := _message(data)) is not None]
    if depth > 1 and len(messages) == len(filled):
        bits = _evidence(messages, len({(each.number, each.wire) for one in messages for each in one.fields}))
        if is_significant(bits, 1, 1):
            return "message", messages
    return "bytes", []


def _number(wire: int, contents: Sequence[bytes]) -> str:
    if wire == VARINT:
        return "integer"
    form = {FIXED64: "<d", FIXED32: "<f"}[wire]
    is_float = all(_is_usual(struct.unpack(form, data)[0]) for data in contents)
    size = 64 if wire == FIXED64 else 32
    return ("double" if size == 64 else "float") if is_float else f"fixed{size}"


def _is_usual(value: float) -> bool:
    return value == 0 or (math.isfinite(value) and 1e-9 < abs(value) < 1e15)


def _logical(values: Sequence[tuple[int, bytes]]) -> str:
    """Return ``epoch-millis`` if all values are different times of 2001 to 2039."""
    if len(values) < 5 or any(wire != VARINT for wire, _ in values):
        return ""
    numbers = {_varint(data) for _, data in values}
    return "epoch-millis" if len(numbers) >= 5 and all(number in MILLIS for number in numbers) else ""


def _varint(data: bytes) -> int:
    return sum((byte & 0x7F) << 7 * at for at, byte in enumerate(data))

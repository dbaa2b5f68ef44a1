"""Division of sampled events into parts of one framing and one format."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pravega_serde.avro import AvroSerializer
from pravega_serde.errors import DeserializationError
from pravega_serde.json.rows import parse as parse_json
from pravega_serde.sniffing import compression, protobuf_fields
from pravega_serde.sniffing.evidence import is_significant
from pravega_serde.sniffing.framings import (
    FRAMINGS,
    LENGTHS,
    Framed,
    Framing,
    LengthFraming,
    envelope_of,
    without_message_indexes,
)
from pravega_serde.sniffing.payloads import EMPTY, UNKNOWN, Guess, detect

#: Formats that a payload shows by itself, so that they confirm a framing before it.
_STRUCTURED: Final = frozenset({"avro", "cbor", "java", "json", "protobuf"})
#: Bits that text has more than other formats, because it is frequent.
_TEXT_BONUS: Final = 13.0
#: Bytes of all decompressed payloads.
_MAX_UNPACKED: Final = 32 << 20
#: Share of the binary events that must be Protobuf messages. Of other structures, a few events are messages, too.
_LEAST_SHARE: Final = 0.25
#: Events whose first bytes are their length, so that it is no coincidence.
_FEWEST_LENGTHS: Final = 3
#: Compression that an event shows by itself -> its payload.
_COMPRESSED: Final = {"gzip": compression.gunzipped, "zlib": compression.inflated}
#: Compression in a framing, and a compressed container in that.
_MAX_DEPTH: Final = 3


@dataclass(slots=True)
class Group:
    """Events of one framing and format: their positions in the sample, and what is after the framing."""

    framing: tuple[str, ...]
    format: str
    rows: list[int]
    payloads: list[bytes]
    bits: float = 0.0
    ids: set[int | str] = field(default_factory=set)

    @property
    def padded(self) -> bool:
        """True if zeros may follow a payload."""
        return bool(self.framing)


class Splitter:
    """Division of events. ``avro`` reads bodies with the schema that the user passes."""

    def __init__(self, avro: AvroSerializer | None = None, deadline: float = float("inf")) -> None:
        self._avro, self._deadline = avro, deadline
        self.examined = 0
        """Number of events that were examined before the deadline."""
        self.not_unpacked = 0
        """Number of compressed payloads that exceeded the memory limit."""
        self.is_late = False
        """True if payloads in framings were not examined because of the deadline."""
        self._room = _MAX_UNPACKED

    def split(self, events: Sequence[bytes]) -> list[Group]:
        """Return the groups of the events that can be examined before the deadline."""
        guesses: list[Guess] = []
        for event in events:
            if guesses and time.monotonic() > self._deadline:
                break
            guesses.append(detect(event))
        self.examined = len(guesses)
        return self._merged(self._groups(list(events[: len(guesses)]), guesses, depth=0))

    def _groups(self, payloads: list[bytes], guesses: list[Guess], depth: int) -> list[Group]:
        rows: dict[str, list[int]] = {}
        for row, guess in enumerate(guesses):
            rows.setdefault(guess.format, []).append(row)
        left = rows.pop(UNKNOWN, [])
        left += _withdrawn(rows, guesses, payloads)
        found: list[Group] = []
        for name, chosen in rows.items():
            bits = sum(guesses[row].bits for row in chosen)
            if name in _COMPRESSED:
                found += self._unpacked(name, payloads, chosen, _COMPRESSED[name], depth)
            elif name == "avro container":
                found.append(_group(("avro-container",), "avro", chosen, payloads, bits))
            elif name == "json":
                found += _by_envelope(chosen, payloads, bits)
            else:
                found.append(_group((), name, chosen, payloads, bits))
        return found + self._binary(payloads, sorted(left), depth)

    def _binary(self, payloads: list[bytes], left: list[int], depth: int) -> list[Group]:
        """Return the groups of events that show no format by themselves."""
        found: list[Group] = []
        if depth == 0:
            for framing in FRAMINGS:
                groups = self._framed(framing, payloads, left)
                found += groups
                left = _without(left, groups)
            for length in LENGTHS:
                groups = self._after_length(length, payloads, left)
                found += groups
                left = _without(left, groups)
        for search in (self._avro_bodies, self._snappy, self._messages):
            groups = search(payloads, left, depth)
            found += groups
            left = _without(left, groups)
        return [*found, _group((), UNKNOWN, left, payloads)] if left else found

    def _framed(self, framing: Framing, payloads: list[bytes], left: list[int]) -> list[Group]:
        split: dict[int, Framed] = {row: each for row in left if (each := framing.split(payloads[row])) is not None}
        if not split:
            return []
        rows, bodies = list(split), [each.payload for each in split.values()]
        groups = self._inside(bodies, depth=1)
        if framing.name == "confluent":
            groups = self._without_indexes(groups)
        if framing.names_format:
            groups = [_group((), framing.names_format, list(range(len(rows))), bodies)]
        recognized = sum(len(each.rows) for each in groups if each.format in _STRUCTURED)
        is_recognized = recognized * 2 >= len(rows) and not framing.names_format
        is_plausible = framing.is_plausible(list(split.values()), len(left), recognized=is_recognized)
        if not is_plausible or _is_text(groups, len(rows)):
            return []
        for found in groups:
            found.framing = (framing.name, *found.framing)
            found.ids = {framing.show(split[rows[at]].id) for at in found.rows}
            found.rows = [rows[at] for at in found.rows]
            found.format = UNKNOWN if found.format in ("string", EMPTY) else found.format
        return groups

    def _after_length(self, framing: LengthFraming, payloads: list[bytes], left: list[int]) -> list[Group]:
        """Return the groups of payloads after their length, if nearly all have a format that confirms it."""
        bodies = {row: body for row in left if (body := framing.payload(payloads[row])) is not None}
        if len(bodies) < _FEWEST_LENGTHS or len(bodies) < _LEAST_SHARE * len(left):
            return []
        rows = list(bodies)
        groups = self._inside(list(bodies.values()), depth=1)
        confirmed = sum(len(each.rows) for each in groups if each.format in framing.formats)
        if confirmed * 10 < len(rows) * 9:
            return []
        for found in groups:
            found.framing = (framing.name, *found.framing)
            found.rows = [rows[at] for at in found.rows]
            found.format = found.format if found.format in _STRUCTURED else UNKNOWN
        return groups

    def _without_indexes(self, groups: list[Group]) -> list[Group]:
        """Find Protobuf messages after message indexes, in the group of an unknown format."""
        for group in [each for each in groups if each.format in (UNKNOWN, "protobuf") and not each.framing]:
            stripped = [without_message_indexes(payload) for payload in group.payloads]
            bodies = {at: body for at, body in enumerate(stripped) if body}
            chosen = protobuf_fields.members(list(bodies.values()))
            if len(chosen) * 10 >= len(group.rows) * 9:
                positions = [list(bodies)[at] for at in chosen]
                found = Group((), "protobuf", [group.rows[at] for at in positions], [bodies[at] for at in positions])
                rest = [at for at in range(len(group.rows)) if at not in set(positions)]
                groups.remove(group)
                groups.append(found)
                if rest:
                    groups.append(
                        Group((), UNKNOWN, [group.rows[at] for at in rest], [group.payloads[at] for at in rest])
                    )
        return groups

    def _inside(self, bodies: list[bytes], depth: int) -> list[Group]:
        return self._groups(bodies, [self._guess(body) for body in bodies], depth)

    def _guess(self, body: bytes) -> Guess:
        self.is_late = self.is_late or time.monotonic() > self._deadline
        return Guess(UNKNOWN) if self.is_late else detect(body)

    def _unpacked(
        self,
        name: str,
        payloads: list[bytes],
        chosen: list[int],
        unpack: Callable[[bytes], bytes | None],
        depth: int,
    ) -> list[Group]:
        """Return the groups of compressed payloads. Those beyond the memory limit stay unknown."""
        bodies: dict[int, bytes] = {}
        for row in chosen:
            body = unpack(payloads[row]) if self._room > 0 and depth < _MAX_DEPTH else None
            if body:
                self._room -= len(body)
                # Java's writers add zeros to a payload. The last bytes of a compressed one can be zeros, too.
                bodies[row] = body if compression.is_compressed(body) else body.rstrip(b"\0")
        rows = list(bodies)
        groups = self._inside(list(bodies.values()), depth + 1)
        for each in groups:
            each.framing = (name, *each.framing)
            each.rows = [rows[at] for at in each.rows]
        left = [row for row in chosen if row not in bodies]
        self.not_unpacked += len(left)
        return [*groups, _group((name,), UNKNOWN, left, payloads)] if left else groups

    def _snappy(self, payloads: list[bytes], left: list[int], depth: int) -> list[Group]:
        """Return the groups of raw snappy blocks, if nearly all events are blocks."""
        chosen = [row for row in left if len(payloads[row]) >= 8 and compression.unsnapped(payloads[row]) is not None]
        if len(chosen) < 3 or len(chosen) * 10 < len(left) * 9:
            return []
        return self._unpacked("snappy", payloads, chosen, compression.unsnapped, depth)

    def _avro_bodies(self, payloads: list[bytes], left: list[int], depth: int) -> list[Group]:
        """Return the group of events that the given schema reads, if it reads half of them."""
        if self._avro is None:
            return []
        chosen = [row for row in left if self._is_avro(payloads[row])]
        if not chosen or len(chosen) * 2 < len(left):
            return []
        return [_group((), "avro", chosen, payloads, 8.0 * len(chosen))]

    def _is_avro(self, payload: bytes) -> bool:
        assert self._avro is not None
        try:
            self._avro.deserialize(payload)
        except DeserializationError:
            return False
        return True

    def _messages(self, payloads: list[bytes], left: list[int], depth: int) -> list[Group]:
        """Return the group of Protobuf messages."""
        bodies = [payloads[row] for row in left]
        if sum(map(_is_delimited, bodies)) * 2 > len(bodies):
            return []
        chosen = protobuf_fields.members(bodies, padded=depth > 0)
        if len(chosen) < _LEAST_SHARE * len(bodies):
            return []
        return [_group((), "protobuf", [left[at] for at in chosen], payloads)] if chosen else []

    def _merged(self, groups: Iterable[Group]) -> list[Group]:
        merged: dict[tuple[tuple[str, ...], str], Group] = {}
        for each in groups:
            known = merged.setdefault((each.framing, each.format), each)
            if known is not each:
                known.rows += each.rows
                known.payloads += each.payloads
                known.bits += each.bits
                known.ids |= each.ids
        return sorted(merged.values(), key=lambda each: -len(each.rows))


def _group(framing: tuple[str, ...], name: str, rows: list[int], payloads: Sequence[bytes], bits: float = 0.0) -> Group:
    return Group(framing, name, list(rows), [payloads[row] for row in rows], bits)


def _without(left: list[int], groups: Iterable[Group]) -> list[int]:
    gone = {row for each in groups for row in each.rows}
    return [row for row in left if row not in gone]


def _is_text(groups: Iterable[Group], total: int) -> bool:
    return sum(len(each.rows) for each in groups if each.format in ("string", "xml")) * 2 > total


def _withdrawn(rows: dict[str, list[int]], guesses: Sequence[Guess], payloads: Sequence[bytes]) -> list[int]:
    """Take back guesses that are too weak. Return their rows, which then count as binary.

    JSON of scalars, and text with control characters, are text if there is more text of the usual kind.
    """
    _fold_json(rows, guesses)
    left = []
    texts = rows.get("string", [])
    gone = _doubtful_texts(texts, guesses, payloads)
    rows["string"] = [row for row in texts if row not in gone]
    left += sorted(gone)
    total = sum(map(len, rows.values())) + _unknown(guesses) + len(left)
    for name in ("utf-16", "utf-32"):
        if _are_counters([payloads[row] for row in rows.get(name, [])], len(left) + _unknown(guesses)):
            left += rows.pop(name)
    for name in list(rows):
        bits = sum(guesses[row].bits for row in rows[name])
        if name in ("string", "xml") and len(rows[name]) * 2 >= total:
            bits += _TEXT_BONUS
        if name != EMPTY and not is_significant(bits, len(rows[name]), total):
            left += rows.pop(name)
    return left


def _unknown(guesses: Sequence[Guess]) -> int:
    return sum(guess.format == UNKNOWN for guess in guesses)


def _are_counters(events: Sequence[bytes], binary: int) -> bool:
    """True if events that look like UTF-16 or UTF-32 are more likely small numbers of two or four bytes."""
    return 0 < len(events) < binary or (len(events) >= 3 and len({len(event) for event in events}) == 1)


def _doubtful_texts(texts: Sequence[int], guesses: Sequence[Guess], payloads: Sequence[bytes]) -> set[int]:
    """Return the rows of texts that are more likely binary: messages, texts after their length, parts of other data."""
    contents = [payloads[row] for row in texts]
    if texts and (_are_messages(contents) or _have_lengths(contents)):
        return set(texts)
    weak = {row for row in texts if guesses[row].weak}
    binary = [payloads[row] for row, guess in enumerate(guesses) if guess.format == UNKNOWN]
    binary += [payloads[row] for row in weak]
    strong = len(texts) - len(weak)
    if strong < len(binary) and _is_mostly_printable(binary):
        return set(texts)
    return weak if len(weak) >= strong else set()


def _have_lengths(texts: Sequence[bytes]) -> bool:
    """True if the first byte of each text tells its length, as in Avro, in CBOR and in Protobuf."""
    if len({len(text) for text in texts}) < 2 and len(texts) > 2:
        return False
    return any(all(len(text) >= 2 and is_length(text, len(text)) for text in texts) for is_length in _LENGTHS)


_LENGTHS: Final[tuple[Callable[[bytes, int], bool], ...]] = (
    lambda text, size: text[0] == 2 * (size - 1),
    lambda text, size: text[0] == size - 1,
    lambda text, size: text[0] == 0x60 + size - 1 or text[:2] == bytes([0x78, (size - 2) & 255]),
    lambda text, size: text[:2] == bytes([0x0A, (size - 2) & 255]),
)


def _is_mostly_printable(events: Sequence[bytes]) -> bool:
    printable = sum(32 <= byte < 127 for event in events for byte in event[:100])
    return printable * 10 >= 6 * sum(min(len(event), 100) for event in events)


def _fold_json(rows: dict[str, list[int]], guesses: Sequence[Guess]) -> None:
    documents = rows.get("json", [])
    weak = [row for row in documents if guesses[row].weak]
    strong = len(documents) - len(weak)
    if weak and len(rows.get("string", [])) > strong:
        rows.setdefault("string", []).extend(weak)
        rows["json"] = [row for row in documents if not guesses[row].weak]
        if not rows["json"]:
            del rows["json"]


def _are_messages(texts: Sequence[bytes]) -> bool:
    """True if texts begin with a line feed and a length, as messages whose first field is text do."""
    started = [text for text in texts if text[:1] == b"\n"]
    if len(started) < 3 or len(started) * 10 < len(texts) * 9 or len({len(text) for text in started}) < 3:
        return False
    return len(protobuf_fields.members(started)) * 10 >= len(started) * 9


def _by_envelope(rows: list[int], payloads: Sequence[bytes], bits: float) -> list[Group]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(envelope_of(parse_json(payloads[row])), []).append(row)
    return [
        _group((name,) if name else (), "json", chosen, payloads, bits * len(chosen) / len(rows))
        for name, chosen in found.items()
    ]


def _is_delimited(data: bytes) -> bool:
    """True if an event begins with the length of the rest, as ``writeDelimitedTo`` writes it."""
    if not data:
        return False
    if data[0] < 0x80:
        return data[0] == len(data) - 1
    return len(data) > 1 and (data[0] & 0x7F | data[1] << 7) == len(data) - 2

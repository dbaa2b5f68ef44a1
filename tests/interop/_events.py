"""Events that show what differs between clients, and what must be equal about them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamName
from tests.interop._files import ReadEvent

__all__ = ["Events", "assert_same", "numbered", "read_here", "sample_events", "sample_keys", "segments_here"]

Events = Sequence[tuple[str | None, bytes]]

_AWKWARD_KEYS: Final = (
    "",
    " ",
    "a",
    "ß",
    "Łódź",
    "日本語",
    "🚀",
    "🏴󠁧󠁢󠁷󠁬󠁳󠁿",
    "\x00",
    "\uffff",
    "a\u0301",
    "x" * 300,
    "𝔘𝔫𝔦" * 9,
)
# 0 and 1 byte, around a page and a wire block, and larger than one block of any client
_SIZES: Final = (0, 1, 100, 4088, 65_536, 1_048_568, 3_000_000)


def _keyed_payload(key: str, number: int, size: int = 0) -> bytes:
    """A payload that tells its key and its number among the events of that key, padded with every byte value."""
    head = f"{number}|".encode() + key.encode("utf-16-be", "surrogatepass") + b"|"
    return head + bytes(range(256)) * (size // 256)


def sample_events() -> list[tuple[str | None, bytes]]:
    """Some hundred events: all the keys, all the sizes, no text."""
    events: list[tuple[str | None, bytes]] = [
        (key, _keyed_payload(key, number, 37 * number)) for number in range(20) for key in _AWKWARD_KEYS
    ]
    events += [("sizes", bytes([size % 251]) * size) for size in _SIZES]
    events += [(None, f"no key {number}".encode()) for number in range(20)]
    return events


def sample_keys(count: int, *, lone_surrogates: bool = False) -> list[str]:
    """Distinct keys of every length and plane; the same ones each time."""
    rng = random.Random(20_240_229)
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x400, 0x4FF), (0x4E00, 0x9FFF), (0xE000, 0xFFFF), (0x1_0000, 0x10_FFFF)]
    if lone_surrogates:
        ranges.append((0xD800, 0xDFFF))
    keys = set(_AWKWARD_KEYS)
    while len(keys) < count:
        low, high = rng.choice(ranges)
        keys.add("".join(chr(rng.randint(low, high)) for _ in range(rng.choice((1, 2, 3, 5, 8, 13, 40)))))
    return sorted(keys)


def _by_key(events: Iterable[tuple[str | None, bytes]]) -> dict[str | None, list[bytes]]:
    """The payloads of each key, in order."""
    grouped: dict[str | None, list[bytes]] = defaultdict(list)
    for key, payload in events:
        grouped[key].append(payload)
    return dict(grouped)


def numbered(keys: Iterable[str]) -> list[tuple[str | None, bytes]]:
    """An event for each key, which holds the key's number."""
    return [(key, str(number).encode()) for number, key in enumerate(keys)]


def read_here(client: PravegaClient, stream: StreamName) -> list[ReadEvent]:
    """The whole stream through our client, with the coordinates of each event."""
    return [
        ReadEvent(batch.segment_id, int(offset), payload)
        for batch in client.read_columns(stream)
        for offset, payload in zip(batch.offsets, batch.events.to_pylist(), strict=True)
    ]


def segments_here(client: PravegaClient, stream: StreamName) -> dict[int, int]:
    """Event number -> id of the segment that holds it, in a stream of numbered events."""
    return {int(event.payload): event.segment for event in read_here(client, stream)}


def assert_same(read: Iterable[bytes], written: Events) -> None:
    """Equal as a whole, and in order for each key: payloads of one key differ in their bytes."""
    read = list(read)
    assert sorted(read) == sorted(payload for _, payload in written)
    places = {payload: place for place, payload in enumerate(read)}
    for key, payloads in _by_key(written).items():
        if key is not None:
            assert [places[payload] for payload in payloads] == sorted(places[payload] for payload in payloads), key

"""What ``writer.write(event)`` costs, part by part: what any writer in Python has to do for an event, and the rest."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.core.events import blocks_of
from pravega_serde.routing import segment_key, segment_keys

__all__ = ["write_costs"]

_KEYS: Final = 4096
_BUFFER: Final = 10_000  # events that are handed over together: about a mebibyte of 100 B
_ROUNDS: Final = 5


class _Least:
    """What a writer in Python cannot do without: a call, checks, a lock, an append to a buffer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[bytes] = []
        self._keys: list[str | None] = []
        self._size = 0

    def write(self, event: bytes, routing_key: str | None = None) -> None:
        if type(event) is not bytes or len(event) > 8 << 20:
            raise ValueError
        if routing_key is not None and not (type(routing_key) is str and routing_key.isascii()):
            raise ValueError
        with self._lock:
            if len(self._events) >= _BUFFER:
                self._events, self._keys, self._size = [], [], 0
            self._events.append(event)
            self._keys.append(routing_key)
            self._size += len(event)


def write_costs(config: PravegaConfig, events: int, size: int) -> dict[str, float]:
    """CPU microseconds of an event by parts, the least of some rounds; the server's own are not in them."""
    event, keys = bytes(size), [str(number) for number in range(_KEYS)]
    stream = StreamName("scale", f"write-{uuid.uuid4().hex[:8]}")

    def written(write: Callable[[bytes, str], None]) -> None:
        for number in range(events):
            write(event, keys[number % _KEYS])

    found: dict[str, list[float]] = {}

    def note(what: str, seconds: float, count: int = events) -> None:
        found.setdefault(what, []).append(seconds / count * 1e6)

    texts = [keys[number % _KEYS] for number in range(_BUFFER)]
    some, their_keys = pa.array([event] * _BUFFER, pa.large_binary()), pa.array(texts)
    places, targets = segment_keys(their_keys), np.arange(_BUFFER) % 4
    with PravegaClient(config) as client:
        client.create_stream(stream, 4)
        for _ in range(_ROUNDS):
            note("loop with an empty call", _cpu(lambda: written(lambda *_: None)))
            note("… with the least writer", _cpu(lambda: written(_Least().write)))
            note("a hash of one key", _cpu(lambda: [segment_key(text) for text in texts]), _BUFFER)
            note("hashes of a buffer's keys", _cpu(lambda: segment_keys(their_keys)), _BUFFER)
            note("arrays of a buffer", _cpu(lambda: [pa.array([event] * _BUFFER), pa.array(texts)]), _BUFFER)
            note("blocks of a buffer", _cpu(lambda: list(blocks_of(some, places, targets))), _BUFFER)
            with client.writer(stream) as writer:
                whole = time.process_time()
                note("write, the caller's thread", _cpu(lambda: written(writer.write)))
                writer.flush()
                note("write, all threads", time.process_time() - whole)
    return {what: min(times) for what, times in found.items()}


def _cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this thread."""
    began = time.thread_time()
    work()
    return time.thread_time() - began

"""Streams of numbered events: a source, a reader that follows a stream, and the counts of a reader's events."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Self

import pyarrow as pa

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConnectorError
from tests.faults.processes import await_that
from tests.faults.verdict import Tally

KEYS: Final = 30
#: Seconds in which a follower retries while servers are unavailable.
_PATIENCE: Final = 600.0


class Source:
    """A stream of events numbered from ``first``, a multiple of KEYS; number n has routing key n % KEYS."""

    def __init__(self, client: PravegaClient, stream: StreamName, rows: int, first: int = 0) -> None:
        self.stream, self.numbers = stream, range(first, first)
        client.controller.create_scope(stream.scope)
        client.create_stream(stream, ScalingPolicy.fixed(3))
        self.add(client, rows)

    def add(self, client: PravegaClient, rows: int) -> None:
        """Write the next `rows` events."""
        first, end = self.numbers.stop, self.numbers.stop + rows
        with client.writer(self.stream) as writer:
            events, keys = [b"%d" % n for n in range(first, end)], [str(n % KEYS) for n in range(first, end)]
            writer.write_column(pa.array(events, pa.binary()), pa.array(keys, pa.string()))
        self.numbers = range(self.numbers.start, end)


def count(numbers: Iterable[int], sources: Iterable[range], *, ordered: bool = True) -> dict[str, int]:
    """Count a reader's events against the numbers of the sources; each routing key of a source has an order."""
    known, tally = list(sources), Tally()
    for n in numbers:
        at = next((at for at, source in enumerate(known) if n in source), None)
        assert at is not None, f"event {n} is of no source"
        tally.add(f"{at} {n % KEYS}", (n - known[at].start) // KEYS)
    marks = {f"{at} {n % KEYS}": (n - all_.start) // KEYS for at, all_ in enumerate(known) for n in all_[-KEYS:]}
    counts = tally.take(marks)
    return counts if ordered else counts | {"out_of_order": 0}


class Scaling:
    """Scales a stream about once a second while the block runs, to one to four segments of equal ranges."""

    def __init__(self, client: PravegaClient, stream: StreamName, chance: random.Random) -> None:
        self.count = 0
        """Scalings so far."""
        self._controller, self._stream, self._random = client.controller, stream, chance
        self._done, self._refusals = threading.Event(), list[str]()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        pause = 1.0
        while not self._done.wait(pause):
            parts = self._random.randint(1, 4)
            ranges = [(part / parts, (part + 1) / parts) for part in range(parts)]
            try:
                sealed = [each.id for each in self._controller.current_segments(self._stream)]
                self._controller.scale_stream(self._stream, sealed, ranges)
            except ConnectorError as error:  # one at a time
                self._refusals.append(str(error))
                pause = 0.1
            else:
                self.count += 1
                pause = 1.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        self._done.set()
        self._thread.join()
        if kind is None:
            # A scaling may succeed although its answer came too late: each makes an epoch.
            epochs = max(segment.id >> 32 for segment in self._controller.current_segments(self._stream))
            self.count = max(self.count, min(epochs, 1))
            assert self.count, f"stream {self._stream} was never scaled: {self._refusals}"


class Follower:
    """Reads a stream from its head in a thread, while its writers fail."""

    def __init__(self, config: PravegaConfig, stream: StreamName) -> None:
        self.events: list[bytes] = []
        self.error: BaseException | None = None
        self._config, self._stream, self._stop = config, stream, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with PravegaClient(self._config, timeout=90.0) as client:
                self._follow(client)
        except BaseException as error:
            self.error = error

    def _follow(self, client: PravegaClient) -> None:
        position = client.head(self._stream)
        heard = time.monotonic()
        while not self._stop.is_set():
            with client.follow(self._stream, start=position) as reader:
                try:
                    while not self._stop.is_set():
                        batch = reader.poll(0.2)
                        if batch is not None:
                            heard = time.monotonic()
                            self.events += batch.values(None)
                except ConnectorError as error:
                    # It continues at its position, as an application does after a long outage.
                    if not error.retriable or time.monotonic() - heard > _PATIENCE:
                        raise
                position = reader.position

    def seen(self, least: int) -> list[bytes]:
        """Return all events, after `least` of them and a pause without more."""
        with suppress(AssertionError):  # the counts show that events are lost
            await_that(f"{least} events are seen", lambda: len(self.events) >= least or self.error, 30.0)
        time.sleep(0.5)
        self._stop.set()
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.events

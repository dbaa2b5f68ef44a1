"""A stream that is scaled at random under load, while a limited query with restarts reads it: order, loss, limits."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from pravega_connector.client import PravegaClient, StreamName
from tests.support.micro_batches import Batch, MicroBatches, Row

__all__ = ["Load", "read_with_restarts"]

_MOST_SEGMENTS = 8
_LAST_ROUNDS = 5


@dataclass
class Load:
    """Writes numbers under ``keys`` routing keys, ``key:number`` as text, while it scales the stream all the time."""

    client: PravegaClient
    stream: StreamName
    scalings: int
    keys: int
    seed: int
    written: int = 0
    done: bool = False
    error: BaseException | None = None
    splits: int = 0
    merges: int = 0
    _rounds: int = 0
    _thread: threading.Thread | None = field(default=None, repr=False)

    def __enter__(self) -> Load:
        self.client.create_stream(self.stream, 1)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        scaler = threading.Thread(target=self._guarded, args=[self._scale])
        scaler.start()
        self._guarded(self._write, scaler.is_alive)
        scaler.join()
        self.done = True

    def _guarded(self, act: Callable[..., None], *arguments: object) -> None:
        try:
            act(*arguments)
        except BaseException as error:
            self.error = error

    def _write(self, go_on: Callable[[], bool]) -> None:
        """Rounds over all keys, until the last scaling; at least three."""
        while go_on() or self._rounds < 3:
            self._write_round()
            time.sleep(0.01)

    def _write_round(self) -> None:
        """Write all keys, in an order of the round's own."""
        order = list(range(self.keys))
        random.Random(self.seed + self._rounds).shuffle(order)
        with self.client.writer(self.stream) as writer:
            for key in order:
                writer.write(b"%d:%d" % (key, self._rounds), routing_key=str(key))
                self.written += 1
        self._rounds += 1

    def write_backlog(self) -> None:
        """Write more than a batch may have, after the last scaling."""
        for _ in range(_LAST_ROUNDS):
            self._write_round()

    def _scale(self) -> None:
        rng = random.Random(self.seed + 1)
        while self.splits + self.merges < self.scalings:
            current = sorted(self.client.controller.current_segments(self.stream), key=lambda r: r.low)
            at = rng.randrange(len(current))
            if len(current) < 2 or (rng.random() < 0.5 and len(current) < _MOST_SEGMENTS):
                middle = current[at].low + (current[at].high - current[at].low) * rng.uniform(0.2, 0.8)
                ranges = [(current[at].low, middle), (middle, current[at].high)]
                self.client.controller.scale_stream(self.stream, [current[at].id], ranges)
                self.splits += 1
            else:
                pair = current[max(at - 1, 0) : max(at - 1, 0) + 2]
                self.client.controller.scale_stream(self.stream, [r.id for r in pair], [(pair[0].low, pair[1].high)])
                self.merges += 1


@dataclass
class Found:
    """Events that a query has read, checked batch by batch."""

    max_bytes: int
    next_of_key: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    rows: int = 0
    batches: int = 0
    restarts: int = 0
    replays: int = 0
    fullest: float = 0.0
    """Most bytes of a batch, as a share of its limit."""

    def take(self, batch: Batch) -> None:
        """Take a committed batch. Events of a key must come in order, and within a batch from one segment."""
        self.batches += 1
        assert batch.bytes <= self.max_bytes, f"batch {batch.number} has {batch.bytes} bytes"
        by_key: dict[int, set[int]] = defaultdict(set)
        for row in sorted(batch.rows, key=lambda row: (row.segment_id, row.offset)):
            key, number = map(int, row.event.split(b":"))
            assert number == self.next_of_key[key], f"key {key}: {number} came, {self.next_of_key[key]} is next"
            self.next_of_key[key] += 1
            by_key[key].add(row.segment_id)
            self.rows += 1
        assert all(len(segments) == 1 for segments in by_key.values()), "a key in two segments of one batch"


def read_with_restarts(load: Load, *, max_bytes: int, seed: int, controller: str) -> Found:
    """Read all that the load writes; every few batches the query is stopped, half of the time inside a batch.

    A batch that was planned when the query stopped must be the same when it is read again, under other options. At the
    end, the query finds a backlog, however fast it has read, and has stopped inside a batch at least once.
    """
    rng = random.Random(seed)
    query, found = MicroBatches(), Found(max_bytes)
    torn: tuple[int, list[Row]] | None = None
    backlog = False
    while True:
        last_run = load.done
        limit = max_bytes if rng.random() < 0.5 else max_bytes // 2
        options = {
            "controller": controller,
            "path": str(load.stream),
            "start_stream_cut": "earliest",
            "max_bytes_per_trigger": str(limit),
        }
        if rng.random() < 0.3:
            options["min_partitions"] = str(rng.randrange(2, 20))
        stop_after, inside = rng.randrange(1, 6), rng.random() < 0.5
        if backlog and not found.replays:
            stop_after, inside = 1, True  # the load was read in too few batches to stop in one of them
        before = found.batches
        stopped = False
        for batch in query.run(available_now=rng.random() < 0.5, **options):
            if torn is not None:
                assert (batch.number, batch.rows) == torn, "a replay read something else"
                found.replays, torn = found.replays + 1, None
            else:
                assert batch.bytes <= limit, f"batch {batch.number} has {batch.bytes} bytes, more than {limit}"
                found.fullest = max(found.fullest, batch.bytes / limit)
            stop_after -= 1
            if stop_after == 0 and inside:
                torn, stopped = (batch.number, batch.rows), True
                break
            found.take(batch)
            if stop_after == 0:
                query.committed, stopped = batch.number + 1, True
                break
        if stopped or found.batches > before:
            found.restarts += 1
        elif last_run and backlog:
            return found
        elif last_run:
            load.write_backlog()
            backlog = True
        else:
            time.sleep(0.02)  # nothing new; the load continues

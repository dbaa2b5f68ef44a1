"""Cost of a decision over several streams: transactions over three streams and over one, in turns."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks._alternate import Case, run_case
from benchmarks._server import SCOPE, Server
from benchmarks._stats import Result
from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamName

__all__ = ["run_streams"]

_KEYS: Final = 64
_SIZE: Final = 100
_PLAIN: Final = "a transaction of one stream"
_ONE: Final = "decided, one stream"
_THREE: Final = "decided, three streams"
#: Largest duration of a transaction over three streams, relative to one over one stream: an aim for the rate.
_AIMS: Final = {_THREE: 1 / 1.5}
#: (rows of a transaction, transactions of a round)
_LOADS: Final = ((1_000, 20), (1_000_000, 1))
_SPREADS: Final = 20

Note = Callable[[str], None]


def run_streams(*, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure transactions of each size. Only cases whose name contains `only` are run."""
    with Server(note) as server:
        for rows, count in _LOADS:
            if only in (name := f"transaction of {rows:,} rows"):
                load = _Load(server, rows // 10 if quick and rows > 1_000 else rows, 2 if quick else count)
                peers = {_PLAIN: load.plain, _ONE: partial(load.decided, 1), _THREE: partial(load.decided, 3)}
                case = Case(name=name, event_size=_SIZE, baseline=_ONE, peers=peers, aims=_AIMS)
                result = run_case(case, rounds=rounds, warm_ups=2, note=note)
                yield replace(result, remarks=(load.spread(),))


class _Load:
    """Transactions with the same rows, in new streams for each round."""

    def __init__(self, server: Server, rows: int, count: int) -> None:
        self._server, self._rows, self._count = server, rows, count
        self._events = pa.array([b"y" * _SIZE] * rows)
        self._keys = pa.array(np.arange(rows) % _KEYS).cast(pa.string())

    @contextmanager
    def _streams(self, number: int) -> Iterator[tuple[PravegaClient, list[StreamName]]]:
        """Yield new streams, and a client that has written to them."""
        with ExitStack() as stack:
            streams = [self._server.stream(self._rows * self._count // number, _SIZE) for _ in range(number)]
            client = stack.enter_context(PravegaClient(self._server.uri))
            for stream in streams:
                stack.callback(self._server.drop, stream)
                with client.transactions(stream).begin() as transaction:
                    transaction.write_column(self._events[:_KEYS], self._keys[:_KEYS])
            yield client, streams

    def _timed(self, once: Callable[[], object]) -> Mapping[str, Any]:
        self._server.settle()
        server, cpu, start = self._server.cpu_seconds(), time.process_time(), time.perf_counter()
        for _ in range(self._count):
            once()
        seconds = time.perf_counter() - start
        return {
            "seconds": seconds,
            "events": self._rows * self._count,
            "cpu": time.process_time() - cpu,
            "server_cpu": self._server.cpu_seconds() - server,
        }

    def plain(self) -> Mapping[str, Any]:
        """Write transactions without a ledger."""
        with self._streams(1) as (client, (stream,)):
            return self._timed(partial(self._plain, client, stream))

    def _plain(self, client: PravegaClient, stream: StreamName) -> None:
        with client.transactions(stream).begin() as transaction:
            transaction.write_column(self._events, self._keys)

    def decided(self, number: int) -> Mapping[str, Any]:
        """Write transactions over this number of streams, which have equal parts of the rows."""
        with self._streams(number) as (client, streams):
            return self._timed(partial(self._decided, client, streams))

    def _decided(self, client: PravegaClient, streams: Sequence[StreamName]) -> None:
        with self._transaction(client, streams) as transaction:
            self._write(transaction, streams)

    def _transaction(self, client: PravegaClient, streams: Sequence[StreamName]) -> Any:
        return client.transaction_over(streams, ledger=f"{SCOPE}/{streams[0].stream}-decisions", app_id="benchmark")

    def _write(self, transaction: Any, streams: Sequence[StreamName]) -> None:
        bounds = np.linspace(0, self._rows, len(streams) + 1).astype(int).tolist()
        for stream, first, last in zip(streams, bounds, bounds[1:], strict=False):
            transaction.write_column(stream, self._events[first:last], self._keys[first:last])

    def spread(self) -> str:
        """Return the time between the first and the last stream that shows a transaction, as a sentence."""
        found = []
        with self._streams(3) as (client, streams):
            for _ in range(_SPREADS):
                transaction = self._transaction(client, streams)
                self._write(transaction, streams)
                tails = _Tails(self._server.uri, streams)
                transaction.commit()
                found.append(tails.spread() * 1000)
        return (
            f"a transaction over three streams is visible in the last one {statistics.median(found):.0f} ms after the "
            f"first one ({min(found):.0f} to {max(found):.0f} ms, {len(found)} times)"
        )


class _Tails:
    """Moments at which streams grow, each observed by a thread with a client."""

    def __init__(self, uri: str, streams: Sequence[StreamName]) -> None:
        self._grown: dict[StreamName, float] = {}
        ready = threading.Barrier(len(streams) + 1)
        self._threads = [threading.Thread(target=self._watch, args=(uri, stream, ready)) for stream in streams]
        for thread in self._threads:
            thread.start()
        ready.wait()

    def _watch(self, uri: str, stream: StreamName, ready: threading.Barrier) -> None:
        with PravegaClient(uri) as client:
            before = client.tail(stream)
            ready.wait()
            while client.tail(stream) == before:
                time.sleep(0.001)
            self._grown[stream] = time.perf_counter()

    def spread(self) -> float:
        """Return the seconds between the first and the last moment."""
        for thread in self._threads:
            thread.join()
        return max(self._grown.values()) - min(self._grown.values())

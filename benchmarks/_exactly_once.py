"""Cost of exactly once: rows per second compared with at least once, and the time added to each micro-batch."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks._alternate import Case, run_case
from benchmarks._stats import Result
from pravega_connector.client import EventWriter, PravegaClient, StreamName
from pravega_connector.controller.targets import target_of
from pravega_connector.exactly_once.batch_commit import (
    Ask,
    Commit,
    Job,
    Ledger,
    Part,
    Prepared,
    Request,
    Servers,
    TransactionId,
    carry_out,
    ledger_name,
)
from pravega_connector.exactly_once.batch_commit.digest import RowTotal
from pravega_connector.writer.transactions import OpenTransaction

__all__ = ["AT_LEAST_ONCE", "EXACTLY_ONCE", "micro_batch_case", "steps", "write_modes"]

AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once"
#: Smallest part of the rate of at least once.
AIM: Final = 0.9
LEASE: Final = 600.0
_TASKS: Final = 2
_KEYS: Final = 64
_SIZE: Final = 100

_NAMES: Final = {
    Ask.READ: "read the ledger",
    Ask.STATUS: "see that the last batch is visible",
    Ask.PING: "ping all",
    Ask.ABORT: "abort",
    Ask.SETTLE: "see that the pilot is visible",
}

Durations = dict[str, list[float]]
Note = Callable[[str], None]


def write_modes() -> dict[str, dict[str, str]]:
    """Return the options of a batch write in each mode.

    The version of exactly once is not included, because it must grow.
    """
    once = {"writer_mode": EXACTLY_ONCE, "txn_app_id": f"benchmark-{uuid.uuid4()}"}
    return {AT_LEAST_ONCE: {"writer_mode": AT_LEAST_ONCE}, EXACTLY_ONCE: once}


def micro_batch_case(
    name: str,
    once: Callable[[str], Mapping[str, Any]],
    *,
    rounds: int,
    warm_ups: int,
    note: Note,
    modes: tuple[str, str] = (AT_LEAST_ONCE, EXACTLY_ONCE),
) -> Result:
    """Measure queries of small batches, with alternating modes. The first mode is the baseline.

    ``once`` runs one query, and returns the milliseconds of its batches. The rates are in rows. The remarks below the
    table matter more: the time of one batch, as Spark reports it.
    """
    found: Durations = {mode: [] for mode in modes}
    left = dict.fromkeys(found, warm_ups)

    def run(mode: str) -> Mapping[str, Any]:
        answer = once(mode)
        if left[mode]:
            left[mode] -= 1
        else:
            found[mode] += answer["batch_ms"]
        return answer

    peers = {mode: (lambda mode=mode: run(mode)) for mode in found}
    case = Case(name=name, event_size=_SIZE, baseline=modes[0], peers=peers)
    result = run_case(case, rounds=rounds, warm_ups=warm_ups, note=note)
    added = statistics.median(found[modes[1]]) - statistics.median(found[modes[0]])
    lines = [f"{mode}: {_told(of_mode)} a batch" for mode, of_mode in found.items()]
    return replace(result, remarks=(*lines, f"{modes[1].replace('_', ' ')} adds {added:.0f} ms to the median batch"))


def steps(controller: str, stream: StreamName, *, batches: int, rows: int) -> tuple[str, ...]:
    """Run one batch step by step with the sink's parts in one process, and return the times as lines of text.

    Two tasks with half of the rows each write one after the other. In Spark, they write at the same time.
    """
    with PravegaClient(controller) as client:
        batch = _Batch(client, stream, rows // _TASKS)
        for number in range(-2, batches):  # the first ones connect
            if number == 0:
                batch.clock.found.clear()
            batch.run_at_least_once()
            batch.run_exactly_once(number + 2)
    width = max(map(len, batch.clock.found))
    return tuple(f"{name:{width}}  {_told(found)}" for name, found in batch.clock.found.items())


def _told(milliseconds: Sequence[float]) -> str:
    ordered = sorted(milliseconds)
    return f"median {statistics.median(ordered):.1f} ms ({ordered[0]:.1f} to {ordered[-1]:.1f}, {len(ordered)} times)"


@dataclass(slots=True)
class _Clock:
    found: Durations = field(default_factory=dict)

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.found.setdefault(name, []).append((time.perf_counter() - start) * 1000)


class _Batch:
    """Batches in both modes, one after the other."""

    def __init__(self, client: PravegaClient, stream: StreamName, rows: int) -> None:
        self.clock = _Clock()
        self._client, self._stream = client, stream
        self._ledger = Ledger(client.stores, ledger_name(stream))
        self._target = target_of(client.controller, stream)
        self._events = pa.array([b"y" * _SIZE] * rows)
        self._keys = pa.array(np.arange(rows) % _KEYS).cast(pa.string())
        self._app = str(uuid.uuid4())

    def run_at_least_once(self) -> None:
        """Run a task in the mode at least once."""
        with self.clock.time("at least once, a task: connect, write, flush"), self._writer() as writer:
            writer.write_column(self._events, self._keys)
            writer.flush()

    def _writer(self) -> EventWriter[bytes]:
        return self._client.writer(self._stream)

    def run_exactly_once(self, number: int) -> None:
        """Run both tasks, and then the driver."""
        parts = tuple(self._task() for _ in range(_TASKS))
        job = Job(self._app, self._app, self._app, str(uuid.uuid4()), number, parts, target=self._target)
        servers = _TimedServers(self.clock, self._client, self._ledger)
        with self.clock.time("driver: commit in all"):
            carry_out(Commit(job), servers)
        with self.clock.time("driver: see whether the ledger should be compacted"):
            self._ledger.compact()

    def _task(self) -> Part:
        total = RowTotal()
        with self.clock.time("task: begin the transaction"):
            transaction: OpenTransaction[bytes] = self._client.transactions(self._stream, lease=LEASE).begin()
        with self.clock.time("task: connect, write, flush"):
            transaction.write_column(self._events, self._keys)
            transaction.detach()
        with self.clock.time("task: total of the rows"):
            total.add(self._events, self._keys)
        with self.clock.time("task: ping, for a whole lease from now on"):
            transaction.ping()
        return Part(TransactionId(self._target, transaction.id), total.content)


class _TimedServers(Servers):
    """Servers of one commit. Each request is timed."""

    def __init__(self, clock: _Clock, client: PravegaClient, ledger: Ledger) -> None:
        super().__init__(client.controller, ledger, lease=LEASE, timeout=LEASE)
        self._clock, self._committed = clock, 0

    def answer(self, request: Request) -> Any:
        with self._clock.time(f"driver: {self._name(request)}"):
            return super().answer(request)

    def _name(self, request: Request) -> str:
        if request.ask is Ask.APPEND:
            return "append PREPARED" if isinstance(request.entry, Prepared) else "append COMMITTED"
        if request.ask is Ask.COMMIT:
            self._committed += 1
            return "commit the pilot" if self._committed == 1 else "commit the rest"
        return _NAMES[request.ask]

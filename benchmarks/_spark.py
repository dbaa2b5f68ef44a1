"""Our Spark source and sink beside the Scala connector."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer, PeerError
from benchmarks._exactly_once import (
    AIM,
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    micro_batch_case,
    steps,
    write_modes,
)
from benchmarks._server import SCOPE, Server
from benchmarks._spark_avro import EVENT_SIZE, SCHEMA, fill_avro
from benchmarks._stats import Result
from connector.local import LocalSchemaRegistry
from connector.wire import StreamName

__all__ = ["HOW_TO_POINT", "ScalaPeer", "run_spark"]

HOW_TO_POINT: Final = (
    "The Scala connector is left out. To compare with it, build pravega/spark-connectors for Spark 3.5 into one jar "
    "with its dependencies, make a virtual environment with pyspark 3.5, and give both: --peer-jar JAR and "
    "--peer-python PYTHON, or the variables PRAVEGA_PEER_JAR and PRAVEGA_PEER_PYTHON."
)
SIZE: Final = 100
KEYS: Final = 4096
_READ_EVENTS: Final = 4_000_000
_WRITE_EVENTS: Final = 1_000_000
_AVRO_EVENTS: Final = (4_000_000, 16_000_000)  # the fixed cost of a query shows in their difference
_MICRO_ROWS: Final = 1_000
_MICRO_BATCHES: Final = 40
_QUICK_PART: Final = 10
_FILES: Final = 2  # one for each of the application's cores
_SCALA: Final = "Scala connector"
_OURS: Final = "ours"
_START_SECONDS: Final = 180.0
_WARM_UPS: Final = 2  # a JVM with its Spark needs more than one

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ScalaPeer:
    """A built Scala connector and the Python whose PySpark can load it."""

    jar: Path
    python: Path
    avro_jar: Path | None = None
    """Spark's own Avro functions for that PySpark, which are no part of it."""


@dataclass(frozen=True, slots=True)
class _Side:
    peer: Peer
    read_options: Mapping[str, str]
    write_options: Mapping[str, str]


def run_spark(scala: ScalaPeer | None, *, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure batch reads and non-transactional batch writes, case by case; only those whose name contains `only`."""
    part = _QUICK_PART if quick else 1
    with ExitStack() as stack:
        server = stack.enter_context(Server(note))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        sides = [_ours(stack)] if scala is None else [_scala(stack, scala), _ours(stack)]
        if scala is None:
            note(HOW_TO_POINT)
        note("; ".join(f"{side.peer.name}: {side.peer.version}" for side in sides))
        suite = _Suite(server, sides, folder)
        if only in (name := "Spark batch read"):
            yield run_case(suite.read_case(name, _READ_EVENTS // part), rounds=rounds, warm_ups=_WARM_UPS, note=note)
        if only in (name := "Spark batch write"):
            yield run_case(suite.write_case(name, _WRITE_EVENTS // part), rounds=rounds, warm_ups=_WARM_UPS, note=note)
        if only in (name := "Spark batch write exactly once"):
            yield suite.exactly_once(name, _WRITE_EVENTS // part, rounds=rounds, note=note)
        if only in (name := "Spark micro-batches exactly once"):
            yield suite.micro_batches(name, _MICRO_BATCHES // part, rounds=rounds, note=note)
        if only in (name := "Spark batch read of Avro with header"):
            registry = stack.enter_context(LocalSchemaRegistry())
            for events in _AVRO_EVENTS:
                avro = suite.avro_case(name, registry.uri, events // part, scala is not None and bool(scala.avro_jar))
                yield run_case(avro, rounds=rounds, warm_ups=_WARM_UPS, note=note)


def _ours(stack: ExitStack) -> _Side:
    peer = stack.enter_context(
        Peer(_OURS, [sys.executable, "-m", "benchmarks.peers.spark_app"], start_timeout=_START_SECONDS)
    )
    # The Scala connector always ships five columns; ours ships what is asked for.
    return _Side(peer, {"columns": "event"}, {"writer_mode": "at_least_once"})


def _scala(stack: ExitStack, scala: ScalaPeer) -> _Side:
    jars = ",".join(str(jar) for jar in (scala.jar, scala.avro_jar) if jar is not None)
    command = [str(scala.python), "-m", "benchmarks.peers.spark_app", jars]
    peer = stack.enter_context(Peer(_SCALA, command, start_timeout=_START_SECONDS))
    return _Side(peer, {}, {"exactly_once": "false"})


class _Suite:
    """The cases, and what a single run of each is."""

    def __init__(self, server: Server, sides: list[_Side], folder: Path) -> None:
        self._server, self._sides, self._folder = server, sides, folder

    def read_case(self, name: str, events: int) -> Case:
        """Batch reads of one stream into Spark's empty sink."""
        stream = self._server.stream(events, SIZE)
        with Peer("filler", [sys.executable, "-m", "benchmarks.peers.ours"]) as filler:
            where: dict[str, Any] = {"controller": self._server.uri, "scope": SCOPE, "stream": stream.stream}
            filler.ask("write_columns", **where, events=events, size=SIZE, keys=KEYS)
        for side in self._sides:
            self._check(side, stream, events)
        once = {side.peer.name: partial(self._read_once, side, stream, events) for side in self._sides}
        return Case(
            name=f"{name}, {events:,} × {SIZE} B",
            event_size=SIZE,
            baseline=_SCALA,
            peers=once,
            aims={_OURS: 1.6},
        )

    def write_case(self, name: str, events: int) -> Case:
        """Batch writes without transactions, from Parquet."""
        parquet = self._folder / "events.parquet"
        _write_parquet(parquet, events)
        once = {side.peer.name: partial(self._write_once, side, str(parquet), events) for side in self._sides}
        return Case(
            name=f"{name}, {events:,} × {SIZE} B",
            event_size=SIZE,
            baseline=_SCALA,
            peers=once,
            aims={_OURS: 2.5},
        )

    def exactly_once(self, name: str, events: int, *, rounds: int, note: Note) -> Result:
        """Batch writes in two modes into one stream, as of an application that goes on: its ledger is there already."""
        side, modes, runs = self._sides[-1], write_modes(), itertools.count(1)
        parquet = self._folder / "exactly-once.parquet"
        _write_parquet(parquet, events)
        total = events * len(modes) * (rounds + _WARM_UPS)
        stream = self._server.stream(total, SIZE)

        def once(mode: str) -> Mapping[str, Any]:
            more = modes[mode] if mode == AT_LEAST_ONCE else {**modes[mode], "txn_version": str(next(runs))}
            return self._timed(side, "write", options=self._options(stream, more), parquet=str(parquet), events=events)

        case = Case(
            name=f"{name}, {events:,} × {SIZE} B",
            event_size=SIZE,
            baseline=AT_LEAST_ONCE,
            peers={mode: partial(once, mode) for mode in modes},
            aims={EXACTLY_ONCE: AIM},
        )
        result = run_case(case, rounds=rounds, warm_ups=_WARM_UPS, note=note)
        self._check(side, stream, total)
        return result

    def micro_batches(self, name: str, batches: int, *, rounds: int, note: Note) -> Result:
        """Queries of small batches in two modes, and the steps that make the difference."""

        def once(mode: str) -> Mapping[str, Any]:
            stream = self._server.stream(_MICRO_ROWS * batches * 2, SIZE)
            options = self._options(stream, {"writer_mode": mode})
            return self._timed(self._sides[-1], "micro_batches", options=options, rows=_MICRO_ROWS, batches=batches)

        title = f"{name}, {batches} × {_MICRO_ROWS} rows"
        result = micro_batch_case(title, once, rounds=rounds, warm_ups=1, note=note)
        stream = self._server.stream(_MICRO_ROWS * batches * 3, SIZE)
        taken_apart = steps(self._server.uri, stream, batches=batches, rows=_MICRO_ROWS)
        return replace(result, remarks=(*result.remarks, *taken_apart))

    def avro_case(self, name: str, registry: str, events: int, scala: bool) -> Case:
        """Batch reads to typed columns: by the registry, or by Spark's ``from_avro`` after cutting the header."""
        stream = self._server.stream(events, EVENT_SIZE)
        total = fill_avro(self._server.uri, registry, stream, events)
        once = {}
        for side in self._sides:
            if side.peer.name == _SCALA and not scala:
                continue
            more = {"registry": registry} if side.peer.name == _OURS else {}
            ask: dict[str, Any] = {"options": self._options(stream, more), "schema": None if more else SCHEMA}
            found = side.peer.ask("check_avro", **ask)
            if found != {"events": events, "sum": total}:
                raise PeerError(f"{side.peer.name} finds {found} in a stream of {events} events")
            once[side.peer.name] = partial(self._timed, side, "read_avro", **ask, events=events)
        return Case(
            name=f"{name}, {events:,} × {EVENT_SIZE} B",
            event_size=EVENT_SIZE,
            baseline=_SCALA,
            peers=once,
            aims={_OURS: 1.5},
        )

    def _read_once(self, side: _Side, stream: StreamName, events: int) -> Mapping[str, Any]:
        return self._timed(side, "read", options=self._options(stream, side.read_options), events=events)

    def _write_once(self, side: _Side, parquet: str, events: int) -> Mapping[str, Any]:
        stream = self._server.stream(events, SIZE)
        options = self._options(stream, side.write_options)
        answer = self._timed(side, "write", options=options, parquet=parquet, events=events)
        self._check(side, stream, events)
        self._server.drop(stream)
        return answer

    def _timed(self, side: _Side, do: str, **request: Any) -> dict[str, Any]:
        self._server.settle()
        server, peer = self._server.cpu_seconds(), side.peer.cpu_seconds()
        answer = side.peer.ask(do, **request)
        cpu = {"cpu": side.peer.cpu_seconds() - peer, "server_cpu": self._server.cpu_seconds() - server}
        return {**answer, **cpu}

    def _check(self, side: _Side, stream: StreamName, events: int) -> None:
        found = side.peer.ask("check", options=self._options(stream, side.read_options))
        if found != {"events": events, "bytes": events * SIZE}:
            raise PeerError(f"{side.peer.name} finds {found} in a stream of {events} events of {SIZE} bytes")

    def _options(self, stream: StreamName, more: Mapping[str, str]) -> dict[str, str]:
        return {"controller": self._server.uri, "scope": stream.scope, "stream": stream.stream, **more}


def _write_parquet(folder: Path, events: int) -> None:
    """The rows to write: ten digits and filler, 4096 routing keys."""
    folder.mkdir()
    filler = pa.scalar("y" * (SIZE - 10))
    for file, rows in enumerate(np.array_split(np.arange(events), _FILES)):
        ids = pa.compute.utf8_lpad(pa.array(rows).cast(pa.string()), width=10, padding="0")
        columns = {
            "routing_key": pa.array(rows % KEYS).cast(pa.string()),
            "event": pa.compute.binary_join_element_wise(ids, filler, "").cast(pa.binary()),
        }
        pq.write_table(pa.table(columns), folder / f"part-{file}.parquet")

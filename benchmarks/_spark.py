"""Comparison of our Spark source and sink with the Scala connector, row by row. Each result is saved at once."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer, PeerError
from benchmarks._exactly_once import AT_LEAST_ONCE, EXACTLY_ONCE, micro_batch_case, steps, write_modes
from benchmarks._server import SCOPE, Server
from benchmarks._spark_data import KEYS, KINDS, Kind, Place, fill
from benchmarks._spark_nothing import feed, prepare, unfeed
from benchmarks._spark_peer import HOW_TO_POINT, ScalaPeer
from benchmarks._spark_results import Measured, Results
from benchmarks._spark_rows import JVM, NOTHING, PLAIN, ROWS, Row, Work
from benchmarks._stats import Result
from pravega_connector.client import EventWriter, PravegaClient
from pravega_connector.local import LocalSchemaRegistry
from pravega_connector.wire import StreamName

__all__ = ["SparkPlan", "run_spark", "write_parquet"]

_SIZE: Final = 100  # of the written events
_SCALA: Final = "Scala connector"
_OURS: Final = "ours"
#: Heap of each side's application. With the server's 6 GB, they fit into 24 GB. The Scala connector's heap grows by
#: some 50 MB with each exactly-once query. The side that does nothing keeps no data.
_MEMORY: Final = {_SCALA: "6g", _OURS: "6g", PLAIN: "3g", NOTHING: "3g"}
_START_SECONDS: Final = 300.0
_RUN_SECONDS: Final = 900.0
_WARM_UPS: Final = 2  # a JVM with Spark needs more than one
_FILES: Final = 2  # one for each of the application's cores
_FEED: Final = 10  # events of a micro-batch
_FIRST_BATCHES: Final = 8  # of a query; they start processes and import modules
_FEW_BATCHES: Final = 4
_MICRO_ROWS: Final = 1_000
_STREAMS: Final = 3
_ONE: Final = "one stream"
_THREE: Final = "three streams"

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlan:
    """Rows to measure, and the file of the results."""

    results: Path
    rounds: int
    only: str = ""
    most_events: int | None = None
    """Limit of the events of a row in a quick check. It then has few batches, and one warm-up."""
    again: bool = False
    """Measure rows with a result again."""

    def rows(self) -> list[Row]:
        """Return the rows with ``only`` in their names, each with the size to measure."""
        wanted = [row for row in ROWS if self.only in row.name]
        if (most := self.most_events) is None:
            return wanted
        few = (Work.LATENCY, Work.OWN_LATENCY, Work.STREAMS_LATENCY)
        return [replace(row, events=min(row.events, _FEW_BATCHES if row.work in few else most)) for row in wanted]


def run_spark(scala: ScalaPeer | None, plan: SparkPlan, note: Note) -> Iterator[Result]:
    """Measure the rows that have no result yet, and yield all requested rows.

    A failed row is reported and left out. The other rows continue with new applications and servers. Raises PeerError
    at the end if a row failed.
    """
    results, failed = Results(plan.results), []
    if scala is None:
        note(HOW_TO_POINT)
    with _Suite(scala, note) as suite:
        for row in plan.rows():
            known = results.get(row, plan.rounds, set(suite.sides(row)))
            if known is not None and not plan.again:
                note(f"{row.name}: measured already, on {known.when}")
                yield known.result
                continue
            start, load = time.monotonic(), os.getloadavg()[0]
            try:
                result = suite.measure(row, plan.rounds, 1 if plan.most_events else _WARM_UPS)
            except PeerError as e:
                note(f"{row.name} failed: {e}")
                failed.append(row.name)
                suite.close()
                continue
            took = time.monotonic() - start
            results.keep(row, Measured.now(row, result, plan.rounds, suite.versions, suite.checked, took, load))
            note(f"{row.name}: {took:.0f} s")
            yield result
    if failed:
        raise PeerError(f"not measured: {'; '.join(failed)}")


class _Suite:
    """Cases, as a context manager. Applications and servers start with the first case that needs them."""

    def __init__(self, scala: ScalaPeer | None, note: Note) -> None:
        self._scala, self._note = scala, note
        self._stack = ExitStack()
        self._started: dict[str, Peer] = {}
        self._server = Server(note)
        self._filled: dict[tuple[str, int], tuple[int, StreamName]] = {}
        self._kinds: dict[str, Kind] = {}
        self._prepared: dict[str, dict[str, str]] = {}
        self._registry: LocalSchemaRegistry | None = None
        self._folder: Path | None = None
        self.checked: Mapping[str, Any] = {}
        """Rows of the last row and the sum of their hashes, which are equal on all sides."""

    @property
    def versions(self) -> dict[str, str]:
        """Spark version of each side."""
        return {name: peer.version for name, peer in self._started.items()}

    def measure(self, row: Row, rounds: int, warm_ups: int) -> Result:
        """Measure one row with alternating sides. Raises PeerError also if their rows differ."""
        self.checked = {}
        if row.work is Work.OWN_WRITE:
            return self._own_write(row, rounds, warm_ups)
        if row.work is Work.OWN_LATENCY:
            return self._own_latency(row, rounds)
        if row.work is Work.STREAMS_WRITE:
            return self._streams_write(row, rounds, warm_ups)
        if row.work is Work.STREAMS_LATENCY:
            return self._streams_latency(row, rounds)
        make = {Work.LATENCY: self._latency, Work.WRITE: self._write, Work.WRITE_STREAM: self._write}
        size, once = make.get(row.work, self._read)(row)
        aims = {side: aim for side, aim in ((_OURS, row.aim), (JVM, row.jvm_aim)) if aim is not None}
        case = Case(name=_title(row), event_size=size, baseline=_SCALA, peers=once, aims=aims)
        result = run_case(case, rounds=rounds, warm_ups=warm_ups, note=self._note)
        if row.in_batches:
            medians = [f"{name} {1000 / runs.median:.0f} ms" for name, runs in result.runs.items()]
            return replace(result, remarks=(f"a batch takes {', '.join(medians)}",))
        return result

    # ---- reads -------------------------------------------------------------------------------------------------------

    def _read(self, row: Row) -> tuple[int, dict[str, Callable[[], Mapping[str, Any]]]]:
        kind = self._kind(row.kind)
        stream = self._stream(row, kind)
        asks = {name: self._ask_for(name, row, kind, stream) for name in self.sides(row)}
        # The Scala connector always returns five columns. Only those that ours returns are compared.
        alone = row.ours.get("columns") == "event"
        found = {
            name: self._peer(name).ask(
                "checksum",
                timeout=_RUN_SECONDS,
                **(ask | {"only": ["event"]} if alone else ask),
                absent_is_default=kind.absent_is_default,
            )
            for name, ask in asks.items()
        }
        nothing = found.pop(NOTHING)  # this side repeats its rows
        self._agree(row.events, found)
        if nothing["rows"] != row.events:
            raise PeerError(f"{NOTHING}: {nothing['rows']} rows of {row.events}")
        more: dict[str, Any] = {"count": True} if row.work is Work.COUNT else {}
        do = "available_now" if row.work is Work.AVAILABLE_NOW else "read"
        if do == "available_now":
            asks = {name: {"options": ask["options"]} for name, ask in asks.items()}
        return kind.size, {
            name: partial(self._timed, self._peer(name), do, **ask, events=row.events, **more)
            for name, ask in asks.items()
        }

    def _ask_for(self, side: str, row: Row, kind: Kind, stream: StreamName) -> dict[str, Any]:
        only = {} if row.only is None else {"only": [row.only]}
        if side == _SCALA:
            return {"options": self._options(stream, row.theirs), "decode": kind.theirs, **only}
        ours = {"options": self._options(stream, {**kind.ours, **row.ours}), "columns": kind.columns}
        if side == NOTHING:
            return {"options": self._nothing(row, row.events, **ours), **only}
        return {**ours, **only, "options": {**ours["options"], **self._place("raw_reader", side)}}

    def _nothing(self, row: Row, rows: int, options: Mapping[str, str], columns: str | None = None) -> dict[str, str]:
        """Return the options of the source that does nothing, for the rows that our source reads with these options.

        The rows are prepared once.
        """
        if row.name not in self._prepared:
            schema = self._peer(_OURS).ask("schema", options=options, columns=columns)["schema"]
            folder = self._scratch() / f"nothing-{len(self._prepared)}"
            self._prepared[row.name] = prepare(folder, options, schema, rows)
        return self._prepared[row.name]

    def _kind(self, name: str) -> Kind:
        """Return the events of a kind, which are created once."""
        if name not in self._kinds:
            if self._registry is None:
                self._registry = LocalSchemaRegistry()
                self._registry.start()
                self._stack.callback(self._registry.close)
            self._kinds[name] = KINDS[name](Place(self._scratch(), self._registry.uri, "readings"))
        return self._kinds[name]

    def _stream(self, row: Row, kind: Kind) -> StreamName:
        """Return a stream with the events of the row.

        The stream of the previous row is reused if it has them and its server still runs.
        """
        key = (row.kind, row.events)
        if key in self._filled and self._filled[key][0] == self._server.life:
            return self._filled[key][1]
        stream = self._server.stream(row.events, kind.size, segments=row.segments)
        self._note(f"{row.name}: writing {row.events:,} events")
        fill(self._server.uri, stream, kind.events, row.events)
        self._filled[key] = self._server.life, stream
        return stream

    def _agree(self, events: int, found: Mapping[str, Mapping[str, Any]]) -> None:
        self.checked = next(iter(found.values()))
        if any(each != self.checked or each["rows"] != events for each in found.values()):
            raise PeerError(f"the sides do not have the same {events} rows: {dict(found)}")

    # ---- writes ------------------------------------------------------------------------------------------------------

    def _write(self, row: Row) -> tuple[int, dict[str, Callable[[], Mapping[str, Any]]]]:
        parquet = self._parquet(row.events)
        expected = self._peer(_OURS).ask("checksum_of_parquet", parquet=parquet)
        self._agree(row.events, {_OURS: expected})
        return _SIZE, {name: partial(self._write_once, name, row, parquet, expected) for name in self.sides(row)}

    def _write_once(self, side: str, row: Row, parquet: str, expected: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write to a new stream once. Our side reads it back, and the stream is deleted."""
        streaming = row.work is Work.WRITE_STREAM
        if side == NOTHING:
            options = {"rows": str(row.events)}  # its sink counts the rows itself
            more = {"parquet": parquet, "events": row.events, "stream": streaming}
            return self._timed(self._peer(side), "write", options=options, **more)
        stream = self._server.stream(row.events, _SIZE, segments=row.segments)
        ours = {**row.ours, **self._place("raw_writer", side)}
        options = self._options(stream, row.theirs if side == _SCALA else ours)
        if side != _SCALA and not streaming and options["writer_mode"] == EXACTLY_ONCE:
            options |= {"txn_app_id": f"benchmark-{uuid.uuid4()}", "txn_version": "1"}
        peer = self._peer(side)
        answer = self._timed(peer, "write", options=options, parquet=parquet, events=row.events, stream=streaming)
        found = self._peer(_OURS).ask("checksum", options=self._options(stream, {"columns": "event"}))
        if found != expected:
            raise PeerError(f"{side} wrote {found} instead of {expected}")
        self._server.drop(stream)
        return answer

    def _parquet(self, events: int) -> str:
        return write_parquet(self._scratch() / f"events-{events}.parquet", events)

    # ---- micro-batches -----------------------------------------------------------------------------------------------

    def _latency(self, row: Row) -> tuple[int, dict[str, Callable[[], Mapping[str, Any]]]]:
        once = {name: partial(self._latency_once, name, row) for name in self.sides(row)}
        return _SIZE, once | {NOTHING: partial(self._nothing_once, row)}

    def _latency_once(self, side: str, row: Row) -> Mapping[str, Any]:
        """Run one query from stream to stream. It gets ten new events when it has processed the last ones."""
        feeds = _FIRST_BATCHES + row.events
        source, sink = self._together(feeds * _FEED, feeds * _FEED, segments=row.segments)
        mode = row.theirs if side == _SCALA else {**row.ours, **self._place("raw_writer", side)}
        columns = {} if side == _SCALA else {"columns": "event", **self._place("raw_reader", side)}
        with PravegaClient(self._server.uri) as client, client.writer(source) as writer:
            answer = self._fed(
                side,
                feeds,
                partial(_write_feed, writer),
                source=self._options(source, columns),
                sink=self._options(sink, mode),
            )
        checked = [
            self._peer(_OURS).ask("checksum", options=self._options(stream, {"columns": "event"}))
            for stream in (source, sink)
        ]
        self._agree(feeds * _FEED, {"fed": checked[0], f"{side} wrote": checked[1]})
        for stream in (source, sink):
            self._server.drop(stream)
        return answer

    def _nothing_once(self, row: Row) -> Mapping[str, Any]:
        """Run the same query with a source and a sink that do nothing."""
        source = self._prepared.get(row.name) or self._nothing_fed(row)
        folder = Path(source["folder"])
        unfeed(folder)
        feeds = _FIRST_BATCHES + row.events
        answer = self._fed(NOTHING, feeds, lambda _: feed(folder), source=source, sink={"rows": str(_FEED)})
        if answer["rows"] != feeds * _FEED:
            raise PeerError(f"{NOTHING}: {answer['rows']} rows of {feeds * _FEED}")
        return answer

    def _nothing_fed(self, row: Row) -> dict[str, str]:
        """Return the options of the source that does nothing, for the events of one micro-batch."""
        stream = self._server.stream(_FEED, _SIZE, segments=row.segments)
        with PravegaClient(self._server.uri) as client, client.writer(stream) as writer:
            _write_feed(writer, 0)
        options = self._nothing(row, _FEED, self._options(stream, {"columns": "event"}))
        self._server.drop(stream)
        return options

    def _fed(self, side: str, feeds: int, feed_once: Callable[[int], None], **query: Any) -> dict[str, Any]:
        """Run a query with ``feeds`` feeds. Its time is that of the batches that count."""
        peer = self._peer(side)
        cpu, server = peer.cpu_seconds(), self._server.cpu_seconds()
        peer.ask("start_query", **query)
        for number in range(feeds):
            feed_once(number)
            peer.ask("drain_query")
        answer = peer.ask("stop_query", skip=_FIRST_BATCHES)
        cpu, server = peer.cpu_seconds() - cpu, self._server.cpu_seconds() - server
        batches = answer["batch_ms"]
        # The CPU time is that of the whole query, including its start and the first batches.
        part = len(batches) / (len(batches) + _FIRST_BATCHES)
        took = {"seconds": sum(batches) / 1000, "events": len(batches), "rows": answer["rows"], "cpu": cpu * part}
        return took if side == NOTHING else took | {"server_cpu": server * part}

    def _together(self, *events: int, segments: int = 3) -> list[StreamName]:
        """Create streams for these events on one server, which may be replaced for a later stream."""
        first = self._server.stream(events[0], _SIZE, segments=segments)
        life = self._server.life
        streams = [first, *(self._server.stream(each, _SIZE, segments=segments) for each in events[1:])]
        return streams if self._server.life == life else self._together(*events, segments=segments)

    # ---- our own modes -----------------------------------------------------------------------------------------------

    def _own_write(self, row: Row, rounds: int, warm_ups: int) -> Result:
        """Measure batch writes in two modes to one stream.

        The ledger exists already, as in an application that keeps running.
        """
        peer, modes, runs = self._peer(_OURS), write_modes(), itertools.count(1)
        parquet = self._parquet(row.events)
        total = row.events * len(modes) * (rounds + warm_ups)
        stream = self._server.stream(total, _SIZE)

        def once(mode: str) -> Mapping[str, Any]:
            more = modes[mode] if mode == AT_LEAST_ONCE else {**modes[mode], "txn_version": str(next(runs))}
            return self._timed(peer, "write", options=self._options(stream, more), parquet=parquet, events=row.events)

        case = Case(
            name=_title(row),
            event_size=_SIZE,
            baseline=AT_LEAST_ONCE,
            peers={mode: partial(once, mode) for mode in modes},
            aims={} if row.aim is None else {EXACTLY_ONCE: row.aim},
        )
        result = run_case(case, rounds=rounds, warm_ups=warm_ups, note=self._note)
        found = peer.ask("check", options=self._options(stream, {"columns": "event"}))
        if found != {"events": total, "bytes": total * _SIZE}:
            raise PeerError(f"{found} in a stream of {total} events of {_SIZE} bytes")
        return result

    def _own_latency(self, row: Row, rounds: int) -> Result:
        """Measure queries of small batches in two modes, and the steps that make the difference."""

        def once(mode: str) -> Mapping[str, Any]:
            stream = self._server.stream(_MICRO_ROWS * row.events * 2, _SIZE)
            options = self._options(stream, {"writer_mode": mode})
            return self._timed(
                self._peer(_OURS), "micro_batches", options=options, rows=_MICRO_ROWS, batches=row.events
            )

        result = micro_batch_case(_title(row), once, rounds=rounds, warm_ups=1, note=self._note)
        stream = self._server.stream(_MICRO_ROWS * row.events * 3, _SIZE)
        taken_apart = steps(self._server.uri, stream, batches=row.events, rows=_MICRO_ROWS)
        return replace(result, remarks=(*result.remarks, *taken_apart))

    # ---- several streams ---------------------------------------------------------------------------------------------

    def _streams_write(self, row: Row, rounds: int, warm_ups: int) -> Result:
        """Measure exactly-once batch writes to one stream, and to three with one decision."""
        peer, ids, runs = self._peer(_OURS), write_modes()[EXACTLY_ONCE], itertools.count(1)
        parquet, total = self._parquet(row.events), row.events * (rounds + warm_ups)
        one, *three = self._together(total, *[total // 3] * _STREAMS)
        asks = self._one_or_three(one, three)

        def once(side: str) -> Mapping[str, Any]:
            ask = asks[side]
            options = {**ask["options"], **ids, "txn_version": str(next(runs))}
            return self._timed(peer, "write", **{**ask, "options": options}, parquet=parquet, events=row.events)

        case = Case(
            name=_title(row),
            event_size=_SIZE,
            baseline=_ONE,
            peers={side: partial(once, side) for side in asks},
            aims={} if row.aim is None else {_THREE: row.aim},
        )
        result = run_case(case, rounds=rounds, warm_ups=warm_ups, note=self._note)
        found = [
            peer.ask("check", options=self._options(each, {"columns": "event"}))["events"] for each in (one, *three)
        ]
        if [found[0], sum(found[1:])] != [total, total]:
            raise PeerError(f"{found} events in streams of {total} events")
        return result

    def _streams_latency(self, row: Row, rounds: int) -> Result:
        """Measure queries of small batches that write to one stream, and to three with one decision."""

        def once(side: str) -> Mapping[str, Any]:
            total = _MICRO_ROWS * row.events * 2
            one, *three = self._together(total, *[total // 3] * _STREAMS)
            ask = self._one_or_three(one, three)[side]
            return self._timed(self._peer(_OURS), "micro_batches", **ask, rows=_MICRO_ROWS, batches=row.events)

        return micro_batch_case(_title(row), once, rounds=rounds, warm_ups=1, note=self._note, modes=(_ONE, _THREE))

    def _one_or_three(self, one: StreamName, three: Sequence[StreamName]) -> dict[str, dict[str, Any]]:
        """Return the requests to our application for each side."""
        mode = {"writer_mode": EXACTLY_ONCE}
        ledger = {"controller": self._server.uri, "scope": SCOPE, "ledger": f"{three[0].stream}-decisions"}
        return {
            _ONE: {"options": self._options(one, mode)},
            _THREE: {"options": ledger | mode, "targets": [str(each) for each in three]},
        }

    # ---- processes ---------------------------------------------------------------------------------------------------

    def sides(self, row: Row) -> list[str]:
        """Return the names of the sides that take part in the row, the Scala connector's first."""
        found = {
            _SCALA: self._scala is not None,
            _OURS: True,
            JVM: row.jvm_aim is not None,
            PLAIN: row.has_plain,
            NOTHING: True,
        }
        return [name for name, takes_part in found.items() if takes_part]

    def _place(self, option: str, side: str) -> dict[str, str]:
        """Return the option that lets Spark's JVM, or a Python process, read or write the events of a side."""
        return {} if side == PLAIN else {option: "jvm" if side == JVM else "python"}

    def _peer(self, side: str) -> Peer:
        """Return the application of a side. Start all that do not run. Both of our configured readers are in one."""
        if not self._started:
            if self._scala is not None:
                jars = self._scala.jars(self._scratch())
                self._start(_SCALA, str(self._scala.python), "pravega", "--jars", jars)
            self._start(_OURS, sys.executable, "pravega", "--configure")
            self._start(PLAIN, sys.executable, "pravega")
            self._start(NOTHING, sys.executable, "nothing")
            self._note("; ".join(f"{peer.name}: {peer.version}" for peer in self._started.values()))
        return self._started[_OURS if side == JVM else side]

    def _start(self, name: str, python: str, *arguments: str) -> None:
        command = [python, "-m", "benchmarks.peers.spark_app", *arguments, "--memory", _MEMORY[name]]
        self._started[name] = self._stack.enter_context(Peer(name, command, start_timeout=_START_SECONDS))

    def _scratch(self) -> Path:
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        return self._folder

    def _timed(self, peer: Peer, do: str, **request: Any) -> dict[str, Any]:
        self._server.settle()
        server, cpu = self._server.cpu_seconds(), peer.cpu_seconds()
        answer = peer.ask(do, timeout=_RUN_SECONDS, **request)
        answer |= {"cpu": peer.cpu_seconds() - cpu}
        return answer if peer.name == NOTHING else answer | {"server_cpu": self._server.cpu_seconds() - server}

    def _options(self, stream: StreamName, more: Mapping[str, str]) -> dict[str, str]:
        return {"controller": self._server.uri, "scope": SCOPE, "stream": stream.stream, **more}

    def close(self) -> None:
        """End all processes. They restart when they are needed."""
        self._started, self._registry, self._folder = {}, None, None
        self._filled.clear()
        self._kinds.clear()
        self._prepared.clear()
        self._stack.close()
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def write_parquet(folder: Path, events: int) -> str:
    """Write the rows of a write benchmark into a new folder, unless it exists: ten digits and filler, 4096 keys."""
    if not folder.exists():
        folder.mkdir()
        filler = pa.scalar("y" * (_SIZE - 10))
        for file, rows in enumerate(np.array_split(np.arange(events), _FILES)):
            ids = pa.compute.utf8_lpad(pa.array(rows).cast(pa.string()), width=10, padding="0")
            columns = {
                "routing_key": pa.array(rows % KEYS).cast(pa.string()),
                "event": pa.compute.binary_join_element_wise(ids, filler, "").cast(pa.binary()),
            }
            pq.write_table(pa.table(columns), folder / f"part-{file}.parquet")
    return str(folder)


def _write_feed(writer: EventWriter[bytes], number: int) -> None:
    events = pa.array([b"%0100d" % (number * _FEED + event) for event in range(_FEED)])
    writer.write_column(events, pa.array([str(event) for event in range(_FEED)]))
    writer.flush()


def _title(row: Row) -> str:
    if row.work is Work.LATENCY:
        return f"{row.name}, {row.events} × {_FEED} events"
    if row.work in (Work.OWN_LATENCY, Work.STREAMS_LATENCY):
        return f"{row.name}, {row.events} × {_MICRO_ROWS} rows"
    return f"{row.name}, {row.events:,}"

"""Clients of every kind that work on a cluster at the same time, and an audit of their events."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamCut, StreamName
from pravega_connector.config import PravegaConfig
from pravega_serde.errors import PravegaError
from tests.faults.cluster.timeline import Notes, Timeline
from tests.faults.cluster.workload import CLIENTS, KEY, parse, table_of
from tests.faults.processes import ROOT, Process, await_that
from tests.faults.verdict import Tally
from tests.interop._java import JavaPeer

# Segments. A query has a task for each segment of the events: two cores do these in a moment.
_STREAMS: Final = {"events": 4, "transactions": 8, "probe": 8, "copy": 2, "state": 1, "files": 4}
#: Rows of a file, and seconds between two files.
_ROWS: Final = 40
_FILE_SECONDS: Final = 1.0
#: Successes of each client before the first fault: the first batches of a query take Spark several times as long.
_WARM_BATCHES: Final = 3
#: Seconds until all clients work: Spark needs a while on a busy machine.
_START: Final = 280.0
#: Seconds without one of the events after which the events that are missing are lost. A client may be behind.
_DRAIN: Final = 120.0
_CLOSE_SECONDS: Final = 30.0

Audit = dict[str, dict[str, int]]


class Clients:
    """Plain clients, a probe, queries, and an ingester with its files. Context manager.

    ``queries``: number of exactly-once queries that copy the writer's events, one after another. ``raw_reader`` is
    their option of that name.
    """

    def __init__(
        self,
        config: PravegaConfig,
        folder: Path,
        *,
        queries: int = 1,
        ingester: bool = True,
        lease_ms: int = 120_000,
        raw_reader: str = "python",
    ) -> None:
        self.config, self.folder, self.lease_ms, self._raw_reader = config, folder, lease_ms, raw_reader
        scope = f"faults{time.time_ns()}"
        self._queries = [f"query{n}" for n in range(1, queries + 1)]
        self.names = [*CLIENTS, *self._queries, *(["ingester"] if ingester else [])]
        self.streams = {name: StreamName(scope, name) for name in (*_STREAMS, *map(_copy, self._queries))}
        self.processes: dict[str, Process] = {}
        self._notes = Notes(self.folder / "clients.notes")
        self._feeder = threading.Thread(target=self._feed)
        self._closing = threading.Event()
        self._retired = Path()
        self._files = 0
        audited = ["events", "transactions", *map(_copy, self._queries), *(["files"] if ingester else [])]
        self._cuts: dict[str, StreamCut] = {}
        self._tallies = {name: Tally() for name in audited}
        self._unsure: dict[str, list[tuple[str, int]]] = {name: [] for name in audited}
        self._java_cuts: dict[str, StreamCut] = {}
        self._java_tallies = {name: Tally() for name in audited}

    # ---- start and end

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        with PravegaClient(self.config, timeout=60.0) as client:
            for name, stream in self.streams.items():
                client.create_stream(stream, ScalingPolicy.fixed(_STREAMS.get(name, 2)))
            client.create_table(table_of(self.streams["state"]), KEY)
            self._cuts = {name: client.head(self.streams[name]) for name in self._tallies}
        names = {name: str(stream) for name, stream in self.streams.items()}
        self._run("workload", self._spec("workload", streams=names), answers=True)
        self._run("probe", self._spec("probe", stream=names["probe"]))
        options = {"transaction_timeout_ms": str(self.lease_ms), "commit_timeout_ms": str(self.lease_ms * 9 // 10)}
        queries = list(self._query_specs())
        self._run("query", self._spec("query", queries=queries, sink=options, raw_reader=self._raw_reader))
        if "ingester" in self.names:
            (self.folder / "in").mkdir()
            self._feeder.start()
            self._start_ingester()
        for _ in range(_WARM_BATCHES):
            self.await_done(time.monotonic(), _START)

    def _query_specs(self) -> Iterator[dict[str, str]]:
        source = self.streams["events"]
        for name in self._queries:
            target = self.streams[_copy(name)]
            checkpoint = str(self.folder / f"checkpoint-{name}")
            yield {"name": name, "source": str(source), "target": str(target), "checkpoint": checkpoint}
            source = target

    def environment(self) -> dict[str, str]:
        """Return the address of the servers and the credentials for a process."""
        settings = {
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PRAVEGA_CONTROLLER_URI": self.config.controller,
            "pravega_client_auth_method": self.config.auth_method,
            "pravega_client_auth_token": self.config.auth_token,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def _spec(self, name: str, **spec: Any) -> str:
        """Write the specification of a process to a file; return its path."""
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps({"notes": str(self._file(name)), "folder": str(self.folder), **spec}))
        return str(file)

    def _start_ingester(self) -> None:
        options = ["--follow", "--settle", "0", "--quiet", "--base", str(self.folder / "in")]
        self._run("ingester", str(self._file("ingester")), *options, str(self.folder / "in"), self.streams["files"])

    def _run(self, name: str, *words: object, answers: bool = False) -> None:
        module = "ingest" if name == "ingester" else name
        command = [sys.executable, "-m", f"tests.faults.cluster.{module}", *words]
        log = self.folder / f"{name}.log"
        self.processes[name] = Process(command, log, self.environment(), stdin=True, answers=answers)

    def close(self) -> None:
        self._closing.set()
        for process in self.processes.values():
            process.end_input()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for process in self.processes.values():
            process.close(max(0.1, deadline - time.monotonic()))
        if self._feeder.is_alive():
            self._feeder.join()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _feed(self) -> None:
        """Add complete files for the ingester, and start it again if it has ended."""
        while not self._closing.wait(_FILE_SECONDS):
            name = f"f{self._files}"
            partial = self.folder / "in" / f"{name}.tmp"
            partial.write_text("file,n\n" + "".join(f"{name},{n}\n" for n in range(_ROWS)))
            partial.rename(self.folder / "in" / f"{self._files:07}.csv")
            self._files += 1
            ingester = self.processes.get("ingester")
            if ingester is not None and ingester.has_ended and not self._closing.is_set():
                last = (ingester.text().strip().splitlines() or ["nothing"])[-1]
                self._notes.error("ingester", f"ended with {ingester.code}: {last}")
                self._start_ingester()

    # ---- a second driver

    def take_over(self) -> None:
        """Start another driver on the checkpoints of the one that runs, which is retired."""
        self.processes["retired"] = self.processes.pop("query")
        spec = json.loads((self.folder / "query.json").read_text())
        # Later notes of the first driver are not a client's.
        self._retired = Path(spec["notes"]).with_suffix(".retired")
        Path(spec["notes"]).rename(self._retired)
        self._run("query", self._spec("query", **spec | {"notes": str(self._file(f"query-{time.monotonic_ns()}"))}))

    def retired_error(self, after: float) -> str | None:
        """Return the error that the retired driver has shown since a moment."""
        notes = [json.loads(line) for line in self._retired.read_text().splitlines()]
        return next((note["text"] for note in notes if note["what"] == "error" and note["time"] >= after), None)

    def end_retired(self) -> None:
        self.processes.pop("retired").close()

    # ---- progress

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.notes"

    def timeline(self) -> Timeline:
        """Return the timeline of all later notes."""
        return Timeline(self.folder)

    def await_done(self, after: float, seconds: float = 180.0) -> None:
        """Wait until a new client has had a success after a moment, and then every client."""
        timeline = self.timeline()
        missing = {"probe", *self.names}

        def all_done() -> bool:
            well = timeline.refresh().well(after)
            if well is not None:
                missing.discard("probe")
                missing.difference_update(name for name in self.names if timeline.next_done(name, well) is not None)
            return not missing

        try:
            await_that("every client has a success", all_done, seconds, poll=0.1)
        except AssertionError as error:
            shown = {name: timeline.errors[name][-1][1] for name in missing if timeline.errors[name]}
            raise AssertionError(
                f"{error}; none had {', '.join(sorted(missing))}, {shown}; {self._last_words()}"
            ) from None

    def _last_words(self) -> str:
        ended = {name: process.text(400).strip() for name, process in self.processes.items() if process.has_ended}
        return "; ".join(f"{name} has ended: {text}" for name, text in ended.items()) or "all processes run"

    def places(self, name: str = "probe") -> set[tuple[str, int]]:
        """Return the addresses of a stream's segments, as the controller reports them to a new client."""
        stream = self.streams[name]
        with PravegaClient(self.config, timeout=20.0, failover_timeout=20.0) as client:
            return {client.controller.endpoint(stream, number) for number in range(_STREAMS[name])}

    def _ask(self) -> dict[str, Any]:
        """Return the results of the plain clients that are certain."""
        process = self.processes["workload"]
        process.request("")
        answer: dict[str, Any] = json.loads(process.answer() or b"{}")
        assert answer, f"the plain clients have ended: {self._last_words()}"
        return answer

    # ---- audit

    def audit(self, java: JavaPeer | None = None) -> Audit:
        """Return the counts since the last call, by new readers and by those that read all the time."""
        answer = self._ask()
        hung = [name for name in CLIENTS if answer[name].get("hung")]
        assert not hung, f"{', '.join(hung)} did not end a step in a minute"
        # The last file may not be complete in the stream.
        files = {f"f{n}": _ROWS - 1 for n in range(self._files - 1)}
        certain = dict.fromkeys(self._tallies, answer["writer"])
        certain |= {"transactions": answer["transactions"], "files": {"marks": files, "unsure": []}}
        audit = {}
        for name, tally in self._tallies.items():
            marks, unsure = certain[name]["marks"], certain[name]["unsure"]
            self._drain(name, marks)
            audit[name] = tally.take(marks, unsure)
            self._unsure[name] = unsure
        audit |= {name: answer[name]["seen"] for name in ("follower", "reader")}
        # A lost or repeated update leaves the numbers out of order.
        for name in ("synchronizer", "table"):
            updates = {"events": answer[name]["updates"], "out_of_order": answer[name]["wrong"]}
            audit[name] = {"lost": 0, "duplicated": 0, **updates}
        return audit | (self.java_audit(java) if java is not None else {})

    def _drain(self, name: str, marks: Mapping[str, int]) -> None:
        """Read until all events have arrived, or no more of them in ``_DRAIN`` seconds: the rest is lost."""
        before: float = math.inf
        while True:
            with contextlib.suppress(AssertionError):
                await_that(f"{name} arrive", partial(self._read_on, name, marks), _DRAIN, poll=0.1)
            behind = self._tallies[name].behind(marks)
            if not 0 < behind < before:
                return
            before = behind

    def _read_on(self, name: str, marks: Mapping[str, int]) -> bool:
        tally = self._tallies[name]
        with (
            contextlib.suppress(PravegaError),
            PravegaClient(self.config, timeout=60.0, failover_timeout=60.0) as client,
        ):
            end = client.tail(self.streams[name])
            events = list(client.read(self.streams[name], start=self._cuts[name], end=end))
            self._cuts[name] = end
            for event in events:
                tally.add(*_parsed(event))
        return not tally.behind(marks)

    def java_audit(self, java: JavaPeer) -> Audit:
        """Return the counts of the Java client, from its last position to ours."""
        audit = {}
        for name, tally in self._java_tallies.items():
            for event in java.read(self.streams[name], self._java_cuts.get(name), self._cuts[name]):
                tally.add(*_parsed(event.payload))
            self._java_cuts[name] = self._cuts[name]
            audit[f"{name}, by Java"] = tally.take(self._tallies[name].last, self._unsure[name])
        return audit


def _copy(query: str) -> str:
    """Return the name of a query's target."""
    return "copy" + query.removeprefix("query").removeprefix("1")


def _parsed(event: bytes) -> tuple[str, int]:
    if event.startswith(b"{"):
        record = json.loads(event)
        return record["file"], record["n"]
    return parse(event)

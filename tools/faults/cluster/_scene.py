"""Every kind of client at work on a cluster at the same time, and an auditor who reads what they have written."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from tools.faults.cluster._notes import Notes, Tally, Timeline
from tools.faults.cluster._workload import CLIENTS, parse

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamCut, StreamName
from pravega_connector.config import PravegaConfig
from pravega_serde.errors import PravegaError
from tests.interop._java import JavaPeer

__all__ = ["Audit", "Scene", "await_that"]

_ROOT: Final = Path(__file__).parents[3]
# Segments. A query has a task for each of the events': as many as two cores do in a moment.
_STREAMS: Final = {"events": 4, "transactions": 8, "probe": 8, "copy": 2, "state": 1, "files": 4}
#: Rows of a file, and seconds between two of them.
_ROWS: Final = 40
_FILE_SECONDS: Final = 1.0
#: Seconds until all clients are at work: Spark takes a while on a machine with other work.
_START: Final = 280.0
#: Seconds in which what was written must have come to its end when the servers are well.
_DRAIN: Final = 120.0

Audit = dict[str, dict[str, int]]


def await_that(what: str, condition: Callable[[], Any], seconds: float = 180.0) -> Any:
    """The first value of a condition that is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)
    return value


class Scene:
    """Clients, files, probe and auditor on servers that somebody else has started. Context manager.

    ``queries``: with how many queries, one after the other, the writer's events are copied; 0 to leave Spark out.
    ``logs``: where to leave what the clients have said and noted.
    """

    def __init__(
        self,
        config: PravegaConfig,
        *,
        queries: int = 1,
        ingester: bool = True,
        lease_ms: int = 120_000,
        logs: Path | None = None,
    ) -> None:
        self.config, self._queries, self.lease_ms, self._logs = config, queries, lease_ms, logs
        self._temporary = tempfile.TemporaryDirectory(prefix="cluster-faults-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        scope = f"faults{time.time_ns()}"
        self.streams = {name: StreamName(scope, name) for name in _STREAMS}
        self.streams |= {f"copy{n}": StreamName(scope, f"copy{n}") for n in range(2, queries + 1)}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.clients = [*CLIENTS, *self.queries, *(["ingester"] if ingester else [])]
        self._notes = Notes(self.folder / "scene.notes")
        self._feeder = threading.Thread(target=self._feed)
        self._closing = threading.Event()
        self._retired = Path()
        self.files = 0
        self._cuts: dict[str, StreamCut] = {}
        self._tallies = {name: Tally() for name in self._audited()}
        self._unsure: dict[str, list[tuple[str, int]]] = {name: [] for name in self._tallies}
        self._java_cuts: dict[str, StreamCut] = {}
        self._java_tallies = {name: Tally() for name in self._tallies}

    @property
    def queries(self) -> list[str]:
        return [f"query{n}" for n in range(1, self._queries + 1)]

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
            self._cuts = {name: client.head(self.streams[name]) for name in self._tallies}
        names = {name: str(stream) for name, stream in self.streams.items()}
        self._python("workload", {"streams": names}, answers=True)
        self._python("probe", {"stream": names["probe"]})
        if self._queries:
            self._python("query", {"queries": list(self._query_specs()), "sink": self._sink_options()})
        if "ingester" in self.clients:
            (self.folder / "in").mkdir()
            self._feeder.start()
            self._start_ingester()
        self.await_done(time.monotonic(), _START)

    def _query_specs(self) -> Iterator[dict[str, str]]:
        source = self.streams["events"]
        for name in self.queries:
            target = self.streams[_copy(name)]
            checkpoint = str(self.folder / f"checkpoint-{name}")
            yield {"name": name, "source": str(source), "target": str(target), "checkpoint": checkpoint}
            source = target

    def environment(self) -> dict[str, str]:
        """What tells a process where the servers are, and how to be let in."""
        settings = {
            "PYTHONPATH": str(_ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PRAVEGA_CONTROLLER_URI": self.config.controller,
            "pravega_client_auth_method": self.config.auth_method,
            "pravega_client_auth_token": self.config.auth_token,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def _sink_options(self) -> dict[str, str]:
        return {"transaction_timeout_ms": str(self.lease_ms), "commit_timeout_ms": str(self.lease_ms * 9 // 10)}

    def _python(self, name: str, spec: Mapping[str, Any], *, answers: bool = False) -> None:
        common = {"notes": str(self._file(name)), "folder": str(self.folder)}
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps({**common, **spec}))
        self._run(name, [f"tools.faults.cluster._{name}", str(file)], answers=answers)

    def _start_ingester(self) -> None:
        options = ["--follow", "--settle", "0", "--quiet", "--base", str(self.folder / "in")]
        words = [str(self._file("ingester")), *options, str(self.folder / "in"), str(self.streams["files"])]
        self._run("ingester", ["tools.faults.cluster._ingest", *words])

    def _run(self, name: str, words: list[str], *, answers: bool = False) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if answers else log,
                stderr=log,
                start_new_session=True,
            )

    def close(self) -> None:
        self._closing.set()
        for process in self.processes.values():
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        deadline = time.monotonic() + 30.0
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._feeder.is_alive():
            self._feeder.join()
        if self._logs is not None:
            kept = self._logs / self.streams["events"].scope
            kept.mkdir(parents=True, exist_ok=True)
            for file in [*self.folder.glob("*.log"), *self.folder.glob("*.notes")]:
                shutil.copy(file, kept)
        self._temporary.cleanup()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _feed(self) -> None:
        """Add files for the ingester, complete at once, and start it again if it has ended."""
        while not self._closing.wait(_FILE_SECONDS):
            name = f"f{self.files}"
            partial = self.folder / "in" / f"{name}.tmp"
            partial.write_text("file,n\n" + "".join(f"{name},{n}\n" for n in range(_ROWS)))
            partial.rename(self.folder / "in" / f"{self.files:07}.csv")
            self.files += 1
            ingester = self.processes.get("ingester")
            if ingester is not None and ingester.poll() is not None and not self._closing.is_set():
                said = (self.folder / "ingester.log").read_text().strip().splitlines() or ["nothing"]
                self._notes.error("ingester", f"ended with {ingester.returncode}: {said[-1]}")
                self._start_ingester()

    # ---- a driver that another one replaces

    def take_over(self) -> None:
        """Start another driver on the checkpoints of the one that runs, which is retired."""
        self.processes["retired"] = self.processes.pop("query")
        spec = json.loads((self.folder / "query.json").read_text())
        # What the first has to say from now on is not of the one that is in charge.
        self._retired = Path(spec["notes"]).with_suffix(".retired")
        Path(spec["notes"]).rename(self._retired)
        self._python("query", {**spec, "notes": str(self._file(f"query-{time.monotonic_ns()}"))})

    def retired_error(self, after: float) -> str | None:
        """The error that the retired driver has shown since a moment."""
        notes = [json.loads(line) for line in self._retired.read_text().splitlines()]
        return next((note["text"] for note in notes if note["what"] == "error" and note["time"] >= after), None)

    def end_retired(self) -> None:
        process = self.processes.pop("retired")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()

    # ---- what is going on

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.notes"

    def timeline(self) -> Timeline:
        """What is noted from now on."""
        return Timeline(self.folder)

    def await_done(self, after: float, seconds: float = 180.0) -> None:
        """Wait until the probe has had a success after a moment, and every client one after that."""
        timeline = self.timeline()
        missing = {"probe", *self.clients}

        def all_done() -> bool:
            well = timeline.refresh().well(after)
            if well is not None:
                missing.discard("probe")
                missing.difference_update(name for name in self.clients if timeline.next_done(name, well) is not None)
            return not missing

        try:
            await_that("every client has a success", all_done, seconds)
        except AssertionError as error:
            shown = {name: timeline.errors[name][-1][1] for name in missing if timeline.errors[name]}
            raise AssertionError(
                f"{error}; none had {', '.join(sorted(missing))}, {shown}; {self.last_words()}"
            ) from None

    def last_words(self) -> str:
        """What the processes that have ended said last."""
        ended = [name for name, process in self.processes.items() if process.poll() is not None]
        texts = {name: (self.folder / f"{name}.log").read_text(errors="replace").strip()[-400:] for name in ended}
        return "; ".join(f"{name} has ended: {text}" for name, text in texts.items()) or "all processes run"

    def places(self, name: str = "probe") -> set[tuple[str, int]]:
        """Where the segments of a stream are, as the controller tells a new client."""
        stream = self.streams[name]
        with PravegaClient(self.config, timeout=20.0, failover_timeout=20.0) as client:
            return {client.controller.endpoint(stream, number) for number in range(_STREAMS[name])}

    def ask(self) -> dict[str, Any]:
        """What the plain clients are sure to have done, and what their process takes."""
        process = self.processes["workload"]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline() or b"{}")
        assert answer, f"the plain clients have ended: {self.last_words()}"
        return answer

    # ---- what has come of it

    def _audited(self) -> list[str]:
        return ["events", "transactions", *map(_copy, self.queries), *(["files"] if "ingester" in self.clients else [])]

    def audit(self, java: JavaPeer | None = None) -> Audit:
        """What new readers, and those that have been reading, count of what was written since the last time."""
        answer = self.ask()
        hung = [name for name in CLIENTS if answer[name].get("hung")]
        assert not hung, f"{', '.join(hung)} did not end a step in a minute"
        # Files that are there, but for the last one, which is being looked at.
        files = {f"f{n}": _ROWS - 1 for n in range(self.files - 1)}
        certain = dict.fromkeys(self._tallies, answer["writer"])
        certain |= {"transactions": answer["transactions"], "files": {"marks": files, "unsure": []}}
        audit = {}
        for name, tally in self._tallies.items():
            marks, unsure = certain[name]["marks"], certain[name]["unsure"]
            with contextlib.suppress(AssertionError):  # what has not come is lost
                await_that(f"{name} are there", lambda n=name, m=marks: self._read_on(n, m), _DRAIN)
            audit[name] = tally.take(marks, unsure)
            self._unsure[name] = unsure
        audit |= {name: answer[name]["seen"] for name in ("follower", "reader")}
        # An update that is lost or repeated leaves the numbers out of order.
        updates = {"events": answer["synchronizer"]["updates"], "out_of_order": answer["synchronizer"]["wrong"]}
        audit["synchronizer"] = {"lost": 0, "duplicated": 0, **updates}
        return audit | (self.java_audit(java) if java is not None else {})

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
        return tally.reached(marks)

    def java_audit(self, java: JavaPeer) -> Audit:
        """What the Java client counts from where it last ended, at first the beginning, to where we are."""
        audit = {}
        for name, tally in self._java_tallies.items():
            for event in java.read(self.streams[name], self._java_cuts.get(name), self._cuts[name]):
                tally.add(*_parsed(event.payload))
            self._java_cuts[name] = self._cuts[name]
            audit[f"{name}, by Java"] = tally.take(self._tallies[name].last, self._unsure[name])
        return audit


def _copy(query: str) -> str:
    """The target of a query."""
    return "copy" + query.removeprefix("query").removeprefix("1")


def _parsed(event: bytes) -> tuple[str, int]:
    if event.startswith(b"{"):
        record = json.loads(event)
        return record["file"], record["n"]
    return parse(event)

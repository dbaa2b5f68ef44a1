"""One run of a scenario of the sink: its streams, its Spark applications and what their processes have noted."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.exactly_once.batch_commit import ledger_name
from pravega_connector.local.cluster import Cluster
from pravega_serde import DataKeys, Encrypted, JsonSerializer, LocalKeys
from tests.faults.processes import ROOT, Process, await_that, kill_server
from tests.faults.streams import KEYS, Follower, Source

_HERE: Final = Path(__file__).parent
APPLICATION: Final = _HERE / "application.py"
#: Seconds for one application: on a busy machine it takes minutes.
_APPLICATION_SECONDS: Final = 600.0
#: Seconds between the report of a process that kills itself and the signal, in which its other threads continue.
_SIGNAL_SECONDS: Final = 0.5

Fault = dict[str, Any]


def fault_environment(folder: Path, run: str, fault: Fault | None) -> dict[str, str]:
    """Return the variables with which Python processes write notes, and fail."""
    return {
        "PYTHONPATH": f"{_HERE / 'inject'}{os.pathsep}{ROOT}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "FAULTS_FOLDER": str(folder),
        "FAULTS_RUN": run,
        "FAULTS_FAULT": json.dumps(fault or {}),
    }


class Job(Process):
    """A Spark application. ``command`` runs it with the file of its specification as the last argument."""

    def __init__(
        self, folder: Path, run: str, spec: dict[str, Any], command: Sequence[object], environment: Mapping[str, str]
    ) -> None:
        self.run, self._answer = run, folder / f"answer-{run}.json"
        file = folder / f"spec-{run}.json"
        file.write_text(json.dumps({**spec, "folder": str(folder), "answer": str(self._answer)}))
        super().__init__([*command, file], folder / f"job-{run}.log", environment)

    @property
    def result(self) -> dict[str, Any]:
        """Answer of the application at its end; empty if it wrote none."""
        return dict(json.loads(self._answer.read_text())) if self._answer.exists() else {}

    @property
    def error(self) -> str:
        """Error of the query; empty if it did not fail, or was killed."""
        return str(self.result.get("error", ""))

    def succeeds(self) -> Self:
        code = self.wait()
        assert code == 0, f"run {self.run} ended with {code}: {self.error or self.text()}"
        return self

    def is_killed(self) -> Self:
        code = self.wait()
        assert code == -9, f"run {self.run} was to be killed and ended with {code}: {self.error}"
        return self

    def fails(self, code: str) -> Self:
        ended = self.wait()
        assert ended == 1, f"run {self.run} was to fail and ended with {ended}"
        assert code in self.error, f"run {self.run} was to fail with {code}: {self.error}"
        return self


def _encryption(folder: Path) -> tuple[dict[str, str], Encrypted]:
    """Return options with new keys, and the serializer that reads the events."""
    service, keys, stream = str(folder / "local-keys.json"), folder / "data-keys.json", "faults/target"
    LocalKeys.generate("main").save(service)
    DataKeys.create(service, "main").save(keys)
    options = {
        "format": "json",
        "encrypted_fields": "event",
        "encryption_keys": str(keys),
        "encryption_key_service": service,
        "encryption_stream": stream,
    }
    return options, Encrypted(JsonSerializer(), ["event"], DataKeys.load(keys, service), stream=stream)


class Trial:
    """Target streams with followers, a checkpoint, and applications that copy sources to them. Context manager.

    There is one target, unless :meth:`spread_over` adds others.
    """

    def __init__(
        self,
        config: PravegaConfig,
        client: PravegaClient,
        source: Source,
        folder: Path,
        lease: float,
        cluster: Cluster | None = None,
        *,
        encrypted: bool = False,
        raw_writer: str = "python",
    ) -> None:
        """``encrypted``: the events of the target are JSON, and the field with their number is encrypted.

        ``raw_writer`` is the option of the sink. Events that the JVM writes do not have the id of their transaction.
        """
        self.config, self.client, self.source, self.folder, self.lease = config, client, source, folder, lease
        self.cluster, self.by_jvm, self._raw_writer = cluster, raw_writer == "jvm", raw_writer
        self._encryption, self._serializer = _encryption(folder) if encrypted else ({}, None)
        self.target = self.new_stream("target")
        self.followers = {self.target: Follower(config, self.target)}
        self.ledger = ledger_name(self.target)
        self.sources: list[Source] = [source]
        """Sources of all events that the targets must have."""
        self.spread: dict[Source, list[StreamName]] = {}
        """Targets of a source with several: number n is in the target n % len(targets)."""
        self.reported = 0
        """Rows that an error has reported as lost."""
        self.leaves_orphans = False
        """True if a controller was killed. The open transactions that it knew end after twice the longest lease."""
        self.proofs: list[str] = []
        self.jobs: list[Job] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for job in self.jobs:
            job.close()

    def new_stream(self, name: str) -> StreamName:
        stream = StreamName(self.source.stream.scope, f"{name}-{uuid.uuid4().hex[:12]}")
        self.client.create_stream(stream, ScalingPolicy.fixed(3))
        return stream

    def spread_over(self, source: Source, targets: list[StreamName]) -> Fault:
        """Follow the targets of a source. Return the settings of a query that copies it to all of them."""
        self.spread[source] = targets
        for target in targets:
            if target not in self.followers:
                self.followers[target] = Follower(self.config, target)
        self.ledger = StreamName(self.target.scope, f"{self.target.stream}-decisions")
        options = {"ledger": str(self.ledger)}
        return {"source": str(source.stream), "targets": [str(target) for target in targets], "sink_options": options}

    @property
    def worker_error(self) -> str:
        """Text of the error of a query whose worker was killed."""
        return "Python process that helps this executor failed" if self.by_jvm else "Python worker exited unexpectedly"

    def number(self, event: bytes) -> int:
        """Return the number in an event of a target."""
        data = event.partition(b"|")[0]
        return int(data if self._serializer is None else self._serializer.deserialize(data)["event"])

    def misplaced(self, target: StreamName, numbers: Iterable[int]) -> int:
        """Return how many numbers of a target belong to another one."""
        found = [(source, n) for n in numbers for source in self.spread if n in source.numbers]
        return sum(targets[n % len(targets)] != target for source, n in found if (targets := self.spread[source]))

    def start(
        self,
        fault: Fault | None = None,
        *,
        command: Sequence[object] = (sys.executable, APPLICATION),
        environment: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Job:
        """Start an application that copies the source to the target, in three batches of three tasks."""
        defaults = {
            "master": "local[2]",
            "controller": self.config.controller,
            "source": str(self.source.stream),
            "target": str(self.target),
            "checkpoint": str(self.folder / "checkpoint"),
            "rows_per_batch": -(-len(self.source.numbers) // 3),
            "keys": KEYS,
            "lease": self.lease,
            "encryption": self._encryption,
            "raw_writer": self._raw_writer,
        }
        run = str(len(self.jobs) + 1)
        if environment is None:
            environment = fault_environment(self.folder, run, fault)
        self.jobs.append(Job(self.folder, run, defaults | spec, command, environment))
        return self.jobs[-1]

    # ---- faults

    def fired(self) -> dict[str, Any]:
        """Return the report of the process that caused the fault. Raises AssertionError if there is none."""
        marker = self.folder / "fired"
        assert marker.exists(), "the fault did not fire"
        return dict(json.loads(marker.read_text()))

    def await_fired(self, job: Job) -> None:
        await_that("the fault fires", lambda: (self.folder / "fired").exists() or job.has_ended, _APPLICATION_SECONDS)
        self.fired()

    def prove(self) -> list[str]:
        """Return the faults in words. Raises AssertionError if a killed process did something afterwards."""
        if not (self.folder / "fired").exists():
            return self.proofs
        fault = self.fired()
        if fault["action"].startswith("kill"):
            end = fault["time"] + _SIGNAL_SECONDS
            later = [line for line in self._log() if line["pid"] == fault["pid"] and line["time"] > end]
            assert not later, f"process {fault['pid']} was to be killed and continued: {later[0]}"
        return [f"{fault['action']} {fault['at']}", *self.proofs]

    def go(self) -> None:
        """Let the process continue that holds."""
        (self.folder / "go").touch()

    def restart_servers(self) -> None:
        """Kill controller and segment store, start them again, and wait until they work."""
        assert self.cluster is not None
        processes = [self.cluster.processes[name] for name in ("controller-1", "store-1")]
        self.proofs += [kill_server(process) for process in processes]
        for process in processes:
            process.start()
        self.cluster.await_ready(300.0)

    def outwait_lease(self) -> None:
        """Wait until no transaction is open: the processes that kept them are dead."""
        is_open = TransactionStatus.OPEN, TransactionStatus.ABORTING
        await_that(
            "all leases end",
            lambda: not any(status in is_open for status in self.statuses().values()),
            self.lease + 30.0,
        )

    def remove_newest(self) -> tuple[int, dict[Path, bytes]]:
        """Remove the newest batch from the checkpoint; return its number, and its files with their content."""
        offsets = self.folder / "checkpoint" / "offsets"
        newest = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
        return newest, self._remove(lambda part, number: number == newest)

    def forget_batch(self, batch: int) -> None:
        """Bring the checkpoint to the state that a crash before Spark's commit log leaves."""
        # Without the later offsets Spark repeats this batch; with them it would continue with the next.
        self._remove(lambda part, number: number >= batch + (part == "offsets"))

    def _remove(self, chosen: Any) -> dict[Path, bytes]:
        files = {}
        for part in ("commits", "offsets"):
            for path in (self.folder / "checkpoint" / part).iterdir():
                number = path.name.lstrip(".").split(".")[0]
                if number.isdigit() and chosen(part, int(number)):
                    files[path] = path.read_bytes()
                    path.unlink()
        names = sorted(f"{path.parent.name}/{path.name}" for path in files if path.name.isdigit())
        self.proofs.append(f"{' and '.join(names)} removed")
        return files

    # ---- notes

    def noted(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self._log() if line["what"] == what]

    def _log(self) -> list[dict[str, Any]]:
        log = self.folder / "log.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def replayed(self) -> list[int]:
        """Return the batches that more than one application committed."""
        runs: dict[int, set[str]] = {}
        for line in self.noted("commit"):
            runs.setdefault(line["batch"], set()).add(line["run"])
        return sorted(batch for batch, of in runs.items() if len(of) > 1)

    def has_begun(self, job: Job) -> bool:
        """Return True if an application has begun a transaction."""
        return any(line["run"] == job.run for line in self.noted("begun"))

    def committed(self, batch: int) -> dict[str, int]:
        """Return the number of committed transactions of a batch, by stream."""
        statuses = self.statuses()
        counts: dict[str, int] = {}
        for line in self.noted("begun"):
            if line.get("batch") == batch:
                done = statuses[uuid.UUID(line["transaction"])].is_committed
                counts[line["stream"]] = counts.get(line["stream"], 0) + done
        return counts

    def statuses(self) -> dict[uuid.UUID, TransactionStatus]:
        """Return the status of every transaction that a process has begun."""
        begun = [(StreamName.parse(line["stream"]), uuid.UUID(line["transaction"])) for line in self.noted("begun")]
        return {id_: self.client.controller.transaction_status(stream, id_) for stream, id_ in begun}

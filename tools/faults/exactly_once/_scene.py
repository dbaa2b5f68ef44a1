"""One run of one point: streams of its own, Spark applications with a fault, and somebody who reads all the time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConnectorError
from tools.processes import kill_session, session_of

__all__ = ["JOB", "KEYS", "Fault", "Follower", "Job", "Scene", "Source", "application_environment", "await_that"]

KEYS: Final = 30
_HERE: Final = Path(__file__).parent
_ROOT: Final = _HERE.parents[2]
JOB: Final = _HERE / "job.py"
#: Seconds for one application: on a busy machine it takes minutes.
_APPLICATION: Final = 600.0

Fault = dict[str, Any]
#: What the marker of a fault says beside the proof.
_UNTOLD: Final = frozenset({"session", "time"})


def await_that(what: str, condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"in {seconds:g} s it did not come true that {what}"
        time.sleep(0.05)


class Source:
    """A stream of numbered events, 0 to ``rows - 1`` from ``first`` on; number n has routing key n % KEYS."""

    def __init__(self, client: PravegaClient, stream: StreamName, rows: int, first: int = 0) -> None:
        self.stream, self.numbers = stream, range(first, first)
        client.controller.create_scope(stream.scope)
        client.create_stream(stream, ScalingPolicy.fixed(3))
        self.add(client, rows)

    def add(self, client: PravegaClient, rows: int) -> None:
        """Write so many more."""
        first, end = self.numbers.stop, self.numbers.stop + rows
        with client.writer(self.stream) as writer:
            events, keys = [b"%d" % n for n in range(first, end)], [str(n % KEYS) for n in range(first, end)]
            writer.write_column(pa.array(events, pa.binary()), pa.array(keys, pa.string()))
        self.numbers = range(self.numbers.start, end)


class Follower:
    """Reads a stream from its head on, in a thread, whatever happens to its writers."""

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
        except BaseException as error:  # noqa: BLE001 - told where the events are asked for
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
                    # It goes on where it stands, as any reader does whose servers are away for long.
                    if not error.retriable or time.monotonic() - heard > _APPLICATION:
                        raise
                position = reader.position

    def seen(self, least: int) -> list[bytes]:
        """All events, when there are ``least`` of them and no more come."""
        with suppress(AssertionError):  # too few are the verdict's business
            await_that(f"{least} events are seen", lambda: len(self.events) >= least or self.error, 30.0)
        time.sleep(0.5)
        self._stop.set()
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.events


def application_environment(folder: Path, run: str, fault: Fault | None) -> dict[str, str]:
    """What makes Python processes tell what they do, and fail."""
    return {
        "PYTHONPATH": f"{_HERE / 'inject'}{os.pathsep}{_ROOT}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "EXACTLY_ONCE_FOLDER": str(folder),
        "EXACTLY_ONCE_RUN": run,
        "EXACTLY_ONCE_FAULT": json.dumps(fault or {}),
    }


class Job:
    """A Spark application: job.py in a session of its own, so that all of its processes can be found.

    ``command`` runs it, and gets the file with its specification as the last argument.
    """

    def __init__(
        self, folder: Path, run: str, spec: dict[str, Any], command: Sequence[object], environment: Mapping[str, str]
    ) -> None:
        self.run, self._answer = run, folder / f"answer-{run}.json"
        file, self.log = folder / f"spec-{run}.json", folder / f"job-{run}.log"
        file.write_text(json.dumps({**spec, "folder": str(folder), "answer": str(self._answer)}))
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*map(str, command), str(file)],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def processes(self) -> list[int]:
        """All that is left of the application."""
        return session_of(self._process.pid)

    def signal(self, number: int) -> None:
        kill_session(self._process.pid, number)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> int:
        """Its exit code; none of its processes is left."""
        try:
            code = self._process.wait(_APPLICATION)
        finally:
            self.signal(signal.SIGKILL)
        await_that("the application's processes are gone", lambda: not self.processes(), 30.0)
        return code

    @property
    def answer(self) -> dict[str, Any]:
        """What job.py had to say at its end; empty if it could not."""
        return dict(json.loads(self._answer.read_text())) if self._answer.exists() else {}

    @property
    def error(self) -> str:
        """What the query said when it failed; empty if it did not, or could not."""
        return str(self.answer.get("error", ""))

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait()

    # ---- what is expected of it

    def succeeds(self) -> Self:
        code = self.wait()
        assert code == 0, f"run {self.run} ended with {code}: {self.error or self.log.read_text()[-2000:]}"
        return self

    def is_killed(self) -> Self:
        code = self.wait()
        assert code == -signal.SIGKILL, f"run {self.run} was to be killed and ended with {code}: {self.error}"
        return self

    def fails(self, code: str = "") -> Self:
        ended = self.wait()
        assert ended == 1, f"run {self.run} was to fail and ended with {ended}"
        assert code in self.error, f"run {self.run} was to fail with {code}: {self.error}"
        return self


class Scene:
    """A target stream, its follower, a folder with the checkpoint, and what the fault module has told."""

    def __init__(
        self, config: PravegaConfig, client: PravegaClient, source: Source, folder: Path, lease: float
    ) -> None:
        self.config, self.client, self.source, self.folder, self.lease = config, client, source, folder, lease
        self.target = self.new_stream("target")
        self.follower = Follower(config, self.target)
        self.expected = set(source.numbers)
        self.reported = 0
        """Rows that an error has named as lost."""
        self._jobs: list[Job] = []
        self._proofs: list[str] = []

    def new_stream(self, name: str) -> StreamName:
        stream = StreamName(self.source.stream.scope, f"{name}-{uuid.uuid4().hex[:12]}")
        self.client.create_stream(stream, ScalingPolicy.fixed(3))
        return stream

    def start(self, fault: Fault | None = None, **spec: Any) -> Job:
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
        }
        run = str(len(self._jobs) + 1)
        environment = application_environment(self.folder, run, fault)
        job = Job(self.folder, run, defaults | spec, [sys.executable, JOB], environment)
        self._jobs.append(job)
        return job

    def close(self) -> None:
        for job in self._jobs:
            job.kill()

    # ---- what the fault module has told

    def fired(self) -> dict[str, Any]:
        """The fault, as the process told that made it. Raises AssertionError if it was not made."""
        marker = self.folder / "fired"
        assert marker.exists(), "the fault did not fire"
        return dict(json.loads(marker.read_text()))

    def add_proof(self, text: str) -> None:
        """Note a fault that the test itself has made."""
        self._proofs.append(text)

    def proof(self) -> str:
        """The faults in words; empty if there were none. Raises AssertionError for a killed one that goes on."""
        proofs = list(self._proofs)
        if (self.folder / "fired").exists():
            fault = self.fired()
            proofs.insert(0, ", ".join(f"{key} {value}" for key, value in fault.items() if key not in _UNTOLD))
            if fault["action"].startswith("kill"):
                later = [line for line in self._log() if line["pid"] == fault["pid"] and line["time"] > fault["time"]]
                assert not later, f"process {fault['pid']} was to be killed and went on: {later[0]}"
        return "; ".join(proofs)

    def await_fired(self, job: Job) -> dict[str, Any]:
        await_that("the fault fires", lambda: (self.folder / "fired").exists() or job.has_ended, _APPLICATION)
        return self.fired()

    def go(self) -> None:
        """Let a process go on that holds."""
        (self.folder / "go").touch()

    def told(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self._log() if line["what"] == what]

    def _log(self) -> list[dict[str, Any]]:
        log = self.folder / "log.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def replayed(self) -> list[int]:
        """Batches that more than one run wanted to commit."""
        runs: dict[int, set[str]] = {}
        for line in self.told("commit"):
            runs.setdefault(line["batch"], set()).add(line["run"])
        return sorted(batch for batch, of in runs.items() if len(of) > 1)

    def begun(self) -> list[tuple[StreamName, uuid.UUID]]:
        """Every transaction that any process has begun."""
        return [(StreamName.parse(line["stream"]), uuid.UUID(line["transaction"])) for line in self.told("begun")]

    def statuses(self) -> dict[uuid.UUID, TransactionStatus]:
        controller = self.client.controller
        return {id_: controller.transaction_status(stream, id_) for stream, id_ in self.begun()}

    def outwait_lease(self) -> None:
        """Until no transaction is open: those who kept them are gone."""
        is_open = TransactionStatus.OPEN, TransactionStatus.ABORTING
        await_that(
            "all leases have ended",
            lambda: not any(status in is_open for status in self.statuses().values()),
            self.lease + 30.0,
        )

    def remove_newest(self) -> tuple[int, dict[Path, bytes]]:
        """Remove what the checkpoint has of its newest batch: its number, and the files with their content."""
        offsets = self.folder / "checkpoint" / "offsets"
        newest = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
        files = {}
        for part in ("commits", "offsets"):
            for path in (self.folder / "checkpoint" / part).iterdir():
                if path.name.lstrip(".").split(".")[0] == str(newest):
                    files[path] = path.read_bytes()
                    path.unlink()
        self.add_proof(
            f"{' and '.join(sorted(f'{p.parent.name}/{p.name}' for p in files if p.name.isdigit()))} removed"
        )
        return newest, files

    def forget_batch(self, batch: int) -> None:
        """Bring the checkpoint to where a crash before Spark's commit log leaves it."""
        checkpoint = self.folder / "checkpoint"
        # Without the offsets behind it Spark repeats this batch; with them it would go on with the next.
        for part, least in (("commits", batch), ("offsets", batch + 1)):
            for path in (checkpoint / part).iterdir():
                number = path.name.lstrip(".").split(".")[0]
                if number.isdigit() and int(number) >= least:
                    path.unlink()

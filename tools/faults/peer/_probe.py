"""The same faults for two connectors, made and measured from outside: by what the stream and the checkpoint hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName
from pravega_connector.config import PravegaConfig
from tools.faults.exactly_once._scene import Source, await_that

__all__ = ["CASES", "Connector", "Probe", "Result"]

ROWS: Final = 3000
_SECONDS: Final = 900.0
_JOB: Final = Path(__file__).with_name("job.py")
#: A kill that comes after Spark's commit log proves nothing, and is tried again.
_TRIES: Final = 5


@dataclass(frozen=True)
class Connector:
    """A Python with PySpark, and what else it needs to have a format ``pravega``."""

    name: str
    python: str
    conf: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Result:
    """What one run of one case left in the stream."""

    connector: str
    case: str
    before: int
    """Rows that readers saw between the fault and the restart."""
    read_back: int
    lost: int
    duplicated: int
    ended: list[int] = field(default_factory=list)
    """How the applications ended: 0, 1 for a failed query, -9 for killed ones."""
    rows: int = ROWS


class Probe:
    """A source stream on one server, and applications of one connector after the other."""

    def __init__(self, config: PravegaConfig, client: PravegaClient, folder: Path) -> None:
        self.config, self.client, self.folder = config, client, folder
        self.scope = f"peer{time.time_ns()}"
        self.source = Source(client, StreamName(self.scope, "source"), ROWS)

    def run(self, connector: Connector, case: str) -> Result:
        """One run of a case; the fault has been made, or an AssertionError is raised."""
        for _ in range(_TRIES):
            copy = Copy(self, connector)
            if CASES[case][1](copy):
                return copy.result(case)
        raise AssertionError(f"{connector.name}: {case} was missed {_TRIES} times")


class Copy:
    """A target stream, a checkpoint, and the applications that copy the source to it."""

    def __init__(self, probe: Probe, connector: Connector) -> None:
        self._probe, self._connector = probe, connector
        self.target = StreamName(probe.scope, f"target-{uuid.uuid4().hex[:12]}")
        self.folder = probe.folder / self.target.stream
        self.folder.mkdir(parents=True)
        self.before, self.ended = 0, list[int]()
        probe.client.create_stream(self.target, ScalingPolicy.fixed(3))

    def start(self, *, slow_s: float = 0.0, **options: str) -> subprocess.Popen[bytes]:
        number = len(self.ended) + 1
        file = self.folder / f"spec-{number}.json"
        spec = {
            "controller": self._probe.config.controller,
            "scope": self.target.scope,
            "source": self._probe.source.stream.stream,
            "target": self.target.stream,
            "checkpoint": str(self.folder / "checkpoint"),
            "slow_s": slow_s,
            "options": options,
            "conf": {"spark.ui.enabled": "false", "spark.log.level": "ERROR", **self._connector.conf},
        }
        file.write_text(json.dumps(spec))
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": self._connector.python}
        with (self.folder / f"job-{number}.log").open("wb") as log:
            return subprocess.Popen(
                [self._connector.python, str(_JOB), str(file)],
                cwd=self.folder,
                env={**environment, **self._connector.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, **more: Any) -> int:
        """Run an application to its end; its exit code."""
        self.ended.append(self.start(**more).wait(_SECONDS))
        return self.ended[-1]

    def run_until_seen(self) -> None:
        """Kill an application, all of it, when a reader gets the first events from the target."""
        with self._probe.client.follow(self.target, start=self._probe.client.head(self.target)) as reader:
            process = self.start()
            deadline = time.monotonic() + _SECONDS
            while reader.poll(0.5) is None and process.poll() is None:
                assert time.monotonic() < deadline, f"nothing was written: {self.log()}"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self.ended.append(process.wait())

    def log(self) -> str:
        """The end of what the newest application has said."""
        newest = max(self.folder.glob("job-*.log"), key=lambda log: log.stat().st_mtime)
        return newest.read_text(errors="replace")[-2000:]

    def logged(self) -> bool:
        """Whether Spark's commit log has the batch."""
        return (self.folder / "checkpoint" / "commits" / "0").exists()

    def forget_commit(self) -> None:
        for name in ("0", ".0.crc"):
            (self.folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)

    def count(self) -> Counter[bytes]:
        """What the target holds when nothing more comes."""
        found = [Counter(self._probe.client.read(self.target))]

        def steady() -> bool:
            time.sleep(2.0)
            found.append(Counter(self._probe.client.read(self.target)))
            return found[-1] == found[-2]

        await_that("the target is at rest", steady)
        return found[-1]

    def result(self, case: str) -> Result:
        found, wanted = self.count(), {b"%d" % number for number in self._probe.source.numbers}
        return Result(
            self._connector.name,
            case,
            before=self.before,
            read_back=found.total(),
            lost=len(wanted - found.keys()),
            duplicated=found.total() - len(found),
            ended=self.ended,
        )


# ---- the cases: each makes its fault, restarts, and tells whether the fault came in time -----------------------------


def _killed(copy: Copy) -> bool:
    copy.run_until_seen()
    assert copy.ended[-1] != 1, f"it failed: {copy.log()}"
    copy.before = copy.count().total()
    if copy.logged():
        return False
    assert copy.run() == 0, f"the restart failed: {copy.log()}"
    return True


def _commit_log_lost(copy: Copy) -> bool:
    assert copy.run() == 0, f"it failed: {copy.log()}"
    assert copy.logged()
    copy.before = copy.count().total()
    copy.forget_commit()
    assert copy.run() == 0, f"the restart failed: {copy.log()}"
    return True


def _slow_task(copy: Copy) -> bool:
    code = copy.run(slow_s=25.0, transaction_timeout_ms="10000", commit_timeout_ms="9000")
    copy.before = copy.count().total()
    if code:
        assert copy.run(transaction_timeout_ms="120000", commit_timeout_ms="100000") == 0, (
            f"the restart failed: {copy.log()}"
        )
    return True


CASES: Final[dict[str, tuple[str, Callable[[Copy], bool]]]] = {
    "killed": ("`kill -9` when readers see the first rows of the batch; restarted", _killed),
    "commit-log": ("Spark's commit-log entry is lost after the commit; restarted", _commit_log_lost),
    "slow-task": ("lease of 10 s, one of two tasks takes 25 s longer; restarted if it failed", _slow_task),
}


def ours() -> Connector:
    """The connector of this checkout."""
    root = Path(__file__).parents[3]
    return Connector("pravega-serde", sys.executable, environment={"PYTHONPATH": str(root)})

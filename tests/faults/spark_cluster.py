"""A standalone Spark cluster of two hosts: Spark starts a second attempt of a task only on another host."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from pravega_connector.tcp_ports import free_ports
from tests.faults.processes import Process, await_that

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
#: On Linux every address of 127/8 is this machine, and to Spark a separate host.
HOSTS: Final = ("127.0.0.2", "127.0.0.3")
#: Seconds until a process of Spark is ready: on a busy machine minutes.
_START: Final = 300.0


class SparkCluster:
    """A master and two workers of one core each; ``environment`` is for their Python processes.

    ``spark`` is the folder of Spark's installation. Context manager.
    """

    def __init__(
        self, folder: Path, environment: dict[str, str], *, memory: str = "700m", spark: Path | None = None
    ) -> None:
        (self._port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{self._port}"
        self._folder, self._environment, self._memory = folder, environment, memory
        self._spark = spark or Path(pyspark.__file__).parent
        self._processes: dict[str, Process] = {}

    def __enter__(self) -> Self:
        self._start("master", "127.0.0.1", _MASTER, "--port", str(self._port))
        await_that("the master listens", self._listens, _START)
        for host in HOSTS:
            self.start_worker(host)
        for host in HOSTS:
            self.await_worker(host)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in reversed(self._processes.values()):
            process.close()

    def start_worker(self, host: str) -> None:
        """Start a worker, or another one if it was killed."""
        self._start(host, host, _WORKER, "--cores", "1", "--memory", self._memory, self.master)

    def await_worker(self, host: str) -> None:
        await_that(f"worker {host} is registered", lambda: self._registered(host), _START)

    def kill(self, host: str) -> list[int]:
        """Kill a worker with its executors and their Python processes; return their pids."""
        process = self._processes.pop(host)
        killed = process.processes()
        process.kill()
        self._log(host).rename(self._log(f"{host}-killed"))
        return killed

    def _start(self, name: str, host: str, main: str, *arguments: str) -> None:
        local = {"SPARK_LOCAL_IP": host, "SPARK_WORKER_DIR": str(self._folder / name), "SPARK_HOME": str(self._spark)}
        command = [self._spark / "bin" / "spark-class", main, "--host", host, "--webui-port", "0", *arguments]
        # Executors are children of a worker: they have its environment and its session.
        environment = {"PYSPARK_PYTHON": sys.executable, **self._environment, **local}
        self._processes[name] = Process(command, self._log(name), environment)

    def _log(self, name: str) -> Path:
        return self._folder / f"spark-{name}.log"

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def _registered(self, name: str) -> bool:
        return b"Successfully registered" in self._log(name).read_bytes()

"""A standalone Spark cluster of two hosts: a slow task gets a rival only on another host than its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from connector.local.launch import free_ports
from tools.faults.exactly_once._scene import await_that

__all__ = ["SparkCluster"]

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
#: On Linux every address of 127/8 is this machine, and to Spark a host of its own.
_HOSTS: Final = ("127.0.0.2", "127.0.0.3")


class SparkCluster:
    """A master and two workers of one core each; ``environment`` is what their Python processes are to see."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        (self._port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{self._port}"
        self._folder, self._environment = folder, environment
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._start("master", "127.0.0.1", _MASTER, "--port", str(self._port))
        await_that("the master listens", self._listens)
        for host in _HOSTS:
            self._start(host, host, _WORKER, "--cores", "1", "--memory", "700m", self.master)
        for host in _HOSTS:
            await_that(f"worker {host} is registered", lambda name=host: self._registered(name))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def _start(self, name: str, host: str, main: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        local = {"SPARK_LOCAL_IP": host, "SPARK_WORKER_DIR": str(self._folder / name), "SPARK_HOME": str(home)}
        # Executors are children of a worker, and get its environment.
        with self._log(name).open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(home / "bin" / "spark-class"), main, "--host", host, "--webui-port", "0", *arguments],
                    cwd=self._folder,
                    env={**os.environ, **self._environment, **local, "PYSPARK_PYTHON": sys.executable},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

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

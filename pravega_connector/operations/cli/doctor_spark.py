"""Checks of ``pravega-serde doctor --spark``: the driver's session, the Python that Spark starts, and the executors.

A session has no deadline, so it runs in a child process.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pravega_connector.operations.cli.doctor_cluster import Cluster, clock_finding
from pravega_connector.operations.cli.doctor_machine import Finding, free_space, package_versions
from pravega_connector.operations.cli.exit_codes import ExitCode

_DEPLOY: Final = "install the same packages for the Python of all executors: see docs/operate/deploy.md"
# Seconds that a task occupies its core, so that other executors get tasks too.
_TASK_SECONDS: Final = 0.3
_MOST_TASKS: Final = 64
_SHOWN_CHARACTERS: Final = 400
#: Packages that must have one version on the driver and the executors.
_COMPARED: Final = ("pravega-serde", "pyarrow", "grpcio", "protobuf", "numpy", "pandas", "msgspec")


def check_spark(cluster: Cluster, master: str | None, seconds: float, timeout: float) -> Iterator[Finding]:
    """Check Spark in a child process, which is killed after ``seconds``."""
    if "pyspark" not in package_versions():
        yield Finding(
            check="spark",
            status="failed",
            detail="pyspark is not installed in this Python",
            remedy="run pip install 'pravega-serde[spark]', or run the command with the Python of your driver",
        )
        return
    addresses = [*cluster.config.endpoints, *cluster.stores]
    task = {
        "master": master,
        "timeout": timeout,
        "addresses": addresses,
        "files": [file for file in (cluster.config.tls_ca_file,) if file],
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, "-m", __name__, json.dumps(task), str(answer)]
        with Path(folder, "errors").open("w+b") as errors:
            child = subprocess.Popen(
                command, stdout=errors, stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True
            )
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                yield Finding(
                    check="spark",
                    status="failed",
                    detail=f"the session and its job did not complete within {seconds:g} s",
                    remedy="check that the master has free cores, or pass a longer --spark-timeout",
                    code=ExitCode.UNAVAILABLE,
                )
                return
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
            if not answer.exists():
                errors.seek(0)
                said = _reason(errors.read().decode(errors="replace"), "Error", "Exception")
                yield Finding(
                    check="spark",
                    status="failed",
                    detail=f"the session did not start: {said or 'no output'}",
                    remedy="check JAVA_HOME (Java 17 or newer), the master and Spark's configuration",
                )
                return
        yield from _judged(json.loads(answer.read_text()), len(addresses))


# ---- in the child ----


def _report(task: dict[str, Any]) -> dict[str, Any]:
    """Start a session; return the data about driver and executors."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - not needed by the parent

    builder = SparkSession.builder.appName("pravega-serde doctor").config("spark.ui.showConsoleProgress", "false")
    session = (builder if task["master"] is None else builder.master(task["master"])).getOrCreate()
    context = session.sparkContext
    found: dict[str, Any] = {
        "version": session.version,
        "master": context.master,
        "java": context._jvm.java.lang.System.getProperty("java.version"),
        "driver": sys.executable,
        "versions": package_versions(),
        "found": False,
    }
    try:
        session.read.format("pravega").load()
    except Exception as error:  # noqa: BLE001 - Py4J raises its own type for a missing source
        found["found"] = "[PRAVEGA-" in str(error)  # the data source lacks its options
        found["lookup"] = _reason(str(error), "[")
    count = max(1, min(2 * context.defaultParallelism, _MOST_TASKS))
    began = time.time()
    try:
        probed = context.parallelize(range(count), count).mapPartitions(_probe(task)).collect()
    except Exception as error:  # noqa: BLE001 - Py4J and Spark raise many types
        found["failed"] = _reason(str(error), "Error", "Exception")
        probed = []
    found["began"], found["ended"] = began, time.time()
    found["executors"] = list({(each["host"], each["python"]): each for each in probed}.values())
    session.stop()
    return found


def _reason(text: str, *words: str) -> str:
    """Return the first line with one of the words that is not from a stack trace, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("\tat ", "\t..."))]
    found = next((line for line in lines if any(word in line for word in words)), lines[-1] if lines else "")
    return found.lstrip(": ")[:_SHOWN_CHARACTERS]


def _probe(task: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the function of a task. It is pickled with its contents: an executor may lack this package."""
    addresses, files, timeout = task["addresses"], task["files"], task["timeout"]
    compared, seconds = _COMPARED, _TASK_SECONDS

    def probe(_rows: Any) -> Any:
        now, end = time.time(), time.monotonic() + seconds
        versions, unreachable = {}, []
        for name in compared:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue

        def reach(host: str, port: int) -> None:
            try:
                socket.create_connection((host, port), timeout).close()
            except (OSError, UnicodeError) as error:
                unreachable.append([host, port, str(error)])

        threads = [threading.Thread(target=reach, args=each, daemon=True) for each in addresses]
        for thread in threads:
            thread.start()
        limit = time.monotonic() + timeout + 1
        for thread, (host, port) in zip(threads, addresses, strict=True):
            thread.join(max(0.0, limit - time.monotonic()))
            if thread.is_alive():
                unreachable.append([host, port, "the name does not resolve in time"])
        try:
            folder = tempfile.gettempdir()
            free: int | None = shutil.disk_usage(folder).free
        except OSError as error:
            folder, free = str(error), None
        time.sleep(max(0.0, end - time.monotonic()))
        yield {
            "host": socket.gethostname(),
            "python": sys.executable,
            "python_version": platform.python_version(),
            "versions": versions,
            "time": now,
            "folder": folder,
            "free": free,
            "unreachable": unreachable,
            "missing": [file for file in files if not os.access(file, os.R_OK)],
        }

    return probe


# ---- findings ----


def _judged(found: dict[str, Any], addresses: int) -> Iterator[Finding]:
    yield Finding(
        check="spark",
        status="ok",
        detail=f"Spark {found['version']} at {found['master']}, Java {found['java']}",
        values={"version": found["version"], "master": found["master"], "java": found["java"]},
    )
    yield _lookup(found)
    if "failed" in found:
        yield Finding(
            check="executor",
            status="failed",
            detail=f"a job with Python tasks failed: {found['failed']}",
            remedy="set PYSPARK_PYTHON, or spark.pyspark.python with spark-submit, to a Python of the driver's version "
            "that exists on all executors",
        )
    for each in found["executors"]:
        yield from _executor(each, found, addresses)


def _lookup(found: dict[str, Any]) -> Finding:
    """Return the finding for the search of Spark's JVM for the data source."""
    python = os.environ.get("PYSPARK_DRIVER_PYTHON") or os.environ.get("PYSPARK_PYTHON") or "python3"
    python = shutil.which(python) or python
    if found["found"]:
        return Finding(check="data source", status="ok", detail=f"format('pravega') is found by {python}")
    return Finding(
        check="data source",
        status="failed",
        detail=f"Spark does not find format('pravega'): it searches with {python}, and your program runs "
        f"{found['driver']} ({found['lookup']})",
        remedy=_use_python(found),
        values={"python": python, "driver_python": found["driver"]},
    )


def _use_python(found: dict[str, Any]) -> str:
    return (
        "pass the builder to pyspark_pravega.configure, activate the environment, or set "
        f"PYSPARK_PYTHON={found['driver']}"
    )


def _executor(each: dict[str, Any], found: dict[str, Any], addresses: int) -> Iterator[Finding]:
    where = each["host"]
    differing = [
        f"{name} {each['versions'].get(name, 'missing')} (driver {version})"
        for name, version in found["versions"].items()
        if name in _COMPARED and each["versions"].get(name) != version
    ]
    lacks = "pravega-serde" not in each["versions"]
    yield Finding(
        check="executor",
        status="failed" if lacks else "warning" if differing else "ok",
        subject=where,
        detail=f"Python {each['python_version']} at {each['python']}, "
        + (f"other packages than the driver: {', '.join(differing)}" if differing else "the driver's packages"),
        remedy="" if not differing else _use_python(found) if found["master"].startswith("local") else _DEPLOY,
        values={"python": each["python"], "python_version": each["python_version"], "versions": each["versions"]},
    )
    for host, port, reason in each["unreachable"]:
        yield Finding(
            check="executor",
            status="failed",
            subject=where,
            detail=f"no connection to {host}:{port}: {reason}",
            remedy="make the name resolve and the port reachable on every executor, or change the address that the "
            "segment store announces (pravegaservice.service.published.host.nameOrIp)",
            code=ExitCode.UNAVAILABLE,
        )
    if addresses and not each["unreachable"]:
        detail = f"reaches all {addresses} controllers and segment stores"
        yield Finding(check="executor", status="ok", subject=where, detail=detail)
    for file in each["missing"]:
        yield Finding(
            check="executor",
            status="failed",
            subject=where,
            detail=f"cannot read {file}, the file of tls_ca_file",
            remedy="put the file at this path on every executor",
        )
    ahead = max(each["time"] - found["ended"], 0.0) + min(each["time"] - found["began"], 0.0)
    yield clock_finding(f"of executor {where}", ahead, 0.0)
    yield free_space("free space", each["folder"], each["free"], subject=f"of executor {where}")


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(_report(json.loads(sys.argv[1]))))

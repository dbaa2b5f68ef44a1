"""Start of the fork server for a Spark application, and registration of a data source that uses it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pravega_connector.spark.versions import python_function

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from pravega_connector.spark.data_source import PravegaDataSource

_PACKAGE: Final = "pravega_connector.spark.fork_server"
_FOLDER: Final = Path(__file__).parent
_PROXY: Final = _FOLDER / "proxy.py"
#: Seconds for the server's imports, and for its first fork.
_TIMEOUT: Final = 60.0
_MAX_OUTPUT: Final = 64 * 1024
# What the kernel reads of the first line of a script.
_MAX_INTERPRETER: Final = 120
_MAX_SOCKET_PATH: Final = 100
#: Modules with threads: BLAS of numpy, and the allocator of Arrow. A process with threads cannot be forked safely.
_NO_THREADS: Final = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


class UnavailableError(Exception):
    """Reason why Spark's Python processes start without a fork server."""


@dataclass(frozen=True)
class SparkPython:
    """Python that the JVM of a driver starts, and what its processes inherit."""

    path: str
    version: str
    """Version of Spark."""
    environment: dict[str, str]
    folder: str
    spark_path: str
    """Entries that Spark puts first in ``PYTHONPATH``."""


class ForkServer:
    """Fork server that has been started, and has forked a process."""

    executable: str
    """File that Spark starts as its Python."""

    def __init__(self, python: SparkPython) -> None:
        """Start a fork server, and wait until a process has come from it. Raises UnavailableError."""
        folder = Path(tempfile.mkdtemp(prefix="pravega-python-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.executable = _write_executable(folder, python)
            self._process = _start(folder, python)
            _await_ready(self._process)
            _probe(self.executable, python)
        except (OSError, UnavailableError) as error:
            self.stop()
            shutil.rmtree(folder, ignore_errors=True)
            raise UnavailableError(error) from error

    @property
    def is_alive(self) -> bool:
        """False after the server was killed. Processes then start without it."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the server. Its forks continue."""
        if self._process is None:
            return
        for file in (self._process.stdin, self._process.stdout):
            assert file is not None
            with suppress(OSError):
                file.close()
        try:
            self._process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_servers: Final[dict[SparkContext, ForkServer]] = {}  # one at most: a driver has one application at a time


def register(spark: SparkSession, source: type[PravegaDataSource]) -> None:
    """Register a data source whose Python processes are forks of the fork server.

    Start the server if the application has none. Raises UnavailableError, and registers nothing, if processes can only
    start without it.
    """
    executable = _executable(spark)
    jvm = spark.sparkContext._jvm
    usual = python_function(spark.sparkContext, source)
    function = jvm.SimplePythonFunction(
        usual.command(),
        usual.envVars(),
        usual.pythonIncludes(),
        executable,
        usual.pythonVer(),
        usual.broadcastVars(),
        usual.accumulator(),
    )
    python = jvm.org.apache.spark.sql.execution.datasources.v2.python
    spark._jsparkSession.dataSource().registerPython(source.name(), python.UserDefinedPythonDataSource(function))


def _executable(spark: SparkSession) -> str:
    """Return the executable for a session's data source; raise UnavailableError."""
    if sys.platform != "linux":
        raise UnavailableError("it needs Linux")
    if not hasattr(spark, "_jsparkSession"):
        raise UnavailableError("this is a session of Spark Connect")
    context = spark.sparkContext
    if not context.master.startswith("local") or context.master.startswith("local-cluster"):
        raise UnavailableError(f"it needs a local master, not {context.master}")
    if context not in _servers or not _servers[context].is_alive:
        while _servers:
            _servers.popitem()[1].stop()
        _servers[context] = ForkServer(_python_of(context))
    return _servers[context].executable


def _python_of(context: SparkContext) -> SparkPython:
    """Return the Python that the JVM would start, with its environment."""
    jvm = context._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    if os.getsid(pid) != os.getsid(0):
        raise UnavailableError("the JVM is in another session of processes than the driver")
    inherited: Mapping[str, str] = jvm.java.lang.System.getenv()
    environment = {
        **inherited,
        **context.environment,
        "PYTHONUNBUFFERED": "YES",
        "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
    }
    spark_path = jvm.PythonUtils.sparkPythonPath()
    paths = (spark_path, context.environment.get("PYTHONPATH", ""), inherited.get("PYTHONPATH", ""))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    path = shutil.which(context.pythonExec, path=environment.get("PATH"))
    if path is None or not os.path.isabs(path):
        raise UnavailableError(f"the path of Spark's Python is relative: {context.pythonExec}")
    if len(path) > _MAX_INTERPRETER or any(character.isspace() for character in path):
        raise UnavailableError(f"the path of Spark's Python is too long, or has a space: {path}")
    return SparkPython(
        path, context.version, environment, str(jvm.java.lang.System.getProperty("user.dir")), spark_path
    )


def _without_spark_path(python: SparkPython) -> dict[str, str]:
    """Return the environment of a process without the entries that Spark adds."""
    path = python.environment["PYTHONPATH"].removeprefix(python.spark_path).removeprefix(os.pathsep)
    others = {name: value for name, value in python.environment.items() if name != "PYTHONPATH"}
    return others | ({"PYTHONPATH": path} if path else {})


def _write_executable(folder: Path, python: SparkPython) -> str:
    """Write the file that Spark starts as its Python: it runs the proxy."""
    socket = str(folder / "socket")
    if not _PROXY.is_file():
        raise UnavailableError(f"the package is in an archive: {_PROXY}")
    if len(socket) > _MAX_SOCKET_PATH:
        raise UnavailableError(f"the path of the temporary folder is too long: {folder}")
    executable = folder / "python"
    executable.write_text(
        f"#!{python.path} -IS\n"
        "import sys\n"
        f"sys.path.append({str(_FOLDER)!r})\n"
        f"from {_PROXY.stem} import main\n"
        f"main({python.path!r}, {python.spark_path!r}, {socket!r})\n"
    )
    executable.chmod(0o700)
    return str(executable)


def _start(folder: Path, python: SparkPython) -> subprocess.Popen[bytes]:
    """Start a server that ends when its standard input is closed."""
    return subprocess.Popen(
        [python.path, "-m", f"{_PACKAGE}.server", str(_FOLDER), python.version, python.spark_path, str(folder)],
        env=_without_spark_path(python) | _NO_THREADS,
        cwd=python.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until the server serves requests; raise UnavailableError with the last line of its output."""
    assert process.stdout is not None
    output = b""
    deadline = time.monotonic() + _TIMEOUT
    ready = select.poll()
    ready.register(process.stdout, select.POLLIN)
    while len(output) < _MAX_OUTPUT:
        if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise UnavailableError(f"its modules are not imported after {_TIMEOUT:.0f} s")
        received = os.read(process.stdout.fileno(), _MAX_OUTPUT)
        output += received
        lines = output.decode(errors="replace").splitlines()
        if "ready" in lines:
            process.stdout.close()
            return
        if not received:
            raise UnavailableError(lines[-1] if lines else f"it ended with code {process.wait()}")
    raise UnavailableError("it printed too much")


def _probe(executable: str, python: SparkPython) -> None:
    """Start a process as Spark does; raise UnavailableError if it is not a fork."""
    with subprocess.Popen(
        [executable, "-m", f"{_PACKAGE}.probe"],
        env=python.environment,
        cwd=python.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        try:
            output, errors = started.communicate(timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            started.kill()
            raise UnavailableError(f"its first fork did not end after {_TIMEOUT:.0f} s") from None
    if started.returncode != 0:
        lines = errors.decode(errors="replace").splitlines() or [f"exit code {started.returncode}"]
        raise UnavailableError(f"its first fork failed: {lines[-1]}")
    if output.strip() == str(started.pid).encode():
        raise UnavailableError("it refused a fork: processes of the JVM would differ from it")

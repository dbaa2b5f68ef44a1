"""Process that has imported the modules of Spark's Python processes, and forks them.

The driver starts it, and it ends with the driver: the driver holds the other end of its standard input. It listens on a
socket in a private folder. For each request of a :mod:`proxy <pravega_connector.spark.fork_server.proxy>` it forks a
watcher, and the watcher forks the process. The watcher kills its process if the proxy has died, and reports its exit
code to the proxy. A process and its watcher do not depend on the server any more.

A fork is what ``python -m MODULE`` would be, with its modules imported already:

- The server has one thread, no connection and no open file, or it does not serve. So locks and threads are as in a new
  process. BLAS and Arrow's allocator start no background threads in a fork.
- Interpreter, working folder, environment, user, session, priority, cores and hard limits are equal, or it refuses.
  Variables that Spark sets for each process may differ.
- The fork adopts process group, umask, soft limits, signals, environment, arguments and standard files.
- ``random`` has a new seed in each fork. The seed of hashes is Spark's, ``PYTHONHASHSEED``.
- Objects of the imported modules are excluded from garbage collection.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import runpy
import select
import shutil
import signal
import socket
import struct
import sys
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pravega_connector.spark.fork_server import proxy

_PROBE: Final = "pravega_connector.spark.fork_server.probe"
#: Seconds until the files of the folder get a new time, because programs that clean temporary folders delete old files.
_REFRESH: Final = 3600.0
_IMPORTED: Final = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyarrow.compute",
    "pravega_connector.spark.data_source",
    "pravega_connector.spark.source.offset_planner",
    "pravega_connector.spark.source.readers",
    "pravega_connector.spark.sink.writers",
)


@dataclass(frozen=True)
class _Request:
    """Process that a proxy requests."""

    arguments: list[str]
    properties: dict[str, Any]
    standard_files: list[int]


def main() -> None:
    """Serve until the driver ends; in a fork, run its module.

    Arguments: the folder of this package in the driver, Spark's version and path, and the folder of the socket.
    """
    package, version, spark_path, folder = sys.argv[1:]
    problem = _import_modules(package, version, spark_path) or _obstacle()
    if problem is not None:
        sys.exit(problem)
    gc.collect()
    gc.freeze()
    request = _serve(Path(folder))
    if request is not None:  # this is a fork
        _adopt(request)
        _run(request.arguments[1])


def _import_modules(package: str, version: str, spark_path: str) -> str | None:
    """Import the modules; return the reason why processes need others, or None."""
    try:
        for name in _IMPORTED:
            importlib.import_module(name)
    except ImportError as error:
        return f"its Python does not have the packages: {error}"
    import pyspark  # noqa: PLC0415 - may be absent

    if pyspark.__version__ != version:
        return f"its Python has PySpark {pyspark.__version__}, and Spark is {version}"
    found = Path(__file__).parent
    if str(found) != package:
        return f"its Python has another pravega_connector than the driver: {found}"
    for entry in spark_path.split(os.pathsep):
        if entry.endswith("pyspark.zip") and (module := _different_module(entry)) is not None:
            return f"its Python has another PySpark than Spark: {module} differs in {entry}"
    return None


def _different_module(archive: str) -> str | None:
    """Return the name of an imported module of PySpark that is different in Spark's archive, or None."""
    try:
        sums = {each.filename: each.CRC for each in zipfile.ZipFile(archive).infolist()}
    except FileNotFoundError:
        return None
    home = Path(sys.modules["pyspark"].__file__ or "").parent.parent
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "pyspark" and (spec := module.__spec__) is not None and spec.origin is not None:
            content = spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
            if sums.get(str(Path(spec.origin).relative_to(home))) != zlib.crc32(content):
                return name
    return None


def _obstacle() -> str | None:
    """Return the reason why this process cannot be forked safely, or None."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return "the system has no descriptors of processes"
    threads = [Path(f"/proc/self/task/{task}/comm").read_text().strip() for task in os.listdir("/proc/self/task")]
    if len(threads) > 1:
        return f"its modules start threads: {', '.join(threads)}"
    files = [os.readlink(f"/proc/self/fd/{number}") for number in _open_files() if number > 2]
    if files:
        return f"its modules keep files open: {', '.join(files)}"
    return None


def _open_files() -> list[int]:
    numbers = map(int, os.listdir("/proc/self/fd"))
    return [number for number in numbers if os.path.lexists(f"/proc/self/fd/{number}")]


def _serve(folder: Path) -> _Request | None:
    """Fork a watcher for each request. Return the request in a fork that must run it, and None when the driver ends."""
    os.umask(0o077)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / "socket"))
    listener.listen(128)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # watchers leave no zombies
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt in a terminal is for the driver
    fixed = json.loads(json.dumps(proxy.fixed_properties()))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    driver = os.dup(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.close(null)
    ready = select.poll()
    ready.register(driver, select.POLLIN)
    ready.register(listener, select.POLLIN)
    while True:
        events = dict(ready.poll(_REFRESH * 1000))
        if driver in events:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        if listener.fileno() not in events:
            _refresh(folder)
            continue
        connection, _ = listener.accept()
        with suppress(OSError):  # the machine has no room: the proxy becomes the process
            if os.fork() == 0:
                break
        connection.close()
    listener.close()
    os.close(driver)
    return _watch(connection, fixed)


def _refresh(folder: Path) -> None:
    with suppress(OSError):
        for path in (folder, *folder.iterdir()):
            os.utime(path)


def _watch(connection: socket.socket, fixed: dict[str, Any]) -> _Request:
    """Fork the process that the proxy requests, and end with it. Return only in that process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        request = _accept(connection, fixed)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        request = None
    if request is None:
        os._exit(0)
    fork = os.fork()
    if fork == 0:
        connection.close()
        return request
    try:
        for descriptor in request.standard_files:
            os.close(descriptor)
        _report_end(connection, fork)
    finally:
        os._exit(0)


def _accept(connection: socket.socket, fixed: dict[str, Any]) -> _Request | None:
    """Receive a request, and return it after the proxy's word to start; None if it is refused or withdrawn."""
    connection.settimeout(proxy.TIMEOUT)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    received, files, flags, _ = socket.recv_fds(connection, proxy.MAX_REQUEST, 3)
    if user != os.geteuid() or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(files) != 3:
        return None
    content = json.loads(received)
    arguments = content["arguments"]
    known = arguments[0] == "-m" and (arguments[1].startswith("pyspark.") or arguments[1] == _PROBE)
    if not known or content["fixed"] != fixed:
        return None
    connection.send(proxy.ACCEPTED)
    if connection.recv(len(proxy.START)) != proxy.START:
        return None
    return _Request(arguments, content["settable"], files)


def _report_end(connection: socket.socket, fork: int) -> None:
    """Wait for the end of a fork, and send its exit code, or the negative number of its signal.

    Kill the fork if its proxy has died.
    """
    descriptor = os.pidfd_open(fork)
    with suppress(OSError):
        socket.send_fds(connection, [proxy.STARTED], [descriptor])
    ready = select.poll()
    ready.register(connection, select.POLLIN)
    ready.register(descriptor, select.POLLIN)
    if descriptor not in dict(ready.poll()):
        os.kill(fork, signal.SIGKILL)
    _, status = os.waitpid(fork, 0)
    with suppress(OSError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _adopt(request: _Request) -> None:
    """Give this fork the properties of its proxy."""
    properties = request.properties
    for descriptor, given in enumerate(request.standard_files):
        os.dup2(given, descriptor)
        os.close(given)
    os.setpgid(0, properties["group"])
    os.umask(properties["umask"])
    for limit, soft in zip(proxy.LIMITS, properties["soft_limits"], strict=True):
        resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        wanted = signal.SIG_IGN if number in properties["ignored"] else default
        if signal.getsignal(number) not in (wanted, None):
            signal.signal(number, wanted)
    os.environ.clear()
    os.environ.update(properties["environment"])
    sys.orig_argv = [sys.executable, *request.arguments]
    sys.argv = request.arguments[1:]
    signal.pthread_sigmask(signal.SIG_SETMASK, properties["blocked"])


def _run(name: str) -> None:
    """Run a module as ``python -m`` does, which expects that it is not imported yet."""
    parent, _, child = name.rpartition(".")
    if sys.modules.pop(name, None) is not None:
        delattr(sys.modules[parent], child)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

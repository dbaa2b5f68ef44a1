"""Proxy of a Python process of Spark: it requests the process from the fork server, and represents it.

Spark's JVM starts the proxy as its Python, waits for it and kills it. The proxy passes on arguments, environment and
standard files. It then forwards signals to the fork, and ends as the fork ends. Without the fork server, or if the
server refuses, it becomes the Python process itself.

It runs as ``python -IS``, so that it starts fast, and imports only the standard library.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, Final, NoReturn

#: Longest request in bytes.
MAX_REQUEST: Final = 128 * 1024
#: Seconds to wait for the other side, until the fork runs.
TIMEOUT: Final = 5.0
# Answers of the server, and the proxy's word after which it does not become the process itself.
ACCEPTED: Final = b"accepted"
START: Final = b"start"
STARTED: Final = b"started"

#: Variables that Spark sets for each process. No module reads them while it is imported.
_OF_A_PROCESS: Final = ("SPARK_", "PYSPARK_", "PYTHON_")
# Threads of BLAS and Arrow's allocator. The server must not start any.
_OF_THE_SERVER: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JE_ARROW_MALLOC_CONF")
_FORWARDED: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
LIMITS: Final = sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})


def main(python: str, spark_path: str, address: str) -> NoReturn:
    """Run the arguments of this process with ``python``, in a fork of the server at ``address`` if possible.

    ``spark_path`` is left out of ``PYTHONPATH``: the entries that Spark adds, among them ``pyspark.zip``.
    """
    leave_out(spark_path)
    arguments = sys.argv[1:]
    fork = _fork(arguments, address)
    if fork is None:
        os.execv(python, [python, *arguments])  # noqa: S606 - Spark's command
    _represent(*fork)


def leave_out(spark_path: str) -> None:
    """Remove the entries of Spark from the start of ``PYTHONPATH`` in the environment of this process."""
    path = os.environ.get("PYTHONPATH", "")
    if path == spark_path:
        del os.environ["PYTHONPATH"]
    elif path.startswith(spark_path + os.pathsep):
        os.environ["PYTHONPATH"] = path.removeprefix(spark_path + os.pathsep)


def fixed_properties() -> dict[str, Any]:
    """Return the properties of this process that a fork cannot change later. The server's must be equal."""
    return {
        "environment": {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_OF_A_PROCESS) and name not in _OF_THE_SERVER
        },
        "folder": os.getcwd(),
        "session": os.getsid(0),
        "user": [*os.getresuid(), *os.getresgid(), *sorted(os.getgroups())],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": sorted(os.sched_getaffinity(0)),
        "hard_limits": [resource.getrlimit(limit)[1] for limit in LIMITS],
    }


def _settable_properties() -> dict[str, Any]:
    """Return the properties of this process that the fork adopts."""
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        "environment": dict(os.environ),
        "group": os.getpgrp(),
        "umask": mask,
        "soft_limits": [resource.getrlimit(limit)[0] for limit in LIMITS],
        "ignored": [int(number) for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN],
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    }


def _fork(arguments: list[str], address: str) -> tuple[socket.socket, int] | None:
    """Return the connection to the fork's watcher and the fork's descriptor; None if there is no fork."""
    content = {"arguments": arguments, "fixed": fixed_properties(), "settable": _settable_properties()}
    request = json.dumps(content).encode()
    if len(request) > MAX_REQUEST:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with suppress(OSError):
        connection.settimeout(TIMEOUT)
        connection.connect(address)
        socket.send_fds(connection, [request], [0, 1, 2])
        if connection.recv(len(ACCEPTED)) == ACCEPTED:
            # From here on the fork may run. If the connection is closed, its watcher kills it.
            connection.settimeout(None)
            connection.send(START)
            answer, descriptors, _, _ = socket.recv_fds(connection, len(STARTED), 1)
            if answer == STARTED:
                return connection, descriptors[0]
    connection.close()
    return None


def _represent(connection: socket.socket, fork: int) -> NoReturn:
    """Forward signals to the fork, and end with its exit code or by its signal."""
    with open(os.devnull, "r+b", buffering=0) as null:  # only the fork holds the standard files
        for descriptor in range(3):
            os.dup2(null.fileno(), descriptor)

    def forward(number: int, _frame: object = None) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(fork, number)

    # A signal right before a system call does not interrupt it. So the wait is for the connection or a signal's byte.
    arrived, sent = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
    for number in _FORWARDED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, forward)
    while connection.fileno() not in select.select([connection.fileno(), arrived], [], [])[0]:
        os.read(arrived, 512)
    status = connection.recv(16)
    if not status:  # the watcher was killed
        forward(signal.SIGKILL)
        sys.exit(1)
    code = int(status)
    if code < 0:
        _end_by(-code)
    sys.exit(code)


def _end_by(number: int) -> None:
    """End this process by a signal, without a core file: the fork has written it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError):  # SIGKILL
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)

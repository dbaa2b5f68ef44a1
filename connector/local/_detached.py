"""One server per user that outlives the command which started it.

The server's supervisor holds a lock file for as long as the server runs: a held lock is the only proof of life, since
process ids are given again. A state file tells the rest.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock

from connector.errors import LocalServerError
from connector.local._cache import cache_dir
from connector.local._server import ServerOptions, launch

__all__ = ["DetachedServer", "detached_server", "start_detached", "stop_detached"]

_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class DetachedServer:
    """A server in the background: its address, its supervisor's process id, when it was ready (Unix time), its log."""

    controller_uri: str
    pid: int
    started: float
    log: str


def start_detached(options: ServerOptions | None = None) -> DetachedServer:
    """Start a server that runs until :func:`stop_detached`, or return the one that runs already.

    Raises JavaNotFoundError, JarDownloadError, LocalServerError.
    """
    with _changing():
        running = detached_server()
        if running is not None:
            return running
        server = launch(options or ServerOptions(), lock=_alive_file())
        pid = server.process.supervisor_pid
        state = DetachedServer(server.controller_uri, pid, time.time(), str(server.log))
        # Written before the server is let go: one that nobody knows of could not be stopped.
        _write(state)
        server.process.detach()
        return state


def detached_server() -> DetachedServer | None:
    """The server that runs in the background, None if there is none."""
    if not _is_alive():
        return None
    try:
        return DetachedServer(**json.loads(_state_file().read_text()))
    except (OSError, ValueError, TypeError):
        # It is being started, and is nobody's yet.
        return None


def stop_detached() -> DetachedServer | None:
    """End the server in the background and wait until it is gone; None if there was none."""
    with _changing():
        state = detached_server()
        if state is not None:
            os.kill(state.pid, signal.SIGTERM)
            _await_end(state)
        _state_file().unlink(missing_ok=True)
        return state


def _await_end(state: DetachedServer) -> None:
    deadline = time.monotonic() + _STOP_SECONDS
    while _is_alive():
        if time.monotonic() > deadline:
            raise LocalServerError(f"the Pravega server (process {state.pid}) did not end in {_STOP_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def _changing() -> Iterator[None]:
    """One process at a time starts or stops."""
    _folder().mkdir(parents=True, exist_ok=True)
    with FileLock(_folder() / "change.lock"):
        yield


def _is_alive() -> bool:
    try:
        file = os.open(_alive_file(), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _write(state: DetachedServer) -> None:
    partial = _state_file().with_suffix(".partial")
    partial.write_text(json.dumps(asdict(state)))
    partial.replace(_state_file())


def _folder() -> Path:
    return cache_dir() / "local"


def _alive_file() -> Path:
    return _folder() / "server.lock"


def _state_file() -> Path:
    return _folder() / "server.json"

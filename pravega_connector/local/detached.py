"""Servers that outlive the command that started them: one Pravega and one schema registry per user.

The supervisor of a server holds a lock file while the server runs. Only a held lock proves that the server runs,
because the system reuses process ids. A state file has the address and the other attributes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pravega_connector.errors import LocalServerError
from pravega_connector.local.cluster import Cluster, ClusterOptions, ClusterProcess, cluster_processes, launch_cluster
from pravega_connector.local.file_lock import file_lock
from pravega_connector.local.jars import cache_dir
from pravega_connector.local.launch import Launched
from pravega_connector.local.server import RegistryOptions, ServerOptions, launch_registry, launch_server

_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class DetachedServer:
    """Server in the background.

    ``pid`` is the process id of its supervisor. ``started`` is the Unix time at which the server was ready. ``cluster``
    is the folder of a cluster, or None for a server with a single process.
    """

    uri: str
    pid: int
    started: float
    log: str
    cluster: str | None = None

    @property
    def processes(self) -> Mapping[str, ClusterProcess]:
        """Processes of a cluster by name; empty for a server with a single process."""
        return {} if self.cluster is None else cluster_processes(Path(self.cluster))


def start_detached(options: ServerOptions | ClusterOptions | None = None) -> DetachedServer:
    """Start a Pravega server that runs until :func:`stop_detached`, or return the running one.

    Raises JavaNotFoundError, JarDownloadError, LocalServerError.
    """
    if isinstance(options, ClusterOptions):
        return _PRAVEGA.start(lambda lock: launch_cluster(options, lock=lock))
    return _PRAVEGA.start(lambda lock: launch_server(options or ServerOptions(), lock=lock))


def start_detached_registry(options: RegistryOptions | None = None) -> DetachedServer:
    """Start a schema registry in the same way as :func:`start_detached`."""
    return _REGISTRY.start(lambda lock: launch_registry(options or RegistryOptions(), lock=lock))


def detached_server() -> DetachedServer | None:
    """Return the Pravega server that runs in the background, or None."""
    return _PRAVEGA.state()


def detached_registry() -> DetachedServer | None:
    """Return the schema registry that runs in the background, or None."""
    return _REGISTRY.state()


def stop_detached() -> DetachedServer | None:
    """End the Pravega server in the background, and wait for its end. Return the server, or None if none ran."""
    return _PRAVEGA.stop()


def stop_detached_registry() -> DetachedServer | None:
    """End the schema registry in the background, and wait for its end. Return it, or None if none ran."""
    return _REGISTRY.stop()


@dataclass(frozen=True, slots=True)
class _Place:
    """Files that record the running server of one kind."""

    name: str
    title: str

    def start(self, launch_one: Callable[[Path], Launched]) -> DetachedServer:
        with _changing():
            running = self.state()
            if running is not None:
                return running
            server = launch_one(self._alive_file())
            cluster = str(server.folder) if isinstance(server, Cluster) else None
            state = DetachedServer(server.uri, server.process.supervisor_pid, time.time(), str(server.log), cluster)
            # Written before the server is detached, because an unrecorded server could not be stopped.
            self._write(state)
            server.process.detach()
            return state

    def state(self) -> DetachedServer | None:
        if not self._is_alive():
            return None
        try:
            return DetachedServer(**json.loads(self._state_file().read_text()))
        except (OSError, ValueError, TypeError):
            # The server is starting, and has no state file yet.
            return None

    def stop(self) -> DetachedServer | None:
        with _changing():
            state = self.state()
            if state is not None:
                os.kill(state.pid, signal.SIGTERM)
                self._await_end(state)
            self._state_file().unlink(missing_ok=True)
            return state

    def _await_end(self, state: DetachedServer) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while self._is_alive():
            if time.monotonic() > deadline:
                raise LocalServerError(f"the {self.title} (process {state.pid}) did not end in {_STOP_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _is_alive(self) -> bool:
        try:
            file = os.open(self._alive_file(), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def _write(self, state: DetachedServer) -> None:
        partial = self._state_file().with_suffix(".partial")
        partial.write_text(json.dumps(asdict(state)))
        partial.replace(self._state_file())

    def _alive_file(self) -> Path:
        return _folder() / f"{self.name}.lock"

    def _state_file(self) -> Path:
        return _folder() / f"{self.name}.json"


_PRAVEGA: Final = _Place("server", "Pravega server")
_REGISTRY: Final = _Place("registry", "schema registry")


@contextlib.contextmanager
def _changing() -> Iterator[None]:
    """Allow one process at a time to start or stop a server."""
    _folder().mkdir(parents=True, exist_ok=True)
    with file_lock(_folder() / "change.lock"):
        yield


def _folder() -> Path:
    return cache_dir() / "local"

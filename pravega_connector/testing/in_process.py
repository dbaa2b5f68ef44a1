"""Complete Pravega in this process: controller, segment store, and the clock that expires leases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import LocalServerError
from pravega_connector.testing.controller_service import Controller
from pravega_connector.testing.controller_state import SHORTEST_LEASE, Cluster
from pravega_connector.testing.faults import Faults
from pravega_connector.testing.segment_store import SegmentStore

# Seconds between two checks of leases and event times.
_TICK: Final = 0.02


class InProcessPravega:
    """Pravega for tests, in this process and in memory. Any process on this machine can connect to it.

    It runs inside a ``with`` block, or from :meth:`start` to :meth:`close`. ``shortest_lease`` is the shortest lease of
    a transaction in seconds. Pravega's own is 10 s. Set a shorter one for tests of transactions that expire.
    ``accepts`` returns True for the value of the header ``authorization``, or None without it, if the controller should
    answer. Set it for tests of credentials.
    """

    def __init__(
        self, *, shortest_lease: float = SHORTEST_LEASE / 1000, accepts: Callable[[str | None], bool] | None = None
    ) -> None:
        self._shortest_lease, self._accepts = round(shortest_lease * 1000), accepts
        self._running: _Parts | None = None

    def start(self) -> None:
        """Start the server, which is ready on return."""
        if self._running is not None:
            raise LocalServerError(f"this in-process Pravega is running already, at {self.uri}")
        self._running = _Parts(self._shortest_lease, self._accepts)

    def close(self) -> None:
        """End the server, and delete its data."""
        if self._running is not None:
            self._running.close()
            self._running = None

    @property
    def uri(self) -> str:
        """Address of the controller."""
        return f"tcp://127.0.0.1:{self._parts.controller.port}"

    @property
    def config(self) -> PravegaConfig:
        """Configuration of a client."""
        return PravegaConfig(controller=self.uri)

    def client(self) -> PravegaClient:
        """Return a new client. Close it yourself."""
        return PravegaClient(self.config)

    @property
    def faults(self) -> Faults:
        """Faults to inject."""
        return self._parts.faults

    @property
    def store(self) -> SegmentStore:
        """Segment store."""
        return self._parts.store

    @property
    def controller(self) -> Controller:
        """Controller, which counts its calls."""
        return self._parts.controller

    @property
    def _parts(self) -> _Parts:
        if self._running is None:
            raise LocalServerError("this in-process Pravega is not running; call start() or use it in a with statement")
        return self._running

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Parts:
    """Parts of a running in-process Pravega."""

    def __init__(self, shortest_lease: int, accepts: Callable[[str | None], bool] | None) -> None:
        self.store = SegmentStore()
        self.cluster = Cluster(self.store, shortest_lease=shortest_lease)
        self.controller = Controller(self.cluster, accepts)
        self.faults = Faults(self.store, self.controller)
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._tick, name="pravega-clock", daemon=True)
        self._clock.start()

    def _tick(self) -> None:
        while not self._ended.wait(_TICK):
            with self.store.changing():
                self.cluster.tick()

    def close(self) -> None:
        self._ended.set()
        self._clock.join()
        self.faults.clear()
        self.controller.close()
        self.store.close()

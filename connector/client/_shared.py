"""One client for each cluster and process: Spark's workers live on from task to task, and connections with them."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final

from connector.client._client import PravegaClient
from connector.client._health import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT
from connector.config import PravegaConfig

__all__ = ["shared_client"]

_lock: Final = threading.Lock()
_clients: Final[dict[tuple[int, PravegaConfig, float, float, bool], PravegaClient]] = {}


def shared_client(
    config: PravegaConfig,
    timeout: float = DEFAULT_TIMEOUT,
    failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
    *,
    service: bool = False,
) -> PravegaClient:
    """The process's client for a configuration and timeouts; do not close it. A forked process gets a new one."""
    key = (os.getpid(), config, timeout, failover_timeout, service)
    with _lock:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = PravegaClient(
                config, timeout=timeout, failover_timeout=failover_timeout, service=service
            )
        return client


@atexit.register
def _close_all() -> None:
    for (pid, *_), client in _clients.items():
        if pid == os.getpid():
            client.close()

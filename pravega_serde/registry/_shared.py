"""One client for each registry and process: Spark's workers live on from task to task, and answers with them."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final

from pravega_serde.registry._client import SchemaRegistryClient
from pravega_serde.registry._config import RegistryConfig

__all__ = ["shared_client"]

_lock: Final = threading.Lock()
_clients: Final[dict[tuple[int, RegistryConfig], SchemaRegistryClient]] = {}


def shared_client(config: RegistryConfig) -> SchemaRegistryClient:
    """The process's client for a configuration; do not close it. A forked process gets a new one."""
    key = os.getpid(), config
    with _lock:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = SchemaRegistryClient(config)
        return client


@atexit.register
def _close_all() -> None:
    for (pid, _), client in _clients.items():
        if pid == os.getpid():
            client.close()

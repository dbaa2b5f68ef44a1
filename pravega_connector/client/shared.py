"""One client for each cluster and process: Spark's workers live on from task to task, and connections with them.

Some of Spark's processes are new while a query goes on: those that plan a micro-batch after a pause of a minute. A
client there would take an outage for a wrong address. So a controller that has answered is noted for the other
processes of the same user on the same machine, by the time of an empty file.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.core.retry import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT
from pravega_serde.per_process import PerProcess

# A controller that has answered so many seconds ago is there: longer than most queries pause between two batches.
_KNOWN_FOR: Final = 3600.0
# … and is noted once in so many seconds.
_NOTE_EVERY: Final = 60.0

_clients: Final[PerProcess[tuple[PravegaConfig, float, float, bool], PravegaClient]] = PerProcess(PravegaClient.close)
_noted: Final[dict[str, float]] = {}


def shared_client(
    config: PravegaConfig,
    timeout: float = DEFAULT_TIMEOUT,
    failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
    *,
    service: bool = False,
) -> PravegaClient:
    """The process's client for a configuration and timeouts; do not close it. A forked process gets a new one."""
    return _clients.get(
        (config, timeout, failover_timeout, service),
        lambda: PravegaClient(config, timeout=timeout, failover_timeout=failover_timeout, service=service),
    )


def note_answer(config: PravegaConfig) -> None:
    """Note for other processes that a server of this cluster has answered. Costs next to nothing, and never fails."""
    now = time.monotonic()
    if now < _noted.get(config.controller, float("-inf")) + _NOTE_EVERY:
        return
    _noted[config.controller] = now
    file = _note(config)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(file.parent):
            file.touch(mode=0o600)


def has_answered(config: PravegaConfig) -> bool:
    """Whether a process of this user noted on this machine, within the last hour, that the cluster answers."""
    file = _note(config)
    try:
        return _is_ours(file.parent) and 0 <= time.time() - file.lstat().st_mtime < _KNOWN_FOR
    except OSError:
        return False


def _note(config: PravegaConfig) -> Path:
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    name = hashlib.sha256(config.controller.encode()).hexdigest()[:32]
    return Path(tempfile.gettempdir(), f"pravega-serde-{user}", name)


def _is_ours(folder: Path) -> bool:
    """Whether only this user can write into a folder."""
    found = folder.lstat()
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022

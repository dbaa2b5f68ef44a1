"""Clusters that have answered, recorded by one of Spark's Python processes for the others.

Some of Spark's processes start while a query runs: they plan a micro-batch after a pause of a minute. A client there
would treat an outage as a wrong address. So the modification time of an empty file records that a controller has
answered. It counts for the same user on the same machine. Only processes that Spark started write or read these files.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pravega_connector.client.shared import shared_client
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.boundary import is_spark_process

if TYPE_CHECKING:
    from pravega_connector.client.pravega_client import PravegaClient
    from pravega_connector.rows.options import ConnectionOptions

# Seconds for which a record is valid: longer than the pause between two batches of most queries.
_KNOWN_FOR: Final = 3600.0
# Seconds between two records of the same cluster.
_NOTE_EVERY: Final = 60.0

_noted: Final[dict[str, float]] = {}


def note_answer(config: PravegaConfig) -> None:
    """Record for Spark's other processes that a server of this cluster has answered. It is cheap and never fails."""
    if not is_spark_process():
        return
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
    """Return True if a Spark process of this user on this machine recorded an answer within the last hour.

    Outside Spark's processes, always return False.
    """
    if not is_spark_process():
        return False
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
    """Return True if only this user can write into a directory."""
    found = folder.lstat()
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def client_of(
    options: ConnectionOptions, *, service: bool = False, failover_timeout: float | None = None
) -> PravegaClient:
    """Return the client that the process shares; do not close it.

    The client waits up to ``failover_timeout`` seconds (default: the option) for servers that have answered before.
    The answer may have come in this process, or within the last hour in another Spark process on this machine. With
    ``service``, the caller knows that they have answered. Otherwise the client waits up to ``timeout_ms``, so that a
    wrong address fails soon.
    """
    config = options.config
    going_on = options.failover_timeout_ms / 1000 if failover_timeout is None else failover_timeout
    client = shared_client(config, options.timeout_ms / 1000, going_on)
    if not client.health.going_on and (service or has_answered(config)):
        client.health.service = True
    return client

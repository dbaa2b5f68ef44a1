"""One client per cluster and process. The tasks of a Spark worker share its connections."""

from __future__ import annotations

from typing import Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT, PravegaConfig
from pravega_serde.per_process import PerProcess

_clients: Final[PerProcess[tuple[PravegaConfig, float, float, bool], PravegaClient]] = PerProcess(PravegaClient.close)


def shared_client(
    config: PravegaConfig,
    timeout: float = DEFAULT_TIMEOUT,
    failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
    *,
    service: bool = False,
) -> PravegaClient:
    """Return the process's client for a configuration and timeouts.

    Do not close it. A forked process gets a new one.
    """
    return _clients.get(
        (config, timeout, failover_timeout, service),
        lambda: PravegaClient(config, timeout=timeout, failover_timeout=failover_timeout, service=service),
    )

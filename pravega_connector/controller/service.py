"""Controller client: scopes, streams, segments, store addresses, transactions, times, reader groups, tables."""

from __future__ import annotations

from collections.abc import Callable

from pravega_connector.config import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT, PravegaConfig
from pravega_connector.controller.groups import GroupCalls
from pravega_connector.controller.streams import StreamCalls
from pravega_connector.controller.tables import TableCalls
from pravega_connector.controller.transactions import TransactionCalls
from pravega_connector.core.retry import ClusterHealth


class ControllerClient(StreamCalls, TransactionCalls, GroupCalls, TableCalls):
    """Calls to a Pravega controller. Thread safe; can be pickled.

    A forked child opens its own connection, unless its parent has called a controller: gRPC does not support that, and
    the call raises a ControllerError.

    The client connects on the first call. Until a server has answered, every call ends within ``timeout`` seconds, and
    after that within ``failover_timeout`` seconds, attempts included. A call with a ``deadline`` ends at the deadline.
    Changes are durable on return. A call raises:

    - ControllerUnavailableError: no answer.
    - AuthenticationError.
    - ScopeNotFoundError or StreamNotFoundError. A call that only reads never creates a scope or stream.
    - ControllerFailureError: an internal failure of the controller that lasted.
    - ControllerError: any other refusal.

    A creation or deletion with a lost answer is repeated, and then finds its own result. It returns False, as if
    another client had been first.
    """

    def __init__(
        self,
        config: PravegaConfig,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
        health: ClusterHealth | None = None,
    ) -> None:
        """Create a client for the controllers in ``config``.

        ``health`` belongs to the client that contains this one, and has its own timeouts.
        """
        super().__init__(config, health or ClusterHealth(timeout, failover_timeout))

    def __repr__(self) -> str:
        return f"ControllerClient({self._config.controller!r}, timeout={self.health.timeout})"

    def __reduce__(self) -> tuple[Callable[..., ControllerClient], tuple[PravegaConfig, float, float, bool]]:
        health = self.health
        return _unpickled, (self._config, health.timeout, health.failover_timeout, health.service)


def _unpickled(config: PravegaConfig, timeout: float, failover_timeout: float, service: bool) -> ControllerClient:
    return ControllerClient(config, health=ClusterHealth(timeout, failover_timeout, service=service))

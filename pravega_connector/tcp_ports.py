"""TCP ports of this machine: which numbers are one, which are free, where something listens."""

from __future__ import annotations

import random
import socket
from typing import Final

from pravega_connector.errors import ConfigError, LocalServerError

# Below what Linux (32768) and macOS (49152) give to outgoing connections, any of which could take a port between the
# moment it is found free and the moment the server listens on it.
_RANGE: Final = range(10_000, 30_000)


def check_port_number(port: object) -> None:
    """Raise ConfigError for what is no port's number; 0 is any free one."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 1 << 16:
        raise ConfigError(
            f"invalid port {port!r}; a port must be a whole number from 0 to 65535, and 0 is any free port"
        )


def check_port(port: int) -> None:
    """Raise LocalServerError for a port that was asked for and is in use; 0 is any free one."""
    if port and not is_free(port):
        raise LocalServerError(
            f"port {port} is in use; stop the process that listens there, or use port 0 for any free port"
        )


def free_ports(count: int) -> list[int]:
    """``count`` different ports that nothing listens on, on any interface.

    They are free when this returns; another process may take one before it is used, so be ready to ask again.
    """
    found: list[int] = []
    # By chance, so that two processes at once hardly ever look at the same ones, with whatever seed.
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    try:
        # Java listens on IPv6 and IPv4 at once where it can, so a port has to be free in both.
        if socket.has_dualstack_ipv6():
            server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            server = socket.create_server(("", port))
    except OSError:
        return False
    server.close()
    return True


def listens(endpoint: tuple[str, int], timeout: float = 10.0) -> bool:
    """Whether a server takes connections there."""
    try:
        socket.create_connection(endpoint, timeout=timeout).close()
    except OSError:
        return False
    return True

"""TCP ports of this machine: valid numbers, free ports, and ports on which a server listens."""

from __future__ import annotations

import random
import socket
from typing import Final

from pravega_connector.errors import ConfigError, LocalServerError

# Below the ports that Linux (32768) and macOS (49152) use for outgoing connections. Such a connection could take a port
# after it was found free, and before the server listens on it.
_RANGE: Final = range(10_000, 30_000)


def check_port_number(port: object) -> None:
    """Raise ConfigError unless ``port`` is the number of a port; 0 is any free port."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 1 << 16:
        raise ConfigError(
            f"invalid port {port!r}; a port must be a whole number from 0 to 65535, and 0 is any free port"
        )


def check_port(port: int) -> None:
    """Raise LocalServerError if a port is in use; 0 is any free port."""
    if port and not is_free(port):
        raise LocalServerError(
            f"port {port} is in use; stop the process that listens there, or use port 0 for any free port"
        )


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports that are free on all interfaces.

    Another process may take one before you use it, so be ready to call this again.
    """
    found: list[int] = []
    # Random, independent of the program's seed: two processes at once rarely try the same ports.
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Return True if a server could listen on the port now."""
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
    """Return True if a server accepts connections at the endpoint."""
    try:
        socket.create_connection(endpoint, timeout=timeout).close()
    except OSError:
        return False
    return True

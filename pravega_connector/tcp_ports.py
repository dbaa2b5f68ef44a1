"""TCP ports of this machine: valid numbers, free ports, and ports on which a server listens."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Final, TypeVar

from pravega_connector.errors import ConfigError, LocalServerError

# Below the ports that Linux (32768) and macOS (49152) give to outgoing connections, and to servers that ask for any.
# Such a connection could take a port after it was found free, and before the server listens on it. And a client that
# still asks a stopped server would reach the program that has the port since.
_RANGE: Final = range(10_000, 30_000)
# Of servers in this process. They listen at once, and take no port that another process has just found free.
_IN_PROCESS: Final = range(30_000, 32_768)
_TRIES: Final = 1_000
_Server = TypeVar("_Server")


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

    Another process may take one before you use it, so be ready to call this again. Raises LocalServerError if fewer
    are found.
    """
    found: list[int] = []
    # Random, independent of the program's seed: two processes at once rarely try the same ports.
    for port in random.Random().sample(_RANGE, _TRIES):
        if len(found) == count:
            return found
        if is_free(port):
            found.append(port)
    raise LocalServerError(
        f"found {len(found)} free ports of {count} wanted from {_RANGE.start} to {_RANGE.stop - 1}; stop servers there"
    )


def listen_on_free_port(listen: Callable[[int], _Server]) -> _Server:
    """Return ``listen(port)`` for a free port.

    It is called with another one if the port has been taken in the meantime. Its other errors pass. Raises
    LocalServerError if no port is free.
    """
    for port in random.Random().sample(_IN_PROCESS, _TRIES):
        if not is_free(port):
            continue
        try:
            return listen(port)
        except (OSError, RuntimeError):  # RuntimeError: a gRPC server's
            if is_free(port):
                raise
    raise LocalServerError(
        f"found no free port from {_IN_PROCESS.start} to {_IN_PROCESS.stop - 1}; stop servers that listen there"
    )


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

"""Free TCP ports."""

from __future__ import annotations

import contextlib
import socket

__all__ = ["free_ports", "is_free"]


def free_ports(count: int) -> list[int]:
    """``count`` different ports that nothing listens on, on any interface.

    They are free when this returns; another process may take one before it is used, so be ready to ask again.
    """
    with contextlib.ExitStack() as held:
        # All are held until the last is found, or the kernel might give one of them twice.
        return [held.enter_context(_listen(0)).getsockname()[1] for _ in range(count)]


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    try:
        _listen(port).close()
    except OSError:
        return False
    return True


def _listen(port: int) -> socket.socket:
    # Java listens on IPv6 and IPv4 at once where it can, so a port has to be free in both.
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))

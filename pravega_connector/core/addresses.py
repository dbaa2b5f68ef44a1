"""Connections to a host by its name, which may have several addresses, some of them unreachable.

RFC 8305: the families of the addresses alternate. After a short delay, the next address is tried as well. The first
address that accepts is used.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections import deque
from itertools import zip_longest
from typing import Any, Final

from pravega_connector.core import io

# Seconds before the next address is tried too: RFC 8305's Connection Attempt Delay.
_NEXT_AFTER: Final = 0.25
_Address = tuple[Any, ...]  # as socket.getaddrinfo returns it


def connect(endpoint: tuple[str, int], timeout: float) -> socket.socket:
    """Return a connected, non-blocking socket after at most ``timeout`` seconds.

    Raises OSError, and UnicodeError for an invalid host name.
    """
    end = time.monotonic() + timeout
    addresses = deque(_alternating(_resolved(endpoint, timeout)))
    refusal = OSError(f"{endpoint[0]} has no address")
    under_way: dict[int, socket.socket] = {}
    next_at = 0.0
    try:
        while addresses or under_way:
            now = time.monotonic()
            if now >= end:
                raise TimeoutError("timed out")
            if addresses and (now >= next_at or not under_way):
                next_at = now + _NEXT_AFTER
                try:
                    sock = _begun(addresses.popleft())
                except OSError as error:
                    refusal, next_at = error, 0.0
                    continue
                under_way[sock.fileno()] = sock
            masks = dict.fromkeys(under_way, select.POLLOUT)
            for descriptor in io.Watch(masks).wait(max(0.0, (min(end, next_at) if addresses else end) - now)):
                sock = under_way[descriptor]
                if not (code := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
                    del under_way[descriptor]
                    return sock
                refusal, next_at = OSError(code, os.strerror(code)), 0.0
                under_way.pop(descriptor).close()
        raise refusal
    finally:
        for sock in under_way.values():
            sock.close()


def _begun(address: _Address) -> socket.socket:
    """Return a socket that is being connected. Raises OSError."""
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        code = sock.connect_ex(place)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _resolved(endpoint: tuple[str, int], timeout: float) -> list[_Address]:
    """Return the addresses of a host.

    Raises OSError, also if the name is not resolved in time. Raises UnicodeError for an invalid name.
    """
    host, port = endpoint

    def look_up(flags: int = 0) -> list[_Address]:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))

    try:
        return look_up(socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # a name: the system's resolver has no timeout
    try:
        return io.outcome(io.in_background(look_up, f"pravega-resolver {host}"), timeout)
    except TimeoutError:
        raise TimeoutError(f"the name was not resolved within {timeout:.1f} s") from None


def _alternating(addresses: list[_Address]) -> list[_Address]:
    """Return the addresses with alternating families, the first address first."""
    first = [each for each in addresses if each[0] == addresses[0][0]]
    others = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for pair in zip_longest(first, others) for each in pair if each is not None]

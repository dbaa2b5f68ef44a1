"""Ports that a server can have."""

import contextlib
import re
import socket

import pytest

from pravega_connector.errors import ConfigError
from pravega_connector.local.server import ServerOptions
from pravega_connector.tcp_ports import check_port_number, free_ports, is_free

FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0")]
if socket.has_ipv6:
    FAMILIES += [(socket.AF_INET6, "::1")]


def test_many_at_once_are_different_and_usable():
    ports = free_ports(50)
    assert len(set(ports)) == 50
    with contextlib.ExitStack() as held:
        for port in ports:
            held.enter_context(socket.create_server(("127.0.0.1", port)))


@pytest.mark.parametrize(("family", "address"), FAMILIES)
def test_a_port_in_use_on_any_interface_is_not_free(family, address):
    def is_free_afterwards():
        with socket.create_server((address, 0), family=family) as server:
            port = server.getsockname()[1]
            assert not is_free(port)
        return is_free(port)

    # Another process may take a port that has just become free.
    assert any(is_free_afterwards() for _ in range(5))


@pytest.mark.parametrize("port", [-1, 65536, "9090", None, True, 9090.0])
def test_what_is_not_a_port_is_reported_before_anything_starts(port):
    with pytest.raises(ConfigError, match=rf"invalid port {re.escape(repr(port))}; a port must be a whole number"):
        check_port_number(port)
    for good in (0, 9090, 65535):
        check_port_number(good)


def test_a_server_says_what_its_port_may_be():
    with pytest.raises(ConfigError, match="invalid port '9090'"):
        ServerOptions(port="9090")

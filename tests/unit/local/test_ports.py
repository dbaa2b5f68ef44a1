"""Ports that a server can have."""

import contextlib
import socket

import pytest

from connector.local.launch import free_ports, is_free

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
